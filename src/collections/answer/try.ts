import type { Context } from "@tanstack/db";
import { PerdureError, errorText } from "../../base/error.ts";
import { isSettledStatus, type GenerationContract, type ToolCallRecord } from "../contract.ts";
import type { QueryRow } from "../log/query.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import type { Rows } from "../log/rows.ts";
import type { Claim } from "../worker/claim.ts";
import type { PumpOutcome } from "../worker/pump.ts";
import { asError, isUnwritable, nextDelay, persist } from "../retry.ts";
import { pause } from "../../base/time.ts";
import type { GenerationEffectOptions, GenerationResult, GenerationRun } from "./effect-types.ts";

/** A row with what the effect keeps in it. */
export type StoredGeneration = GenerationContract & {
  generationId?: string;
  attempt?: number;
  error?: string;
  runner?: string;
  fence?: number;
  updatedAt?: string;
  completedAt?: string;
};

/** A try at a row, as it was written when it began. */
export interface BegunTry {
  readonly id: string;
  readonly generationId: string;
  readonly attempt: number;
  readonly claim: Claim | undefined;
}

/** The state of answers, in their rows. */
export class GenerationRows {
  readonly rows: Rows<StoredGeneration>;

  constructor(rows: Rows<StoredGeneration>) {
    this.rows = rows;
  }

  /** Takes a row that is still as it was seen. False: somebody else was quicker. */
  begin(seen: StoredGeneration, { id, generationId, attempt, claim }: BegunTry): Promise<boolean> {
    return this.rows.update(
      id,
      (draft) => {
        if (draft.status !== seen.status || draft.generationId !== seen.generationId) return false;
        draft.status = "generating";
        draft.generationId = generationId;
        draft.attempt = attempt;
        delete draft.error;
        if (claim !== undefined) {
          draft.runner = claim.id;
          draft.fence = claim.fence;
        }
        touch(draft);
        return true;
      },
      withClaim(claim),
    );
  }

  /** Writes what became of a try, if the row is still its. */
  settle(begun: BegunTry, change: (draft: StoredGeneration) => void): Promise<boolean> {
    return this.rows.update(
      begun.id,
      (draft) => {
        if (!isOf(draft, begun)) return false;
        change(draft);
        touch(draft);
        return true;
      },
      withClaim(begun.claim),
    );
  }

  /** Whether the row is still worked on by this try. */
  isOurs(begun: BegunTry): boolean {
    const row = this.rows.get(begun.id);
    return row !== undefined && isOf(row, begun);
  }

  /** See `GenerationRun.when`. */
  conditions(begun: BegunTry): readonly RowCondition[] {
    const condition = this.rows.unchanged(begun.id);
    if (condition === undefined) return [];
    if (!this.isOurs(begun)) {
      throw new PerdureError("fenced", `The answer "${begun.id}" no longer belongs to this try. Stop this one.`);
    }
    return [condition];
  }
}

function isOf(row: StoredGeneration, { generationId }: BegunTry): boolean {
  return row.status === "generating" && row.generationId === generationId;
}

function withClaim(claim: Claim | undefined): { when?: readonly RowCondition[] } {
  return claim === undefined ? {} : { when: [claim.condition()] };
}

/** Keeps the times of rows that have them. */
function touch(draft: StoredGeneration): void {
  if (draft.updatedAt === undefined) return;
  draft.updatedAt = new Date().toISOString();
  if (isSettledStatus(draft.status)) draft.completedAt = draft.updatedAt;
}

/** The rows of a query, of which only the id is known here. */
export type Row = QueryRow<Context> & { readonly id: string };

/** The options of an effect: rows are known by their id, stored ones by what the effect keeps in them; the rest is the caller's. */
export type EffectOptions = GenerationEffectOptions<Context, GenerationResult, StoredGeneration, ToolCallRecord>;

