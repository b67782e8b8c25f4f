import type { Context } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { generationClaimId, type Claim } from "../worker/claim.ts";
import { isSettledStatus, type GenerationContract, type ToolCallRecord } from "../contract.ts";
import { createPump, type Pump, type PumpOutcome } from "../worker/pump.ts";
import { asError, maxAttemptsOf, reporter, UNREACHED } from "../retry.ts";
import { linkSignals } from "../../base/abort.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { queryRoot, watchQuery, type Watch } from "../log/query.ts";
import type { GenerationEffect, GenerationEffectOptions } from "./effect-types.ts";
import { GenerationRows, disposedReason, GenerationTry } from "./try.ts";
import type { BegunTry, EffectOptions, Row, StoredGeneration, TryParts } from "./try.ts";
import { Suspensions } from "./suspensions.ts";

const CONCURRENCY = 8;
const DISPOSE_WAIT_MS = 10_000;

/**
 * Makes answers for rows: watches a query, takes each row, calls `generate`, and writes the outcome.
 *
 * - A row is worked on once at a time in this process; with `claims`, across all processes, and a runner that was taken over
 *   writes nothing more.
 * - Whether an answer is complete follows from its outcome and the signal, never from whether `generate` threw.
 * - A failed try is repeated by `retry` under a new `generationId`. A suspended answer resumes under the same one, in any
 *   process, once its tool calls are over.
 *
 * @throws PerdureError `bad_config` for options that cannot work together.
 */
export function createGenerationEffect<
  TContext extends Context,
  TResult,
  TStored extends GenerationContract = never,
  TToolRow extends { readonly id: string; readonly generationId: string; readonly status: string } = ToolCallRecord,
>(options: GenerationEffectOptions<TContext, TResult, TStored, TToolRow>): GenerationEffect {
  return new Generations(options as unknown as EffectOptions);
}

class Generations implements GenerationEffect {
  readonly id = newId("effect");
  readonly ready: Promise<void>;
  readonly #options: EffectOptions;
  readonly #watch: Watch<Row>;
  readonly #pump: Pump;
  readonly #parts: TryParts;
  readonly #writer: GenerationRows | undefined;
  /** Where rows are looked at: `collection`, or what the query reads. */
  readonly #reader: Rows<StoredGeneration> | undefined;
  readonly #suspensions: Suspensions;
  readonly #running = new Map<string, AbortController>();
  /** Tries of rows that keep no count themselves. */
  readonly #attempts = new Map<string, number>();
  readonly #ends: (() => void)[] = [];
  #open = false;
  #disposal: Promise<void> | undefined;

