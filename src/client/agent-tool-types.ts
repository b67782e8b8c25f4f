import type { Part } from "../message/types.ts";
import type { AgentProgress, AgentToolInterruptReason } from "../wire/agent-tool-frames.ts";

/** What every part of a message has. */
export interface AgentToolRunPart {
  readonly type: string;
}

/** How far a run said it was, last. */
export interface AgentToolProgress extends AgentProgress {
  /** It was said with this milestone. */
  readonly milestone?: string;
  /** Milliseconds since the epoch: when the milestone was reached, or when the progress was heard of here. */
  readonly at: number;
}

/** Something that a run has reached. */
export interface AgentToolMilestone {
  readonly name: string;
  /** Counts the milestones of the run from 0. */
  readonly sequence: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly data?: unknown;
}

/** A run of a child agent, as far as it is known. A new object whenever something of it changed. */
export interface AgentToolRunState<P extends AgentToolRunPart = Part> {
  readonly runId: string;
  /** The class of the child. */
  readonly agentType: string;
  /** The tool call that started it; absent for a run that no tool call started. */
  readonly parentToolCallId?: string;
  readonly inputPreview?: unknown;
  readonly order: number;
  readonly display?: { readonly name?: string; readonly icon?: string; readonly [more: string]: unknown };
  readonly status: "running" | "completed" | "error" | "aborted" | "interrupted";
  /** What the child says, as the parts of a message. */
  readonly parts: P[];
  /** What it ended with, once it is `completed`. */
  readonly summary?: string;
  /** Why it ended otherwise. */
  readonly error?: string;
  /** Only while `interrupted`. */
  readonly reason?: AgentToolInterruptReason | (string & {});
  /** Only while `interrupted`. */
  readonly childStillRunning?: boolean;
  readonly progress?: AgentToolProgress;
  /** In the order in which they were reached. */
  readonly milestones?: AgentToolMilestone[];
  /** Where the child is, for the `sub` of a connection to it. */
  readonly subAgent: { readonly agent: string; readonly name: string };
}

/** The runs of an agent's children. Runs and lists that did not change stay the same objects. */
export interface AgentToolEventState<P extends AgentToolRunPart = Part> {
  readonly runsById: Record<string, AgentToolRunState<P>>;
  /** By the tool call that started them, each list by `order`. */
  readonly runsByToolCallId: Record<string, AgentToolRunState<P>[]>;
  /** Those that no tool call started, by `order`. */
  readonly unboundRuns: AgentToolRunState<P>[];
}
