import { errorText, PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";

/** How long a rule of the app may think. What comes after it at the same place waits. */
const RULE_MS = 10_000;

/** What a rule fails about comes again; for longer than this it is refused, so that it does not stand before what others say. */
const JUDGED_MS = 10 * 60_000;
const MAX_FAILING = 10_000;
/** What whoever said it is told then. */
export const NOT_JUDGED = "Sorry, I could not take that. Please try again later.";

const failures = new WeakSet<object>();

/** What rules fail about, since when. In memory: after a restart there is as much time again. */
export class Unjudged<KEY> {
  readonly #since = new Map<KEY, number>();

  /** A rule has failed about it. @returns whether it has for too long */
  isOver(key: KEY, now: number): boolean {
    const since = this.#since.get(key) ?? now;
    if (this.#since.size >= MAX_FAILING) this.#since.clear();
    this.#since.set(key, since);
    return now - since >= JUDGED_MS;
  }

  forget(key: KEY): void {
    this.#since.delete(key);
  }
}

/** Whether a rule of the app failed, and not what stores. */
export function isOfRule(thrown: unknown): boolean {
  return (typeof thrown === "object" && thrown !== null && failures.has(thrown)) || PerdureError.is(thrown, "timeout");
}

/** Runs a rule of the app. What it throws is known by {@link isOfRule}. */
export function ofRule<T>(rule: () => T): T {
  try {
    return rule();
  } catch (thrown) {
    throw noted(thrown);
  }
}

/** Asks a rule of the app that may wait for something, but not for ever. @throws PerdureError `timeout` */
export async function inTime<T>(clock: Clock, name: string, rule: () => T | Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const words = `${name} took longer than ${RULE_MS / 1000} s. What it was asked about is not stored, and comes again.`;
  const cancel = clock.after(RULE_MS, () => late.reject(new PerdureError("timeout", words)));
  try {
    return await Promise.race([(async () => rule())(), late.promise]);
  } catch (thrown) {
    throw noted(thrown);
  } finally {
    cancel();
  }
}

function noted(thrown: unknown): unknown {
  const error = typeof thrown === "object" && thrown !== null ? thrown : new Error(errorText(thrown));
  failures.add(error);
  return error;
}
