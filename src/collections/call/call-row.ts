import { PerdureError } from "../../base/error.ts";
import { isSettledStatus, type ToolCallContract, type ToolCallRecord } from "../contract.ts";
import { sorted } from "../log/receipts.ts";
import type { ToolCallData } from "./types.ts";

/** A row of a tool call as it is looked at here: what the contract asks for, and what a row may have beyond it. */
export type CallRow = ToolCallContract & Partial<Omit<ToolCallRecord, keyof ToolCallContract>>;

/** The id of the row of a call. */
export function toolCallRowId(generationId: string, toolCallId: string): string {
  return `${generationId}:${toolCallId}`;
}

/** Whether a call is over. */
export function isSettled(row: ToolCallContract): boolean {
  return isSettledStatus(row.status);
}

/** The row of a call where nobody says otherwise. */
export function defaultRow(call: ToolCallData, isAsync: boolean): ToolCallRecord {
  const now = new Date().toISOString();
  return {
    ...call,
    status: "pending",
    attempt: 0,
    ...(isAsync ? { isAsync } : {}),
    createdAt: now,
    updatedAt: now,
  };
}

/** What the model gets at once of a call that runs in the background. */
export function queuedTicket(id: string): { jobId: string; status: "queued" } {
  return { jobId: id, status: "queued" };
}

/** The result of a row that is over. @throws PerdureError `call_failed` or `cancelled`. */
export function defaultResult(row: CallRow): unknown {
  if (row.status === "failed") throw new PerdureError("call_failed", row.error ?? `The tool "${row.name}" failed.`);
  if (row.status === "cancelled") {
    throw new PerdureError("cancelled", row.error ?? `The call of the tool "${row.name}" was cancelled.`);
  }
  return row.result;
}

/** Notes the time of a change in rows that keep it. */
export function touch(draft: CallRow): void {
  if (draft.updatedAt !== undefined) draft.updatedAt = new Date().toISOString();
}

/** Marks a row as cancelled. */
export function defaultCancel(draft: CallRow): void {
  draft.status = "cancelled";
  touch(draft);
}

/** Whether two values are the same JSON, whatever the order of their fields. */
export function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a, sorted) === JSON.stringify(b, sorted);
}
