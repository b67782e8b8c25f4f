import type { Context } from "@tanstack/db";
import type { Claim, Claims } from "../worker/claim.ts";
import type { GenerationContract } from "../contract.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import type { RetryPolicy } from "../retry.ts";
import type { RowCollection } from "../log/rows.ts";
import type { QueryRow, RowQuery } from "../log/query.ts";

/** What `generate` is told about its try. */
export interface GenerationRun {
  /**
   * Aborts when the row is cancelled, deleted or taken over by another runner, and at `dispose()`. Pass it to `durableChat` or
   * `streamToCollection`; `chat()` needs an abort controller that follows it.
   */
  readonly signal: AbortSignal;
  readonly effectId: string;
  /** Which try at this row it is, from 1; tries of other processes count where they can be seen. */
  readonly attempt: number;
  /** Names the try: chunks of two tries never mix. An answer that was suspended goes on under the same one. */
  readonly generationId: string;
  /**
   * Conditions for each write of this try, so that a runner that was taken over writes nothing: pass it as `when` of
   * `durableChat` and `streamToCollection`, on collections of the same log as `collection`. Empty without a log.
   * @throws PerdureError `fenced` when the row no longer belongs to this try.
   */
  readonly when: () => readonly RowCondition[];
  /** The claim on the row, with `claims`. */
  readonly claim?: Claim;
}

/** What `generate` may give: a text, or something that tells its outcome, as `durableChat` does. */
export type GenerationResult = string | (object & { readonly outcome?: string });

/** A result that is an answer. */
type CompletedResult<TResult> = Exclude<TResult, { readonly outcome: "suspended" | "interrupted" }>;

/** Options of `createGenerationEffect`. Callbacks are awaited; those of one row never run at the same time. */
export interface GenerationEffectOptions<
  TContext extends Context,
  TResult,
  TStored extends GenerationContract,
  TToolRow extends { readonly id: string; readonly generationId: string; readonly status: string },
> {
  /**
   * The rows that want an answer: `pending` ones; `suspended` ones too if `generate` suspends; `generating` ones to retry what a
   * crash left behind (with several runners only with `claims`).
   */
  readonly query: RowQuery<TContext>;
  /**
   * Makes the answer. What it throws is tried again by `retry`. A result with the outcome `suspended` or `interrupted`
   * is no answer yet. An empty text is a failure: it is what `chat({ stream: false })` gives when it has none.
   */
  generate(row: QueryRow<TContext>, run: GenerationRun): Promise<TResult & GenerationResult>;
  /**
   * Where the rows live, by the same `id`. With it the effect writes their state itself, conditionally, after the callbacks and
   * only where those did not: `generating`, then `completed`, `failed`, `cancelled` or `suspended`, with `generationId`,
   * `attempt` and `error`. Without it the callbacks write.
   */
  readonly collection?: RowCollection<TStored>;
  /** Lets many runners share the rows: each is worked on by one at a time. Of the same log as `collection`. */
  readonly claims?: Claims;
  /**
   * The calls that suspended answers wait for. Once all of an answer's calls are over, any runner resumes it; if it is cancelled
   * or deleted instead, its open calls are too.
   */
  readonly toolCalls?: {
    readonly collection: RowCollection<TToolRow>;
    /** Default: `completed`, `failed` or `cancelled`. May not throw. */
    readonly isComplete?: (row: TToolRow) => boolean;
    /** Marks a call as cancelled. Default: `status = "cancelled"`. */
    readonly cancel?: (draft: TToolRow) => void;
  };
  /** Whether a suspended row may go on. Instead of looking at `toolCalls`. Must be quick; may not throw. */
  ready?(row: QueryRow<TContext>): boolean;
  readonly retry?: RetryPolicy;
  /** How many rows are worked on at once. Default 8. */
  readonly concurrency?: number;
  /**
   * Whether `generate` can resume from what is stored under a `generationId`, as `durableChat` with `turns` can. Then a try cut
   * off by a crash or `dispose()` goes on under its id. A failed try never does.
   */
  readonly resumable?: boolean;
  /** Whether a row is cancelled. Default: its status is `cancelled`. May not throw. */
  isCancelled?(row: TStored): boolean;
  /** Puts the answer into its row, in the same write that completes it. May run more than once. */
  keepResult?(draft: TStored, result: CompletedResult<TResult>): void;
  /** The answer is there. When it throws it is called again by `retry`; the answer is not made again. */
  onComplete?(row: QueryRow<TContext>, result: CompletedResult<TResult>): Promise<void> | void;
  /** The answer waits. */
  onSuspended?(row: QueryRow<TContext>, result: TResult): Promise<void> | void;
  /** The try was aborted: its row was `cancelled` or deleted, or the effect was `disposed`. */
  onCancelled?(row: QueryRow<TContext>, why: "cancelled" | "disposed"): Promise<void> | void;
  /** The last try has failed. */
  onError?(row: QueryRow<TContext>, error: Error): Promise<void> | void;
  /** Each failed try, and what else goes wrong. Default: the console. */
  onProblem?(error: Error, row?: QueryRow<TContext>): void;
  /** How long `dispose` waits for what runs. Default 10 s. */
  readonly disposeWaitMs?: number;
}

/** A running effect. */
export interface GenerationEffect extends AsyncDisposable {
  readonly id: string;
  /** Resolves when its collections have their first state; rejects when one of them cannot have it. */
  readonly ready: Promise<void>;
  /** Resolves when nothing runs and nothing is left to run now. */
  idle(): Promise<void>;
  /** Aborts what runs and waits for it. Its rows become `pending` again (or stay what a callback made them) for others. */
  dispose(): Promise<void>;
  readonly disposed: boolean;
}
