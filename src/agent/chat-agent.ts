import type { LanguageModel } from "ai";
import { hasAiSdk, loadAiSdk } from "../base/ai-sdk.ts";
import { PerdureError } from "../base/error.ts";
import { type Identity, readIdentity, writeIdentity } from "../base/identity.ts";
import { type EraseReceipt, listReceipts } from "../erase/erase.ts";
import type { EraseScope } from "../erase/erase-plan.ts";
import type { MediaRetention } from "../media/media.ts";
import type { Messengers } from "../messenger/define.ts";
import type { Delivery, NoticeOptions } from "../messenger/messengers.ts";
import type { MessengerContext } from "../messenger/arrival.ts";
import { type MessageInput, toMessages } from "../message/input.ts";
import { interruptedCall } from "../message/repair.ts";
import { batchState } from "../message/tool-answer.ts";
import { asPart, isToolPart, type Part, type UIMessage } from "../message/types.ts";
import { type AgentEnv, type AgentHost, loads } from "../port.ts";
import type { SearchOptions } from "../search/search.ts";
import type { SearchHit, SessionInfo } from "../wire/session-types.ts";
import type { HistoryOptions, Session } from "../session/session.ts";
import type { ForkOptions, NewSessionOptions } from "../session/session-changes.ts";
import type { SessionManager } from "../session/session-manager.ts";
import type { DeliveryState } from "../store/delivery.ts";
import { readMessageIdentity } from "../store/message.ts";
import { stashTurn } from "../store/turn.ts";
import { newestApproval } from "../tool/decision-record.ts";
import type { CallApproval } from "../tool/define.ts";
import type {
  ApprovalRequest,
  ChatRecoveryConfig,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  MessageConcurrency,
  SaveMessagesResult,
  TurnPolicy,
} from "../turn/policy.ts";
import { messagesIn } from "../turn/engine/mend.ts";
import { accept, acceptMore, givenIdentity, persist } from "../turn/intake/accept.ts";
import { writeJson } from "../wire/json.ts";
import type { SessionOp } from "../wire/session-frames.ts";
import { Agent } from "./agent.ts";
import type { Caller } from "../door/authorize.ts";
import { countElsewhere, countTurn } from "../parts/cause.ts";
import { ChatParts } from "../parts/chat-parts.ts";
import type { Connection } from "../door/connection.ts";
import { type ChannelContext, channelOfTurn, type Channels } from "../turn/step/channels.ts";
import { currentAgent, runFor } from "../parts/current.ts";
import { parts } from "../parts/part.ts";
import { MessengerPart } from "../parts/messengers.ts";
import type { AgentParts } from "../parts/agent-parts.ts";
import { describeCompletion, describeMilestone, lastText, summaryOf } from "../parts/runs/run-views.ts";
import type * as runs from "../parts/runs/types.ts";
import type { TitleOptions } from "../parts/titles.ts";

/** Far more than a person would want done at once, and few enough to be run side by side. */
const DEFAULT_MAX_TOOL_CALLS = 64;
/** Enough for the people of a room, and few enough for one process with many agents. */
const DEFAULT_MAX_CONCURRENT_TURNS = 8;
const DEFAULT_MAX_OWN_DEPTH = 25;
const DEFAULT_MAX_OWN_TURNS = 100;

/** Which session is meant. */
export interface InSession {
  /** Default: that of the running turn, else the current one. */
  session?: string;
}

/** Which session is meant, and for whom. */
interface ForTurn extends InSession {
  /** For whom it is. Default: of a turn that goes on with an answer, for whom that was; else nobody is known. */
  identity?: Identity;
}

/** What server code says when it answers a question. */
interface ApprovalOptions extends InSession {
  reason?: string;
  /** What whoever answers is called. Default: as {@link ChatAgent.getApprover} says. */
  approver?: string;
  /** Who answers. Default: for whom the code runs that calls this. */
  identity?: Identity;
  autoContinue?: boolean;
}

