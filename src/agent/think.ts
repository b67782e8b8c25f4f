import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import { DEFAULT_SYSTEM_PROMPT } from "../context/capabilities.ts";
import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { ScheduledTasks } from "../work/task-types.ts";
import type { MessageInput } from "../message/input.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentEnv, AgentHost } from "../port.ts";
import type { Budgets } from "../ledger/budget.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import { defaultPrices } from "../ledger/default-prices.ts";
import type { LedgerEntry } from "../ledger/charge.ts";
import type { UsageTotals } from "../ledger/ledger.ts";
import type { MediaRetention } from "../media/media.ts";
import type { PriceTable } from "../ledger/prices.ts";
import { readConfig, writeConfig } from "../store/config.ts";
import { keepAside, readStored } from "../store/damaged.ts";
import type { TurnRow } from "../store/turn.ts";
import type { PendingApproval, ReturnedCall } from "../tool/call-book.ts";
import type { ChatHooks, ChatTurnOptions, SaveMessagesResult } from "../turn/engine/chat-types.ts";
import { type ChatAnswer, ORDINARY_TURN, type OrdinaryTurn } from "../turn/engine/by-stream.ts";
import type { ChatErrorClassification } from "../model/provider-error.ts";
import type {
  ChatClassifyContext,
  ChatErrorContext,
  ChunkContext,
  PrepareStepContext,
  StepConfig,
  StepContext,
  TurnConfig,
  TurnContext,
} from "../turn/step/config.ts";
import type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "../tool/call-hooks.ts";
import type { BackgroundCalls } from "../turn/step/background.ts";
import type { SubmitResult } from "../turn/intake/submissions.ts";
import { writeJson } from "../wire/json.ts";
import { answering, chatRoom, deciding, turnEnded } from "./chat-agent.ts";
import { runAs } from "./context.ts";
import { parts } from "./parts.ts";
import { type TurnKeeper, turnKeeper, turnOver } from "./run/turn-keeper.ts";
import { TaskFeature } from "./scheduled-tasks.ts";
import { windowOf } from "./context-agent.ts";
import { classifying, sessionOf } from "./session-agent.ts";
import { backgroundCalls, openBackground } from "./think-background.ts";
import { blocksOf } from "./think-blocks.ts";
import type { ThinkActions } from "./think-actions.ts";
import type { ThinkContext } from "./think-context.ts";
import { OUTSIDE, ThinkPlan } from "./think-plan.ts";
import { addMessages, type AddMessagesOptions, chat, type ChatOptions, runTurn } from "./think-turns.ts";
import type {
  RunTurnOptions,
  StreamCallback,
  StreamTurnOptions,
  SubmitTurnOptions,
  TurnInput,
  WaitTurnOptions,
  WithOutput,
} from "./think-turns.ts";
import { actionsOf, filePoints, ToolAgent } from "./tool-agent.ts";

type Maybe<T> = T | void | Promise<T | void>;

const DEFAULT_MAX_STEPS = 10;
/** In reports of damage. */
const CONFIG = "the configuration";

/**
 * The opinionated chat agent: override {@link Think.getModel} and it is complete. It asks the model step by step and
 * runs the tools itself, so that each call and each result is stored before anything builds on it: a crash costs at
 * most the model call that was under way.
 *
 * Hooks fire on every turn, whatever started it. One that throws ends the turn with that error, unless it says that
 * it only watches: then the error goes to `onError`.
 */
export class Think<Env extends object = AgentEnv, State = unknown, Props extends object = object> extends ToolAgent<
  Env,
  State,
  Props