/** What a try needs of its effect. */
export interface TryParts {
  readonly effectId: string;
  readonly options: EffectOptions;
  /** None: the callbacks write. */
  readonly writer: GenerationRows | undefined;
  report(error: Error, row: Row): void;
}

/** What became of a try, and what the pump is to do. */
interface TryEnd {
  readonly outcome: PumpOutcome;
  readonly state: "completed" | "failed" | "cancelled" | "suspended" | "again" | "lost";
}

const DONE: PumpOutcome = "done";
const LATER: PumpOutcome = { later: true };

/** The reason of an abort by `dispose()`. */
export function disposedReason(): PerdureError {
  return new PerdureError("bad_state", "The effect was disposed.");
}

/** One try at one row, from `generating` to what it becomes. */
export class GenerationTry {
  readonly #parts: TryParts;
  readonly #row: Row;
  readonly #begun: BegunTry;
  readonly #claim: Claim | undefined;
  readonly #signal: AbortSignal;

  constructor(parts: TryParts, row: Row, begun: BegunTry, signal: AbortSignal) {
    this.#parts = parts;
    this.#row = row;
    this.#begun = begun;
    this.#claim = begun.claim;
    this.#signal = signal;
  }

  async run(): Promise<TryEnd> {
    try {
      return await this.#once();
    } catch (error) {
      // A claim that nobody works under would keep everybody out for as long as this process lives.
      await this.#claim?.giveBack().catch(() => {});
      throw error;
    }
  }

