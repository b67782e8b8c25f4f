import { newId } from "../base/id.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { ScheduledTasks } from "../work/task-types.ts";
import type { AgentHost } from "../port.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { readConfig, writeConfig } from "../store/config.ts";
import { keepAside, readStored } from "../store/damaged.ts";
import type { TurnRow } from "../store/turn.ts";
import { lendAction } from "../tool/action-bind.ts";
import { isAction } from "../tool/action.ts";
import type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { ChatHooks, ChatTurnOptions } from "../turn/engine/chat-types.ts";
import type { ChatAnswer, OrdinaryTurn } from "../turn/engine/by-stream.ts";
import { messagesIn } from "../turn/engine/history.ts";
import type { BackgroundCalls } from "../turn/step/background.ts";
import { classifyProviderError } from "../model/provider-error.ts";
import { writeJson } from "../wire/json.ts";
import type { SubmitOptions } from "../turn/intake/submissions.ts";
import type { Answering, ChatParts, RunAsAgent, StepSide } from "./chat-parts.ts";
import { FilePoints } from "./file-points.ts";
import type { AgentParts } from "./parts.ts";
import { TaskFeature } from "./scheduled-tasks.ts";
import type { ThinkActions } from "./think-actions.ts";
import { type BackgroundAgent, openBackground } from "./think-background.ts";
import type { ThinkContext } from "./think-context.ts";
import { OUTSIDE, ThinkPlan, type ThinkHooks, type ThinkSettings } from "./think-plan.ts";
import { type KitSettings, ToolKit } from "./tool-kit.ts";
import { sessionNow } from "./turn-now.ts";

/** In reports of damage. */
const CONFIG = "the configuration";

/** What an agent decides that runs its turns step by step: the part of a `Think` that users write. */
interface ThinkPolicy extends ThinkSettings, KitSettings, BackgroundAgent {
  getScheduledTasks(): ScheduledTasks | Promise<ScheduledTasks>;
  getDefaultTimezone(): string | undefined;
  onChatMessage(
    options: ChatTurnOptions,
  ): ChatAnswer | OrdinaryTurn | undefined | Promise<ChatAnswer | OrdinaryTurn | undefined>;
  submitMessages(messages: UserMessages, options?: SubmitOptions): Promise<unknown>;
  contextReport: (of: { session: string }) => ReturnType<StepSide["report"]>;
  compact: (of: { session: string; focus?: string; preview?: boolean }) => Promise<unknown>;
  applyCompaction: (draft: { session: string } & Parameters<StepSide["applyCompaction"]>[1]) => unknown;
  undoCompaction: (id: string, of: { session: string }) => unknown;
}

type UserMessages = { id: string; role: "user"; parts: { type: "text"; text: string }[] }[];

/** The hooks that do nothing. */
type NoHooks = ThinkHooks & Pick<ThinkPolicy, "onChatMessage" | "getScheduledTasks">;

/** What an agent is made of that runs its turns step by step. */
export class ThinkParts implements Answering, StepSide {
  readonly #own: AgentParts<unknown>;
  readonly #chat: ChatParts;
  readonly #agent: ThinkPolicy;
  readonly #base: NoHooks;
  readonly plan: ThinkPlan;
  readonly kit: ToolKit;
  /** What ties files to messages. */
  readonly points: FilePoints;
  readonly background: BackgroundCalls;
  readonly tasks: TaskFeature;

  /** @param base a class that has its hooks does not listen. */
  constructor(own: AgentParts<unknown>, chat: ChatParts, agent: ThinkPolicy, base: NoHooks) {
    this.#own = own;
    this.#chat = chat;
    this.#agent = agent;
    this.#base = base;
    const { host, features } = own;
    this.points = new FilePoints(host, () => agent.getWorkspace());
    this.kit = new ToolKit(agent, {
      host,
      mcp: () => own.mcp.used,
      bridge: () => this.#bridge,
      failed: (error) => chat.chat.hooks.failed(error),
    });
    features.push({ lend: (value) => (isAction(value) ? lendAction(value, this.actions.binding()) : undefined) });
    features.push({ halt: () => this.kit.halt(), left: () => this.kit.halt() });
    this.plan = new ThinkPlan(agent, base, this);
    this.tasks = new TaskFeature(own, {
      declares: () => agent.getScheduledTasks !== base.getScheduledTasks,
      tasks: () => agent.getScheduledTasks(),
      timeZone: () => agent.getDefaultTimezone(),
      as: (work) => chat.as(work),
      chat: () => chat.chat,
      failed: (error) => void own.failed(error, { stage: "scheduled task" }),
    });
    this.background = openBackground(own, agent, this.plan, () => chat.chat);
    // First: if the tasks cannot work, no turn may have gone on.
    features.unshift(this.tasks);
    const close = () => this.window.background.close();
    features.push({ drain: close, halt: close, left: close });
    chat.answering = this;
  }

