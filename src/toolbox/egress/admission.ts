import { PerdureError } from "../../base/error.ts";
import type { EgressLimits } from "./limits.ts";

/** More than this many waiting is no queue any more. */
const MAX_WAITING = 256;
const MINUTE = 60_000;

/**
 * Counts requests in total, per minute and at once. The returned function resolves, once a place is free, to what gives it back
 * (twice is harmless). It rejects with PerdureError `limit` when too many were started, or with the signal's reason.
 */
export function createAdmission(limits: EgressLimits): (signal: AbortSignal) => Promise<() => void> {
  let total = 0;
  let minute = { from: 0, count: 0 };
  let active = 0;
  const waiting: (() => void)[] = [];

  const count = () => {
    const now = Date.now();
    // A clock that was set back must not lock anybody out.
    if (now - minute.from >= MINUTE || now < minute.from) minute = { from: now, count: 0 };
    if (total >= limits.requests) throw full(`All ${limits.requests} requests that may be made here were made.`);
    if (minute.count >= limits.requestsPerMinute) {
      throw full(`${limits.requestsPerMinute} requests were made within a minute. Wait, then go on with fewer.`);
    }
    total += 1;
    minute.count += 1;
  };

  const leaver = () => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = waiting.shift();
      if (next === undefined) active -= 1;
      else next();
    };
  };

  return async (signal) => {
    signal.throwIfAborted();
    count();
    if (active < limits.concurrent) {
      active += 1;
      return leaver();
    }
    if (waiting.length >= MAX_WAITING) throw full("Too many requests wait for their turn. Make fewer at once.");
    await new Promise<void>((resolve, reject) => {
      const go = () => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = () => {
        waiting.splice(waiting.indexOf(go), 1);
        reject(signal.reason as Error);
      };
      waiting.push(go);
      signal.addEventListener("abort", stop, { once: true });
    });
    return leaver();
  };
}

function full(message: string): PerdureError {
  return new PerdureError("limit", message);
}
