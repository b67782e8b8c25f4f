import { errorText, PerdureError } from "../../base/error.ts";
import { type Clock, sleep } from "../../base/time.ts";
import type { AgentRunEnd, AgentRunStatus } from "../../store/agent-run.ts";
import type { AgentToolRunInspection, AgentToolTerminalStatus } from "./types.ts";

/* Ends of a run: that of its child, and those that the parent gives it because the child cannot. */

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

/** Whether a call failed because the child is not there now, and may be there again. */
export function isGone(thrown: unknown): boolean {
  return PerdureError.is(thrown, "agent_gone") || PerdureError.is(thrown, "limit");
}

const NOTHING = { output: null, summary: null, reason: null, childRunning: null, chunks: 0 } as const;

/** The child has ended it, or knows nothing of it. */
export function endedBy(end: AgentToolRunInspection | null, at: { readonly clock: Clock }): AgentRunEnd {
  const status = end === null ? undefined : endOf(end);
  if (end === null || status === undefined) return failed("The child does not know of this run.", at);
  return {
    status,
    output: end.output === undefined ? null : JSON.stringify(end.output),
    summary: end.summary ?? null,
    error: end.error ?? null,
    reason: end.reason ?? null,
    childRunning: status === "interrupted" ? 0 : null,
    chunks: end.chunks,
    endedAt: at.clock.now(),
  };
}

/** It has used up its time, and is stopped. */
export function givenUp(reason: "budget-exceeded" | "no-progress", { clock }: { readonly clock: Clock }): AgentRunEnd {
  const error = reason === "no-progress" ? "The child reported nothing for too long." : "The run took too long.";
  return { ...NOTHING, status: "interrupted", error, reason, childRunning: 0, endedAt: clock.now() };
}

/** It could not be begun. */
export function failed(error: string, { clock }: { readonly clock: Clock }): AgentRunEnd {
  return { ...NOTHING, status: "error", error, endedAt: clock.now() };
}

/** The child was deleted, and what it had done with it. */
export function deleted({ clock }: { readonly clock: Clock }): AgentRunEnd {
  return { ...NOTHING, status: "aborted", error: "The child was deleted.", endedAt: clock.now() };
}

/** The child was out of reach for too long. It may still be at work. */
export function lost(thrown: unknown, { clock }: { readonly clock: Clock }): AgentRunEnd {
  const error = `The child could not be reached: ${errorText(thrown)}`;
  return { ...NOTHING, status: "interrupted", error, reason: "inspect-failed", childRunning: 1, endedAt: clock.now() };
}

/** How long until the end of a run is stored again for which there was no room. */
const ROOM_WAIT_MS = 5_000;

/**
 * Stores the end of a run, as soon as there is room: it comes once, and without it the run is waited for. @param full is told
 * each time there was no room. @throws what else `store` throws
 */
export async function storeEnd<T>(
  { clock }: { readonly clock: Clock },
  store: () => T,
  full: (error: unknown) => void,
): Promise<T> {
  for (;;) {
    try {
      return store();
    } catch (thrown) {
      if (!PerdureError.is(thrown, "disk_full")) throw thrown;
      full(thrown);
      await sleep(clock, ROOM_WAIT_MS);
    }
  }
}