  get host(): AgentHost {
    return this.#own.host;
  }

  get chat(): Conversations {
    return this.#chat.chat;
  }

  get sessions(): SessionManager {
    return this.#chat.sessions;
  }

  /** What keeps conversations within the model's window. */
  get window(): ThinkContext {
    return this.plan.context;
  }

  get actions(): ThinkActions {
    return this.plan.actions;
  }

  hooks(as: RunAsAgent): Pick<ChatHooks, "respond"> & Partial<ChatHooks> {
    const { plan, points } = this;
    const agent = this.#agent;
    const own = agent.onChatMessage !== this.#base.onChatMessage;
    return {
      respond: async (options) => as(() => agent.onChatMessage(options), options.requestId, options.identity),
      plan: (turn) => plan.of(turn, as),
      ranInSteps: ({ seq }) => !own || plan.ledger.attempts(seq, 0).length > 0,
      answerable: (...about) => plan.answerable(...about),
      decided: (decision) => {
        const { messageId, toolCallId } = decision;
        // What an onChatMessage of its own asked is not in the book of the steps.
        if (own && !plan.book.isOfSteps(messageId, toolCallId)) this.#chat.deciding.decided?.(decision);
        else plan.book.record(decision);
      },
      question: (messageId, toolCallId) => plan.book.question(messageId, toolCallId),
      explain: (error, context) => as(() => plan.explain(error, context), context.requestId, context.identity),
      begun: (turn) => points.begun(turn),
      settled: (message, turn) => {
        plan.settled(message, turn);
        points.settled(message);
      },
      removed: (messageId) => plan.book.forget(messageId),
      cleared: (session, turns) => plan.cleared(session, turns),
      background: this.background,
    };
  }

  // What runs step by step adds to a chat

  get steps(): StepSide {
    return this;
  }

  get ledger(): Ledger {
    return this.plan.ledger;
  }

  goesOn(turnId: string): boolean {
    return this.background.hasOpen(turnId);
  }

  ended(turn: TurnRow): void {
    this.window.ready(turn.session);
  }

  async classify(error: unknown) {
    return (await this.#agent.classifyChatError(error, OUTSIDE)) ?? classifyProviderError(error);
  }

  readonly contextState: StepSide["contextState"] = (session) => this.window.state(session);
  readonly report: StepSide["report"] = (session) => this.#agent.contextReport({ session });
  readonly compact: StepSide["compact"] = (session, options) => this.#agent.compact({ session, ...options });
  readonly applyCompaction: StepSide["applyCompaction"] = (session, draft) =>
    this.#agent.applyCompaction({ session, ...draft });
  readonly undoCompaction: StepSide["undoCompaction"] = (session, id) => this.#agent.undoCompaction(id, { session });

  /** What the agent does for its extensions, in the session where they are asked: a guest serves all of them. */
  get #bridge(): ExtensionBridge {
    const { chat } = this;
    const session = sessionNow(chat);
    const blocks = async () => (await this.sessions.ready(session)).blocks;
    return {
      workspace: this.#agent.getWorkspace() ?? undefined,
      getContext: async (label) => (await blocks()).getContextBlock(label)?.content ?? null,
      setContext: async (label, content) => void (await (await blocks()).replaceContextBlock(label, content)),
      isOfApp: async (label) => (await blocks()).isOfCode(label),
      getMessages: (limit) => messagesIn(chat, session).slice(-limit),
      sendMessage: async (text) => {
        const message = { id: newId("msg"), role: "user" as const, parts: [{ type: "text" as const, text }] };
        await this.#agent.submitMessages([message], { session });
      },
      getSessionInfo: () => ({ id: session, messages: messagesIn(chat, session).length }),
    };
  }

  // Settings that the agent keeps for itself

  /** @throws PerdureError `bad_input` */
  async configure(config: unknown): Promise<void> {
    const { host } = this;
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

  get config(): unknown {
    const { host } = this;
    return host.blank ? undefined : readStored(host, readConfig(host), CONFIG);
  }
}
