import type { Sql } from "../port.ts";
import type { FiberRow } from "../store/fiber.ts";
import { fiberTable } from "../store/fiber.ts";
import type { FiberMove, FiberState } from "./fiber-state.ts";
import { resultError } from "./fiber-view.ts";
import { encodeJson } from "../base/json.ts";

/** The state of a fiber as its row tells it. */
export function toFiberState(row: FiberRow): FiberState {
  const { kind, name, attempts, starts, maxRetries } = row;
  const counts = { kind, name, attempts, starts, maxRetries };
  switch (row.status) {
    case "pending":
    case "running":
      return { ...counts, phase: row.status };
    case "recovering":
      return { ...counts, phase: row.status, interruptedAt: row.interruptedAt ?? row.createdAt };
    case "interrupted":
      return { ...counts, phase: row.status, hookDue: row.at !== null, missing: row.missing === 1 };
    case "completed":
    case "aborted":
    case "error":
      return { phase: "settled" };
  }
}

/**
 * Writes a move.
 * @returns the row as it is now, or nothing in place of a row that was deleted; undefined, and writes nothing,
 * when the row had moved on since it was read
 * @throws PerdureError `bad_input`, `limit` for a snapshot or metadata that cannot be stored
 */
export function applyFiberMove(
  db: Sql,
  row: FiberRow,
  move: FiberMove,
  now: number,
  more: Partial<Pick<FiberRow, "result" | "error">> = {},
): { readonly row?: FiberRow } | undefined {
  if (move.type === "stay") return undefined;
  if (move.type === "forget") return fiberTable.remove(db, row) ? {} : undefined;
  const changes: Partial<FiberRow> = { ...toChanges(row, move, now), ...more };
  return fiberTable.change(db, row, changes) ? { row: { ...row, ...changes } } : undefined;
}

function toChanges(
  row: FiberRow,
  move: Exclude<FiberMove, { type: "stay" | "forget" }>,
  now: number,
): Partial<FiberRow> {
  switch (move.type) {
    case "start":
      return { status: "running", at: null, starts: row.starts + 1, startedAt: row.startedAt ?? now };
    case "hook":
      return { status: "recovering", at: null, starts: row.starts + 1 };
    case "wait":
      return {
        status: "pending",
        at: now + move.delayMs,
        attempts: row.attempts + (move.error === undefined ? 0 : 1),
        error: move.error ?? null,
        missing: 0,
        settledAt: null,
      };
    case "await_hook":
      return {
        status: "interrupted",
        at: now + move.hookInMs,
        attempts: move.fresh ? 0 : row.attempts + (move.error === undefined ? 0 : 1),
        starts: move.fresh ? 0 : row.starts,
        error: move.error ?? row.error,
        interruptedAt: row.interruptedAt ?? now,
      };
    case "park":
      return { status: "interrupted", at: null, missing: 1, error: move.error, settledAt: now };
    case "settle": {
      const { result } = move;
      return {
        status: result.status,
        at: null,
        missing: 0,
        error: resultError(result),
        settledAt: now,
        ...(result.snapshot === undefined ? {} : { snapshot: encodeJson(result.snapshot, "The snapshot") }),
        ...(result.status === "completed" && result.metadata !== undefined
          ? { metadata: encodeJson(result.metadata, "The metadata") }
          : {}),
      };
    }
  }
}
