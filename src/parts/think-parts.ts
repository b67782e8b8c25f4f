import { newId } from "../base/id.ts";
import { ModelMessages } from "../context/model-messages.ts";
import { Ledger } from "../ledger/ledger.ts";
import type { Payers } from "../ledger/payers.ts";
import { filesOf } from "../media/files.ts";
import type { MediaRestore } from "../media/media-restore.ts";
import { SessionSearch } from "../search/search.ts";
import type { ScheduledTasks } from "../work/task-types.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { readConfig, writeConfig } from "../store/config.ts";
import { keepAside, readStored } from "../store/damaged.ts";
import { ownerIdOf } from "../store/session.ts";
import type { TurnRow } from "../store/turn.ts";
import { lendAction } from "../tool/action-bind.ts";
import { isAction } from "../tool/action.ts";
import { CallBook } from "../tool/call-book.ts";
import { type FileDownloadOptions, fileLoader, type LoadFile } from "../toolbox/egress/file-download.ts";
import type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { TurnFacts } from "../turn/engine/engine.ts";
import { messagesIn } from "../turn/engine/mend.ts";
import type { BackgroundCalls } from "../turn/step/background.ts";
import type { StepPolicy } from "../turn/policy.ts";
import type { StepParts } from "../turn/step/parts.ts";
import { inSteps } from "../turn/step/run-steps.ts";
import { writeJson } from "../wire/json.ts";
import type { SubmitOptions } from "../turn/intake/submissions.ts";
import type { ChatParts } from "./chat-parts.ts";
import { FilePoints } from "./files.ts";
import type { AgentParts } from "./agent-parts.ts";
import { TasksPart } from "./tasks.ts";
import { isToldLater } from "./runs/book-calls.ts";
import type { RunBounds } from "./runs/lineage.ts";
import { payersOf } from "./runs/run-payers.ts";
import { ThinkActions } from "./actions.ts";
import { openBackground } from "./background.ts";
import { ThinkContext } from "./window.ts";
import { type KitSettings, ToolKit } from "./tool-kit.ts";
import type { WindowMethods } from "../live/session-frames.ts";
import { sessionNow } from "./current.ts";

/** In reports of damage. */
const CONFIG = "the configuration";

/** What an agent decides that runs its turns step by step: the part of a `Think` that users write. */
interface ThinkPolicy extends StepPolicy, KitSettings, RunBounds, WindowMethods {
  readonly fileDownloads: FileDownloadOptions;
  getScheduledTasks(): ScheduledTasks | Promise<ScheduledTasks>;
  getDefaultTimezone(): string | undefined;
  submitMessages(messages: UserMessages, options?: SubmitOptions): Promise<unknown>;
}

type UserMessages = { id: string; role: "user"; parts: { type: "text"; text: string }[] }[];

/** What an agent is made of that runs its turns step by step. */
export class ThinkParts implements StepParts, TurnFacts {
  readonly #own: AgentParts<unknown>;
  readonly #chat: ChatParts;
  readonly policy: ThinkPolicy;
  readonly silent: ThinkPolicy;
  readonly kit: ToolKit;
  /** What keeps conversations within the model's window. */
  readonly window: ThinkContext;
  readonly messages = new ModelMessages((error) => this.chat.agent.failed(error));
  readonly brought: StepParts["brought"] = new Map();
  /** What ties files to messages. */
  readonly points: FilePoints;
  readonly background: BackgroundCalls;
  readonly tasks: TasksPart;
  readonly #lostFiles = new Set<string>();
  #loadFile: LoadFile | undefined;
  #ledger: Ledger | undefined;
  #book: CallBook | undefined;
  #actions: ThinkActions | undefined;
  #search: SessionSearch | undefined;

