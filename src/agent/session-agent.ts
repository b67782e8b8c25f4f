import type { LanguageModel } from "ai";
import { PerdureError } from "../base/error.ts";
import { type Identity, readIdentity } from "../base/identity.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentEnv, AgentHost } from "../port.ts";
import { defaultPrices } from "../ledger/default-prices.ts";
import { type EraseReceipt, listReceipts } from "../erase/erase.ts";
import type { EraseScope } from "../erase/erase-plan.ts";
import { Ledger } from "../ledger/ledger.ts";
import type { SearchHit, SearchOptions } from "../search/search.ts";
import type { HistoryOptions, Session } from "../session/session.ts";
import type { ForkOptions, NewSessionOptions } from "../session/session-changes.ts";
import type { SessionInfo } from "../session/session-info.ts";
import { SessionManager } from "../session/session-manager.ts";
import type { SessionSettings } from "../session/session-settings.ts";
import { readMessageIdentity } from "../store/message.ts";
import { MAIN_SESSION } from "../store/session.ts";
import type { TurnRow } from "../store/turn.ts";
import { type ChatErrorClassification, classifyProviderError } from "../model/provider-error.ts";
import type { SessionOp } from "../wire/session-frames.ts";
import { ApprovalAgent } from "./approval-agent.ts";
import { chatRoom, derivesTitles, mediaMover, sessionServant, turnEnded } from "./chat-agent.ts";
import type { Caller } from "./authorize.ts";
import { getCurrentAgent, runAs, runFor } from "./context.ts";
import { parts } from "./parts.ts";
import { sessionNow } from "./turn-now.ts";
import { payersOf } from "./run/run-payers.ts";
import { turnKeeper } from "./run/turn-keeper.ts";
import { chatSessionDesk } from "./chat-session-desk.ts";
import { eraseData, finishErasing } from "./session-erase.ts";
import type { SessionServant } from "./session-frames.ts";
import { TitleKeeper, type TitleOptions } from "./title-keeper.ts";

/** A session that is configured. Under a symbol: every plain name belongs to those who extend the class. */
export const sessionOf: unique symbol = Symbol("perdure.session-of");
/** What a session was told about itself; meant for those that are configured. */
export const settingsOf: unique symbol = Symbol("perdure.settings-of");
/** What kind of error a provider gave, for calls outside of turns. */
export const classifying: unique symbol = Symbol("perdure.classifying");

/**
 * What every agent that holds conversations has: as many of them as it wants, each with branches. Turns of one agent
 * run one at a time, whatever session they are of.
 */
