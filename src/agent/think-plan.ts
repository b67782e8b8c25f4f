import type { LanguageModel, ModelMessage, Tool, ToolSet } from "ai";
import { BUDGET_TOOL } from "../message/told.ts";
import { capabilityBlock, DEFAULT_SYSTEM_PROMPT } from "../context/capabilities.ts";
import { ModelMessages } from "../context/model-messages.ts";
import type { Converted } from "../context/shown-units.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { isTerminal, type ToolPart, toolName, toolParts, type UIMessage } from "../message/types.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentHost, Sql } from "../port.ts";
import { Ledger } from "../ledger/ledger.ts";
import { filesOf } from "../media/files.ts";
import { MediaRestore } from "../media/media-restore.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { SessionSearch } from "../search/search.ts";
import { CallBook } from "../tool/call-book.ts";
import type { ActionAuthorization } from "../tool/action-authorize.ts";
import { bindAction, bindActions } from "../tool/action-bind.ts";
import { toolNamed, durableTool, type DurableToolOptions } from "../tool/define.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import { isAction, type AnyAction } from "../tool/action.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { AnswerVerdict, ChatTurnOptions } from "../turn/engine/chat-types.ts";
import { classifyProviderError, describeProviderError, describeTurnError } from "../model/provider-error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import type { Budgets } from "../ledger/budget.ts";
import type { PriceTable } from "../ledger/prices.ts";
import type { ChatClassifyContext, ChatErrorContext, TurnConfig, TurnContext } from "../turn/step/config.ts";
import { contextOf } from "../turn/step/step-run.ts";
import { ownerIdOf, readSession } from "../store/session.ts";
import type { TurnRow } from "../store/turn.ts";
import { type FileDownloadOptions, fileLoader, type LoadFile } from "../toolbox/egress/file-download.ts";
import type { PreparedTurn, StepPlan, TurnOf } from "../turn/step/plan.ts";
import type { StepPolicy } from "../turn/policy.ts";
import { type ChannelHooks, policyOfTurn } from "./channel-policy.ts";
import { isToldLater } from "./run/book-calls.ts";
import { payersOf } from "./run/run-payers.ts";
import { type ActionRules, ThinkActions } from "./think-actions.ts";
import type { ToolKit } from "./tool-kit.ts";
import type { BackgroundCalls } from "../turn/step/background.ts";
import { type ContextSettings, type NextRequest, ThinkContext } from "./think-context.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import type { SessionSettings } from "../session/session-settings.ts";
import { createToolsFromClientSchemas } from "../tool/client-tools.ts";
import type { ClientTool } from "../wire/frames.ts";
import { saysWhoItIs } from "../memory/render.ts";
import { SESSION_SEARCH_TOOL } from "../search/search-text.ts";
import { compactedMessages } from "../store/compaction.ts";
import { isOnPath } from "../store/search.ts";
import { sessionSearchTool, type SessionSearchToolOptions } from "../tool/session-search.ts";

type As = <T>(work: () => T, turn?: string, identity?: Identity) => T;

/** Nobody reads a question and answers it faster than this. */
const SECOND_QUESTION_MS = 400;

/** How many tool calls that have their last word are remembered, with who approved them. */
const KEPT_CALLS = 500;

type Maybe<T> = T | void | Promise<T | void>;

/** Of an error outside of a turn. */
export const OUTSIDE: ChatClassifyContext = {
  ...{ stage: "stream", requestId: undefined, identity: undefined, messagesPersisted: true },
  ...{ classification: undefined, partial: undefined },
};

/** What a plan is made from: the part of a `Think` that users write. */
export interface ThinkHooks extends StepPolicy, ChannelHooks {
  beforeTurn(context: TurnContext): Maybe<TurnConfig>;
  onChatError(error: unknown, context: ChatErrorContext): unknown;
  classifyChatError(error: unknown, context: ChatClassifyContext): Maybe<ChatErrorClassification>;
  authorizeTurn(context: TurnContext): ActionAuthorization | Promise<ActionAuthorization>;
}

