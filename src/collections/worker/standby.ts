import { aborted } from "../../base/abort.ts";
import { PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/time.ts";
import { asError, notify } from "../retry.ts";
import type { Claim, Claims, Hold, HoldOptions } from "./claim.ts";
import { createPump, type PumpOutcome } from "./pump.ts";

interface StandbyOptions extends HoldOptions {
  readonly claims: Claims;
  readonly clock: Clock;
  /** Wait after a failure, and after it was asked to step down. */
  readonly pauseMs: number;
  /** Called when it tries no more. */
  onEnd(): void;
}

const DISPOSE_WAIT_MS = 5_000;

/** Waits for a claim, holds it, and when it is lost waits again, until it is disposed. */
export function standBy(id: string, options: StandbyOptions): Hold {
  const { claims, clock, pauseMs } = options;
  const report = (error: Error) => notify(() => options.onError?.(error));
  let held: Claim | undefined;
  const pump = createPump({
    poll: async ({ signal }) => {
      const got = await claims.acquire(id, { signal, counted: false });
      if (got.claim !== undefined) return serve(got.claim);
      return got.dead === undefined ? { later: true, ms: got.retryInMs, orWake: true } : { later: true };
    },
    clock,
    retry: {
      maxAttempts: Number.POSITIVE_INFINITY,
      delayMs: pauseMs,
      maxDelayMs: pauseMs,
      // Another life of this owner has begun, or the claims are disposed: this one is over.
      retryable: (error) => !PerdureError.is(error, "fenced") && !PerdureError.is(error, "bad_state"),
    },
    giveUp: end,
    onError: report,
  });
  const stopWatching = claims.subscribe(() => pump.wake());
  pump.wake();

  function end(): void {
    stopWatching();
    options.onEnd();
  }

  async function serve(claim: Claim): Promise<PumpOutcome> {
    held = claim;
    let failed = false;
    try {
      await options.onGained(claim);
      await aborted(claim.signal);
    } catch (error) {
      failed = true;
      report(asError(error));
    }
    held = undefined;
    const lost = claim.signal.reason ?? new PerdureError("bad_state", `Work with "${id}" could not begin.`);
    try {
      const reason = PerdureError.is(lost) ? lost : new PerdureError("bad_state", String(lost), { cause: lost });
      await options.onLost?.(claim, reason);
    } catch (error) {
      report(asError(error));
    }
    const had = await claim.release().catch(() => false);
    // It was given up, not lost: the others go first.
    return had || failed ? { later: true, ms: pauseMs } : "again";
  }

  async function dispose(): Promise<void> {
    end();
    // Bounded: what it waits for may be a log that cannot be reached.
    await pump.dispose(DISPOSE_WAIT_MS, new PerdureError("bad_state", `The hold of "${id}" was disposed.`));
  }

  return {
    id,
    get claim() {
      return held;
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}
