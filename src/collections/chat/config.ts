import type { AnyTextAdapter, AnyTool, ModelMessage, SchemaInput } from "@tanstack/ai";
import type { Context } from "@tanstack/db";
import type { Clock } from "../../base/time.ts";
import type { Claims } from "../worker/claim.ts";
import type { AgentMessage } from "../contract.ts";
import type { RowChange, RowCondition, RowProducer } from "../../wire/row-frames.ts";
import type { RetryPolicy } from "../retry.ts";
import type { RowCollection, RowOptions } from "../log/rows.ts";
import type { DrainOptions } from "../worker/drain.ts";
import type { RunnerLifecycleAdapter } from "../worker/lifecycle.ts";
import type { RowQuery } from "../log/query.ts";

/** A collection of messages. Its schema may lack optional fields and roles of {@link AgentMessage}; it then refuses them. */
export interface MessageCollection extends Omit<RowCollection<AgentMessage>, "config" | "insert"> {
  readonly config: { getKey(row: AgentMessage): string | number };
  insert(...args: never[]): ReturnType<RowCollection<AgentMessage>["insert"]>;
}

/** The collections of an agent: its messages at least. */
export interface AgentCollectionsBase {
  readonly messages: MessageCollection;
}

/** What the callbacks of an agent know about the answer that they are part of. */
export interface AgentContext<
  TCollections extends AgentCollectionsBase | undefined = AgentCollectionsBase | undefined,
> {
  readonly agentName: string;
  /** Of an agent on collections: those that it was given, to be used in queries. */
  readonly collections: TCollections;
  /** Aborts when the answer is not wanted any more: the agent is disposed, or another runner has taken over. */
  readonly signal: AbortSignal;
  /** The answer. All tries at it have the same: name by it what a later try should find again. */
  readonly generationId: string;
  /** Which try it is, from 1. */
  readonly attempt: number;
  /** The agents that wait for this answer, the first caller first. */
  readonly callers: readonly string[];
  /** For own writes: refused when another runner has taken over. Empty where nothing can be conditional. */
  readonly fence: RowOptions;
}

/** An answer, told in full. A bare string is one that is complete. */
export interface AgentReply {
  readonly content: string;
  /** `completed` (default): store it. `suspended`: generate again when its tools are done. Anything else is a failed try. */
  readonly outcome?: string;
  /** What the model said and what its tools returned on the way; kept in the history. The answer itself may be last. */
  readonly messages?: readonly ModelMessage[];
}

/** What a generate function is given. */
export interface AgentGenerateInput<
  TRow extends object,
  TCollections extends AgentCollectionsBase | undefined = AgentCollectionsBase | undefined,
> {
  /** The rows that are to be answered, oldest first. */
  pending: TRow[];
  /** What `buildMessages` has built. */
  messages: ModelMessage[];
  adapter: AnyTextAdapter;
  /** The agent's tools, and one for each agent that it may ask. */
  tools: AnyTool[];
  instructions: string;
  signal: AbortSignal;
  context: AgentContext<TCollections>;
}

/**
 * Generates an answer. May be slow; a throw is a failed try, and so is an empty string, which `chat` returns when it stops for an
 * approval (return `{ content: "", outcome: "completed" }` to store an empty answer). What it returns after `signal` aborted is
 * not stored.
 */
export type AgentGenerate<
  TRow extends object,
  TCollections extends AgentCollectionsBase | undefined = AgentCollectionsBase | undefined,
> = (input: AgentGenerateInput<TRow, TCollections>) => Promise<string | AgentReply>;

/** An agent that another agent may ask, wherever it runs. */
export interface AgentPeer {
  readonly name: string;
  readonly collections?: AgentCollectionsBase | undefined;
  watchForResponse(requestId: string, options?: WatchForResponseOptions): Promise<{ content: string }>;
}

/** How long to wait for whose answer. */
export interface WatchForResponseOptions {
  /** In milliseconds; 120 s by default. */
  readonly timeout?: number;
  /** Who asked: only an answer to it counts. */
  readonly callerName?: string;
  readonly signal?: AbortSignal;
}

/** A request of an agent to another, as `insertMessage` is given it. */
export interface AgentRequest {
  readonly content: string;
  readonly actorId: string;
  readonly requestId: string;
  readonly callers: string[];
}