  constructor(options: EffectOptions) {
    this.#options = options;
    const { collection, claims, query } = options;
    this.#writer = collection === undefined ? undefined : new GenerationRows(rowsOf(collection));
    const root = queryRoot(query)?.collection as RowCollection<StoredGeneration> | undefined;
    this.#reader = this.#writer?.rows ?? (root === undefined ? undefined : rowsOf(root));
    if (claims !== undefined && claims.log !== this.#reader?.log) {
      const text = '"claims" must be in the same log as "collection": their conditions are judged there.';
      throw new PerdureError("bad_config", text);
    }
    this.#suspensions = new Suspensions(options.toolCalls, options.ready?.bind(options));
    this.#parts = {
      effectId: this.id,
      options,
      writer: this.#writer,
      report: (error, row) => this.#report(error, row),
    };
    this.#pump = createPump<Row>({
      read: () => this.#items(),
      idOf: (row) => row.id,
      run: async (row, { signal }) => {
        const outcome = await this.#run(row, signal);
        return outcome === "done" && this.#wasPutBack(row.id) ? { later: true } : outcome;
      },
      isGone: (id) => this.#isGone(id),
      retry: UNREACHED,
      concurrency: options.concurrency ?? CONCURRENCY,
      onError: (error) => this.#report(error),
    });
    const wake = () => this.#pump.wake();
    this.#watch = watchQuery(query, wake) as unknown as Watch<Row>;
    this.#ends.push(this.#suspensions.subscribe(wake));
    if (claims !== undefined) this.#ends.push(claims.subscribe(wake));
    if (this.#reader !== undefined) this.#ends.push(this.#reader.subscribe(() => this.#stopCancelled()));
    const others = [this.#reader?.ready(), claims?.ready, this.#suspensions.ready()].filter((one) => one !== undefined);
    this.ready = Promise.all([this.#watch.ready, ...others]).then(() => {
      this.#open = true;
      this.#pump.wake();
    });
    this.ready.catch((error: unknown) => this.#report(error));
  }

  get disposed(): boolean {
    return this.#disposal !== undefined;
  }

  async idle(): Promise<void> {
    await this.ready;
    await this.#pump.idle();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#end();
    return this.#disposal;
  }

  async #end(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#pump.dispose(this.#options.disposeWaitMs ?? DISPOSE_WAIT_MS, disposedReason());
    await this.#watch.dispose();
  }

  /** Rows that there is something to do for now. */
  #items(): Row[] {
    if (!this.#open) return [];
    return this.#watch.rows().filter((row) => {
      const { status, generationId } = this.#stored(row);
      if (this.#writer !== undefined && isSettledStatus(status)) return false;
      if (status !== "suspended") return true;
      this.#suspensions.meet(row.id, generationId);
      return this.#suspensions.isReady(row, generationId);
    });
  }

  async #run(row: Row, signal: AbortSignal): Promise<PumpOutcome> {
    const { claims, retry } = this.#options;
    const got = await claims?.acquire(generationClaimId(row.id), { signal, maxAttempts: retry?.maxAttempts });
    // It may be given back long before it could be taken over.
    if (got?.heldBy !== undefined) return { later: true, ms: got.retryInMs, orWake: true };
    if (got?.dead !== undefined) return this.#bury(row, got.dead.error);
    const claim = got?.claim;
    let begun: BegunTry | undefined;
    try {
      begun = await this.#begin(row, claim);
    } finally {
      if (begun === undefined) await claim?.giveBack();
    }
    if (begun === undefined) return { later: true };
    if (claim === undefined && this.#isWornOut(row, begun)) return this.#bury(row, "it was cut off too often.");
    return this.#attempt(row, begun, signal);
  }

  /** Whether somebody has asked for an answer again before the last one had come to its end. */
  #wasPutBack(id: string): boolean {
    // On no log, rows may lag behind what was written: rather never twice than never.
    const status = this.#writer?.rows.log === undefined ? undefined : this.#writer.rows.get(id)?.status;
    return status !== undefined && status !== "generating" && !isSettledStatus(status);
  }

  /** Marks the row as worked on. Undefined: it is not ours to begin. */
  async #begin(row: Row, claim: Claim | undefined): Promise<BegunTry | undefined> {
    const seen = this.#stored(row);
    if (this.#writer !== undefined) {
      // Read again: with a claim, everything that was written before it is known by now.
      if (this.#writer.rows.get(row.id) === undefined || isSettledStatus(seen.status)) return undefined;
      if (seen.status === "suspended" && !this.#suspensions.isReady(row, seen.generationId)) return undefined;
    }
    const goesOn = seen.status === "suspended";
    const counted = this.#writer === undefined ? this.#attempts.get(row.id) : seen.attempt;
    const attempt = claim?.attempt ?? Math.max(1, (counted ?? 0) + (goesOn ? 0 : 1));
    const keeps = seen.generationId !== undefined && (goesOn || this.#options.resumable === true);
    const generationId = keeps ? seen.generationId! : newId("generation");
    const begun: BegunTry = { id: row.id, generationId, attempt, claim };
    if (this.#writer === undefined) this.#attempts.set(row.id, attempt);
    else if (!(await this.#writer.begin(seen, begun))) return undefined;
    return begun;
  }

  async #attempt(row: Row, begun: BegunTry, signal: AbortSignal): Promise<PumpOutcome> {
    const controller = new AbortController();
    const unlink = linkSignals([signal, begun.claim?.signal], controller);
    this.#running.set(row.id, controller);
    this.#stopCancelled();
    try {
      const { outcome, state } = await new GenerationTry(this.#parts, row, begun, controller.signal).run();
      // A try that was cancelled may have left calls behind that it had suspended itself for.
      if (state === "cancelled") await this.#suspensions.cancelCalls(row.id);
      else if (state !== "suspended") this.#suspensions.forget(row.id);
      if (state === "completed" || state === "failed" || state === "cancelled") this.#attempts.delete(row.id);
      return state === "suspended" ? this.#suspensions.suspended(row, begun.generationId) : outcome;
    } finally {
      this.#running.delete(row.id);
      // Cancelled while it was being suspended.
      this.#stopCancelled();
      unlink();
    }
  }

  /** Crashes leave no failure behind: without this a row that kills its process would do so for ever. */
  #isWornOut(row: Row, begun: BegunTry): boolean {
    const cutOff = this.#writer !== undefined && (row as Partial<StoredGeneration>).status === "generating";
    return cutOff && begun.attempt - 1 >= maxAttemptsOf(this.#options.retry ?? {});
  }

  /** Gives a row up that was never to be tried again. */
  async #bury(row: Row, why: string): Promise<PumpOutcome> {
    this.#attempts.delete(row.id);
    const error = new PerdureError("limit", `The answer "${row.id}" was given up: ${why}`);
    try {
      await this.#options.onError?.(row, error);
    } catch (thrown) {
      this.#report(thrown, row);
    }
    await this.#writer?.rows.update(row.id, (draft) => {
      if (isSettledStatus(draft.status)) return false;
      draft.status = "failed";
      draft.error = error.message;
      return true;
    });
    return "done";
  }

  #stopCancelled(): void {
    if (this.#reader === undefined) return;
    for (const [id, controller] of this.#running) {
      if (!this.#isUnwanted(id)) continue;
      controller.abort(new PerdureError("cancelled", `The answer "${id}" was cancelled.`));
    }
    for (const id of this.#suspensions.waiting()) {
      if (this.#running.has(id) || !this.#isUnwanted(id)) continue;
      this.#suspensions.cancelCalls(id).catch((error: unknown) => this.#report(error));
    }
  }

  #isUnwanted(id: string): boolean {
    const row = this.#reader?.get(id);
    return row === undefined || (this.#options.isCancelled?.(row) ?? row.status === "cancelled");
  }

  /** Hidden rows, by an optimistic edit for instance, are not gone. */
  #isGone(id: string): boolean {
    if (this.#writer === undefined) return true;
    const row = this.#writer.rows.get(id);
    return row === undefined || isSettledStatus(row.status);
  }

  /** The row as it is stored; of rows that are only in the query what this process remembers. */
  #stored(row: Row): StoredGeneration {
    const suspended = this.#suspensions.generationOf(row.id);
    if (this.#writer !== undefined) return this.#writer.rows.get(row.id) ?? (row as StoredGeneration);
    return suspended === undefined
      ? { id: row.id, status: "pending" }
      : { id: row.id, status: "suspended", generationId: suspended };
  }

  #report(thrown: unknown, row?: Row): void {
    reporter(this.#options.onProblem?.bind(this.#options))(asError(thrown), row);
  }
}