export abstract class SessionAgent<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
> extends ApprovalAgent<Env, State, Props> {
  readonly #titles: TitleKeeper;
  #sessions: SessionManager | undefined;
  #ledger: Ledger | undefined;

  constructor(host: AgentHost) {
    super(host);
    this.#titles = new TitleKeeper({
      host,
      desk: () => chatSessionDesk(this[chatRoom]),
      ledger: () => this[turnKeeper].ledger ?? this.#ownLedger,
      options: () => this.titles,
      hasModel: () => this.getTitleModel !== SessionAgent.prototype.getTitleModel,
      model: () => this.#as(() => this.getTitleModel()),
      classify: (error) => this[classifying](error),
    });
    this[parts].features.push({
      started: () => (host.blank ? undefined : finishErasing(() => this[chatRoom])),
      halt: (reason) => this.#titles.halt(reason),
    });
  }

  // Settings

  /**
   * How sessions get their names: `true` from the first words of the user, and then by a model if there is one for it
   * ({@link SessionAgent.getTitleModel}); `false`: only people name them.
   */
  titles: boolean | TitleOptions = true;

  /** A small model that finds names for sessions, in the background. Nothing: the first words of the user stay. */
  getTitleModel(): LanguageModel | undefined | Promise<LanguageModel | undefined> {
    return undefined;
  }

  /**
   * Says how a session works: its context blocks, when it is compacted, whether the model may search it. Called once per
   * session and life, before its first turn. May be slow. If it throws, the turn that needs it fails with that error, and
   * the next one tries again.
   */
  configureSession(_session: Session): Session | void | Promise<Session | void> {}

  /**
   * Whether somebody may ask this of a session. Who names a session in its URL (`?_session=`), to connect or in a request,
   * asks to `attach`. Only `true` allows it; what it throws refuses. Default: all of it.
   */
  allowSessionOp(_caller: Caller, _op: SessionOp): boolean | Promise<boolean> {
    return true;
  }

  // Sessions

  /** All sessions of the agent. */
  get sessions(): SessionManager {
    return (this.#sessions ??= new SessionManager(chatSessionDesk(this[chatRoom]), (session) =>
      this.#as(() => this.configureSession(session)),
    ));
  }

  /** The session of the turn that runs; while none does, that of all who name none. */
  get session(): Session {
    return this.sessions.of(sessionNow(this[chatRoom].chat));
  }

  /** @throws PerdureError `conflict` when the id is taken, `bad_input` */
  createSession(options: string | NewSessionOptions = {}): SessionInfo {
    return this.sessions.create(typeof options === "string" ? { name: options } : options).info;
  }

  /**
   * Makes a session the one of all who name none: clients that do so are given its conversation. A turn that runs goes
   * on where it is. @throws PerdureError `not_found`
   */
  switchSession(id: string): SessionInfo {
    return this.sessions.switch(id).info;
  }

  /** The one that was used last first. */
  getSessions(options: { readonly limit?: number; readonly after?: string } = {}): SessionInfo[] {
    return this.sessions.list(options);
  }

  getCurrentSessionId(): string {
    return this.sessions.currentId;
  }

  /** @throws PerdureError `not_found`, `bad_input` */
  renameSession(id: string, name: string): void {
    this.sessions.rename(id, name);
  }

  /** Deletes a session and what was said in it, but for what others show; its turns stop. @returns whether it was there. */
  deleteSession(id: string): boolean {
    return this.sessions.delete(id);
  }

  /** A session of its own that has all of another one, by default of the current one. It costs the same however long that is. */
  forkSession(id: string = this.getCurrentSessionId(), options: ForkOptions = {}): SessionInfo {
    return this.sessions.fork(id, options).info;
  }

  // Branches

  /** The messages of a session as they are stored, oldest first. Without a limit it costs the whole conversation. */
  getHistory(
    leafId?: string | null,
    { session, ...options }: HistoryOptions & { readonly session?: string } = {},
  ): UIMessage[] {
    return this.#session(session).getHistory(leafId, options);
  }

  /** The messages right behind one: each begins a branch. @throws PerdureError `not_found` */
  getBranches(messageId: string | null, { session }: { readonly session?: string } = {}): UIMessage[] {
    return this.#session(session).getBranches(messageId);
  }

  /**
   * Goes on with another branch; all clients of the session are given it. @returns the id of the message with which the
   * session ends now. @throws PerdureError `not_found`, `bad_state` while a turn of the session is under way.
   */
  switchBranch(messageId: string, { session }: { readonly session?: string } = {}): string {
    return this.#session(session).switchBranch(messageId);
  }

  // What was said

  /** Finds messages by their words, in all sessions or in one. @throws PerdureError `bad_input`, `not_found` */
  search(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    // What is filed for it on the way is no doing of who searches, who may only read perhaps.
    const { context } = this[parts].host;
    return runFor(context, getCurrentAgent(), undefined, () => this.sessions.search(query, options));
  }

  /**
   * Erases a session, or all that belongs to a subject: messages, summaries, search words, logs, files and all else that
   * holds their words. Their turns are stopped. @returns what was erased and what was not, and why.
   * @throws PerdureError `bad_input`, `not_found`, `bad_state` inside of a turn of the session.
   */
  erase(scope: EraseScope): Promise<EraseReceipt> {
    return eraseData({ room: this[chatRoom], sessions: this.sessions, media: this[mediaMover] }, scope);
  }

  /** What was erased so far, without content, the newest first. */
  eraseReceipts(): EraseReceipt[] {
    return listReceipts(this[parts].host);
  }

  /**
   * Who wrote a message, as the app had established it then; of an answer, for whom it was written. Undefined when that
   * is not known. It is sent to no client.
   */
  getMessageIdentity(messageId: string): Identity | undefined {
    const { host } = this[parts];
    return host.blank ? undefined : readIdentity(readMessageIdentity(host, messageId));
  }

  /** @internal */
  [sessionOf](id: string): Promise<Session> {
    return this.sessions.ready(id);
  }

  /** @internal */
  [settingsOf](id: string): SessionSettings {
    return this.sessions.of(id).settings;
  }

  /** @internal */
  async [classifying](error: unknown): Promise<ChatErrorClassification> {
    return classifyProviderError(error);
  }

  /** @internal */
  override get [sessionServant](): SessionServant {
    const refuse = async (): Promise<never> => {
      throw new PerdureError("bad_state", "Only an agent that extends Think knows what its model reads.");
    };
    return {
      sessions: this.sessions,
      allow: (caller, op) => this.#as(() => this.allowSessionOp(caller, op)),
      contextState: () => null,
      report: refuse,
      compact: refuse,
      applyCompaction: refuse,
      undoCompaction: refuse,
      title: (session) => this.#titles.ask(session),
    };
  }

  /** @internal */
  override get [derivesTitles](): boolean {
    return this.titles !== false;
  }

  /** @internal */
  override [turnEnded](turn: TurnRow): void {
    super[turnEnded](turn);
    // What an agent above asked for needs no name, and that one would have to pay for it.
    if (turn.status === "completed" && payersOf(this[parts].host, turn.seq) === undefined)
      this.#titles.answered(turn.session);
  }

  #session(id: string | undefined): Session {
    return id === undefined ? this.session : this.sessions.of(id);
  }

  #as<T>(work: () => T): T {
    return runAs(this[parts].host.context, { agent: this, connection: undefined, request: undefined }, work);
  }

  /** For classes that keep no ledger themselves. */
  get #ownLedger(): Ledger {
    if (this.#ledger === undefined) {
      const { host } = this[parts];
      this.#ledger = new Ledger(host, {
        budgets: () => ({}),
        prices: () => defaultPrices,
        session: () => MAIN_SESSION,
      });
      this.#ledger.closeOpen();
    }
    return this.#ledger;
  }
}