/** Another agent as a tool: a call becomes a message in its inbox, its reply the tool's result. */
export interface AgentReference {
  readonly agent: AgentPeer;
  /** Tells the model when to ask it. */
  readonly description: string;
  /** What the model must give. `{ message: string }` by default; other inputs arrive as JSON text. */
  readonly inputSchema?: SchemaInput;
  /** What the model gets: `{ response: string }` by default; with a schema of your own the reply is read as JSON. */
  readonly outputSchema?: SchemaInput;
  /** The longest wait for the reply in milliseconds; then the model is told so. 120 s by default. */
  readonly timeout?: number;
  /** Puts a request into the agent's inbox; needed without `collections`. Must ignore a known `requestId`: crashes repeat it. */
  readonly insertMessage?: (message: AgentRequest) => Promise<void>;
}

/** Limits of {@link Agent.drainUntilIdle}, and how it reports. */
export type AgentDrainOptions = Omit<DrainOptions, "hasPendingWork" | "runCycle">;

/** How an agent is woken by a transport: see `handleWake` of {@link Agent}. */
export interface AgentRuntime<TWake> {
  readonly wakeAdapter: RunnerLifecycleAdapter<TWake>;
  readonly drain?: { readonly maxIterations?: number; readonly maxDurationMs?: number };
}

/** What both kinds of agents have in common. */
interface AgentBase<TRow extends object, TCollections extends AgentCollectionsBase | undefined> {
  /** Its address: messages to it carry it as `targetAgent`. Unique among the agents that share messages. */
  readonly name: string;
  readonly description?: string;
  readonly instructions: string;
  readonly adapter: AnyTextAdapter;
  readonly tools?: readonly AnyTool[];
  readonly agents?: readonly AgentReference[];
  generate(input: AgentGenerateInput<TRow, TCollections>): Promise<string | AgentReply>;
  /**
   * Called when a row is given up after its last try. On collections the row is then marked `processed` with `error`; an agent
   * with queries must take it out of `pendingWork` itself, or it is ignored until the agent is created again. May throw: that is
   * reported and changes nothing.
   */
  onError?(error: Error, pending: TRow[], context: AgentContext<TCollections>): Promise<void> | void;
  /** When a try that failed is made again. By default three tries. */
  readonly retry?: RetryPolicy;
  /**
   * With claims only one runner of this agent works, wherever it was created; another takes over when it dies. Default for an
   * agent with queries whose rows are on a log: that log's `claims` collection. False: none.
   */
  readonly claims?: Claims | false;
  /** False: works only when told to (`runGenerationCycle`, `drainUntilIdle`, `handleWake`). True by default. */
  readonly live?: boolean;
  /** Failures of tries, of callbacks, of the backend. `console.error` by default. */
  readonly onFailure?: (error: Error) => void;
  /** What the waits between two tries are counted by. For tests. */
  readonly clock?: Clock;
}

/** An agent whose messages are in a collection of {@link AgentMessage}. */
export interface CollectionAgentConfig<
  TCollections extends AgentCollectionsBase = AgentCollectionsBase,
  TWake = never,
> extends AgentBase<AgentMessage, TCollections> {
  readonly collections: TCollections;
  /** Which messages are work; default: unprocessed ones to this agent. Its rows must have the `id` of the message. */
  readonly pendingWork?: RowQuery<Context>;
  /** What the model is shown; by default the conversation so far, as {@link getContextMessages} tells it. */
  buildMessages?(pending: AgentMessage[], context: AgentContext<TCollections>): Promise<ModelMessage[]>;
  /**
   * Stores the answer; by default the reply and the marks of the pending messages are one conditional write. What it leaves
   * unprocessed is then marked processed. May run again after a crash.
   */
  onResponse?(response: string, pending: AgentMessage[], context: AgentContext<TCollections>): Promise<void>;
  readonly runtime?: AgentRuntime<TWake>;
  /** What else belongs to an answer; `durableAgent` fills it in. */
  readonly hooks?: AgentHooks;
}

/** An agent that reads and writes rows of any shape by functions of yours. */
export interface QueryAgentConfig<
  TRow extends object = Record<string, unknown>,
  TQuery = RowQuery<Context>,
