import { errorText, PerdureError } from "../../error.ts";
import type { Clock } from "../../id.ts";
import type { AgentRunEnd } from "../../store/agent-run.ts";

/*
 * Ends of a run that the parent gives it, because the child cannot.
 */

/** Whether a call failed because the child is not there now, and may be there again. */
export function isGone(thrown: unknown): boolean {
  return PerdureError.is(thrown, "agent_gone") || PerdureError.is(thrown, "limit");
}

const NOTHING = { output: null, summary: null, reason: null, childRunning: null, chunks: 0 } as const;

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
