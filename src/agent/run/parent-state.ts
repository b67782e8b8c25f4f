import type { AgentRunStatus } from "../../store/agent-run.ts";
import type { AgentToolRunInspection, AgentToolTerminalStatus } from "./types.ts";

/**
 * A run as its parent sees it:
 *
 *     running ── the child's end ───────────────→ completed | error | aborted
 *             ── a limit, or a child that
 *                cannot be reached ─────────────→ interrupted ── it completed after all ──→ completed
 *
 * Nothing else follows an end: a child that is stopped because it was given up ends as `aborted`, which is no news.
 * @returns the same status when the event changes nothing.
 */
export function nextStatus(status: AgentRunStatus, end: AgentToolTerminalStatus): AgentRunStatus {
  if (status === "running") return end;
  return status === "interrupted" && end === "completed" ? end : status;
}

/** How the end that a child reports counts. A limit of an agent above is no fault of the child. */
export function endOf({ status, reason }: AgentToolRunInspection): AgentToolTerminalStatus | undefined {
  if (status === "running") return undefined;
  return reason === undefined || status === "completed" ? status : "interrupted";
}