> extends AgentBase<TRow, undefined> {
  readonly collections?: undefined;
  /** Which rows are work. All of its rows are answered together, in the order of the query. */
  readonly pendingWork: TQuery;
  buildMessages(pending: TRow[], context: AgentContext<undefined>): Promise<ModelMessage[]>;
  /** Stores the answer and takes the rows out of `pendingWork`. What it throws is a failed try. */
  onResponse(response: string, pending: TRow[], context: AgentContext<undefined>): Promise<void>;
  /** Waits for the reply to a request; needed to be asked by other agents. */
  readonly watchForResponse?: (requestId: string, options: WatchForResponseOptions) => Promise<{ content: string }>;
  /** Names a row; by default its `id`, else its key. */
  readonly idOf?: (row: TRow) => string;
}

/** Any agent. */
export type AgentConfig<TRow extends object = Record<string, unknown>> = CollectionAgentConfig | QueryAgentConfig<TRow>;

/** An answer under way, as {@link AgentHooks} see it. */
export interface AgentTurn {
  readonly agentName: string;
  readonly generationId: string;
  readonly attempt: number;
  /** Who works on it, where runners are told apart. */
  readonly writer?: RowProducer;
}

/** Where a turn is: `pending` is between two tries. */
export type AgentTurnStatus = "generating" | "suspended" | "pending" | "completed" | "failed" | "cancelled";

/** Extra rows to write and watch. They join the agent's own writes, so they must be of the same log; unused without one. */
export interface AgentHooks {
  /** Changes that belong to a turn's step. Must not throw. */
  readonly changes?: (turn: AgentTurn, status: AgentTurnStatus, error?: Error) => readonly RowChange[];
  /** What must hold for an answer to be stored. Called right before the write. */
  readonly conditions?: (generationId: string) => readonly RowCondition[];
  /** Whether a suspended answer still waits for its tools. */
  readonly isSuspended?: (generationId: string) => boolean;
  /** Whether somebody has asked to stop this answer. */
  readonly isCancelled?: (generationId: string) => boolean;
  /** Calls `wake` when one of the two may have changed. Returns its end. */
  readonly subscribe?: (wake: () => void) => () => void;
  /** After an answer was stored. May be slow: the next one waits for it. What it throws is reported. */
  readonly afterTurn?: (context: AgentContext) => Promise<void>;
  /** Before the first look at the rows. */
  readonly ready?: () => Promise<void>;
  /** When the agent is disposed. */
  readonly dispose?: () => Promise<void>;
}

/** Where an agent is. `standby`: another runner of it works. */
export type AgentState = "starting" | "standby" | "idle" | "working" | "disposed";

/** A living agent. */
export interface Agent<
  TCollections extends AgentCollectionsBase | undefined = AgentCollectionsBase | undefined,
  TWake = never,
>
  extends AgentPeer, AsyncDisposable {
  /** Resolves when it has seen the rows that were there; rejects when they cannot be read. */
  readonly ready: Promise<void>;
  readonly state: AgentState;
  readonly collections: TCollections;
  /** Whether something is to be answered; what waits for its tools is not. */
  hasPendingWork(): Promise<boolean>;
  /**
   * Answers what is due as one turn; resolves when that is stored or has failed, or at once when nothing is pending. Waits for a
   * turn under way, a retry delay, and a runner elsewhere.
   */
  runGenerationCycle(options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Runs cycles until nothing is pending, or a limit is reached. */
  drainUntilIdle(options?: AgentDrainOptions): Promise<{ completed: boolean; cycles: number }>;
  /**
   * Waits for this agent's reply to a request.
   * @throws PerdureError `timeout`, `call_failed` when the agent has given the request up, `bad_config` on an agent
   *   with queries that was not told how.
   */
  watchForResponse(requestId: string, options?: WatchForResponseOptions): Promise<{ content: string }>;
  /** Works off one wake of its transport. @throws PerdureError `bad_config` without `runtime`; what the adapter throws. */
  runWake(wake: TWake, options?: { readonly signal?: AbortSignal }): Promise<{ completed: boolean; cycles: number }>;
  /** The same for a request of a webhook: checks it and answers it. Never throws for what it was sent. */
  handleWake(request: Request, options?: { waitUntil?: (work: Promise<unknown>) => void }): Promise<Response>;
  /** Stops working, and gives back what it was working on. Its rows stay; create it again anywhere. */
  dispose(): Promise<void>;
}
