/**
 * What an agent reports about itself, for logs, metrics and traces. Emitting never changes what the agent does, and a failing
 * subscriber never reaches it.
 */
export interface AgentEvents {
  "agent:started": { durationMs: number };
  "agent:evicted": { awakeMs: number };
  "agent:destroyed": Record<never, never>;
  "agent:failed": { stage: string; error: string };
  "connection:opened": { connectionId: string };
  "connection:closed": { connectionId: string; code: number; reason: string };
  "connection:dropped": { connectionId: string; reason: string };
  "frame:refused": { connectionId: string; reason: string };
  /** Somebody wanted to do what they may not: because they may only read, or a hook of the app says so. Nothing was done. */
  "act:refused": { act: string; code: string; reason: string; by?: string; connectionId?: string; session?: string };
  /** A page of an origin that the host does not let in wanted to reach the agent. It was not woken for it. */
  "origin:refused": { origin: string; method: string; approach: "request" | "socket" };
  /** A request to the agent came under a name that the host does not answer to. It was not woken for it. */
  "host:refused": { host: string; method: string; approach: "request" | "socket" };
  /** Something stored cannot be read. The row is left as it is, and all else goes on without it. Told once in a life. */
  "row:damaged": { what: string; error: string };
  /** A value that could not be read was kept under `key` of `perdure_cell`, because another one takes its place. */
  "row:set_aside": { what: string; key: string };
  "state:changed": { source: string };
  "state:refused": { source: string; reason: string };
  "rpc:called": { method: string; durationMs: number; ok: boolean; error?: string };
  "schedule:created": { id: string; callback: string };
  "schedule:cancelled": { id: string; callback: string };
  "schedule:ran": { id: string; callback: string; ok: boolean; attempt: number; error?: string };
  "schedule:duplicate_warning": { callback: string; count: number };
  /** `getScheduledTasks()` threw as the agent started. The tasks that are stored wait until it can be read. */
  "task:unread": { error: string };
  /** One try of an occurrence of a scheduled task has ended. */
  "task:ran": { taskId: string; occurrenceKey: string; ok: boolean; attempt: number; error?: string };
  /** An occurrence of a scheduled task was given up; the next one comes all the same. */
  "task:failed": { taskId: string; occurrenceKey: string; attempts: number; error: string };
  "queue:added": { id: string; callback: string };
  "queue:ran": { id: string; callback: string; ok: boolean; attempt: number; error?: string };
  "fiber:started": { id: string; name: string };
  "fiber:recovered": { id: string; name: string; attempt: number };
  "fiber:settled": { id: string; name: string; status: string; error?: string };
  "fiber:method_missing": { id: string; name: string };
  /** A turn is stored and will run. `trigger`: what asked for it. */
  "turn:accepted": { requestId: string; session: string; trigger: string };
  /** An attempt of a turn begins; `attempt` counts from 1. */
  "turn:started": { requestId: string; session: string; trigger: string; attempt: number };
  /** A turn is over. `durationMs`: since it was accepted. */
  "turn:settled": { requestId: string; session: string; trigger: string; status: string; durationMs: number };
  /** A step of a turn begins with its first model call. Steps count from 0. */
  "step:started": { requestId: string; session: string; step: number };
  /** All that a step asked for is settled, or waits for somebody. */
  "step:settled": { requestId: string; session: string; step: number; toolCalls: number };
  /** A model call is booked and about to be made. `usd`: the most that it can cost; null: the model has no known price. */
  "call:reserved": CallFacts & { tokens: number; usd: number | null };
  /** A model call has ended. `cut`: nobody saw how. `tokens` and `usd`: what is charged. */
  "call:settled": CallFacts & {
    outcome: "ok" | "error" | "cut";
    tokens: number;
    usd: number | null;
    durationMs: number;
    errorClass?: string;
  };
  /** A tool call waits for a person. */
  "tool:asked": ToolFacts;
  /** A person has answered, or did not in time. */
  "tool:answered": {
    toolCallId: string;
    toolName: string;
    decision: "approved" | "denied" | "expired";
    by?: string;
  };
  /** A tool call runs; `attempt` counts from 1. */
  "tool:started": ToolFacts & { attempt: number };
  /** A tool call has its result. `durationMs`: since it first ran; none, if it never did. */
  "tool:settled": ToolFacts & { ok: boolean; durationMs?: number };
  /** Something waited until what it tells of was safe on the disk. */
  "gate:waited": { sent: number; durationMs: number };
  /** Somebody wanted to answer a question for approval and may not: `authorizeApproval` did not allow it. It stays open. */
  "approval:refused": { toolCallId: string; tool: string; approved: boolean; reason: string; by?: string };
  /** Ignored: a result from outside for what the server runs or a person must approve, or an answer to no open question. */
  "chat:answer:refused": { toolCallId: string; tool: string; kind: "result" | "approval"; reason: string; by?: string };
  /** A model asked for more tool calls in one step than it may: those beyond `limit` did not run, and it reads so. */
  "chat:calls:refused": { requestId: string; step: number; limit: number; refused: number };
  /** A model call failed; it may be tried again. */
  "chat:call:failed": { requestId: string; errorClass: string };
  /** Nothing came from the model for so long that the attempt was given up; the turn is carried on, if it may be. */
  "chat:stream:stalled": { requestId: string; timeoutMs: number };
  /** A turn was found that had been cut off. */
  "chat:recovery:detected": RecoveryFacts;
  /** It is carried on from what is there. */
  "chat:recovery:attempt": RecoveryFacts;
  /** It was carried on and is complete. */
  "chat:recovery:completed": RecoveryFacts;
  /** There was nothing to carry on: it had been stopped (`cancelled`), was over, waits for an answer, or the app declined. */
  "chat:recovery:skipped": RecoveryFacts & { reason: "cancelled" | "finished" | "waiting" | "declined" };
  /** It is not carried on any more; `reason` is the bound that was reached. */
  "chat:recovery:exhausted": RecoveryFacts & { reason: RecoveryBound };
  /** It was carried on and ended with an error, or was stopped. */
  "chat:recovery:failed": RecoveryFacts & { reason: string };
  /** A turn ended with an error. `messagesPersisted`: whether what it was to answer is stored. */
  "chat:request:failed": { requestId: string; stage: string; error: string; messagesPersisted: boolean };
  /** `afterToolCall` has replaced or withheld what a tool returned. */
  "chat:result:changed": { requestId: string; toolCallId: string; toolName: string; action: "replace" | "withhold" };
  /** A tool call goes on without its turn: the model has a receipt. */
  "chat:background:started": { requestId: string; toolCallId: string; toolName: string; session: string };
  /** A call that a crash or the end of the host cut runs again. `attempt` counts from 1. */
  "chat:background:recovered": { toolCallId: string; toolName: string; session: string; attempt: number };
  /** It is over. `dropped`: nobody is told, because its session was cleared or deleted, or its answer taken back. */
  "chat:background:ended": {
    toolCallId: string;
    toolName: string;
    session: string;
    status: "completed" | "error" | "interrupted" | "stopped" | "dropped";
    error?: string;
  };
  /** A call was to go on without its turn and may not: it did not run, or is waited for after all. */
  "chat:background:refused": { requestId: string; toolCallId: string; toolName: string; reason: "running" | "count" };
  /** `agent`: whose budget, when it is that of an agent above. */
  "chat:budget:reached": { requestId: string; scope: string; limit: number; agent?: string };
  /** From now on the model reads a summary, or fewer outputs of tools, instead of older messages. */
  "chat:context:compacted": {
    compactionId: string;
    session: string;
    kind: string;
    trigger: string;
    tokensBefore: number;
    tokensAfter: number;
    /** How many of these messages nobody has read for the summary: there were too many. The summary says so too. */
    leftOut?: number;
    /** How many outputs of tools are left out because newer ones stand for them. */
    superseded?: number;
    /** Why messages were left out without a summary, for a person. */
    why?: string;
    requestId?: string;
  };
  /** A compaction came to nothing; the conversation is as it was. */
  "chat:compaction:failed": { session: string; trigger: string; error: string; requestId?: string };
  /** What `countTokens()` gave for a model failed: its texts are estimated until the agent wakes again. Told once in a life. */
  "chat:counter:failed": { model: string; error: string };
  /** A message that a summary stood for was changed or deleted: the model reads the messages again, or a new summary. */
  "chat:summary:dropped": {
    session: string;
    compactionId: string;
    messageId: string;
    reason: "changed" | "deleted";
  };
  /** `parent`: it is a fork of that session. */
  "session:created": { session: string; parent?: string };
  "session:renamed": { session: string; name: string; by: "derived" | "model" | "user" };
  "session:switched": { session: string };
  "session:deleted": { session: string };
  /** A model was asked for the title of a session, and there is none. It is tried again after the next turn. */
  "session:title_failed": { session: string; error: string };
  /** A client that followed a collection may not read it any more: it is told so, and nothing else of it. */
  "collection:lost": { connectionId: string; collection: string; code: string };
  /** An MCP server can be used. `warnings`: what of its catalogue was left out. */
  "mcp:connected": { serverId: string; server: string; protocolVersion: string; warnings: string[] };
  /** Tools of an MCP server have another description or schema than before, in the same life of the agent. */
  "mcp:tools_changed": { serverId: string; server: string; tools: string[] };
  /** An MCP server wants a person to sign in. */
  "mcp:sign_in_needed": { serverId: string; server: string };
  /** An MCP server could not be reached, or is gone. */
  "mcp:failed": { serverId: string; server: string; error: string };
  /** A request to the network was let through or refused. The URL has no query. */
  "network:decided": {
    allowed: boolean;
    via: "fetch" | "proxy" | "tunnel";
    method: string;
    url: string;
    hop: number;
    rule?: string;
    address?: string;
    reason?: string;
  };
  /** Something did not reach its place at a messenger, and is not tried any more. It is listed, and can be tried again. */
  "delivery:failed": { delivery: string; messenger: string; thread: string; error: string };
  /** A message was sent again because nobody knows whether it was sent: its place may show it twice. */
  "delivery:repeated": { delivery: string; messenger: string; thread: string };
  /** A file of an answer could not be sent; its place says so. */
  "delivery:file-left": { delivery: string; messenger: string; thread: string; file: string; reason: string };
  /** Somebody at a messenger was not let in, or has said too much. Stored, and no turn. */
  "messenger:refused": { messenger: string; thread: string; by: string; reason: string };
  /** A delivery to a webhook is not signed as agreed. */
  "messenger:unverified": { messenger: string; status: number };
  /** A file that somebody sent was not read; the message says so to the model. */
  "messenger:file-left": {
    messenger: string;
    thread: string;
    by: string;
    file: string;
    mediaType: string;
    reason: string;
  };
  /** Nothing can be read from a messenger now; it is tried again. */
  "messenger:failed": { messenger: string; error: string };
  /** Somebody else reads what comes for the same token: another process, or a webhook. */
  "messenger:conflict": { messenger: string; error: string };
  /** Work was given to a child. */
  "agent_tool:started": { runId: string; className: string };
  /** A turn was refused: whoever asked for it is waited for by a turn of the same agent. `agents`: the circle. */
  "agent:circle": { agents: string[] };
  /** One more turn would have come of the turn `requestId` of `agent`, too deep or too many, and was refused. */
  "turn:refused": { reason: "depth" | "count"; depth: number; agent: string; requestId: string };
  "agent_tool:refused": { runId: string; className: string; reason: "depth" | "count"; chain: readonly string[] };
  "agent_tool:ended": { runId: string; className: string; status: string };
  /** Somebody from outside wanted to reach a child that is not there, of a class that the agent does not declare. */
  "subagent:refused": { className: string; childName: string };
  "subagent:created": { className: string; childName: string };
  "subagent:deleted": { className: string; childName: string };
}

