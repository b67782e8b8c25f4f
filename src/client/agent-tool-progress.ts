import type { UIMessageChunk } from "../message/types.ts";
import type { AgentMilestoneChunk, AgentProgressChunk } from "../wire/agent-tool-frames.ts";
import { isRecord } from "../base/json.ts";
import type { JsonObject } from "../wire/json.ts";
import type { AgentToolMilestone, AgentToolProgress } from "./agent-tool-types.ts";

const PROGRESS: AgentProgressChunk["type"] = "data-agent-progress";
const MILESTONE: AgentMilestoneChunk["type"] = "data-agent-milestone";

/** How far a run is, if that is what the chunk says. */
export function readProgress(chunk: UIMessageChunk, now: number): AgentToolProgress | undefined {
  const data = dataOf(chunk, PROGRESS);
  return data && { ...said(data), ...(data.data !== undefined && { data: data.data }), at: now };
}

/** What a run has reached, if that is what the chunk says. */
export function readMilestone(chunk: UIMessageChunk, now: number): AgentToolMilestone | undefined {
  const { name, sequence, at, data } = dataOf(chunk, MILESTONE) ?? {};
  if (typeof name !== "string") return undefined;
  return {
    name,
    sequence: typeof sequence === "number" ? sequence : 0,
    at: typeof at === "number" ? at : now,
    ...(data !== undefined && { data }),
  };
}

/** What is known of the progress of a run. */
interface ProgressFacts {
  readonly progress?: AgentToolProgress;
  readonly milestones?: AgentToolMilestone[];
}

/** The progress after one more chunk; the same object if unchanged. A replay's old milestone never replaces newer news. */
export function nextProgress<F extends ProgressFacts>(facts: F, chunk: UIMessageChunk, now: number): F {
  const progress = readProgress(chunk, now);
  if (progress !== undefined) return { ...facts, progress };
  const milestone = readMilestone(chunk, now);
  const { milestones: before = [] } = facts;
  if (milestone === undefined || before.some(({ sequence }) => sequence === milestone.sequence)) return facts;
  const milestones = [...before, milestone].sort((a, b) => a.sequence - b.sequence);
  if (facts.progress !== undefined && milestone.at < facts.progress.at) return { ...facts, milestones };
  const { name, at } = milestone;
  return { ...facts, milestones, progress: { ...said(dataOf(chunk, MILESTONE) ?? {}), milestone: name, at } };
}

function said({ fraction, message, phase }: JsonObject): Omit<AgentToolProgress, "at"> {
  return {
    ...(typeof fraction === "number" && { fraction }),
    ...(typeof message === "string" && { message }),
    ...(typeof phase === "string" && { phase }),
  };
}

function dataOf(chunk: UIMessageChunk, type: string): JsonObject | undefined {
  if (chunk.type !== type || !("data" in chunk)) return undefined;
  return isRecord(chunk.data) ? chunk.data : {};
}
