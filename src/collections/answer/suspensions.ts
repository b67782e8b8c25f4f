import { backOff } from "../../base/time.ts";
import type { PumpOutcome } from "../worker/pump.ts";
import type { ToolCallRecord } from "../contract.ts";
import { indexRows, type RowIndex } from "../log/row-index.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { defaultCancel, isSettled } from "../call/call-row.ts";

interface CallSource {
  readonly collection: RowCollection<ToolCallRecord>;
  readonly isComplete?: (row: ToolCallRecord) => boolean;
  readonly cancel?: (draft: ToolCallRecord) => void;
}

/** How often a row may be ready again at once before it is made to wait. */
const QUICK_ROUNDS = 3;
const WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;

/** Knows which suspended answers may go on. */
export class Suspensions {
  readonly #source: CallSource | undefined;
  readonly #calls: Rows<ToolCallRecord> | undefined;
  /** The calls by their answers, while somebody listens. None of a collection that is not on a log. */
  #byAnswer: RowIndex<ToolCallRecord> | undefined;
  readonly #isComplete: (row: ToolCallRecord) => boolean;
  readonly #cancel: (draft: ToolCallRecord) => void;
  readonly #judge: ((row: never) => boolean) | undefined;
  /** Answers that were suspended here, and how often they were ready again at once. */
  readonly #known = new Map<string, { readonly generationId: string; rounds: number }>();

  constructor(source: CallSource | undefined, isReady: ((row: never) => boolean) | undefined) {
    this.#source = source;
    this.#calls = source === undefined ? undefined : rowsOf(source.collection);
    this.#isComplete = source?.isComplete?.bind(source) ?? isSettled;
    this.#cancel = source?.cancel?.bind(source) ?? defaultCancel;
    this.#judge = isReady;
  }

  ready(): Promise<void> | undefined {
    return this.#calls?.ready();
  }

  subscribe(wake: () => void): () => void {
    const source = this.#source;
    const index = source === undefined ? undefined : indexRows(source.collection, (call) => call.generationId, wake);
    if (index === undefined) return this.#calls?.subscribe(wake) ?? (() => {});
    this.#byAnswer = index;
    return () => {
      this.#byAnswer = undefined;
      index.stop();
    };
  }

  /** A judge of this moment: on a log it looks at the calls of the rows in question, elsewhere once at all calls. */
  look(): (row: object, generationId: string | undefined) => boolean {
    let open: Set<string> | undefined;
    return (row, generationId) => {
      if (this.#judge !== undefined) return this.#judge(row as never);
      if (this.#calls === undefined || generationId === undefined) return true;
      if (this.#byAnswer !== undefined)
        return this.#byAnswer.rows(generationId).every((call) => this.#isComplete(call));
      open ??= new Set(this.#calls.all().flatMap((call) => (this.#isComplete(call) ? [] : [call.generationId])));
      return !open.has(generationId);
    };
  }

  /** The answer that a row was suspended with here. */
  generationOf(id: string): string | undefined {
    return this.#known.get(id)?.generationId;
  }

  /** Rows that wait, for all that this process knows. */
  waiting(): Iterable<string> {
    return this.#known.keys();
  }

  /** Remembers a row that was found suspended. */
  meet(id: string, generationId: string | undefined): void {
    if (generationId === undefined || this.#known.get(id)?.generationId === generationId) return;
    this.#known.set(id, { generationId, rounds: 0 });
  }

  /** The answer is not wanted any more: who executes its calls is told to stop. */
  async cancelCalls(id: string): Promise<void> {
    const generationId = this.generationOf(id);
    this.forget(id);
    if (generationId === undefined) return;
    for (const call of this.#callsOf(generationId)) {
      if (this.#isComplete(call)) continue;
      await this.#calls?.update(call.id, (draft) => (this.#isComplete(draft) ? false : this.#cancel(draft)));
    }
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /** What the pump is to do with a row that was suspended: one that is always ready must not run without a break. */
  suspended(row: { readonly id: string }, generationId: string): PumpOutcome {
    const rounds = (this.#known.get(row.id)?.rounds ?? 0) + 1;
    const isReady = this.look()(row, generationId);
    this.#known.set(row.id, { generationId, rounds: isReady ? rounds : 0 });
    if (!isReady) return { later: true };
    return {
      later: true,
      ms: rounds <= QUICK_ROUNDS ? 0 : backOff(rounds - QUICK_ROUNDS + 1, WAIT_MS, MAX_WAIT_MS),
    };
  }

  #callsOf(generationId: string): ToolCallRecord[] {
    if (this.#byAnswer !== undefined) return this.#byAnswer.rows(generationId);
    return this.#calls?.all().filter((call) => call.generationId === generationId) ?? [];
  }
}
