import type { CheckpointContract } from "../contract.ts";
import type { CompareCursors } from "./checkpoint.ts";

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
 * What a transport that wakes runners (a webhook, a queue, an alarm) is to this module. Every method may be slow. A
 * method that rejects with PerdureError `fenced` says: another runner has this work now. Any other rejection says
 * only that the call failed.
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
   * Aborted when the work is lost (the reason is a PerdureError `fenced`) or the runner is to stop (the reason is
   * that of the signal given to `runWithLifecycle`). Stop then: others may be at it.
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
  /**
   * Ends the wake. Only once: PerdureError `bad_state` after that. When it rejects for another reason than `fenced`,
   * the outcome is not known, and it may be called again.
   */
  complete(result: { readonly done: boolean }): Promise<void>;
  /** Ends the wake badly. Only once, and not after `complete`. */
  fail(error: Error): Promise<void>;
}
