import { PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/id.ts";
import { asError, notify } from "../retry.ts";
import type { Claim, Claims, Hold, HoldOptions } from "./claim.ts";
import { createPump } from "./pump.ts";
import type { Pump, PumpOutcome } from "./pump.ts";

/** What a standby needs beside the claims. */
interface StandbyOptions extends HoldOptions {
  readonly claims: Claims;
  readonly clock: Clock;
  /** Wait after a failure, and after it was asked to step down. */
  readonly pauseMs: number;
  /** Called when it tries no more. */
  onEnd(standby: Standby): void;
}

const DISPOSE_WAIT_MS = 5_000;

/** Waits for a claim, holds it, and when it is lost waits again, until it is disposed. */
export class Standby implements Hold {
  readonly id: string;
  claim: Claim | undefined;
  private readonly options: StandbyOptions;
  private readonly pump: Pump;
  private readonly stopWatching: () => void;
  private readonly report: (error: Error) => void;

  constructor(id: string, options: StandbyOptions) {
    this.id = id;
    this.options = options;
    const { clock, pauseMs } = options;
    this.report = (error) => notify(() => options.onError?.(error));
    this.pump = createPump({
      poll: ({ signal }) => this.poll(signal),
      clock,
      retry: {
        maxAttempts: Number.POSITIVE_INFINITY,
        delayMs: pauseMs,
        maxDelayMs: pauseMs,
        // Another life of this owner has begun, or the claims are disposed: this one is over.
        retryable: (error) => !PerdureError.is(error, "fenced") && !PerdureError.is(error, "bad_state"),
      },
      giveUp: () => this.end(),
      onError: this.report,
    });
    this.stopWatching = options.claims.subscribe(() => this.pump.wake());
    this.pump.wake();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async dispose(): Promise<void> {
    this.end();
    // Bounded: what it waits for may be a log that cannot be reached.
    const reason = new PerdureError("bad_state", `The hold of "${this.id}" was disposed.`);
    await this.pump.dispose(DISPOSE_WAIT_MS, reason);
  }

  private end(): void {
    this.stopWatching();
    this.options.onEnd(this);
  }

  private async poll(signal: AbortSignal): Promise<PumpOutcome> {
    const got = await this.options.claims.acquire(this.id, { signal, counted: false });
    if (got.claim !== undefined) return this.serve(got.claim);
    return got.dead === undefined ? { later: true, ms: got.retryInMs, orWake: true } : { later: true };
  }

  private async serve(claim: Claim): Promise<PumpOutcome> {
    const { options } = this;
    this.claim = claim;
    let failed = false;
    try {
      await options.onGained(claim);
      await aborted(claim.signal);
    } catch (error) {
      failed = true;
      this.report(asError(error));
    }
    this.claim = undefined;
    const lost = claim.signal.reason ?? new PerdureError("bad_state", `Work with "${this.id}" could not begin.`);
    try {
      await options.onLost?.(
        claim,
        PerdureError.is(lost) ? lost : new PerdureError("bad_state", String(lost), { cause: lost }),
      );
    } catch (error) {
      this.report(asError(error));
    }
    const had = await claim.release().catch(() => false);
    // It was given up, not lost: the others go first.
    return had || failed ? { later: true, ms: options.pauseMs } : "again";
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
