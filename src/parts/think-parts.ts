import { deleteMessageFrames } from "../store/frame.ts";
import { RequestBook } from "../model/request-book.ts";
import { ModelMessages } from "../context/model-messages.ts";
import { Ledger } from "../ledger/ledger.ts";
import type { Payers } from "../ledger/ledger.ts";
import { filesOf } from "../media/files.ts";
import type { MediaRestore } from "../media/media-restore.ts";
import { SessionSearch } from "../search/search.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { readConfig, writeConfig } from "../store/config.ts";
import { keepAside, readStored } from "../store/damaged.ts";
import { ownerIdOf } from "../store/session.ts";
import { isOpen, readTurn, type TurnRow } from "../store/turn.ts";
import { lendAction } from "../tool/action-bind.ts";
import { isAction } from "../tool/action.ts";
import { CallBook } from "../tool/call-book.ts";
import { type FileDownloadOptions, fileLoader, type LoadFile } from "../toolbox/egress/file-download.ts";
import type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { TurnFacts } from "../turn/engine/engine.ts";
import { messagesIn } from "../turn/engine/mend.ts";
import { BackgroundCalls } from "../turn/step/background.ts";
import { isAsked, type StepPolicy } from "../turn/policy.ts";
import type { BackgroundAdmission, StepParts } from "../turn/step/parts.ts";
import { inSteps } from "../turn/step/run-steps.ts";
import { writeJson } from "../wire/json.ts";
import type { SubmitOptions } from "../turn/intake/submissions.ts";
import type { ChatParts } from "./chat-parts.ts";
import { FilePoints } from "./files.ts";
import type { AgentParts } from "./agent-parts.ts";
import { type TaskPolicy, TasksPart } from "./tasks.ts";
import { isToldLater } from "./runs/book-calls.ts";
import { isRoot, refusalAbove, refusalHere, type RunBounds } from "./runs/lineage.ts";
import { payersOf } from "./runs/run-payers.ts";
import { ThinkContext } from "./window.ts";
import { type KitSettings, ToolKit } from "./tool-kit.ts";
import type { WindowMethods } from "../live/session-frames.ts";
import { sessionNow } from "./current.ts";
import { attachmentChunk, attachmentsOf } from "../tool/action-attachment.ts";
import type { ActionAuthorization } from "../tool/action-authorize.ts";
import { ActionLedger, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import { leafOf } from "../wire/agent-path.ts";

/** In reports of damage. */
const CONFIG = "the configuration";

/** What an agent decides that runs its turns step by step: the part of a `Think` that users write. */
interface ThinkPolicy extends StepPolicy, KitSettings, RunBounds, WindowMethods, TaskPolicy {
  readonly fileDownloads: FileDownloadOptions;
  submitMessages(text: string, options?: SubmitOptions): Promise<unknown>;
}

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
  #requests: RequestBook | undefined;
  #actionLedger: ActionLedger | undefined;
  #search: SessionSearch | undefined;

  /** @param base a class that has its hooks does not listen. */
  constructor(own: AgentParts<unknown>, chat: ChatParts, agent: ThinkPolicy, base: ThinkPolicy) {
    this.#own = own;
    this.#chat = chat;
    this.policy = agent;
    this.silent = base;
    const { host } = own;
    this.points = new FilePoints(host, () => agent.getWorkspace());
    this.kit = new ToolKit(agent, {
      host,
      mcp: () => own.mcp.used,
      bridge: () => this.#bridge,
      failed: (error) => chat.chat.agent.failed(error),
    });
    own.parts.push({ lend: (value) => (isAction(value) ? lendAction(value, this.actionBinding()) : undefined) });
    own.parts.push({ halt: () => this.kit.halt(), left: () => this.kit.halt() });
    this.window = new ThinkContext(this);
    this.tasks = new TasksPart(own, chat, agent, base);
    this.background = openBackground(own, this);
    // First: if the tasks cannot work, no turn may have gone on.
    own.parts.unshift(this.tasks);
    const close = () => this.window.background.close();
    own.parts.push({ drain: close, halt: close, left: close });
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

  get requests(): RequestBook {
    return (this.#requests ??= new RequestBook(this.host, this.messages));
  }

  get search(): SessionSearch {
    return (this.#search ??= new SessionSearch(this.host));
  }

  get actionLedger(): ActionLedger {
    return (this.#actionLedger ??= new ActionLedger(this.host));
  }

  actionBinding(turn?: { readonly id: string; readonly grants: () => ActionAuthorization }): ActionBinding {
    const { policy, host, chat } = this;
    // By its id: an attempt may be given up while an action of it goes on, and the next one has the answer then.
    const active = () => (turn === undefined ? undefined : chat.turn(turn.id));
    return {
      ledger: this.actionLedger,
      // What an action returned is stored before it is judged: nothing of it may be where clients can read it.
      keep: async (text) => (isAsked(this, "afterToolCall") ? undefined : this.keep(text)),
      turn: () => {
        const running = active();
        return running && { requestId: running.row.id, sessionId: running.row.session };
      },
      ...(turn !== undefined && { grants: turn.grants }),
      authorize: (context) => policy.authorizeAction(context),
      attached: () => {
        const running = active();
        return running === undefined ? 0 : attachmentsOf(running.message).length;
      },
      attach: (attachments, also) => {
        const running = active();
        // It took longer than its turn: there is no answer to add anything to.
        if (running === undefined) return host.tx(also);
        chat.commit(() => {
          for (const { id, attachment } of attachments) running.take({ chunk: attachmentChunk(id, attachment) });
          running.log.flush("sync", also);
        });
      },
      failed: (error) => chat.agent.failed(error),
      get reclaimAfterMs() {
        const { actionLedgerPendingRetryLeaseMs: lease } = policy;
        return lease === true ? RECLAIM_AFTER_MS : lease;
      },
    };
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

  erased(): void {
    this.requests.forget();
  }

  /** Calls whose end nobody will write down were cut. */
  cleared(session: string, turns: readonly TurnRow[]): void {
    deleteMessageFrames(this.host, [session]);
    this.requests.forget();
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
      sendMessage: async (text) => void (await this.policy.submitMessages(text, { session })),
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

/** How many may go on at one time, where the class does not say. */
export const DEFAULT_MAX_BACKGROUND = 16;

/** Makes the background of an agent, and has it carry on with what an earlier life left. */
function openBackground(own: AgentParts<unknown>, parts: StepParts & { policy: RunBounds }): BackgroundCalls {
  const { host } = own;
  const calls = new BackgroundCalls(parts, {
    work: own,
    admit: (turnId) => admit(own, parts.policy, turnId),
    over(turnId) {
      const turn = readTurn(host, turnId);
      if (turn === undefined || !isOpen(turn)) own.runs.turnEnded(turnId);
    },
  });
  own.parts.push({ work: calls, started: () => calls.started(), halt: (reason) => calls.halt(reason) });
  return calls;
}

/** A background call counts among the runs of its turn, so that results and new calls cannot go in a circle forever. */
async function admit(
  { host, turns }: AgentParts<unknown>,
  bounds: RunBounds,
  turnId: string,
): Promise<BackgroundAdmission> {
  const chain = [leafOf(host.path).className];
  const lineage = turns?.lineageOf(turnId);
  const from = lineage ?? { root: host.path.length, key: turnId, at: host.clock.now(), chain };
  const refusal = isRoot(host, from) ? refusalHere(host, bounds, from) : await refusalAbove(host, bounds, from);
  if (refusal === undefined) return { lineage: JSON.stringify(from) };
  const refused =
    "Not started: the limit of agents and background calls is reached (`maxAgentToolRuns`). Go on " +
    "without, or answer with what you have.";
  return { refused: refusal.reason === "count" ? refused : refusal.error };
}