/** Which model call an event is about. */
export interface CallFacts {
  callId: string;
  /** None: it is of no turn. */
  requestId?: string;
  session: string;
  /** What it is for: `turn`, `compaction`, `title`, `tool`, or `agent-tool`, by an agent below that this one pays for. */
  purpose: string;
  /** `provider/modelId` */
  model: string;
  step: number;
  /** Which try of the step, from 1. */
  attempt: number;
}

/** Which tool call an event is about. */
export interface ToolFacts {
  /** None: a client has run it. */
  requestId?: string;
  toolCallId: string;
  toolName: string;
}

/** The bounds of recovery: tries in all, age, tries and time without anything new, and the app's own word. */
export type RecoveryBound =
  | "max_attempts"
  | "max_age"
  | "max_no_progress_attempts"
  | "no_progress_timeout"
  | "should_keep_recovering";

/** Which interruption of which turn an event is about. */
export interface RecoveryFacts {
  incidentId: string;
  requestId: string;
  /** From 1: how often the turn was cut off. */
  attempt: number;
  maxAttempts: number;
  /** `continue`: part of an answer is there. `retry`: nothing is. */
  recoveryKind: "continue" | "retry";
}

/** The name of an event. */
export type AgentEventType = keyof AgentEvents;

/** The families that a type belongs to: `chat:recovery:*` and `chat:*` for `chat:recovery:attempt`. */
type FamilyOf<T extends string> = T extends `${infer Head}:${infer Rest}`
  ? `${Head}:*` | `${Head}:${FamilyOf<Rest>}`
  : never;