/** The settings that users write. */
export interface ThinkSettings extends ThinkHooks, ContextSettings, EquippedAgent, ActionRules {
  readonly sendReasoning: boolean;
  readonly fileDownloads: FileDownloadOptions;
  readonly budgets: Budgets;
  readonly prices: PriceTable;
  getModel(): LanguageModel | readonly LanguageModel[] | Promise<LanguageModel | readonly LanguageModel[]>;
  getMaxSteps(): number;
  assembleContext(context: {
    readonly messages: readonly UIMessage[];
    readonly tools: ToolSet;
  }): ModelMessage[] | Promise<ModelMessage[]>;
}

/** What a plan needs of the agent besides. */
interface PlanDesk {
  readonly host: AgentHost;
  readonly kit: ToolKit;
  readonly chat: Conversations;
  readonly sessions: SessionManager;
  readonly background: BackgroundCalls;
}

/** Joins a `Think` to the step loop: its settings, its hooks, and the books that it keeps. */
export class ThinkPlan {
  readonly #agent: ThinkSettings;
  readonly #base: ThinkHooks;
  readonly #host: AgentHost;
  readonly #desk: PlanDesk;
  readonly #chat: () => Conversations;
  readonly #failed = (error: unknown) => this.#chat().hooks.failed(error);
  readonly #messages = new ModelMessages(this.#failed);
  /** Tools that server code brought along for one turn. In memory: after a restart they are gone. */
  readonly extraTools = new Map<string, ToolSet>();
  /** Structured output and other settings for one turn. In memory too. */
  readonly extraConfig = new Map<string, TurnConfig>();
  readonly #lostFiles = new Set<string>();
  #loadFile: LoadFile | undefined;
  #ledger: Ledger | undefined;
  #book: CallBook | undefined;
  #actions: ThinkActions | undefined;
  #search: SessionSearch | undefined;
  readonly #media = new MediaRestore(() => filesOf(this.#host));
  readonly context: ThinkContext;