  /** @param base a class that has its hooks does not listen. */
  constructor(own: AgentParts<unknown>, chat: ChatParts, agent: ThinkPolicy, base: ThinkPolicy) {
    this.#own = own;
    this.#chat = chat;
    this.policy = agent;
    this.silent = base;
    const { host, features } = own;
    this.points = new FilePoints(host, () => agent.getWorkspace());
    this.kit = new ToolKit(agent, {
      host,
      mcp: () => own.mcp.used,
      bridge: () => this.#bridge,
      failed: (error) => chat.chat.agent.failed(error),
    });
    features.push({ lend: (value) => (isAction(value) ? lendAction(value, this.actions.binding()) : undefined) });
    features.push({ halt: () => this.kit.halt(), left: () => this.kit.halt() });
    this.window = new ThinkContext(this);
    this.tasks = new TasksPart(own, {
      declares: () => agent.getScheduledTasks !== base.getScheduledTasks,
      tasks: () => agent.getScheduledTasks(),
      timeZone: () => agent.getDefaultTimezone(),
      as: (work) => chat.as(work),
      chat: () => chat.chat,
      failed: (error) => void own.failed(error, { stage: "scheduled task" }),
    });
    this.background = openBackground(own, this);
    // First: if the tasks cannot work, no turn may have gone on.
    features.unshift(this.tasks);
    const close = () => this.window.background.close();
    features.push({ drain: close, halt: close, left: close });
    chat.answerer = inSteps(this);
    chat.facts.push(this);
    chat.steps = this;
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

  get ledger(): Ledger {
    if (this.#ledger === undefined) {
      const { host, policy } = this;
      this.#ledger = new Ledger(host, {
        budgets: () => policy.budgets,
        prices: () => policy.prices,
        session: () => ownerIdOf(host, this.chat.transcripts.current),
      });
      // What an earlier life had asked for and not heard the end of.
      if (!host.blank) this.#ledger.closeOpen((call) => isToldLater(host, call));
    }
    return this.#ledger;
  }

  get book(): CallBook {
    return (this.#book ??= new CallBook(this.host));
  }

  get search(): SessionSearch {
    return (this.#search ??= new SessionSearch(this.host));
  }

  get actions(): ThinkActions {
    return (this.#actions ??= new ThinkActions(this));
  }

  get media(): MediaRestore {
    return this.#chat.restore;
  }

  payers(turn: number): Payers | undefined {
    return payersOf(this.host, turn);
  }

  readonly loadFile: LoadFile = (file) => (this.#loadFile ??= fileLoader(this.policy.fileDownloads))(file);

  /** Said once in a life: each turn of the conversation asks for the file again. */
  fileLost(url: string, error: unknown): void {
    if (this.#lostFiles.has(url)) return;
    this.#lostFiles.add(url);
    this.chat.agent.failed(error);
  }

  async keep(text: string): Promise<string | undefined> {
    try {
      return (await filesOf(this.host).put(new TextEncoder().encode(text), "text/plain;charset=utf-8")).name;
    } catch (thrown) {
      this.chat.agent.failed(thrown);
      return undefined;
    }
  }

  // What is kept beside turns

  begun(turn: TurnRow): void {
    this.points.begun(turn);
  }

  settled(message: UIMessage, turn?: TurnRow): void {
    // What is summarised in the background goes on, and tells its own end.
    if (turn !== undefined)
      this.ledger.closeTurn(
        turn.seq,
        ({ purpose }) => purpose === "compaction" && this.window.background.has(turn.session),
      );
    this.points.settled(message);
  }

  /** Calls whose end nobody will write down were cut. */
  cleared(session: string, turns: readonly TurnRow[]): void {
    this.window.background.stop(session);
    this.background.dropSession(session);
    for (const { seq } of turns) this.ledger.closeTurn(seq, (call) => isToldLater(this.host, call));
  }

  /** What the agent does for its extensions, in the session where they are asked: a guest serves all of them. */
  get #bridge(): ExtensionBridge {
    const { chat } = this;
    const session = sessionNow(chat);
    const blocks = async () => (await this.sessions.ready(session)).blocks;
    return {
      workspace: this.policy.getWorkspace() ?? undefined,
      getContext: async (label) => (await blocks()).getContextBlock(label)?.content ?? null,
      setContext: async (label, content) => void (await (await blocks()).replaceContextBlock(label, content)),
      isOfApp: async (label) => (await blocks()).isOfCode(label),
      getMessages: (limit) => messagesIn(chat, session).slice(-limit),
      sendMessage: async (text) => {
        const message = { id: newId("msg"), role: "user" as const, parts: [{ type: "text" as const, text }] };
        await this.policy.submitMessages([message], { session });
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