/** What every agent with conversations has: any number of them, each with branches; settings; turns that server code starts. */
export abstract class ChatAgent<Env extends object = AgentEnv, State = unknown, Props extends object = object>
  extends Agent<Env, State, Props>
  implements TurnPolicy
{
  /** @internal */
  declare readonly [parts]: AgentParts<State> & { readonly chat: ChatParts; readonly messengers: MessengerPart };

  /** @internal */
  static readonly [loads] = (): Promise<unknown> | undefined => (hasAiSdk() ? undefined : loadAiSdk());

  constructor(host: AgentHost) {
    super(host);
    const own = this[parts] as AgentParts<unknown>;
    const repair = (part: Part, message: UIMessage) => this.repairInterruptedToolPart(part, message);
    const chat = new ChatParts(own, this, ChatAgent.prototype, repair);
    const messengers = new MessengerPart(own, this, ChatAgent.prototype, chat);
    chat.turnOver = () => messengers.turnOver();
    chat.whyNowhere = (place) => messengers.whyNowhere(place);
    own.parts.push(messengers);
    Object.assign(own, { chat, messengers });
  }

  // Settings

  /** The most messages to store; the oldest are deleted first. What the model sees is another matter. */
  maxPersistedMessages: number | undefined = undefined;
  /** What becomes of messages that are sent while a turn is under way. */
  messageConcurrency: MessageConcurrency = "queue";
  /** How many sessions may run turns at once; turns of one never overlap. With 1, `this` may hold what belongs to the turn. */
  maxConcurrentTurns = DEFAULT_MAX_CONCURRENT_TURNS;
  /** How often and how long a turn that was cut off is carried on. `false`: not at all; it ends as it is. */
  chatRecovery: ChatRecoveryConfig | boolean = true;
  /** Give an attempt up, and carry the turn on anew, when nothing came for this long. 0: never. */
  chatStreamStallTimeoutMs = 0;
  /**
   * The most tool calls in one step. In a `Think` those beyond it do not run, and the model is told; a stream of `onChatMessage`
   * that brings more ends with an error.
   */
  maxToolCallsPerStep = DEFAULT_MAX_TOOL_CALLS;
  /**
   * How many turns in a row may each be asked for by the one before: by its tools or hooks, or through schedules, the queue,
   * fibers or other agents. One more is refused with `limit`. `Infinity`: no bound.
   */
  maxOwnTurnDepth = DEFAULT_MAX_OWN_DEPTH;
  /** How many turns one turn of this agent may lead to within an hour, in all agents. More: `limit`. `Infinity`: no bound. */
  maxOwnTurnsPerHour = DEFAULT_MAX_OWN_TURNS;
  /** Deny a tool call that nobody approved for this long. 0: never. */
  approvalTimeoutMs = 0;
  /**
   * When large pictures, files and tool outputs move out of older messages, to an address under the agent's own, and for how many
   * days they are kept. `false`: they stay in the messages.
   */
  mediaRetention: MediaRetention | boolean = false;

  /** How sessions get names: `true` from a user's first words, then by {@link ChatAgent.getTitleModel}; `false`: by people. */
  titles: boolean | TitleOptions = true;

  /** A small model that finds names for sessions, in the background. Nothing: the first words of the user stay. */
  getTitleModel(): LanguageModel | undefined | Promise<LanguageModel | undefined> {
    return undefined;
  }

  /**
   * Says how a session works: its context blocks, when it is compacted, whether the model may search it. Called once per session
   * and life, before its first turn. May be slow. If it throws, that turn fails with the error, and the next one tries again.
   */
  configureSession(_session: Session): Session | void | Promise<Session | void> {}

  /**
   * Whether somebody may ask this of a session. Naming one in a URL (`?_session=`) asks to `attach`. Only `true` allows it; a
   * throw refuses. Default: all of it.
   */
  allowSessionOp(_caller: Caller, _op: SessionOp): boolean | Promise<boolean> {
    return true;
  }

  // Hooks

  /** After each turn, when its end is stored and told. It may start more turns. What it throws goes to `onError`. */
  onChatResponse(_result: ChatResponseResult): void | Promise<void> {}

  /** A turn was cut off and is about to continue from what was streamed: object here. What it throws goes to `onError`. */
  onChatRecovery(_context: ChatRecoveryContext): ChatRecoveryOptions | void | Promise<ChatRecoveryOptions | void> {}

  /** Changes a message before it is stored, after the built-in cleaning. Must be quick. */
  sanitizeMessageForPersistence(message: UIMessage): UIMessage {
    return message;
  }

  /**
   * What replaces a tool call that was cut off: the call with an end, or any other part. Default: the call with an error. What it
   * throws goes to `onError`, and the default holds. Must be quick.
   */
  protected repairInterruptedToolPart(part: Part, _message?: UIMessage): Part {
    return isToolPart(part) ? asPart(interruptedCall(part)) : part;
  }

  /** In a turn: its new note for `onChatRecovery`; in a fiber: its checkpoint. @throws PerdureError `bad_state` elsewhere. */
  override stash(data: unknown): void {
    const { fiber, turn } = currentAgent();
    if (fiber !== undefined || turn === undefined) return super.stash(data);
    const { host } = this[parts];
    if (stashTurn(host, turn, writeJson(data, "What a turn stashes"))) return;
    throw new PerdureError("bad_state", "The turn has ended. What it stashed was not stored.");
  }

  /** The conversation so far. A copy: change it with {@link ChatAgent.persistMessages}. */
  get messages(): UIMessage[] {
    return messagesIn(this[parts].chat.chat, this[parts].chat.named());
  }

  /** Messages with what {@link ChatAgent.mediaRetention} took out put back, for your own model calls. Lost files become texts. */
  async withMedia(messages: readonly UIMessage[]): Promise<UIMessage[]> {
    return [...(await this[parts].chat.restore.of(messages))];
  }

  // Turns by server code

  /** Merges messages into the conversation, without a turn. @throws PerdureError `not_found` for the session. */
  async persistMessages(messages: MessageInput, options: InSession = {}): Promise<void> {
    persist(this[parts].chat.chat, messages, { session: this[parts].chat.named(options.session) });
    await this[parts].host.durable();
  }

  /**
   * Adds messages and runs a turn that answers them; resolves with how it ended. A function gets the conversation (of `session`)
   * when nothing else runs. Aborting the signal stops the turn. Do not await it inside `onChatMessage`: it would wait for itself.
   */
  async saveMessages(
    messages: MessageInput | ((messages: UIMessage[]) => MessageInput | Promise<MessageInput>),
    options: { signal?: AbortSignal } & ForTurn = {},
  ): Promise<SaveMessagesResult> {
    const named = options.session;
    if (named !== undefined) this[parts].chat.named(named);
    const elsewhere = countElsewhere(this[parts].host);
    if (elsewhere !== undefined) await elsewhere;
    if (typeof messages === "function") await this[parts].chat.chat.idle(named === undefined ? {} : { session: named });
    const session = this[parts].chat.named(named);
    const list = typeof messages === "function" ? await messages(messagesIn(this[parts].chat.chat, session)) : messages;
    const input = { kind: "messages", messages: toMessages(list), joins: "now" } as const;
    const turn = accept(this[parts].chat.chat, { session, input, identity: givenIdentity(options) });
    return this[parts].chat.follow(turn.id, options.signal);
  }

  /** Lets the last answer go on without a new message. `skipped` when the last message is not an answer. */
  async continueLastTurn(
    body?: Record<string, unknown>,
    options: { signal?: AbortSignal } & ForTurn = {},
  ): Promise<SaveMessagesResult> {
    const where = { session: this[parts].chat.named(options.session), identity: givenIdentity(options) };
    const elsewhere = countElsewhere(this[parts].host);
    if (elsewhere !== undefined) await elsewhere;
    const turn = acceptMore(this[parts].chat.chat, { body, ...where });
    return turn === undefined ? { requestId: "", status: "skipped" } : this[parts].chat.follow(turn.id, options.signal);
  }

  /** Counts one more turn that came of a turn of this agent. Other agents call this. @returns the bound, if it is one too many */
  countOwnTurn(turn: string): number | undefined {
    return countTurn(this[parts].host, this, turn);
  }

  /** Stops a turn for good. False when there is no such turn under way. */
  abortRequest(requestId: string): boolean {
    return this[parts].chat.chat.cancel(requestId);
  }

  /** Stops every turn that runs or waits. */
  abortAllRequests(): void {
    this[parts].chat.chat.cancelAll();
  }

  /** Forgets the conversation, but for what other sessions show of it, and stops its turns. */
  clearMessages(options: InSession = {}): void {
    this[parts].chat.chat.clear(undefined, this[parts].chat.named(options.session));
  }

  /** Resolves with true when no turn runs or waits, with false after `timeout` milliseconds. */
  waitUntilStable(options: { timeout?: number } = {}): Promise<boolean> {
    return this[parts].chat.chat.idle(options);
  }

  // Who may

  /**
   * Whether this person may answer a question for approval, with a yes or a no. Only `true` allows it: anything else, and a
   * throw, refuses; the question stays open, and whoever tried is told. Asked for every answer from outside, not for server code.
   * May be slow. Default: everybody who can talk to the agent may.
   */
  authorizeApproval(_request: ApprovalRequest): boolean | Promise<boolean> {
    return true;
  }

  /** What somebody who answers a question is called; stored with the answer. Default: the name or the id of the identity. */
  getApprover(_connection: Connection | undefined, identity?: Identity): string | undefined {
    return identity?.name ?? identity?.id;
  }

  /** Who has approved a tool call, by the id of the call; undefined when nobody has, or nobody had to. */
  getToolApproval(toolCallId: string): CallApproval | undefined {
    return this[parts].host.blank ? undefined : newestApproval(this[parts].host, toolCallId);
  }

  // Answers

  /** Whether the last answer waits for a client tool or an approval. */
  hasPendingInteraction(): boolean {
    const last = this.messages.at(-1);
    return last !== undefined && last.role === "assistant" && batchState(last).waiting > 0;
  }

  /** Answers a tool call from server code, in whatever session it waits. False when it is unknown or was answered before. */
  answerToolCall(toolCallId: string, output: unknown, options: { autoContinue?: boolean } & InSession = {}): boolean {
    const answer = { kind: "result", result: { state: "output-available", output } } as const;
    const { autoContinue = true, session } = options;
    return this[parts].chat.answer({ toolCallId, answer, autoContinue }, session);
  }

  /** Approves or denies a tool call from server code, in whatever session. False when it is unknown or was answered before. */
  answerApproval(toolCallId: string, approved: boolean, options: ApprovalOptions = {}): boolean {
    const { reason, approver, autoContinue = true } = options;
    const current = currentAgent();
    const { identity = (current.agent as unknown) === this ? current.identity : undefined } = options;
    if (options.identity !== undefined) writeIdentity(identity, "an approver");
    const answer = { kind: "approval", approved, reason } as const;
    const given = { toolCallId, answer, autoContinue, identity, ...(approver !== undefined && { approver }) };
    return this[parts].chat.answer(given, options.session);
  }

  // Sessions

  /** All sessions of the agent. */
  get sessions(): SessionManager {
    return this[parts].chat.sessions;
  }

  /** The session of the running turn, else the current one. */
  get session(): Session {
    return this[parts].chat.session();
  }

  /** @throws PerdureError `conflict` when the id is taken, `bad_input` */
  createSession(options: string | NewSessionOptions = {}): SessionInfo {
    return this.sessions.create(typeof options === "string" ? { name: options } : options).info;
  }

  /** Makes a session the current one; clients that name none follow. Running turns stay. @throws PerdureError `not_found` */
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
    return this[parts].chat.session(session).getHistory(leafId, options);
  }

  /** The messages right behind one: each begins a branch. @throws PerdureError `not_found` */
  getBranches(messageId: string | null, { session }: { readonly session?: string } = {}): UIMessage[] {
    return this[parts].chat.session(session).getBranches(messageId);
  }

  /**
   * Switches to another branch, for all clients of the session. @returns the id of its last message now. @throws PerdureError
   * `not_found`, `bad_state` while a turn of the session is under way.
   */
  switchBranch(messageId: string, { session }: { readonly session?: string } = {}): string {
    return this[parts].chat.session(session).switchBranch(messageId);
  }

  // What was said

  /** Finds messages by their words, in all sessions or in one. @throws PerdureError `bad_input`, `not_found` */
  search(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    // Filing on the way is not the doing of whoever searches, who may be allowed only to read.
    const { context } = this[parts].host;
    return runFor(context, currentAgent(), undefined, () => this.sessions.search(query, options));
  }

  /**
   * Erases a session, or all of a subject: messages, summaries, search words, logs, files and all else that holds their words.
   * Stops their turns. @returns what was erased, what was not, and why.
   * @throws PerdureError `bad_input`, `not_found`, `bad_state` inside a turn of the session.
   */
  erase(scope: EraseScope): Promise<EraseReceipt> {
    return this[parts].chat.erase(scope);
  }

  /** What was erased so far, without content, the newest first. */
  eraseReceipts(): EraseReceipt[] {
    return listReceipts(this[parts].host);
  }

  /** Who wrote a message, as the app knew it then; of an answer, for whom it is. Undefined: not known. Sent to no client. */
  getMessageIdentity(messageId: string): Identity | undefined {
    const { host } = this[parts];
    return host.blank ? undefined : readIdentity(readMessageIdentity(host, messageId));
  }

  // Work for the agent above

  /** What the parent asks for, as the message that the turn answers. Default: a text as it is, other input as JSON. */
  formatAgentToolInput(input: unknown, _request: { readonly runId: string }): string | UIMessage {
    return typeof input === "string" ? input : JSON.stringify(input, null, 2);
  }

  /** What the parent gets. Default: the text of the last answer. May return a promise; what it throws fails the run. */
  getAgentToolOutput(_request: runs.AgentToolRequest, messages: readonly UIMessage[]): unknown {
    return lastText(messages);
  }

  /** What clients of the parent read when the run is done. Default: the output, if it is text, shortened. */
  getAgentToolSummary(_request: runs.AgentToolRequest, output: unknown, messages: readonly UIMessage[]): string {
    return summaryOf(typeof output === "string" ? output : lastText(messages));
  }

  /** What the model reads when a detached run has ended; an empty text: nothing is said. */
  formatDetachedCompletion(run: runs.AgentToolRunInfo, result: runs.AgentToolLifecycleResult): string {
    return describeCompletion(run, result);
  }

  /** What is said when a detached run reaches a milestone; an empty text: nothing is said. */
  formatDetachedMilestone(run: runs.AgentToolRunInfo, milestone: runs.AgentToolMilestone): string {
    return describeMilestone(run, milestone);
  }

  /**
   * Reports the progress of the run this is called in; does nothing outside one. The parent's clients see it at once, at most
   * every 200 ms. A `milestone` is stored and shown to later clients. `persist` keeps `data` with the last report. @throws
   * PerdureError `bad_input`
   */
  async reportProgress(progress: runs.AgentToolProgress, options: { persist?: boolean } = {}): Promise<void> {
    this[parts].chat.runs.report(progress, options.persist ?? false);
  }

  /** Accepts a run of the parent, once per id. Called by the parent, which says for whom. */
  startAgentToolRun(
    input: unknown,
    run: { readonly runId: string; readonly identity?: Identity; readonly lineage?: string | null },
  ): runs.AgentToolRunInspection {
    return this[parts].chat.runs.start(input, run);
  }

  /** Stops a run of the parent for good. Called by the parent. */
  cancelAgentToolRun(runId: string, reason?: string): void {
    this[parts].chat.runs.cancel(runId, reason);
  }

  /** A run that this agent does for its parent; null when it knows of none. */
  inspectAgentToolRun(runId: string): runs.AgentToolRunInspection | null {
    return this[parts].chat.runs.inspect(runId);
  }

  /** What a run has said so far. */
  getAgentToolChunks(runId: string, options: { from?: number } = {}): runs.AgentToolChunk[] {
    return this[parts].chat.runs.chunks(runId, options.from ?? 0);
  }

  /** Follows a run to its end: what it said, then what it says. Called by the parent. */
  tailAgentToolRun(
    runId: string,
    options: { readonly from?: number; readonly listener: runs.AgentToolListener },
  ): Promise<runs.AgentToolRunInspection | null> {
    return this[parts].chat.runs.tail(runId, options.from ?? 0, options.listener);
  }

  // Messengers

  /** Where else the agent is talked to, by names of the app's own. Asked at every start of an agent that is no child. */
  getMessengers(): Messengers | Promise<Messengers> {
    return {};
  }

  /** What holds for turns of one channel of a `Think`: `web`, or a name of `getMessengers()`. Asked in each turn. */
  configureChannels(): Channels {
    return {};
  }

  /** Where the running turn was asked for. Undefined outside turns, and in those that code asks for. */
  get activeChannel(): ChannelContext | undefined {
    return channelOfTurn(this[parts].host, currentAgent().turn);
  }

  /** In a turn that somebody at a messenger asked for: who, and where. The same after a restart. */
  getMessengerContext(): MessengerContext | undefined {
    return this[parts].messengers.loaded?.context(currentAgent().turn);
  }

  /**
   * Says something at a messenger without a turn. Resolves when stored; it is delivered whatever becomes of the process. With a
   * `key`, once. @returns false when it was said before. @throws PerdureError `bad_input`, `not_found` for an unknown messenger
   */
  async deliverNotice(text: string, options: NoticeOptions = {}): Promise<boolean> {
    const { turn } = currentAgent();
    return (await this[parts].messengers.load()).notice(text, options, turn);
  }

  /** What was delivered at messengers from this agent, has to be, or failed: the newest first, at most `limit` (100). */
  listDeliveries(options: { state?: DeliveryState | readonly DeliveryState[]; limit?: number } = {}): Delivery[] {
    return this[parts].messengers.loaded?.list(options) ?? [];
  }

  /** Tries a failed delivery again, from where it was. False when none of that id has failed. */
  retryDelivery(id: string): boolean {
    return this[parts].messengers.loaded?.retry(id) ?? false;
  }

  /** Forgets a delivery that has ended. False when no delivery has that id, or it is under way. */
  forgetDelivery(id: string): boolean {
    return this[parts].messengers.loaded?.forget(id) ?? false;
  }

  /** What agents of one tree ask each other about messengers. For the framework: it is not callable by clients. */
  async messengerCall(op: string, payload: unknown): Promise<unknown> {
    return (await this[parts].messengers.load()).answer(op, payload);
  }
}
