import { tryParseJson } from "../../base/json.ts";
import type { ListedAgentRun } from "../../store/agent-run.ts";
import type { AgentToolEvent, AgentToolEventFrame, AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";
import { encodeFrame } from "../../wire/encode.ts";
import type { AgentToolChunk, AgentToolMilestone } from "./types.ts";

/*
 * Runs as the clients of the parent read them. `started` has number 0, the child's stored chunk i has i + 1, the end
 * the next one. What is not stored carries the next number without using it up. Clients drop what has a number that
 * they know, so every frame has the same one live and replayed.
 */

function frame(run: ListedAgentRun, sequence: number, replay: boolean, event: AgentToolEvent): string {
  const { toolCallId } = run;
  const head: AgentToolEventFrame = {
    type: "agent-tool-event",
    ...(toolCallId !== null && { parentToolCallId: toolCallId }),
    sequence,
    ...(replay && { replay: true as const }),
    event,
  };
  return encodeFrame(head);
}

export function startedFrame(run: ListedAgentRun, replay = false): string {
  const { runId, className, preview, display, displayOrder, seq } = run;
  return frame(run, 0, replay, {
    kind: "started",
    runId,
    agentType: className,
    ...(preview !== null && { inputPreview: tryParseJson(preview) }),
    order: displayOrder ?? seq,
    ...(display !== null && { display: tryParseJson(display) as { name?: string; icon?: string } }),
  });
}

/** @param next how many chunks are stored before this one, for one that is not stored. */
export function chunkFrame(
  run: ListedAgentRun,
  { sequence, body }: AgentToolChunk,
  next: number,
  replay = false,
): string {
  const { runId } = run;
  if (sequence !== undefined) return frame(run, sequence + 1, replay, { kind: "chunk", runId, body });
  // Progress is known by an id of its own; what else is not stored needs one.
  const unstored = isProgress(body) ? {} : { unstoredId: crypto.randomUUID() };
  return frame(run, next + 1, replay, { kind: "chunk", runId, body, ...unstored });
}

export function milestoneFrame(
  run: ListedAgentRun,
  milestone: AgentToolMilestone,
  next: number,
  replay = false,
): string {
  const { chunks: _place, ...data } = milestone;
  const body = JSON.stringify({ type: "data-agent-milestone", data });
  return frame(run, next + 1, replay, { kind: "chunk", runId: run.runId, body });
}

/** The end of a run. */
export function endFrame(run: ListedAgentRun, replay = false): string {
  return frame(run, run.chunks + 1, replay, endEvent(run));
}

function endEvent({ runId, status, summary, error, reason, childRunning }: ListedAgentRun): AgentToolEvent {
  switch (status) {
    case "completed":
    case "running":
      return { kind: "finished", runId, summary: summary ?? "" };
    case "error":
      return { kind: "error", runId, error: error ?? "" };
    case "aborted":
      return { kind: "aborted", runId, ...(error !== null && { reason: error }) };
    case "interrupted":
      return {
        kind: "interrupted",
        runId,
        error: error ?? "",
        ...(reason !== null && { reason: reason as AgentToolInterruptReason }),
        ...(childRunning !== null && { childStillRunning: childRunning === 1 }),
      };
  }
}

/** Whether a chunk reports progress. */
export function isProgress(body: string): boolean {
  return body.startsWith('{"type":"data-agent-progress"');
}
