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
  /** The calls by their answers, while somebody listens. */
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
    if (this.#source === undefined) return () => {};
    const index = (this.#byAnswer = indexRows(this.#source.collection, (call) => call.generationId, wake));
    return () => {
      this.#byAnswer = undefined;
      index.stop();
    };
  }

  /** Whether an answer may go on now. */
  isReady(row: object, generationId: string | undefined): boolean {
    if (this.#judge !== undefined) return this.#judge(row as never);
    return generationId === undefined || this.#callsOf(generationId).every((call) => this.#isComplete(call));
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
    const isReady = this.isReady(row, generationId);
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
