import type { PerdureError } from "../../base/error.ts";
import type { RowLog } from "../log/row-log.ts";
import type { RowChange, RowCondition, RowProducer } from "../../wire/row-frames.ts";

/**
 * Claims: which of several workers does a piece of work. A claim is a row, taken by a conditional write, so one worker gets it on
 * every kind of log. Its fence protects the work: each write of a result carries {@link Claim.condition}, and one that comes
 * after a takeover is refused in the log, whatever the late worker believes.
 */

/** A claim that this process was given. */
export interface Claim {
  readonly id: string;
  readonly owner: string;
  /** Grows with each change of hands: the version of the claim's row. */
  readonly fence: number;
  /** Which try at the work this is, from 1. Tries whose worker has crashed count. */
  readonly attempt: number;
  /**
   * Aborted when the work should stop. Its reason is a PerdureError: `fenced` (somebody else took over), `disconnected` (no
   * heartbeat got through for most of a lease: others may take over soon), `bad_state` (the claims were disposed), `cancelled`
   * (by `requestCancel`: the claim is still held, so write the outcome, then release it); or the reason of the signal given to
   * `acquire`.
   */
  readonly signal: AbortSignal;
  /** Holds as long as the claim is ours. Belongs into `when` of every write of the work's result. */
  condition(): RowCondition;
  /** A writer that is shut out as soon as somebody else writes as the claim's next producer. */
  readonly producer: RowProducer;
  /**
   * The work is over. The claim's rows go away, together with `changes`, or not at all.
   * @returns false when somebody else has the claim, or when one of `when` did not hold (then it is still held).
   * @throws PerdureError `disconnected` when the outcome is not known. Heartbeats have stopped; it may be called again.
   */
  release(options?: {
    readonly changes?: readonly RowChange[];
    readonly when?: readonly RowCondition[];
  }): Promise<boolean>;
  /** As if it had not been taken: this try does not count. Fails as `release` does. */
  giveBack(): Promise<boolean>;
  /**
   * The try failed. `free`: anybody may try next. `dead`: that was the last try, or `retry` is false; see
   * {@link Claims.deadLetters}. `lost`: somebody else has it. Fails as `release` does.
   */
  fail(error: unknown, options?: { readonly retry?: boolean }): Promise<"free" | "dead" | "lost">;
}

/** Work that was given up. */
export interface DeadLetter {
  readonly id: string;
  /** Its last failure. */
  readonly error: string;
  readonly attempt: number;
  /** Who tried it last. */
  readonly owner: string;
  readonly updatedAt: string;
}

/** How a claim is asked for. */
export interface AcquireOptions {
  /** An abort before the claim is given takes the question back; one after it aborts the claim's signal. */
  readonly signal?: AbortSignal;
  /** Instead of the one of `createClaims`. */
  readonly maxAttempts?: number;
  /** False: tries are not counted, and so it is never given up: for locks that are held, not for work that ends. */
  readonly counted?: boolean;
}

/** What `acquire` found: a claim, or who else has it, or that the work was given up. */
export type Acquired =
  | { readonly claim: Claim; readonly heldBy?: undefined; readonly dead?: undefined }
  | {
      readonly claim?: undefined;
      readonly heldBy: string;
      /** How long the holder must stay silent from now on to lose it. */
      readonly retryInMs: number;
      readonly dead?: undefined;
    }
  | { readonly claim?: undefined; readonly heldBy?: undefined; readonly dead: DeadLetter };

/** Where a claim is, as this process sees it. */
export interface ClaimView {
  /** `expired`: held, but its holder was silent for its whole lease: the next `acquire` takes it over. */
  readonly state: "free" | "held" | "expired" | "dead";
  readonly owner?: string;
  /** Held by this `Claims`. */
  readonly mine: boolean;
  /** The try that runs or was the last; 0: none. */
  readonly attempt: number;
  /** The version of its row, also when it is free. */
  readonly fence: number;
  readonly expiresInMs?: number;
  readonly error?: string;
}

/** A standing wish for a claim. */
export interface Hold extends AsyncDisposable {
  readonly id: string;
  /** The claim, while it is held. */
  readonly claim: Claim | undefined;
  /** Releases the claim and stops trying. Waits for `onGained` and `onLost`: do not await it in them. Never rejects. */
  dispose(): Promise<void>;
}

/** What `hold` calls. Both are awaited, may be slow, and what they throw goes to `onError`. */
export interface HoldOptions {
  /** The claim is ours. When it throws, the claim is given back and tried for again after a heartbeat. */
  onGained(claim: Claim): unknown;
  /** The claim is not ours any more, also when it was disposed. Always called after `onGained`, once for each. */
  onLost?(claim: Claim, reason: PerdureError): unknown;
  onError?(error: Error): void;
}

/** See the top of this file. */
export interface Claims extends AsyncDisposable {
  readonly owner: string;
  /** This life of the owner. */
  readonly incarnation: string;
  /** The log that conditions are judged in: what claims protect must be in the same one. */
  readonly log: RowLog;
  /** Resolves when the claims that were there are known; rejects when the log cannot be read. */
  readonly ready: Promise<void>;
  /**
   * Takes the claim if it is free, its holder was silent for its lease, or it is left over from an earlier life of this owner.
   * Once resolved, this process has read everything written before: read the work again before doing it.
   * @throws PerdureError `fenced` when another life of this owner has begun, `bad_state` after `dispose`, `disconnected` when the
   *   log is closed, `bad_input` for an id that is empty or begins with `beat:`; or the reason of `signal`.
   */
  acquire(id: string, options?: AcquireOptions): Promise<Acquired>;
  /** Keeps trying to get the claim, and keeps it: for the one runner of an agent. Tries of a hold are not counted. */
  hold(id: string, options: HoldOptions): Hold;
  inspect(id: string): ClaimView;
  /** Asks the holder to stop: its signal aborts with `cancelled`. @returns false when nobody holds the claim. */
  requestCancel(id: string, reason?: string): Promise<boolean>;
  /** What was given up, in the order in which it was first begun. */
  deadLetters(): DeadLetter[];
  /** Lets given up work begin anew, at its first try. @returns false when it is not dead. */
  revive(id: string): Promise<boolean>;
  /** Called when a claim was taken or given back, or has died; not for signs of life. */
  subscribe(listener: () => void): () => void;
  /** Aborts what is held, gives it back as far as the log can be reached, and ends all holds. Never rejects. */
  dispose(): Promise<void>;
}

/** The claim of a tool call. */
export function toolClaimId(rowId: string): string {
  return `tool:${rowId}`;
}

/** The claim of one answer. */
export function generationClaimId(rowId: string): string {
  return `generation:${rowId}`;
}

/** The claim of an agent's one runner. */
export function runnerClaimId(agentName: string): string {
  return `runner:${agentName}`;
}
