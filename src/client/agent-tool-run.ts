import { nextProgress } from "./agent-tool-progress.ts";
import type { HeardFrame } from "./agent-tool-frame.ts";
import type { AgentToolEventState, AgentToolRunState } from "./agent-tool-types.ts";

/** A run without what its child says. */
export type RunFacts = Omit<AgentToolRunState, "parts">;

/**
 * A run after one more event. Nothing is changed in place.
 *
 *     (unknown) ── started ──→ running ── finished | error | aborted | interrupted ──→ that, until another of them
 *
 * Every replay repeats `started`, which takes no run back. One end may follow another: a run given up as interrupted may still
 * finish.
 * @returns the same object when nothing is new; undefined for a run whose start was not heard of.
 */
export function nextRun(run: RunFacts | undefined, heard: HeardFrame, now: number): RunFacts | undefined {
  const { event, parentToolCallId } = heard;
  if (event.kind === "started") {
    if (run !== undefined && run.status !== "running") return run;
    const { kind: _kind, ...facts } = event;
    return {
      ...(run?.progress !== undefined && { progress: run.progress }),
      ...(run?.milestones !== undefined && { milestones: run.milestones }),
      ...facts,
      ...(parentToolCallId !== undefined && { parentToolCallId }),
      status: "running",
      subAgent: { agent: event.agentType, name: event.runId },
    };
  }
  if (run === undefined) return undefined;
  if (event.kind === "chunk") return nextProgress(run, event.chunk, now);
  const { error: _error, reason: _reason, childStillRunning: _still, ...kept } = run;
  switch (event.kind) {
    case "finished":
      return { ...kept, status: "completed", summary: event.summary };
    case "error":
      return { ...kept, status: "error", error: event.error };
    case "aborted":
      return { ...kept, status: "aborted", ...(event.reason !== undefined && { error: event.reason }) };
    case "interrupted": {
      const { error, reason, childStillRunning } = event;
      return {
        ...kept,
        status: "interrupted",
        error,
        ...(reason !== undefined && { reason }),
        ...(childStillRunning !== undefined && { childStillRunning }),
      };
    }
  }
}

/** No runs at all. */
export const NO_RUNS: AgentToolEventState = { runsById: {}, runsByToolCallId: {}, unboundRuns: [] };

/** Puts runs in order, by the tool calls that started them. Lists of `before` that would be the same are kept. */
export function groupRuns(runs: readonly AgentToolRunState[], before: AgentToolEventState): AgentToolEventState {
  const sorted = runs.toSorted((a, b) => a.order - b.order || a.runId.localeCompare(b.runId));
  const unbound = sorted.filter(({ parentToolCallId }) => !parentToolCallId);
  const bound = Map.groupBy(
    sorted.filter(({ parentToolCallId }) => parentToolCallId),
    ({ parentToolCallId }) => parentToolCallId ?? "",
  );
  const lists = [...bound].map(([id, list]): [string, AgentToolRunState[]] => [
    id,
    sameOr(Object.hasOwn(before.runsByToolCallId, id) ? before.runsByToolCallId[id] : undefined, list),
  ]);
  return {
    // Not by assignment: an id may be called `__proto__`.
    runsById: Object.fromEntries(runs.map((run) => [run.runId, run])),
    runsByToolCallId: Object.fromEntries(lists),
    unboundRuns: sameOr(before.unboundRuns, unbound),
  };
}

function sameOr<T>(before: T[] | undefined, now: T[]): T[] {
  return before?.length === now.length && before.every((item, index) => item === now[index]) ? before : now;
}
