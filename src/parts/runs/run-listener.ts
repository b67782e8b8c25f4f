import type { AgentRunRow } from "../../store/agent-run.ts";
import type { OwnAgent } from "../part.ts";
import type { DetachedRuns } from "./detached-runs.ts";
import type { RunEvents } from "./run-events.ts";
import { chunkFrame, isProgress, milestoneFrame } from "./run-frames.ts";
import { type RunPolicy, watch } from "./run-policy.ts";
import { toInfo } from "./run-views.ts";
import type { AgentToolListener, AgentToolProgressSnapshot } from "./types.ts";

/** A run as far as it was heard. */
export interface HeardRun {
  readonly run: AgentRunRow;
  /** How many stored chunks were heard. */
  count: number;
  /** Milestones that were heard of. */
  readonly milestones: Set<number>;
}

/** Whom a parent tells what its child says. */
interface RunAudience {
  readonly own: OwnAgent;
  readonly agent: RunPolicy;
  readonly events: RunEvents;
  readonly detached: DetachedRuns;
}

/** Passes on what a child says of a run: to the clients of the parent, its hooks, and its conversation. */
export function runListener(heard: HeardRun, { own, agent, events, detached }: RunAudience): AgentToolListener {
  const { run, milestones } = heard;
  const reported = (progress: AgentToolProgressSnapshot) => {
    if (run.detached !== null) detached.reported(run.runId, progress.at);
    watch(agent, () => agent.onProgress(toInfo(run), progress));
  };
  return {
    chunks: (chunks) => {
      if (own.halted) return;
      const frames: string[] = [];
      for (const chunk of chunks) {
        if (chunk.sequence !== undefined) heard.count = chunk.sequence + 1;
        const progress = chunk.sequence === undefined && isProgress(chunk.body);
        if (progress) reported({ ...progressOf(chunk.body), at: own.host.clock.now() });
        if (progress || run.delivery === "full") frames.push(chunkFrame(run, chunk, heard.count));
      }
      if (frames.length > 0) events.tell(run, frames);
    },
    milestone: (milestone) => {
      if (own.halted || milestones.has(milestone.sequence)) return;
      milestones.add(milestone.sequence);
      events.tell(run, [milestoneFrame(run, milestone, heard.count)]);
      const { name, sequence: _sequence, chunks: _chunks, ...rest } = milestone;
      reported({ ...rest, milestone: name });
      detached.reached(run.runId, milestone);
    },
  };
}

function progressOf(body: string): Omit<AgentToolProgressSnapshot, "at"> {
  return (JSON.parse(body) as { data: Omit<AgentToolProgressSnapshot, "at"> }).data;
}
