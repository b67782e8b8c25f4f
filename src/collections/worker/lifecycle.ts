import { InOrder } from "../../base/in-order.ts";
import { PerdureError, errorText } from "../../base/error.ts";
import type { CheckpointContract } from "../contract.ts";
import { CheckpointGuard, compareCursors, type CompareCursors } from "./checkpoint.ts";
import { asError } from "../retry.ts";
import { linkSignals } from "../../base/abort.ts";
import { startTimer } from "../../base/time.ts";

/** What an adapter gave when a wake was claimed. */
export interface RunnerClaim {
  /** Names this life of the runner. Where it is a number, a later one is greater: see `producerOf`. */
  readonly fenceToken?: string;
  /** How long the claim holds without a heartbeat. */
  readonly leaseMs?: number;
  readonly heartbeatIntervalMs?: number;
  /** How far each source goes, as the transport saw it when it woke this runner: what there is to be read. */
  readonly tails?: readonly CheckpointContract[];
}

/** Which wake an adapter is called for. */
export interface RunnerState<TWake> {
  readonly wake: TWake;
  readonly fenceToken?: string;
}

/**
 * A transport that wakes runners: a webhook, a queue, an alarm. Every method may be slow. Rejecting with PerdureError `fenced`
 * means that another runner has this work; any other rejection, only that the call failed.
 */
export interface RunnerLifecycleAdapter<TWake = unknown> {
  /** Takes the wake. Rejects with `fenced` when it is stale or somebody has it: then nothing is run. */
  claimWake(wake: TWake, context: { readonly signal: AbortSignal }): Promise<RunnerClaim>;
  /** Says that the runner lives. Called on a timer, see `heartbeatIntervalMs`. */
  heartbeat?(state: RunnerState<TWake>): Promise<void>;
  /** Keeps how far sources were consumed. Per source it is only called with cursors that grow. */
  checkpoint?(checkpoints: CheckpointContract[], state: RunnerState<TWake>): Promise<void>;
  /** Ends the wake. `done: false`: there is more to do, wake somebody again. */
  complete?(state: RunnerState<TWake>, result: { readonly done: boolean }): Promise<void>;
  /** Ends the wake badly: the transport wakes again at its own pace. */
  fail?(state: RunnerState<TWake>, error: Error): Promise<void>;
  /** How often to call `heartbeat`, unless the claim says so. Default: three times in a lease, or every 10 s. */
  readonly heartbeatIntervalMs?: number;
  /** The order of the cursors of a source. Default: numbers by their value, others as texts. See {@link CompareCursors}. */
  readonly compareCursors?: CompareCursors;
  /** How long a claim holds without a heartbeat, unless the claim says so. */
  readonly leaseMs?: number;
}

/** One wake, as its handler has it. */
export interface RunnerSession<TWake = unknown> {
  readonly wake: TWake;
  readonly fenceToken?: string;
  /**
   * Aborted when the work is lost (reason: PerdureError `fenced`) or the runner should stop (reason: that of the signal given to
   * `runWithLifecycle`). Stop then: others may be at it.
   */
  readonly signal: AbortSignal;
  /** Whether it was completed or failed. */
  readonly ended: boolean;
  /** How far each source went when this runner was woken. Empty when the transport does not say. */
  readonly tails: readonly CheckpointContract[];
  /** The order of cursors, as the adapter has it. */
  readonly compareCursors: CompareCursors;
  /** Says now that the runner lives. Rarely needed: it is done on a timer anyway. */
  heartbeat(): Promise<void>;
  /**
   * Says that everything up to these cursors was consumed.
   * @throws PerdureError `bad_input` when a cursor is before an earlier one of its source: nothing is sent.
   */
  checkpoint(checkpoints: readonly CheckpointContract[]): Promise<void>;
  /** Ends the wake, once: PerdureError `bad_state` after that. If it fails with anything but `fenced`, it may be called again. */
  complete(result: { readonly done: boolean }): Promise<void>;
  /** Ends the wake badly. Only once, and not after `complete`. */
  fail(error: Error): Promise<void>;
}

