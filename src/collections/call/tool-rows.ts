import { PerdureError, errorText } from "../../base/error.ts";
import type { ToolCallContract } from "../contract.ts";
import { asInserted, keyOf, rowsOf, type RowCollection, type RowOptions, type Rows } from "../log/rows.ts";
import { sameJson, toolCallRowId } from "./call-row.ts";
import type { ToolCallData, ToolLike } from "./types.ts";
import { waitForToolResult } from "./wait-for-result.ts";

/** How the calls of one durable tool become rows and results. The types of tool and row are left at the door. */
export interface ToolRows {
  readonly tool: ToolLike;
  readonly mode: "hold" | "suspend" | "async";
  /** The collection, to be compared: calls of one collection are written together. */
  readonly collection: object;
  rowId(call: CallName): string;
  /** The row that a call is to have. @throws PerdureError `bad_config`. */
  opening(call: CallName): Opening;
  /**
   * Writes those rows that are not there yet in one write, also of other tools of the same collection.
   * @throws PerdureError `conflict`, `fenced`.
   */
  open(openings: readonly Opening[], options?: RowOptions): Promise<void>;
  /** The result of a call that is over; `undefined` while it is not. */
  settled(call: CallName): Promise<{ readonly result: unknown } | { readonly error: unknown } | undefined>;
  /** Waits for the result. Aborted or (by option) too late, the call is cancelled. */
  wait(call: CallName, signal: AbortSignal | undefined): Promise<unknown>;
  /** What the model gets of a call that is not waited for. */
  immediate(call: CallName): unknown;
  cancel(call: CallName, options?: RowOptions): Promise<void>;
  subscribe(wake: () => void): () => void;
}

/** A row to be written. */
export interface Opening {
  readonly id: string;
  readonly row: ToolCallContract;
  /** Its arguments as the collection shows them. */
  readonly args: unknown;
}

/** A call and the answer that it belongs to. */
export interface CallName {
  readonly generationId: string;
  readonly toolCallId: string;
  readonly args: unknown;
}

/** What {@link toolRows} needs to know. */
export interface ToolRowsOptions<TRow extends ToolCallContract> {
  readonly tool: ToolLike;
  readonly mode: ToolRows["mode"];
  readonly collection: RowCollection<TRow>;
  readonly transform: (call: ToolCallData, generationId: string) => TRow;
  readonly isComplete: (row: TRow) => boolean;
  readonly getResult: (row: TRow) => unknown;
  readonly getImmediateResult: (row: TRow) => unknown;
  readonly cancel: (draft: TRow) => void;
  readonly timeout: number | undefined;
  readonly cancelOnTimeout: boolean;
  readonly write: (() => RowOptions) | undefined;
}

/** How often rows are inserted again because another run of the same answer was quicker with some of them. */
const OPEN_TRIES = 5;

/** The calls of one tool as rows. */
export function toolRows<TRow extends ToolCallContract>(options: ToolRowsOptions<TRow>): ToolRows {
  const { tool, collection, isComplete } = options;
  const rows = rowsOf(collection);
  const rowFor = (call: CallName) => rowOfCall(options, call);
  const idOf = (call: CallName) => keyOf(collection, asInserted(collection, rowFor(call)));
  const fence = (own: RowOptions | undefined) => ({ ...options.write?.(), ...own });

  async function cancel(call: CallName, own?: RowOptions): Promise<void> {
    await rows.update(idOf(call), (draft) => (isComplete(draft) ? false : options.cancel(draft)), fence(own));
  }

  return {
    tool,
    mode: options.mode,
    collection,
    rowId: idOf,
    opening(call) {
      const row = rowFor(call);
      const shown = asInserted(collection, row);
      return { id: keyOf(collection, shown), row, args: shown.args };
    },
    async open(openings, own) {
      await rows.ready();
      // Openings come from tools of this collection, so their rows are its rows.
      await openRows(rows as unknown as Rows<ToolCallContract>, openings, fence(own));
    },
    async settled(call) {
      await rows.ready();
      const row = rows.get(idOf(call));
      if (row === undefined || !isComplete(row)) return undefined;
      try {
        return { result: await options.getResult(row) };
      } catch (error) {
        return { error };
      }
    },
    async wait(call, signal) {
      const limits = {
        ...(signal === undefined ? {} : { signal }),
        ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
      };
      try {
        return await waitForToolResult(collection, idOf(call), isComplete, options.getResult, limits);
      } catch (error) {
        const late = PerdureError.is(error, "timeout") && options.cancelOnTimeout;
        if (late || signal?.aborted === true) await cancel(call).catch((failure) => withFailure(error, failure));
        throw error;
      }
    },
    immediate: (call) => options.getImmediateResult(rows.get(idOf(call)) ?? rowFor(call)),
    cancel,
    subscribe: (wake) => rows.subscribe(wake),
  };
}

/** Both things that went wrong, under the code of the first. */
function withFailure(error: unknown, failure: unknown): never {
  const code = PerdureError.is(error) ? error.code : "cancelled";
  const text = `${errorText(error)} Its row could not be marked as cancelled: ${errorText(failure)}`;
  throw new PerdureError(code, text, { cause: failure });
}

function rowOfCall<TRow extends ToolCallContract>(options: ToolRowsOptions<TRow>, call: CallName): TRow {
  const { tool, transform, collection } = options;
  const { generationId, toolCallId, args } = call;
  const data: ToolCallData = {
    id: toolCallRowId(generationId, toolCallId),
    name: tool.name,
    args,
    toolCallId,
    generationId,
    ...(tool.needsApproval === true ? { needsApproval: true } : {}),
  };
  const row = transform(data, generationId);
  if (tool.needsApproval === true) requireApproval(tool.name, asInserted(collection, row));
  return row;
}

function requireApproval(tool: string, row: object): void {
  if ((row as { needsApproval?: unknown }).needsApproval === true) return;
  const text = `The tool "${tool}" needs approval, but its "transform", or the schema of its collection, makes a row`;
  throw new PerdureError(
    "bad_config",
    `${text} without "needsApproval: true". Keep that field, or nobody would be asked.`,
  );
}

/** Inserts the rows that are missing, in one write. */
async function openRows(rows: Rows<ToolCallContract>, openings: readonly Opening[], fence: RowOptions): Promise<void> {
  for (let tries = 0; tries < OPEN_TRIES; tries++) {
    const missing = openings.filter((opening) => !isThere(rows.get(opening.id), opening));
    if (missing.length === 0) return;
    if (
      await rows.insertAll(
        missing.map(({ row }) => row),
        fence,
      )
    )
      return;
    // Refused and nothing new: it was the caller's own condition.
    if (missing.every(({ id }) => rows.get(id) === undefined)) break;
  }
  const ids = openings.map(({ id }) => `"${id}"`).join(", ");
  const text = `The tool calls ${ids} could not be written: another runner has their answer now. Stop this one.`;
  throw new PerdureError("fenced", text);
}

/** @throws PerdureError `conflict` when the row stands for another call. */
function isThere(row: ToolCallContract | undefined, { id, row: wanted, args }: Opening): boolean {
  if (row === undefined) return false;
  if (row.name === wanted.name && sameJson(row.args, args)) return true;
  const text = `There is a tool call "${id}" already, of "${row.name}" with other arguments.`;
  throw new PerdureError("conflict", `${text} An id stands for one call with the same arguments.`);
}
