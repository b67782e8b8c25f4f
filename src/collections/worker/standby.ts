import { PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/id.ts";
import { asError } from "./retry.ts";
import { within } from "./timer.ts";
import type { Claim, Claims, Hold, HoldOptions } from "./claim.ts";

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
  private readonly stop = new AbortController();
  private readonly running: Promise<void>;
  /** How often claims have changed: what happens between a look and a pause must end the pause. */
  private changes = 0;
  private wake = () => {};

  constructor(id: string, options: StandbyOptions) {
    this.id = id;
    this.options = options;
    const stopWatching = options.claims.subscribe(() => {
      this.changes++;
      this.wake();
    });
    this.running = this.run().finally(() => {
      stopWatching();
      options.onEnd(this);
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async dispose(): Promise<void> {
    this.stop.abort(new PerdureError("bad_state", `The hold of "${this.id}" was disposed.`));
    this.wake();
    // Bounded: what it waits for may be a log that cannot be reached.
    await within(this.options.clock, DISPOSE_WAIT_MS, this.running);
  }

  private get stopped(): boolean {
    return this.stop.signal.aborted;
  }

  private async run(): Promise<void> {
    const { claims, pauseMs } = this.options;
    while (!this.stopped) {
      const { changes } = this;
      try {
        const got = await claims.acquire(this.id, { signal: this.stop.signal, counted: false });
        if (got.claim !== undefined) await this.serve(got.claim);
        else await this.pause(changes, got.dead === undefined ? got.retryInMs : undefined);
      } catch (error) {
        if (this.stopped) return;
        this.report(error);
        // Another life of this owner has begun, or the claims are disposed: this one is over.
        if (PerdureError.is(error, "fenced") || PerdureError.is(error, "bad_state")) return;
        await this.pause(this.changes, pauseMs);
      }
    }
  }

  private async serve(claim: Claim): Promise<void> {
    const { options } = this;
    this.claim = claim;
    let failed = false;
    try {
      await options.onGained(claim);
      await aborted(claim.signal);
    } catch (error) {
      failed = true;
      this.report(error);
    }
    this.claim = undefined;
    const lost = claim.signal.reason ?? new PerdureError("bad_state", `Work with "${this.id}" could not begin.`);
    try {
      await options.onLost?.(
        claim,
        PerdureError.is(lost) ? lost : new PerdureError("bad_state", String(lost), { cause: lost }),
      );
    } catch (error) {
      this.report(error);
    }
    const had = await claim.release().catch(() => false);
    // It was given up, not lost: the others go first.
    if (had || failed) await this.pause(undefined, options.pauseMs);
  }

  /** Until a claim changes (`since`: from that count on; undefined: not then), `ms` have passed, or it is disposed. */
  private pause(since: number | undefined, ms: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (this.stopped || (since !== undefined && since !== this.changes)) return resolve();
      const cancel = ms === undefined ? () => {} : this.options.clock.after(ms, () => done());
      const done = () => {
        cancel();
        this.wake = () => {};
        resolve();
      };
      this.wake = () => {
        if (this.stopped || since !== undefined) done();
      };
    });
  }

  private report(error: unknown): void {
    this.options.onError?.(asError(error));
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