  /** @param base the hooks that do nothing: a class that has these does not listen. */
  constructor(agent: ThinkSettings, base: ThinkHooks, desk: PlanDesk) {
    const { host } = desk;
    const chat = () => desk.chat;
    this.#agent = agent;
    this.#base = base;
    this.#host = host;
    this.#desk = desk;
    this.#chat = chat;
    this.context = new ThinkContext({
      ...{ host, agent, chat, ledger: () => this.ledger, prices: () => agent.prices, book: () => this.book },
      settings: (session) => desk.sessions.of(session).settings,
      next: (session) => this.#next(session),
      assemble: async (messages, tools) => agent.assembleContext({ messages: await this.#media.of(messages), tools }),
      shown: (messages, tools) => this.#shown(messages, tools),
      sourceOf: (message) => this.#messages.sourceOf(message),
      classify: async (error) => (await agent.classifyChatError(error, OUTSIDE)) ?? classifyProviderError(error),
      renew: async (session) => void (await (await desk.sessions.ready(session)).blocks.refreshSystemPrompt()),
      failed: this.#failed,
      changed: (session) => chat().output.sessions?.({ kind: "context", session }),
    });
  }

  get ledger(): Ledger {
    if (this.#ledger === undefined) {
      const agent = this.#agent;
      this.#ledger = new Ledger(this.#host, {
        budgets: () => agent.budgets,
        prices: () => agent.prices,
        session: () => ownerIdOf(this.#host, this.#chat().transcripts.current),
      });
      // What an earlier life had asked for and not heard the end of.
      if (!this.#host.blank) this.#ledger.closeOpen((call) => isToldLater(this.#host, call));
    }
    return this.#ledger;
  }

  get actions(): ThinkActions {
    // What an action returned is stored before it is judged: nothing of it may be where clients can read it.
    const judges = this.#agent.afterToolCall !== this.#base.afterToolCall;
    const keep = async (text: string) => (judges ? undefined : this.#keep(text));
    return (this.#actions ??= new ThinkActions(this.#agent, this.#host, this.#chat, keep));
  }

  #equipper(actions = this.actions.binding()): Equipper {
    const { kit, sessions } = this.#desk;
    return {
      ...{ agent: this.#agent, host: this.#host, search: this.search, actions, kit },
      blocks: async (session) => (await sessions.ready(session)).blocks,
      settings: (session) => sessions.of(session).settings,
    };
  }

  get book(): CallBook {
    return (this.#book ??= new CallBook(this.#host));
  }

  get search(): SessionSearch {
    return (this.#search ??= new SessionSearch(this.#host));
  }

  /**
   * A result may come from outside for what runs outside alone: nobody else can say what a tool of the server did. A
   * person may decide what was asked, and nothing before it is asked: who decides first is the agent's own rule.
   */
  answerable(
    part: ToolPart,
    messageId: string,
    kind: "result" | "approval",
    isClient: boolean,
    tools: ToolSet | undefined,
  ): AnswerVerdict | undefined {
    if (kind === "approval") {
      if (part.state !== "approval-requested") return false;
      return isClient && this.#isJustAsked(part, messageId) ? "early" : true;
    }
    if (this.book.isOfSteps(messageId, part.toolCallId)) return false;
    // What its tools are is known only where it runs step by step, and once it was prepared.
    if (tools === undefined) return undefined;
    const tool = toolNamed(tools, toolName(part));
    return tool !== undefined && tool.execute === undefined && part.state === "input-available";
  }

  /**
   * A call that was approved has asked something else a moment ago. Clients name the call alone in their answers, so
   * that one which comes now is the answer of another tab, or a second click, to what was asked before.
   */
  #isJustAsked({ toolCallId }: ToolPart, messageId: string): boolean {
    const row = this.book.find(messageId, toolCallId);
    if (row === undefined || row.askedAt === null || row.decidedAt === null) return false;
    return this.#host.clock.now() - row.askedAt < SECOND_QUESTION_MS;
  }

  /** The conversation is forgotten, in the transaction that does it. Calls whose end nobody will write down were cut. */
  cleared(session: string, turns: readonly TurnRow[]): void {
    this.context.background.stop(session);
    this.#desk.background.dropSession(session);
    this.book.forgetLost();
    for (const { seq } of turns) this.ledger.closeTurn(seq, (call) => isToldLater(this.#host, call));
  }

  /** Calls of this answer that have an end get no other. In the transaction that stores it. */
  settled(message: UIMessage, turn: TurnRow | undefined): void {
    // What is summarised in the background goes on, and tells its own end.
    if (turn !== undefined)
      this.ledger.closeTurn(
        turn.seq,
        ({ purpose }) => purpose === "compaction" && this.context.background.has(turn.session),
      );
    const calls = toolParts(message).filter(isTerminal);
    if (calls.length === 0) return;
    this.book.settleAll(message.id, calls);
    this.book.forgetOlder(KEPT_CALLS);
  }

  convertAll(messages: readonly UIMessage[], tools: ToolSet): Promise<ModelMessage[]> {
    return this.#messages.of(messages, tools);
  }

  async #shown(messages: readonly UIMessage[], tools: ToolSet): Promise<Converted[]> {
    const whole = await this.#media.of(messages);
    const converted = await this.#messages.each(whole, tools);
    return whole.map((message, at) => ({ whole: message, converted: converted[at] ?? [] }));
  }

  /** How a turn runs: all that is asked is asked as the agent, and in that turn. */
  of({ turn, identity }: TurnOf, asAgent: As): StepPlan {
    const agent = this.#agent;
    const as = <T>(work: () => T): T => asAgent(work, turn, identity);
    const watchers = () => this.#extensions;
    let grants: ActionAuthorization = true;
    const binding = this.actions.binding({ id: turn, grants: () => grants });
    return {
      ...{ policy: agent, silent: this.#base, as },
      get watchers() {
        return watchers();
      },
      ledger: this.ledger,
      book: this.book,
      context: this.context,
      prepare: (options) => as(() => this.#prepare(options, binding, (given) => (grants = given))),
      assemble: (messages, tools) =>
        as(async () => agent.assembleContext({ messages: await this.#media.of(messages), tools })),
      convert: (message, tools) => this.#messages.once(message, tools),
      shown: (messages, tools) => as(() => this.#shown(messages, tools)),
      bind: (name, tool) => (isAction(tool) ? bindAction(name, tool, binding) : tool),
      background: this.#desk.background,
      classify: async (error, context) =>
        (await as(() => agent.classifyChatError(error, context))) ?? classifyProviderError(error),
      loadFile: (file) => (this.#loadFile ??= fileLoader(agent.fileDownloads))(file),
      fileLost: (url, error) => this.#fileLost(url, error),
      keep: (text) => this.#keep(text),
      payers: (turn) => payersOf(this.#host, turn),
    };
  }

  get #extensions() {
    return this.#desk.kit.extensions?.hooks;
  }

  async #prepare(
    turn: ChatTurnOptions & { readonly recovering: boolean },
    binding: ActionBinding,
    grant: (given: ActionAuthorization) => void,
  ): Promise<PreparedTurn> {
    const agent = this.#agent;
    const { requestId, sessionId: session, identity, continuation, recovering, body, clientTools, abortSignal } = turn;
    const equipment = await equip(this.#equipper(binding), session, {
      ...{ clientTools, resumes: recovering || continuation, tools: this.extraTools.get(requestId) },
    });
    const channel = await policyOfTurn(agent, this.#base, this.#host, requestId);
    const tools = channel.tools(equipment.tools());
    const prompt = channel.prompt(equipment.prompt);
    let models: readonly LanguageModel[] = [];
    let config: TurnConfig = this.extraConfig.get(requestId) ?? {};
    if (config.model === undefined) models = asList(await agent.getModel());
    const authorizes = agent.authorizeTurn !== this.#base.authorizeTurn;
    const others = this.#extensions?.listens("beforeTurn") === true ? this.#extensions : undefined;
    if (authorizes || others !== undefined || agent.beforeTurn !== this.#base.beforeTurn) {
      const system = prompt + capabilityBlock(tools);
      const [model] = models.length > 0 ? models : asList(config.model ?? []);
      const shown = contextOf(this.#chat(), this.context.reader, session, 0).base;
      const messages = await agent.assembleContext({ messages: await this.#media.of(shown), tools });
      const context: TurnContext = {
        ...{ requestId, system, messages, tools, continuation, recovering, body, clientTools, abortSignal },
        sessionId: session,
        identity,
        model: model as LanguageModel,
      };
      if (authorizes) grant(await agent.authorizeTurn(context));
      const own = await agent.beforeTurn(context);
      // The class has the last word on what it sets; what the turn was given is the app's too.
      config = { ...withinSteps(await others?.beforeTurn(context), () => agent.getMaxSteps()), ...config, ...own };
    }
    const given = bindActions(config.tools ?? {}, binding);
    const all = { ...tools, ...given };
    if (Object.hasOwn(all, BUDGET_TOOL))
      throw new PerdureError(
        "bad_config",
        `"${BUDGET_TOOL}" is the question of a budget. Give your tool another name.`,
      );
    // By the turn's own list alone: a prompt that changed from step to step would be read anew each time.
    const onTools = (given: ToolSet) => capabilityBlock(offered(given, config.activeTools));
    const instructions = config.instructions ?? config.system;
    return {
      models: config.model === undefined ? models : asList(config.model),
      instructions: instructions ?? prompt + onTools(all),
      renew: async () => {
        const renewed = channel.prompt(await equipment.renew());
        // What was summarised can be searched from now on, not only from the next turn: that would change the request again.
        const now = { ...channel.tools(equipment.tools()), ...given };
        return { tools: now, instructions: instructions ?? renewed + onTools(now) };
      },
      tools: all,
      messages: config.messages,
      maxSteps: checkMaxSteps(config.maxSteps ?? channel.maxTurns ?? agent.getMaxSteps()),
      stopWhen: config.stopWhen === undefined ? [] : asList(config.stopWhen),
      sendReasoning: config.sendReasoning ?? agent.sendReasoning,
      config,
    };
  }

  /** The tools of a session outside of its turns. */
  async toolsOf(session: string): Promise<ToolSet> {
    return (await equip(this.#equipper(), session)).tools();
  }

  /** A request as it would be made now, without what a client or `beforeTurn` would change. */
  async #next(session: string): Promise<NextRequest> {
    const agent = this.#agent;
    const equipment = await equip(this.#equipper(), session);
    const tools = equipment.tools();
    const [model] = asList(await agent.getModel());
    if (!model) throw new PerdureError("bad_config", "There is no model: getModel() returned nothing.");
    return { model, instructions: equipment.prompt + capabilityBlock(tools), tools };
  }

  /** What the user reads of an error. Never throws. */
  async explain(error: unknown, context: ChatErrorContext): Promise<string> {
    let told = error;
    try {
      told = await this.#agent.onChatError(error, context);
    } catch (thrown) {
      this.#failed(thrown);
    }
    if (told !== error && told !== undefined) return typeof told === "string" ? told : errorText(told);
    const { classification } = context;
    return classification === undefined ? describeTurnError(error) : describeProviderError(error, classification);
  }

  /** Said once in a life: each turn of the conversation asks for the file again. */
  #fileLost(url: string, error: unknown): void {
    if (this.#lostFiles.has(url)) return;
    this.#lostFiles.add(url);
    this.#failed(error);
  }

  async #keep(text: string): Promise<string | undefined> {
    try {
      return (await filesOf(this.#host).put(new TextEncoder().encode(text), "text/plain;charset=utf-8")).name;
    } catch (thrown) {
      this.#failed(thrown);
      return undefined;
    }
  }
}

function offered(tools: ToolSet, active: readonly string[] | undefined): ToolSet {
  if (active === undefined) return tools;
  return Object.fromEntries(Object.entries(tools).filter(([name]) => active.includes(name)));
}

function asList<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}

/** What extensions say of a turn. Of steps they may ask for fewer than the agent allows, and not for more. */
function withinSteps<C extends { readonly maxSteps?: number }>(said: C | undefined, most: () => number): C | undefined {
  return said?.maxSteps === undefined ? said : { ...said, maxSteps: Math.min(said.maxSteps, checkMaxSteps(most())) };
}

/** @throws PerdureError `bad_config` for what is no number of steps */
function checkMaxSteps(maxSteps: number): number {
  if (typeof maxSteps === "number" && !Number.isNaN(maxSteps)) return maxSteps;
  throw new PerdureError("bad_config", `maxSteps must be a number of model calls, not ${String(maxSteps)}.`);
}

/** What an agent's turns are equipped from: the part of a `Think` that users write. */
interface EquippedAgent {
  getSystemPrompt(): string | Promise<string>;
  getTools(): ToolSet | Promise<ToolSet>;
  getActions(): Record<string, AnyAction> | Promise<Record<string, AnyAction>>;
}

/** What a turn has to work with. */
interface Equipment {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  /** Those of this moment: a conversation that was compacted can be searched. */
  tools(): ToolSet;
  /** Makes the text of the context blocks anew, and the prompt with it. */
  renew(): Promise<string>;
}

/** Where equipment comes from. */
interface Equipper {
  readonly agent: EquippedAgent;
  readonly host: AgentHost;
  readonly search: SessionSearch;
  readonly actions: ActionBinding;
  /** What is built in. */
  readonly kit: ToolKit;
  blocks(session: string): Promise<ContextBlocks | undefined>;
  /** What the session was told about itself. It is configured by then. */
  settings(session: string): SessionSettings;
}

/** What only one turn has. */
interface BroughtAlong {
  readonly clientTools?: readonly ClientTool[] | undefined;
  /** Tools that server code gave to the turn. */
  readonly tools?: ToolSet | undefined;
  /** It goes on with calls of earlier: it was cut off, or somebody has answered them. */
  readonly resumes?: boolean;
}

/**
 * Gathers the tools and the prompt of a turn. Of two tools of one name the later counts: those of the client, then what
 * is built in, then what others bring (skills, extensions, MCP servers), then what the class itself declares.
 */
async function equip(from: Equipper, session: string, brought: BroughtAlong = {}): Promise<Equipment> {
  const { agent, host, search, actions } = from;
  const own = bindActions({ ...(await agent.getTools()), ...(await agent.getActions()) }, actions);
  const sessionBlocks = await from.blocks(session);
  const others = Object.keys({ ...own, ...brought.tools });
  const kit = await from.kit.ofTurn(others, sessionBlocks, brought.resumes);
  const blocks = await joinBlocks(sessionBlocks, await agent.getSystemPrompt());
  const withKit = (prompt: string) => [prompt, kit.prompt].filter((text) => text !== "").join("\n\n");
  return {
    prompt: withKit(blocks.prompt),
    tools: () => ({
      ...createToolsFromClientSchemas(brought.clientTools?.filter(({ name }) => name !== BUDGET_TOOL)),
      ...kit.tools,
      ...searchTools(host, search, session, from.settings(session).searchScope),
      ...blocks.tools,
      ...own,
      ...bindActions(brought.tools ?? {}, actions),
    }),
    renew: async () => withKit(await blocks.renew()),
  };
}

/** How long a call of a context tool may take: a provider has its own, shorter bounds. */
const TOOL_TIMEOUT_MS = 90_000;

/** What context blocks add to a turn. */
interface JoinedBlocks {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  readonly tools: ToolSet;
  /** Makes the text of the blocks anew, and the prompt with it: after a compaction, when all is read anew anyway. */
  renew(): Promise<string>;
}

/**
 * The prompt of a turn: what the class says, then the blocks. A class that says nothing of its own leaves it to a
 * read-only block to say who the agent is; the default is only there when there is none.
 */
async function joinBlocks(blocks: ContextBlocks | undefined, base: string): Promise<JoinedBlocks> {
  if (blocks === undefined) return { prompt: base, tools: {}, renew: async () => base };
  return {
    prompt: joined(base, await blocks.systemPrompt()),
    tools: durableTools(blocks),
    renew: async () => joined(base, await blocks.refreshSystemPrompt()),
  };
}

function joined(base: string, text: string): string {
  if (text === "") return base;
  return base === "" || (base === DEFAULT_SYSTEM_PROMPT && saysWhoItIs(text)) ? text : `${base}\n\n${text}`;
}

function durableTools(blocks: ContextBlocks): ToolSet {
  const tools: ToolSet = {};
  for (const [name, tool] of Object.entries(blocks.tools())) {
    // Texts that the agent stores itself know which calls have written to them. Nobody knows that of a provider.
    const replay = name === "set_context" && blocks.writesElsewhere ? "never" : "safe";
    const options: DurableToolOptions = { replay, timeoutMs: TOOL_TIMEOUT_MS };
    tools[name] = durableTool<Tool>(tool, options);
  }
  return tools;
}

/** How far back a summary is looked for. A conversation that is longer than this without one needs no tool for it. */
const MAX_STEPS = 5_000;

/**
 * The tool by which the model looks up earlier messages: when the app asked for it, with what may be searched, or when a
 * compaction leaves out some of them, or outputs of tools.
 */
function searchTools(
  db: Sql,
  search: SessionSearch,
  session: string,
  asked: SessionSearchToolOptions["scope"],
): ToolSet {
  if (asked === undefined && !isCompacted(db, session)) return {};
  const scope = asked ?? "session";
  return { [SESSION_SEARCH_TOOL]: sessionSearchTool({ search, session: () => session, scope }) };
}

function isCompacted(db: Sql, session: string): boolean {
  const compacted = compactedMessages(db);
  if (compacted.length === 0) return false;
  const leaf = readSession(db, session)?.leaf ?? null;
  return leaf !== null && isOnPath(db, leaf, compacted, MAX_STEPS);
}
