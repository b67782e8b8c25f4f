import type { ToolCallRow } from "../store/tool-call.ts";

/**
 * What may be done with a call that has a row:
 *
 * - `run`: for the first time; it was approved.
 * - `run-again`: it was cut while it ran, and says that running twice does no harm, or has begun a step: then it goes on
 *   behind those that have ended.
 * - `interrupted`: it was cut while it ran, and may have done its work. Nobody knows, so it is never run again.
 * - `changed`: its arguments are not those that were approved, or that ran. Never run.
 * - `waiting`: a person has not answered yet.
 * - `returned`: it has run, and what it returned is stored. Never run again.
 * - `denied`, `expired`, `settled`: it has its last word.
 */
export type CallMove =
  | "run"
  | "run-again"
  | "interrupted"
  | "changed"
  | "waiting"
  | "returned"
  | "denied"
  | "expired"
  | "settled";

/**
 * Decides what may be done with a call after an approval or a restart. Pure. A question asked while another engine ran the turns
 * is bound only to the arguments in its message, which nobody can change.
 * @param digestNow the digest of the arguments that it would run with
 */
export function mayRun(row: Pick<ToolCallRow, "status" | "replay" | "digest">, digestNow: string): CallMove {
  switch (row.status) {
    case "asked":
      return "waiting";
    case "approved":
      return row.digest === "" || row.digest === digestNow ? "run" : "changed";
    case "started":
      if (row.replay === "never") return "interrupted";
      return row.digest === digestNow ? "run-again" : "changed";
    case "background":
      return "settled";
    case "returned":
    case "denied":
    case "expired":
    case "settled":
      return row.status;
  }
}
