/**
 * The shapes that rows must have so that the primitives can keep their promises. Collections may have any further
 * fields, and any names for their own: `transform`, `isComplete` and `getResult` map them.
 */

/** What a row of a collection of tool calls must tell. */
export interface ToolCallContract {
  /** One call. The same call keeps its id when it is tried again: it is the tool's idempotency key. */
  id: string;
  /** `pending` → `executing` → `completed`, `failed` or `cancelled`. */
  status: string;
  /** The tool that is called. */
  name: string;
  /** What the model gave it. */
  args: unknown;
}

/** What a row of a collection of requests for an answer must tell. */
export interface GenerationContract {
  id: string;
  /** `pending` → `generating` → `completed`, `failed` or `cancelled`. */
  status: string;
}

/** What a row of a collection of chunks must tell. */
export interface ChunkContract {
  id: string;
  /** The answer that the chunk is a piece of. A second try at an answer has another id. */
  generationId: string;
  /** 0, 1, 2, …: order by it, never by time. */
  index: number;
  /** On the last chunk of an answer that is complete, and on no other. */
  isFinal?: boolean;
}

/** How far a source was consumed. */
export interface CheckpointContract {
  /** A stream, a queue, a topic with its partition. */
  source: string;
  /** An opaque mark of progress; the runner's adapter knows the order of the cursors of a source. */
  cursor: string;
}

/** Where a tool call is. */
export type ToolCallStatus = "pending" | "executing" | "completed" | "failed" | "cancelled";

/** Where an answer is. `suspended`: its run has ended and goes on when its tools have their results. */
export type GenerationStatus = "pending" | "generating" | "suspended" | "completed" | "failed" | "cancelled";

const SETTLED: ReadonlySet<string> = new Set<ToolCallStatus & GenerationStatus>(["completed", "failed", "cancelled"]);

/** Whether a tool call or an answer in this state is over. */
export function isSettledStatus(status: string): boolean {
  return SETTLED.has(status);
}

/** The default row of a tool call. */
export interface ToolCallRecord extends ToolCallContract {
  generationId: string;
  status: ToolCallStatus;
  /** The id that the model gave the call, unlike `id` only within its answer. */
  toolCallId?: string;
  result?: unknown;
  error?: string;
  /** How often it was begun and given up before; part of what makes one execution. */
  attempt?: number;
  /** A person must allow it first. */
  needsApproval?: boolean;
  /** Runs in the background: the answer did not wait for it. */
  isAsync?: boolean;
  /** The last news of a long job. */
  progress?: unknown;
  /** The answer that called the worker that made this call. */
  parentGenerationId?: string;
  createdAt: string;
  updatedAt: string;
}

/** What a stored chunk is about. `other`: kept, but no part of what people read. */
export type ChunkType =
  | "text"
  | "thinking"
  | "tool-call-start"
  | "tool-call-args"
  | "tool-call-end"
  | "tool-result"
  | "other";

/** The default row of a chunk. */
export interface ChunkRecord extends ChunkContract {
  type: ChunkType;
  content: string;
  toolCallId?: string;
  toolName?: string;
  /** The answer that called the worker whose piece this is. */
  parentGenerationId?: string;
}

/** The default row of an answer. */
export interface GenerationRecord extends GenerationContract {
  agentName: string;
  status: GenerationStatus;
  model: string;
  /** Which try at the same work this is, from 1. */
  attempt?: number;
  /** The runner that works on it, and its fence. */
  runner?: string;
  fence?: number;
  /** How many results of tools were there when it was last taken up. */
  resumeFromToolIndex?: number;
  createdAt: string;
  updatedAt: string;
  completedAt?: string;
  error?: string;
}

/** What stands for older messages in an agent's context. */
export interface SummaryRecord {
  id: string;
  agentName: string;
  createdAt: string;
  /** The last message that it covers, as {@link AgentMessage.seq} if its backend gives one, else its `createdAt`. */
  coveringUpTo: string;
  content: string;
}

/** How far a runner has come with a source; for adapters that keep it in a collection. */
export interface RunnerCheckpointRecord {
  id: string;
  runnerId: string;
  source: string;
  cursor: string;
  updatedAt: string;
}

/** A tool call inside a message of a model. */
export interface AgentToolCall {
  id: string;
  name: string;
  /** JSON text, as the model gave it. */
  arguments: string;
}

/** The message of agents that keep their conversation in one collection. */
export interface AgentMessage {
  id: string;
  role: "user" | "assistant" | "system" | "tool";
  /** Who wrote it: a person's id, or an agent's name. */
  actorId: string;
  /** Whose inbox it is in. */
  targetAgent: string;
  content: string;
  /** ISO time of the writer's clock: to be shown, never to order by where `seq` is there. */
  createdAt: string;
  /** Whether the target is done with it. */
  processed: boolean;
  /** Its place in the backend's order; filled in by the backend. */
  seq?: number;
  generationId?: string;
  /** Set by who asks … */
  requestId?: string;
  /** … and repeated by who answers. */
  inReplyTo?: string;
  /** Of an assistant that called tools: its calls. Of a tool: the call that `content` is the result of. */
  toolCalls?: AgentToolCall[];
  toolCallId?: string;
  /** How often an answer to it was begun; counted by its agent. */
  attempts?: number;
  /** Of a request of an agent: the agents that wait for its answer, the first caller first. */
  callers?: string[];
  /** Why the agent gave it up, after its last try. */
  error?: string;
}

/** One entry of the audit trail of approvals. Entries are inserted, never changed. */
export interface ApprovalEvent {
  id: string;
  toolCallId: string;
  action: "requested" | "approved" | "denied" | "expired";
  actorId: string;
  timestamp: string;
  reason?: string;
  /** Its place in the backend's order; filled in by the backend. */
  seq?: number;
}

/** A row of a collection of claims: who works on a thing, or a sign of life of who does. */
export type ClaimRecord = ClaimRow | ClaimBeat;

/**
 * Who works on what. The row exists while somebody does, and afterwards only if a try failed. Its version in the log is the
 * fence: it grows only when the claim changes hands, so a result that names an old version is refused.
 */
export interface ClaimRow {
  /** The thing: `tool:<row id>`, `runner:<agent>`. */
  id: string;
  kind: "claim";
  /** The worker, under a name that outlives its process. */
  owner: string;
  /** This life of the worker. */
  incarnation: string;
  /** `free`: a try has failed, and the next may begin. `dead`: given up; see `error`. */
  state: "held" | "free" | "dead";
  /** How long others must see no sign of life before they take over. */
  leaseMs: number;
  /** Which try this is, from 1. */
  attempt: number;
  /** The last failure. */
  error?: string;
  /** To be shown to people; nothing is decided by it. */
  updatedAt: string;
}

/** A sign of life of who holds a claim. In a row of its own, because the version of the claim's row is its fence. */
export interface ClaimBeat {
  /** `beat:` and the id of the claim. There as long as the claim is held. */
  id: string;
  kind: "beat";
  /** Grows with each heartbeat: others see life without comparing clocks. */
  beat: number;
  /** Somebody asked the holder to stop, and why. */
  cancel?: string;
}
