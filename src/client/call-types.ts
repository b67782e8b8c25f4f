import type { Words } from "../base/known-options.ts";

/** Methods of agents that are for the agent's own code. Calling one fails on the server; here it is not even offered. */
type FrameworkMethod =
  | `on${Capitalize<string>}`
  | `get${"Connection" | "Connections" | "ConnectionTags" | "CallableMethods" | "Schedule" | "Schedules" | "ScheduleById" | "Queue" | "Queues"}`
  | `isConnection${string}`
  | `dequeue${string}`
  | `keepAlive${string}`
  | `${string}Fiber`
  | `${string}FiberByKey`
  | `${string}Fibers`
  | `${string}SubAgent`
  | `${string}SubAgents`
  | `${string}AgentTool${string}`
  | `formatDetached${string}`
  | `${"create" | "switch" | "rename" | "delete" | "fork" | "configure"}Session`
  | `get${"Sessions" | "CurrentSessionId" | "History" | "Branches" | "TitleModel"}`
  | `${string}McpServer${string}`
  | `createMcp${string}`
  | `${"restore" | "diff"}Files`
  | `${"approve" | "reject"}Execution`
  | `${"list" | "forget"}Action${string}`
  | `authorize${"" | "Turn" | "Action" | "Approval"}`
  | `get${"MessageIdentity" | "ToolApproval" | "Approver"}`
  | `get${"Workspace" | "Skills" | "SkillScriptRunner" | "Extensions" | "Actions" | "Collections"}`
  | Words<"setState validateStateChange sql transaction broadcast shouldConnectionBeReadonly shouldSendProtocolMessages">
  | Words<"setConnectionReadonly schedule scheduleEvery listSchedules cancelSchedule queue retry stash subAgent parentAgent">
  | Words<"reportProgress destroy persistMessages saveMessages getMessengers configureChannels getMessengerContext">
  | Words<"deliverNotice listDeliveries retryDelivery forgetDelivery messengerCall continueLastTurn countOwnTurn">
  | Words<"abortRequest abortAllRequests clearMessages hasPendingInteraction waitUntilStable answerToolCall answerApproval">
  | Words<"sanitizeMessageForPersistence repairInterruptedToolPart switchBranch allowSessionOp search erase eraseReceipts">
  | Words<"withMedia callWorkspace mayOnlyRead collection writeRows">;

type Method = (...args: never[]) => unknown;

/** Agents are named by their class or by its instances: `typeof Counter` or `Counter`. */
type InstanceOf<AgentT> = AgentT extends abstract new (...args: never[]) => infer Instance ? Instance : AgentT;

/** The first argument of a streaming method, which the server puts there. */
interface StreamArgument {
  send(chunk: never): void;
  end(final?: never): void;
  readonly isClosed: boolean;
}

/** What a client passes to a method. */
export type CallArguments<M> = M extends (first: infer F, ...rest: infer R) => unknown
  ? F extends StreamArgument
    ? R
    : M extends (...args: infer A) => unknown
      ? A
      : never
  : never;

/** What a client gets from a method: of a streaming one, the value that it ended with. */
export type CallResult<M> = M extends (first: infer F, ...rest: never[]) => unknown
  ? F extends { end(final?: infer Final): void; readonly isClosed: boolean }
    ? Final
    : M extends (...args: never[]) => infer R
      ? Awaited<R>
      : never
  : never;

/** The pieces that a streaming method sends; `unknown` of any other. */
type CallChunk<M> = M extends (first: infer F, ...rest: never[]) => unknown
  ? F extends { send(chunk: infer Chunk): void; readonly isClosed: boolean }
    ? Chunk
    : unknown
  : unknown;

/** The names of the methods that clients may be able to call. */
export type CallName<AgentT> = {
  [K in keyof AgentT & string]: K extends FrameworkMethod ? never : AgentT[K] extends Method ? K : never;
}[keyof AgentT & string];

/** The state of an agent class. `unknown` when no class is named. */
export type StateOf<AgentT> = InstanceOf<AgentT> extends { readonly state: infer State } ? State : unknown;

/** The methods of an agent as a client calls them: the same, but asynchronous. Without a class: any name. */
export type ClientStub<AgentT> = unknown extends AgentT
  ? { readonly [method: string]: (...args: unknown[]) => Promise<unknown> }
  : StubOf<InstanceOf<AgentT>>;

type StubOf<AgentT> = {
  readonly [K in CallName<AgentT>]: (...args: CallArguments<AgentT[K]>) => Promise<CallResult<AgentT[K]>>;
};

/** What becomes of the pieces of a streaming call. May throw nothing; slow ones hold up the frames behind them. */
export interface StreamCallbacks<Chunk = unknown, Final = unknown> {
  readonly onChunk?: (chunk: Chunk) => void;
  readonly onDone?: (final: Final) => void;
  readonly onError?: (message: string) => void;
}

/** Options of a call. */
export interface CallOptions<Chunk = unknown, Final = unknown> {
  /** In milliseconds; 0: none. Default 30 s, and none for streaming calls. */
  readonly timeout?: number;
  /** Giving it makes the call a streaming one. */
  readonly stream?: StreamCallbacks<Chunk, Final>;
  /** Stops waiting. The method is not stopped. */
  readonly signal?: AbortSignal;
}

/** Calls a method; with a class, name, arguments and result are checked. */
interface ClientCall<AgentT> {
  <K extends CallName<AgentT>>(
    method: K,
    ...rest: unknown extends AgentT
      ? [args?: readonly unknown[], options?: CallOptions]
      : [] extends CallArguments<AgentT[K]>
        ? [args?: CallArguments<AgentT[K]>, options?: CallOptions<CallChunk<AgentT[K]>, CallResult<AgentT[K]>>]
        : [args: CallArguments<AgentT[K]>, options?: CallOptions<CallChunk<AgentT[K]>, CallResult<AgentT[K]>>]
  ): Promise<CallResult<AgentT[K]>>;
}

/** Calls a method of an agent whose class is not known. */
type UntypedCall = <T = unknown>(method: string, args?: readonly unknown[], options?: CallOptions) => Promise<T>;

/** `call` of a client. */
export type CallOf<AgentT> = unknown extends AgentT ? UntypedCall : ClientCall<InstanceOf<AgentT>>;

/** The pieces of a streaming call, one by one, and what it ended with. */
export interface CallStream<Chunk, Final> extends AsyncIterable<Chunk> {
  /** Rejects as the iteration does. */
  readonly result: Promise<Final>;
}

/** `callStream` of a client. */
export type CallStreamOf<AgentT> = unknown extends AgentT
  ? <Chunk = unknown, Final = unknown>(method: string, args?: readonly unknown[]) => CallStream<Chunk, Final>
  : ClientCallStream<InstanceOf<AgentT>>;

type ClientCallStream<AgentT> = <K extends CallName<AgentT>>(
  method: K,
  ...args: [] extends CallArguments<AgentT[K]> ? [args?: CallArguments<AgentT[K]>] : [args: CallArguments<AgentT[K]>]
) => CallStream<CallChunk<AgentT[K]>, CallResult<AgentT[K]>>;