> {
  readonly #plan: ThinkPlan;
  readonly #tasks: TaskFeature;
  /** @internal */
  readonly [backgroundCalls]: BackgroundCalls;

  constructor(host: AgentHost) {
    super(host);
    this.#plan = new ThinkPlan(this, Think.prototype, host, () => this[chatRoom].chat);
    this.#tasks = new TaskFeature(this[parts], {
      declares: () => this.getScheduledTasks !== Think.prototype.getScheduledTasks,
      tasks: () => this.getScheduledTasks(),
      timeZone: () => this.getDefaultTimezone(),
      as: (work) => runAs(host.context, { agent: this, connection: undefined, request: undefined }, work),
      chat: () => this[chatRoom].chat,
      failed: (error) => void this[parts].failed(error, { stage: "scheduled task" }),
    });
    this[backgroundCalls] = openBackground(this, this.#plan, (turnId) => super[turnOver](turnId));
    // First: if the tasks cannot work, no turn may have gone on.
    this[parts].features.unshift(this.#tasks);
    const close = () => this.#plan.context.background.close();
    this[parts].features.push({ drain: close, halt: close, left: close });
  }

  /** @internal */
  [answering](
    as: <T>(work: () => T, turn?: string, identity?: Identity) => T,
  ): Pick<
    ChatHooks,
    | "respond"
    | "plan"
    | "ranInSteps"
    | "explain"
    | "question"
    | "answerable"
    | "decided"
    | "begun"
    | "settled"
    | "removed"
    | "cleared"
    | "background"
  > {
    const own = this.onChatMessage !== Think.prototype.onChatMessage;
    return {
      respond: async (options) => as(() => this.onChatMessage(options), options.requestId, options.identity),
      plan: (turn) => this.#plan.of(turn, as),
      ranInSteps: ({ seq }) => !own || this.#plan.ledger.attempts(seq, 0).length > 0,
      answerable: (...about) => this.#plan.answerable(...about),
      decided: (decision) => {
        const { messageId, toolCallId } = decision;
        // What an onChatMessage of its own asked is not in the book of the steps.
        if (own && !this.#plan.book.isOfSteps(messageId, toolCallId)) this[deciding].decided?.(decision);
        else this.#plan.book.record(decision);
      },
      question: (messageId, toolCallId) => this.#plan.book.question(messageId, toolCallId),
      explain: (error, context) => as(() => this.#plan.explain(error, context), context.requestId, context.identity),
      begun: (turn) => this[filePoints].begun(turn),
      settled: (message, turn) => {
        this.#plan.settled(message, turn);
        this[filePoints].settled(message);
      },
      removed: (messageId) => this.#plan.book.forget(messageId),
      cleared: (session, turns) => this.#plan.cleared(session, turns),
      background: this[backgroundCalls],
    };
  }

  /** @internal */
  override get [turnKeeper](): TurnKeeper {
    const [plan, keeper] = [this.#plan, super[turnKeeper]];
    return {
      ...keeper,
      isWanted: async (turnId) => this[backgroundCalls].hasOpen(turnId) || keeper.isWanted(turnId),
      get ledger() {
        return plan.ledger;
      },
    };
  }

  /** @internal */
  override [turnOver](turnId: string): void {
    if (!this[backgroundCalls].hasOpen(turnId)) super[turnOver](turnId);
  }

  /** @internal */
  override [turnEnded](turn: TurnRow): void {
    super[turnEnded](turn);
    this.#plan.context.ready(turn.session);
  }

  /** @internal */
  get [windowOf](): ThinkContext {
    return this.#plan.context;
  }

  /** @internal */
  get [actionsOf](): ThinkActions {
    return this.#plan.actions;
  }

  /** @internal */
  [blocksOf](session: string): ContextBlocks | undefined | Promise<ContextBlocks | undefined> {
    return this[sessionOf](session).then(({ blocks }) => blocks);
  }

  /** @internal */
  override async [classifying](error: unknown): Promise<ChatErrorClassification> {
    return (await this.classifyChatError(error, OUTSIDE)) ?? super[classifying](error);
  }

  // Settings

  /** The most model calls in one turn. {@link Think.getMaxSteps} may say otherwise. */
  maxSteps = DEFAULT_MAX_STEPS;
  /** Whether clients see the model's reasoning. */
  sendReasoning = true;
  /**
   * What may be used, in tokens and dollars, with what the agents below use in runs that this one asked for. A hard
   * limit pauses the answer; a soft one asks a person.
   */
  budgets: Budgets = {};
  /** As of `ChatAgent`. The model reads what was taken out as if it still stood in the message. */
  override mediaRetention: MediaRetention | boolean = {};
  /** What models cost. Replace it with your own table or function. */
  prices: PriceTable = defaultPrices;

  /** The model, or several that are tried in order. Asked for every turn. */
  getModel(): LanguageModel | readonly LanguageModel[] | Promise<LanguageModel | readonly LanguageModel[]> {
    throw new PerdureError("bad_config", `${this.constructor.name} must override getModel() and return a model.`);
  }

  /** Who the agent is. What its tools allow is added to it. Keep it the same from turn to turn: caches depend on it. */
  getSystemPrompt(): string | Promise<string> {
    return DEFAULT_SYSTEM_PROMPT;
  }

  /** The tools of the agent. Those of the client are added; they replace none of these. */
  getTools(): ToolSet | Promise<ToolSet> {
    return {};
  }

  getMaxSteps(): number {
    return this.maxSteps;
  }

  /**
   * The conversation as the model reads it, without what the turn under way adds. Must depend on what is stored alone:
   * it is sent again and again, and caches hold only while its beginning stays the same.
   */
  assembleContext(context: {
    readonly messages: readonly UIMessage[];
    readonly tools: ToolSet;
  }): ModelMessage[] | Promise<ModelMessage[]> {
    return this.#plan.convertAll(context.messages, context.tools);
  }

  /**
   * Full control: return what your own model streams, as of `AIChatAgent`. Then there are no steps, hooks or budgets. What
   * `super.onChatMessage(options)` returns lets the turn run step by step, as it does by itself. After a crash it is asked
   * again.
   */
  onChatMessage(
    _options: ChatTurnOptions,
  ): ChatAnswer | OrdinaryTurn | undefined | Promise<ChatAnswer | OrdinaryTurn | undefined> {
    return ORDINARY_TURN;
  }

  // Hooks

  /** Before the first model call, and again when a turn is carried on after a crash. */
  beforeTurn(_context: TurnContext): Maybe<TurnConfig> {}
  /** Before each model call, each try of it included. */
  beforeStep(_context: PrepareStepContext): Maybe<StepConfig> {}
  /**
   * Before a tool of the server runs: let it, change its input, or give the model something else to read. What it throws
   * is the error of that call.
   */
  beforeToolCall(_context: ToolCallContext): Maybe<ToolCallDecision> {}
  /**
   * A tool has run, or `beforeToolCall` has answered in its place. The result is stored, and nobody has read it: what this
   * returns may replace or withhold it. After a crash it may be asked again about the same result; the tool does not run
   * again. What it throws goes to `onError`, and the result is withheld.
   */
  afterToolCall(_context: ToolCallResultContext): Maybe<ToolResultDecision> {}
  /** A model call and the tools it asked for are settled. Only watches. */
  onStepFinish(_context: StepContext): Maybe<undefined> {}
  /** The AI SDK's newer name of {@link Think.onStepFinish}; both are called. */
  onStepEnd(_context: StepContext): Maybe<undefined> {}
  /** Each piece of the model's stream. Only watches; it is called for every token, so it must be quick. */
  onChunk(_context: ChunkContext): Maybe<undefined> {}
  /**
   * What went wrong with a turn, or with a request for one. What is returned is what the user reads; the error itself: a
   * plain explanation.
   */
  onChatError(error: unknown, _context: ChatErrorContext): unknown {
    return error;
  }
  /** What kind of error a provider gave; nothing: it is recognised by its status and text. */
  classifyChatError(_error: unknown, _context: ChatClassifyContext): Maybe<ChatErrorClassification> {}

  // Turns

  /** Runs a turn and streams what it says to `callback`. Resolves when it is over, however it ended. */
  async chat(message: TurnInput, callback: StreamCallback, options: ChatOptions = {}): Promise<SaveMessagesResult> {
    return chat(this[chatRoom], this.#plan, message, callback, options);
  }

  /** Stops a turn of {@link Think.chat} for good. False when there is none of that id under way. */
  cancelChat(requestId: string, _reason?: string): boolean {
    return this.abortRequest(requestId);
  }

  /** Stops every turn that runs or waits. */
  cancelAllChats(): void {
    this.abortAllRequests();
  }

  /** One way for all: wait for the answer (default), stream it, or submit it and go on. */
  runTurn(options: SubmitTurnOptions): Promise<SubmitResult>;
  runTurn<OUTPUT>(
    options: (WaitTurnOptions | StreamTurnOptions) & WithOutput<OUTPUT>,
  ): Promise<SaveMessagesResult<OUTPUT>>;
  runTurn(options: WaitTurnOptions | StreamTurnOptions): Promise<SaveMessagesResult>;
  runTurn(options: RunTurnOptions): Promise<SaveMessagesResult | SubmitResult>;
  async runTurn(options: RunTurnOptions): Promise<SaveMessagesResult | SubmitResult> {
    return runTurn(this[chatRoom], this.#plan, options);
  }

  /** Adds messages without a turn. With `mode: "append"` those that are there already are left as they are. */
  async addMessages(
    messages: MessageInput | ((messages: UIMessage[]) => MessageInput),
    options: AddMessagesOptions = {},
  ): Promise<void> {
    addMessages(this[chatRoom].chat, messages, options);
    await this[parts].host.durable();
  }

  /**
   * What a tool returned that `afterToolCall` has replaced or withheld; undefined for a result that is shown as it was, and
   * for calls of long ago. For server code: clients are never sent it.
   */
  originalToolResult(toolCallId: string, messageId?: string): ReturnedCall | undefined {
    return this.#plan.book.original(toolCallId, messageId);
  }

  /** Tool calls that wait for a person. Answer them with `answerApproval`. */
  pendingApprovals(): PendingApproval[] {
    return this.#plan.book.pendingApprovals();
  }

  // What was used

  /** Tokens and dollars of a turn, or of all that the agent ever did, runs of agents below included. */
  usage(scope: { readonly turn: string } | "agent" = "agent"): UsageTotals {
    return this.#plan.ledger.totals(scope);
  }

  /** The model calls, newest first. Those of agents below have the purpose `agent-tool`. */
  listUsage(filter: Parameters<ThinkPlan["ledger"]["list"]>[0] = {}): LedgerEntry[] {
    return this.#plan.ledger.list(filter);
  }

  // Scheduled tasks

  /**
   * Prompts and handlers that come again and again, by their ids. Asked at every start. If it throws, that is
   * reported and those of before stay, but wait until it is asked again and returns.
   */
  getScheduledTasks(): ScheduledTasks | Promise<ScheduledTasks> {
    return {};
  }

  /** The time zone of tasks that name a time of day but no zone. */
  getDefaultTimezone(): string | undefined {
    return undefined;
  }

  /** Asks for the tasks again, when what {@link Think.getScheduledTasks} reads has changed. @throws PerdureError `bad_config` */
  async reconcileScheduledTasks(): Promise<void> {
    await this.#tasks.reconcile();
    await this[parts].host.durable();
  }

  /** The same as {@link Think.reconcileScheduledTasks}. */
  async internal_reconcileScheduledTasks(): Promise<void> {
    await this.#tasks.reconcile();
    await this[parts].host.durable();
  }

  // Settings that the agent keeps for itself

  /** Stores private settings. For what clients should see, use `state`. @throws PerdureError `bad_input` */
  async configure<Config>(config: Config): Promise<void> {
    const { host } = this[parts];
    const json = writeJson(config, "The configuration");
    host.tx(() => {
      const old = readConfig(host);
      if (old !== undefined && readStored(host, old, CONFIG) === undefined) {
        const key = keepAside(host, "perdure_config", host.clock.now());
        host.emit("row:set_aside", { what: CONFIG, key });
      }
      writeConfig(host, json);
    });
    await host.durable();
  }

  /** What {@link Think.configure} stored last; undefined when nothing was. */
  getConfig<Config = unknown>(): Config | undefined {
    const { host } = this[parts];
    return host.blank ? undefined : (readStored(host, readConfig(host), CONFIG) as Config | undefined);
  }

  /** The whole output of a tool that was cut for the model, by the name in its preview. */
  async readToolOutput(name: string): Promise<string | undefined> {
    const bytes = await this[parts].host.blobs.get(name);
    return bytes && new TextDecoder().decode(bytes);
  }
}