/** How often a heartbeat is sent where neither claim nor adapter says it. */
const HEARTBEAT_MS = 10_000;
/** So that a heartbeat that is late or lost does no harm. */
export const BEATS_PER_LEASE = 3;

/**
 * Runs `handler` for one wake: claims it, sends heartbeats while the handler works, and ends it.
 * - The wake is stale or taken: rejects with what `claimWake` said (PerdureError `fenced`); the handler is never called.
 * - The claim is lost on the way (a call answers `fenced`, or no heartbeat got through for a whole lease):
 *   `session.signal` aborts, and it rejects with `fenced` when the handler has ended, whatever that returned.
 * - The handler throws: `fail` is called, and it rejects with the same.
 * - The handler returns and has not called `complete`: that is no way to say "done". `fail` is called (`complete` with
 *   `done: false` where there is no `fail`), so that the work is looked at again.
 * - `options.signal` aborts: `session.signal` does too; unless the handler has ended the wake itself, it is completed
 *   with `done: false`.
 */
export async function runWithLifecycle<TWake, TResult>(
  wake: TWake,
  adapter: RunnerLifecycleAdapter<TWake>,
  handler: (session: RunnerSession<TWake>) => Promise<TResult>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<TResult> {
  const stop = options.signal;
  stop?.throwIfAborted();
  const claim = await adapter.claimWake(wake, { signal: stop ?? new AbortController().signal });
  const run = new Run(wake, adapter, claim);
  const unlink = linkSignals([stop], run.abort);
  run.start();
  try {
    stop?.throwIfAborted();
    const result = await handler(run);
    if (!run.ended) await run.leave(stop?.aborted === true);
    return result;
  } catch (thrown) {
    if (run.lost !== undefined) throw run.lost === thrown ? thrown : overtaken(run.lost, thrown);
    if (!run.ended) await run.give(stop?.aborted === true, asError(thrown));
    throw thrown;
  } finally {
    run.stop();
    unlink();
  }
}

class Run<TWake> implements RunnerSession<TWake> {
  readonly wake: TWake;
  readonly fenceToken?: string;
  readonly tails: readonly CheckpointContract[];
  readonly abort = new AbortController();
  readonly signal = this.abort.signal;
  /** Why the work is another runner's now. */
  lost: PerdureError | undefined;
  /** Whether it was completed or failed, or is about to be. */
  ended = false;
  readonly #adapter: RunnerLifecycleAdapter<TWake>;
  readonly #state: RunnerState<TWake>;
  readonly #leaseMs: number | undefined;
  readonly #intervalMs: number;
  readonly compareCursors: CompareCursors;
  readonly #guard: CheckpointGuard;
  /** Checkpoints and the end reach the adapter one behind the other, in the order of the calls. */
  readonly #order = new InOrder();
  #aliveSince = 0;
  #closed = false;
  #stopBeat = () => {};
  #stopDeadline = () => {};

  constructor(wake: TWake, adapter: RunnerLifecycleAdapter<TWake>, claim: RunnerClaim) {
    this.wake = wake;
    this.#adapter = adapter;
    this.tails = claim.tails ?? [];
    if (claim.fenceToken !== undefined) this.fenceToken = claim.fenceToken;
    this.#state = claim.fenceToken === undefined ? { wake } : { wake, fenceToken: claim.fenceToken };
    this.compareCursors = adapter.compareCursors?.bind(adapter) ?? compareCursors;
    this.#guard = new CheckpointGuard(this.compareCursors);
    this.#leaseMs = claim.leaseMs ?? adapter.leaseMs;
    const usual = this.#leaseMs === undefined ? HEARTBEAT_MS : this.#leaseMs / BEATS_PER_LEASE;
    this.#intervalMs = claim.heartbeatIntervalMs ?? adapter.heartbeatIntervalMs ?? usual;
  }

  start(): void {
    this.#alive(performance.now());
    this.#next();
  }

  /** No timers any more. */
  stop(): void {
    this.#closed = true;
    this.#stopBeat();
    this.#stopDeadline();
  }

  async heartbeat(): Promise<void> {
    this.#requireOpen("heartbeat");
    // From before the call: the lease was renewed no earlier than this.
    const began = performance.now();
    await this.#call(() => this.#adapter.heartbeat?.(this.#state));
    this.#alive(began);
  }

  async checkpoint(checkpoints: readonly CheckpointContract[]): Promise<void> {
    this.#requireOpen("checkpoint");
    await this.#order.run(async () => {
      const grown = this.#guard.check(checkpoints);
      if (grown.length === 0) return;
      await this.#call(() => this.#adapter.checkpoint?.(grown, this.#state));
      this.#guard.keep(grown);
    });
  }

  async complete(result: { readonly done: boolean }): Promise<void> {
    if (typeof result?.done !== "boolean") {
      throw new PerdureError(
        "bad_input",
        "complete needs { done: true } or { done: false }: Perdure never guesses that work is done.",
      );
    }
    await this.#end("complete", () => this.#adapter.complete?.(this.#state, { done: result.done }));
  }

  async fail(error: Error): Promise<void> {
    await this.#end("fail", () => this.#adapter.fail?.(this.#state, error));
  }

  /** Ends a wake whose handler has returned without a word. */
  async leave(stopped: boolean): Promise<void> {
    if (stopped || this.#adapter.fail === undefined) return this.complete({ done: false });
    const message =
      "The handler of a wake returned without session.complete({ done }): the wake counts as not done. Say which it is.";
    await this.fail(new PerdureError("bad_state", message));
  }

  /** Ends a wake whose handler has thrown. What goes wrong now is less than what the handler has thrown. */
  async give(stopped: boolean, error: Error): Promise<void> {
    await (stopped ? this.complete({ done: false }) : this.fail(error)).catch(() => {});
  }

  async #end(what: string, work: () => Promise<void> | undefined): Promise<void> {
    this.#requireOpen(what);
    this.ended = true;
    try {
      await this.#order.run(() => this.#call(work));
      this.stop();
    } catch (error) {
      this.ended = false;
      // It may have come to its end while this was under way.
      this.#alive(this.#aliveSince);
      throw error;
    }
  }

  async #call(work: () => Promise<void> | undefined): Promise<void> {
    if (this.lost !== undefined) throw this.lost;
    try {
      await work();
    } catch (error) {
      if (PerdureError.is(error, "fenced")) this.#lose(error);
      throw error;
    }
  }

  #requireOpen(what: string): void {
    if (this.lost !== undefined) throw this.lost;
    if (this.ended) throw new PerdureError("bad_state", `The wake has ended: "${what}" is no longer possible.`);
  }

  #lose(reason: PerdureError): void {
    this.lost ??= reason;
    this.stop();
    this.abort.abort(this.lost);
  }

  #next(): void {
    if (this.#closed || this.#adapter.heartbeat === undefined) return;
    this.#stopBeat = startTimer(this.#intervalMs, () => void this.#onTimer());
  }

  async #onTimer(): Promise<void> {
    // A failed one is no reason to stop: the deadline is.
    if (!this.ended) await this.heartbeat().catch(() => {});
    this.#next();
  }

  /** The claim holds for one lease from `since`. */
  #alive(since: number): void {
    this.#aliveSince = since;
    this.#stopDeadline();
    if (this.#leaseMs === undefined || this.#closed) return;
    const left = Math.max(0, since + this.#leaseMs - performance.now());
    this.#stopDeadline = startTimer(left, () => {
      const message = `No heartbeat got through for ${this.#leaseMs} ms, as long as the lease is: the work may be another runner's now.`;
      if (!this.ended) this.#lose(new PerdureError("fenced", message));
    });
  }
}

function overtaken(lost: PerdureError, thrown: unknown): PerdureError {
  return new PerdureError("fenced", `${lost.message} (the handler ended with: ${errorText(thrown)})`, {
    cause: thrown,
  });
}
