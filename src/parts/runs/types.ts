import type { DeliverTo } from "../../store/delivery.ts";
import { namesOf } from "../../base/known-options.ts";
import type { Identity } from "../../base/identity.ts";
import type { UIMessage } from "../../message/types.ts";
import type { AgentRunStatus } from "../../store/agent-run.ts";
import type { AgentProgress, AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";

/** Where a run is. Only `running` is not an end. */
export type AgentToolRunStatus = AgentRunStatus;
/** How a run ended. `interrupted`: it was given up without a result, and may still end otherwise. */
export type AgentToolTerminalStatus = Exclude<AgentToolRunStatus, "running">;

/** How clients show a run. More fields than these go to them as they are. */
export interface AgentToolDisplayMetadata {
  readonly name?: string;
  readonly icon?: string;
  readonly [more: string]: unknown;
}

/** A run, as the agent that asked for it knows it. Times are milliseconds since the epoch. */
export interface AgentToolRunInfo {
  readonly runId: string;
  /** The class of the child. */
  readonly agentType: string;
  readonly status: AgentToolRunStatus;
  /** The tool call that asked for it; absent for a run that no tool call started. */
  readonly parentToolCallId?: string;
  readonly inputPreview?: unknown;
  readonly display?: AgentToolDisplayMetadata;
  readonly displayOrder: number;
  readonly startedAt: number;
  readonly completedAt?: number;
  /** What was given as `detached.notify.source`. */
  readonly notifySource?: string;
}

/** How a run ended, without what it brought. */
export interface AgentToolLifecycleResult {
  readonly status: AgentToolTerminalStatus;
  readonly summary?: string;
  readonly error?: string;
  /** Only when `interrupted`. */
  readonly reason?: AgentToolInterruptReason;
  /** Only when `interrupted`: whether the child may still be at work. */
  readonly childStillRunning?: boolean;
}

/** What `runAgentTool()` resolves with. */
export interface RunAgentToolResult<Output = unknown> extends AgentToolLifecycleResult {
  readonly runId: string;
  readonly agentType: string;
  /** What the child brought, when `completed`. */
  readonly output?: Output;
}

/** What a detached `runAgentTool()` resolves with, as soon as the child has accepted the work. */
export interface DetachedRunAgentToolResult {
  readonly runId: string;
  readonly agentType: string;
  readonly status: AgentToolRunStatus;
  readonly error?: string;
}

/** What an `agentTool()` gives the model when the child brought no result. */
export interface AgentToolFailure {
  readonly ok: false;
  readonly status: Exclude<AgentToolTerminalStatus, "completed">;
  readonly error: string;
  /** Whether asking again makes sense: only for a run that was `interrupted`. */
  readonly retryable: boolean;
  readonly reason?: AgentToolInterruptReason;
  readonly childStillRunning?: boolean;
}

/** How the end of a run reaches an agent that does not wait for it. */
export interface DetachedAgentToolConfig<Self = object> {
  /** Called with the run and its end, from the queue: once if it is synchronous and does not throw, else at least once. */
  readonly onFinish?: keyof Self & string;
  /** The run is given up and stopped after this many milliseconds. Default: the agent's `detachedMaxBudgetMs`. */
  readonly maxBudgetMs?: number;
  /** Given up when nothing was reported for this long after the first report. Default: `detachedNoProgressBudgetMs`. */
  readonly noProgressBudgetMs?: number;
  /** Tells the model, in a turn of its own, how the run ended; not with `onFinish`. For agents that hold a conversation. */
  readonly notify?: boolean | { readonly source?: string };
  /** Where the answer to that is delivered. Default: to the place that the conversation belongs to, if it belongs to one. */
  readonly deliverTo?: DeliverTo;
  /** Tells the conversation when the run reaches these milestones: `narrate` without the model, `react` in a turn. */
  readonly onMilestones?:
    | readonly string[]
    | { readonly names: readonly string[]; readonly mode?: "react" | "narrate" };
}

/** Options of `runAgentTool()`. */
export interface RunAgentToolOptions<Input = unknown, Self = object> {
  /** What is asked for. JSON. */
  readonly input: Input;
  /** The same id again means the same run: it is joined, or its result returned. Default: a new one. */
  readonly runId?: string;
  /** For whom it is done. Default: for whom the code runs that asks for it. */
  readonly identity?: Identity;
  readonly parentToolCallId?: string;
  readonly displayOrder?: number;
  /** Aborting it stops the run. Not for detached runs: they outlive their caller. */
  readonly signal?: AbortSignal;
  /** What clients see of the input. Default: the input. */
  readonly inputPreview?: unknown;
  readonly display?: AgentToolDisplayMetadata;
  /** Do not wait for the end. */
  readonly detached?: boolean | DetachedAgentToolConfig<Self>;
  /** `terminal`: clients hear of the start, progress and the end, not of each word. */
  readonly eventDelivery?: "full" | "terminal";
}

/** Options of a `runAgentTool()` that does not wait. */
export type DetachedRunAgentToolOptions<Self = object> = RunAgentToolOptions<unknown, Self> & {
  readonly detached: true | DetachedAgentToolConfig<Self>;
};

/** Something that a run has reached. */
export interface AgentToolMilestone {
  readonly name: string;
  /** Counts the milestones of the run from 0. */
  readonly sequence: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly data?: unknown;
  /** How many chunks of the run came before it. Not told to clients: it gives the milestone its place in a replay. */
  readonly chunks?: number;
}

/** What a child reports of its work. With a `milestone` it is stored and told to every client that comes. */
export interface AgentToolProgress<T = unknown> extends AgentProgress {
  readonly milestone?: string;
  readonly data?: T;
}

/** How far a run said it was, last. */
export interface AgentToolProgressSnapshot extends AgentProgress {
  readonly milestone?: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A run as the child knows it. */
export interface AgentToolRunInspection<Output = unknown> {
  readonly runId: string;
  readonly status: Exclude<AgentToolRunStatus, "interrupted">;
  readonly output?: Output;
  readonly summary?: string;
  readonly error?: string;
  /** Why it ended, where a limit of an agent above did it. */
  readonly reason?: AgentToolInterruptReason;
  /** How many chunks are stored. */
  readonly chunks: number;
  readonly startedAt: number;
  readonly completedAt?: number;
  readonly progress?: AgentToolProgressSnapshot;
  readonly milestones: readonly AgentToolMilestone[];
}

/** A chunk of what a child says; without a number when it is not stored. */
export interface AgentToolChunk {
  /** Counts the stored chunks of the run from 0. */
  readonly sequence: number | undefined;
  /** JSON of one UI message chunk. */
  readonly body: string;
}

/** Who follows a run. Called in order; must not throw. */
export interface AgentToolListener {
  chunks(chunks: readonly AgentToolChunk[]): void;
  milestone(milestone: AgentToolMilestone): void;
}

/** What names a run to the hooks of the child. */
export interface AgentToolRequest {
  readonly runId: string;
  readonly input: unknown;
}

/** What a child writes about a run: hooks of the class. */
export interface AgentToolChildHooks {
  formatAgentToolInput(input: unknown, request: { readonly runId: string }): string | UIMessage;
  getAgentToolOutput(request: AgentToolRequest, messages: readonly UIMessage[]): unknown;
  getAgentToolSummary(request: AgentToolRequest, output: unknown, messages: readonly UIMessage[]): string;
}

/** The names of its options. */
export const runNames = namesOf<RunAgentToolOptions>()(
  "input runId parentToolCallId displayOrder signal inputPreview display detached eventDelivery",
  "identity",
);

/** The names of its options. */
export const detachedNames = namesOf<DetachedAgentToolConfig>()(
  "onFinish maxBudgetMs noProgressBudgetMs notify deliverTo onMilestones",
);