type Channel<T extends string> = T extends `${infer Head}:${string}` ? Head : never;

/** What can be listened to: a type, a family of types (`"chat:recovery:*"`, `"chat"`), or all (`"*"`). */
export type AgentEventPattern = AgentEventType | FamilyOf<AgentEventType> | Channel<AgentEventType> | "*";

/** The events that a pattern is for. */
export type EventOf<P extends AgentEventPattern> = Extract<AgentEvent, { readonly type: TypesOf<P> }>;

type TypesOf<P extends AgentEventPattern> = P extends AgentEventType
  ? P
  : P extends "*"
    ? AgentEventType
    : P extends `${infer Start}:*`
      ? Extract<AgentEventType, `${Start}:${string}`>
      : Extract<AgentEventType, `${P}:${string}`>;

/** One event as subscribers see it. */
export type AgentEvent = {
  [T in AgentEventType]: {
    readonly type: T;
    /** The class of the agent, as registered. */
    readonly agent: string;
    /** The agent's name. */
    readonly name: string;
    /** The agent's whole address; equals `agent/name` for an agent that is not a child. */
    readonly id: string;
    readonly payload: AgentEvents[T];
    /** Milliseconds since the epoch. */
    readonly timestamp: number;
  };
}[AgentEventType];

/** Reports one fact. Handed in from above; never throws. */
export type Emit = <T extends AgentEventType>(type: T, payload: AgentEvents[T]) => void;