  async #once(): Promise<TryEnd> {
    let made: { readonly result: GenerationResult } | { readonly error: Error };
    try {
      made = { result: await this.#parts.options.generate(this.#row, this.#context()) };
    } catch (thrown) {
      made = { error: asError(thrown) };
    }
    // Not by whether it threw: a `chat()` that was aborted resolves with a part of its text.
    if (this.#signal.aborted) return this.#stopped();
    if ("error" in made) return this.#failed(made.error);
    const { result } = made;
    if (result === "") return this.#failed(noText());
    return isUnfinished(result) ? this.#suspended(result) : this.#completed(result);
  }

  #context(): GenerationRun {
    const { effectId, writer } = this.#parts;
    const { attempt, generationId, claim } = this.#begun;
    const when = (): readonly RowCondition[] => [
      ...(writer?.conditions(this.#begun) ?? []),
      ...(claim === undefined ? [] : [claim.condition()]),
    ];
    return { signal: this.#signal, effectId, attempt, generationId, when, claim };
  }

  async #completed(result: GenerationResult): Promise<TryEnd> {
    const error = await this.#insist(() => this.#parts.options.onComplete?.(this.#row, result as never));
    if (this.#signal.aborted) return this.#stopped();
    if (error !== undefined) return this.#givenUp(error);
    let mine: boolean;
    try {
      mine = await this.#settle((draft) => {
        this.#parts.options.keepResult?.(draft, result as never);
        draft.status = "completed";
      });
    } catch (thrown) {
      this.#parts.report(asError(thrown), this.#row);
      return this.#givenUp(asError(thrown));
    }
    if (!mine && this.#signal.aborted) return this.#stopped();
    await this.#claim?.release();
    return { outcome: DONE, state: "completed" };
  }

  async #suspended(result: GenerationResult): Promise<TryEnd> {
    const error = await this.#insist(() => this.#parts.options.onSuspended?.(this.#row, result));
    if (error !== undefined) return this.#givenUp(error);
    await this.#settle((draft) => {
      draft.status = "suspended";
    });
    await this.#claim?.giveBack();
    return { outcome: LATER, state: "suspended" };
  }

  async #failed(error: Error): Promise<TryEnd> {
    this.#parts.report(error, this.#row);
    // Shut out by whoever has the row now: that is not a failure of the work.
    if (PerdureError.is(error, "fenced") && this.#parts.writer?.isOurs(this.#begun) === false) return this.#lost();
    const delay = nextDelay(this.#parts.options.retry ?? {}, this.#begun.attempt, error);
    if (delay === undefined) return this.#givenUp(error);
    await this.#settle((draft) => {
      draft.status = "pending";
      draft.error = errorText(error);
      // The next try starts from nothing, under an id of its own.
      delete draft.generationId;
    });
    if ((await this.#claim?.fail(error)) === "dead") return this.#givenUp(error);
    return { outcome: { later: true, ms: delay }, state: "again" };
  }

  async #givenUp(error: Error): Promise<TryEnd> {
    await this.#insist(() => this.#parts.options.onError?.(this.#row, error));
    await this.#settle((draft) => {
      draft.status = "failed";
      draft.error = errorText(error);
    });
    await this.#claim?.release();
    return { outcome: DONE, state: "failed" };
  }

  async #stopped(): Promise<TryEnd> {
    const { reason } = this.#signal;
    if (PerdureError.is(reason, "fenced") || PerdureError.is(reason, "disconnected")) return this.#lost();
    if (PerdureError.is(reason, "bad_state")) {
      await this.#call(() => this.#parts.options.onCancelled?.(this.#row, "disposed"));
      await this.#settle((draft) => {
        draft.status = "pending";
        draft.attempt = this.#begun.attempt - 1;
      });
      await this.#claim?.giveBack();
      return { outcome: LATER, state: "again" };
    }
    await this.#call(() => this.#parts.options.onCancelled?.(this.#row, "cancelled"));
    await this.#settle((draft) => {
      draft.status = "cancelled";
    });
    await this.#claim?.release();
    return { outcome: DONE, state: "cancelled" };
  }

  async #lost(): Promise<TryEnd> {
    // The row may have gone another way while the claim is still ours: then somebody, or this process, begins again.
    if (this.#claim?.signal.aborted === false) await this.#claim.giveBack();
    return { outcome: LATER, state: "lost" };
  }

  /**
   * Writes what became of the try, again if that fails: a row that nobody writes stays as it is for good.
   * @returns false when it is not this try's any more. @throws what is wrong with the row itself.
   */
  async #settle(change: (draft: StoredGeneration) => void): Promise<boolean> {
    const { writer } = this.#parts;
    if (writer === undefined) return true;
    let unfit: { readonly error: unknown } | undefined;
    const apply = (draft: StoredGeneration) => {
      try {
        change(draft);
      } catch (error) {
        unfit = { error };
        throw error;
      }
    };
    const write = async () => {
      try {
        return await writer.settle(this.#begun, apply);
      } catch (error) {
        if (isUnwritable(error)) unfit ??= { error };
        if (unfit !== undefined) return false;
        throw error;
      }
    };
    const written = await persist(write, this.#signal, (error) => this.#parts.report(error, this.#row));
    if (unfit !== undefined) throw unfit.error;
    return written ?? false;
  }

  /** Calls a callback until it works, as often as the policy allows. Returns its last failure. */
  async #insist(callback: () => Promise<void> | void | undefined): Promise<Error | undefined> {
    for (let attempt = 1; ; attempt++) {
      const error = await this.#call(callback);
      const delay = error === undefined ? undefined : nextDelay(this.#parts.options.retry ?? {}, attempt, error);
      if (delay === undefined || this.#signal.aborted) return error;
      await pause(delay, this.#signal);
    }
  }

  async #call(callback: () => Promise<void> | void | undefined): Promise<Error | undefined> {
    try {
      await callback();
      return undefined;
    } catch (thrown) {
      const error = asError(thrown);
      this.#parts.report(error, this.#row);
      return error;
    }
  }
}

function isUnfinished(result: GenerationResult): boolean {
  if (typeof result === "string") return false;
  return result.outcome === "suspended" || result.outcome === "interrupted";
}

function noText(): PerdureError {
  const text = "The answer is empty. chat({ stream: false }) gives that when it stops for an approval or a tool:";
  return new PerdureError(
    "model_failed",
    `${text} use durableChat, or return { outcome: "completed" } if it is meant.`,
  );
}
