import { errorText, PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import { type MessageInput, toMessages } from "../message/input.ts";
import { interruptedCall } from "../message/repair.ts";
import { asPart, isToolPart, type Part, type UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import { filesOf } from "../media/files.ts";
import { MediaMover, type MediaRetention } from "../media/media.ts";
import { MediaRestore } from "../media/media-restore.ts";
import { readTurn, stashTurn, type TurnRow } from "../store/turn.ts";
import { accept, acceptMore, givenIdentity, persist } from "../turn/intake/accept.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type {
  ChatHooks,
  ChatRecoveryConfig,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  SaveMessagesResult,
} from "../turn/engine/chat-types.ts";
import { messagesIn } from "../turn/engine/history.ts";
import type { MessageConcurrency } from "../turn/intake/overlap.ts";
import { describeTurnError } from "../model/provider-error.ts";
import { sessionNamed } from "../turn/engine/conversations.ts";
import { writeJson } from "../wire/json.ts";
import { ChatFeature, type ChatRoom } from "./chat-feature.ts";
import type { SessionServant } from "./session-frames.ts";
import { admitTurn, causeOfTurn, countElsewhere, countTurn } from "./cause.ts";
import { getCurrentAgent, runAs, withCause } from "./context.ts";
import { parts } from "./parts.ts";
import { sessionNow } from "./turn-now.ts";
import { ChildAgent, childRuns } from "./run/child-agent.ts";
import { chatTurnKeeper } from "./run/chat-turn-keeper.ts";
import { ChildRuns } from "./run/child-runs.ts";
import { payersOf } from "./run/run-payers.ts";
import { type TurnKeeper, turnKeeper, turnOver } from "./run/turn-keeper.ts";

/** How a class answers turns. Under a symbol: every plain name belongs to those who extend it. */
export const answering: unique symbol = Symbol("perdure.answering");
/** Who decides about calls that wait for a person, and what is kept of it. */
export const deciding: unique symbol = Symbol("perdure.deciding");
/** The chat of an agent and those who listen to it. */
export const chatRoom: unique symbol = Symbol("perdure.chat-room");
/** What an agent can do with its sessions when a client asks. */
export const sessionServant: unique symbol = Symbol("perdure.session-servant");
/** Whether sessions are named after what is said in them. */
export const derivesTitles: unique symbol = Symbol("perdure.derives-titles");
/** A turn is over, however it ended. */
export const turnEnded: unique symbol = Symbol("perdure.turn-ended");
/** What takes large things out of messages. */
export const mediaMover: unique symbol = Symbol("perdure.media-mover");

/** Far more than a person would want done at once, and few enough to be run side by side. */
const DEFAULT_MAX_TOOL_CALLS = 64;
const DEFAULT_MAX_OWN_DEPTH = 25;
const DEFAULT_MAX_OWN_TURNS = 100;

/** Which session is meant. */
export interface InSession {
  /** Default: that of the turn that runs; while none does, that of all who name none. */
  session?: string;
}

/** Which session is meant, and for whom. */
export interface ForTurn extends InSession {
  /** For whom it is. Default: of a turn that goes on with an answer, for whom that was; else nobody is known. */
  identity?: Identity;
}

/** What every agent that holds a conversation has: its messages, its settings, and turns that server code starts. */
export abstract class ChatAgent<Env extends object, State, Props extends object> extends ChildAgent<Env, State, Props> {
  readonly #feature: ChatFeature;
  #childRuns: ChildRuns | undefined;
  #media: MediaMover | undefined;
  readonly #restore = new MediaRestore(() => filesOf(this[parts].host));

  constructor(host: AgentHost) {
    super(host);
    this.#feature = new ChatFeature(
      this[parts],
      () => this.#hooks(),
      () => this[sessionServant],
    );
    this[parts].features.push(this.#feature);
    if (host.path.length > 1) this[parts].features.push({ started: () => this[childRuns].started() });
    this[parts].features.push({ started: () => this.#lookAfterMedia() });
  }

  /** @internal */
  abstract [answering](
    as: <T>(work: () => T, turn?: string, identity?: Identity) => T,
  ): Pick<ChatHooks, "respond" | "plan" | "begun"> & Partial<Pick<ChatHooks, "explain">>;

  /** @internal */
  abstract get [deciding](): Partial<ChatHooks>;

  /** @internal */
  get [sessionServant](): SessionServant | undefined {
    return undefined;
  }

  /** @internal */
  get [chatRoom](): ChatRoom {
    return this.#feature.room;
  }

  /** @internal */
  override get [childRuns](): ChildRuns {
    return (this.#childRuns ??= new ChildRuns({
      host: this[parts].host,
      room: () => this.#feature.room,
      hooks: this,
      failed: (error) => void this[parts].failed(error, { stage: "agent tool run" }),
    }));
  }

  /** @internal */
  get [mediaMover](): MediaMover {
    return (this.#media ??= new MediaMover({
      host: this[parts].host,
      retention: () => (this.mediaRetention === true ? {} : this.mediaRetention),
      changed: () => this.#chat.transcripts.reload(),
      failed: (error) => void this[parts].failed(error, { stage: "media" }),
    }));
  }

  /** @internal */
  override get [turnKeeper](): TurnKeeper {
    return chatTurnKeeper(this, () => this.#chat, this[childRuns]);
  }

  /** @internal */
  get [derivesTitles](): boolean {
    return true;
  }

  /** @internal */
  [turnEnded](turn: TurnRow): void {
    if (this.mediaRetention !== false) this[mediaMover].after(turn.session);
  }

  /** What became of files while the agent was away: their time is over, or its address is another one. */
  #lookAfterMedia(): void {
    const { mediaRetention } = this;
    if (mediaRetention === false || this[parts].host.blank) return;
    const expires = mediaRetention !== true && mediaRetention.days !== undefined;
    if (expires || this[mediaMover].hasMoved) this[mediaMover].after(this.#chat.transcripts.current);
  }

  get #chat(): Conversations {
    return this.#feature.room.chat;
  }

  #hooks(): ChatHooks {
    const { context } = this[parts].host;
    const nobody = { agent: this, connection: undefined, request: undefined };
    const as = <T>(work: () => T, turn?: string, identity?: Identity): T => {
      const waiting = turn === undefined ? undefined : this[parts].waiting.get(turn);
      const current = {
        ...{ ...nobody, ...(turn !== undefined && { turn }) },
        ...(identity !== undefined && { identity }),
        ...(waiting !== undefined && { waiting }),
      };
      return runAs(context, current, work);
    };
    // What a hook asks for when a turn is over comes of it, like what its tools ask for.
    const after = <T>({ requestId, identity }: { requestId: string; identity?: Identity }, work: () => T): T =>
      runAs(
        context,
        {
          ...{ ...nobody, ...(identity !== undefined && { identity }) },
          ...withCause(causeOfTurn(this[parts].host, requestId)),
        },
        work,
      );
    const own = this[answering](as);
    return {
      ...this[deciding],
      ...own,
      // Only a child works for somebody else.
      ...(this.selfPath.length > 1 && {
        begun: (turn: TurnRow) => (own.begun?.(turn), this[childRuns].begun(turn)),
        wanted: async (turn: TurnRow) => {
          if (turn.attempts > 0) await payersOf(this[parts].host, turn.seq)?.recovered(this[turnKeeper].ledger);
          return this[childRuns].wanted(turn);
        },
      }),
      admitted: (counted) => admitTurn(this[parts].host, this, counted),
      over: (turnId) => {
        this[turnOver](turnId);
        const turn = readTurn(this[parts].host, turnId);
        if (turn !== undefined) this[turnEnded](turn);
      },
      responded: (result) => after(result, () => this.onChatResponse(result)),
      recover: (recovery) => after(recovery, () => this.onChatRecovery(recovery)),
      sanitize: (message) => this.sanitizeMessageForPersistence(message),
      repairToolPart: (part, message) => this.repairInterruptedToolPart(asPart(part), message),
      explain: async (error, context) => {
        const { requestId, stage, messagesPersisted } = context;
        const cause = stage === "persist" && error instanceof Error ? (error.cause ?? error) : error;
        const { host } = this[parts];
        host.emit("chat:request:failed", { requestId, stage, messagesPersisted, error: errorText(cause) });
        host.report(cause, { stage, requestId });
        return (await own.explain?.(error, context)) ?? describeTurnError(error);
      },
      failed: (error, about) => void this[parts].failed(error, { stage: "chat", ...about }),
      settings: () => ({
        concurrency: this.messageConcurrency,
        maxConcurrentTurns: 1,
        maxMessages: this.maxPersistedMessages,
        stallTimeoutMs: this.chatStreamStallTimeoutMs,
        recovery: recoveryOf(this.chatRecovery),
        approvalTimeoutMs: this.approvalTimeoutMs,
        maxToolCalls: this.maxToolCallsPerStep,
        titles: this[derivesTitles],
      }),
    };
  }

  // Settings

  /** The most messages to store; the oldest are deleted first. What the model sees is another matter. */
  maxPersistedMessages: number | undefined = undefined;
  /** What becomes of messages that are sent while a turn is under way. */
  messageConcurrency: MessageConcurrency = "queue";
  /** How often and how long a turn that was cut off is carried on. `false`: not at all; it ends as it is. */
  chatRecovery: ChatRecoveryConfig | boolean = true;
  /** Give an attempt up, and carry the turn on anew, when nothing came for this long. 0: never. */
  chatStreamStallTimeoutMs = 0;
  /**
   * The most tool calls that a model may ask for in one step. In a `Think` those beyond it do not run, and the model reads
   * so; a stream of `onChatMessage` that brings more ends with an error.
   */
  maxToolCallsPerStep = DEFAULT_MAX_TOOL_CALLS;
  /**
   * How many turns in a row may each have been asked for by the one before it: by its tools or hooks, at once or by way of
   * schedules, the queue, fibers or other agents. One more is refused with `limit`. `Infinity`: no bound.
   */
  maxOwnTurnDepth = DEFAULT_MAX_OWN_DEPTH;
  /**
   * How many turns may come of one turn of this agent within an hour, of all agents together. More are refused with `limit`.
   * `Infinity`: no bound.
   */
  maxOwnTurnsPerHour = DEFAULT_MAX_OWN_TURNS;
  /** Deny a tool call that nobody approved for this long. 0: never. */
  approvalTimeoutMs = 0;
  /**
   * When large pictures, files and outputs of tools are taken out of older messages, which then refer to them by an
   * address under the agent's own, and for how many days they are kept. `false`: they stay in the messages.
   */
  mediaRetention: MediaRetention | boolean = false;

  /** The conversation so far. A copy: change it with {@link ChatAgent.persistMessages}. */
  get messages(): UIMessage[] {
    return messagesIn(this.#chat, sessionNow(this.#chat));
  }

  /**
   * Messages with all that {@link ChatAgent.mediaRetention} took out of them, for code that gives them to a model itself.
   * A file that is gone becomes a text that says so.
   */
  async withMedia(messages: readonly UIMessage[]): Promise<UIMessage[]> {
    return [...(await this.#restore.of(messages))];
  }

  // Hooks

  /** After each turn, when its end is stored and told. It may start more turns. What it throws goes to `onError`. */
  onChatResponse(_result: ChatResponseResult): void | Promise<void> {}

  /**
   * A turn was cut off, and is about to be carried on from what was streamed. Say otherwise here. What it throws
   * goes to `onError`, and the turn is carried on.
   */
  onChatRecovery(_context: ChatRecoveryContext): ChatRecoveryOptions | void | Promise<ChatRecoveryOptions | void> {}

  /** Changes a message before it is stored, after the built-in cleaning. Must be quick. */
  sanitizeMessageForPersistence(message: UIMessage): UIMessage {
    return message;
  }

  /**
   * What stands in the place of a tool call that was cut off: the call with an end, or any other part, such as a text.
   * Default: the call with an error that says so. What it throws goes to `onError`, and the default holds. Must be quick.
   */
  protected repairInterruptedToolPart(part: Part, _message?: UIMessage): Part {
    return isToolPart(part) ? asPart(interruptedCall(part)) : part;
  }

  /**
   * Inside of a turn: notes how far it is, instead of what was noted before, for `onChatRecovery` if it is cut off. Inside
   * of a fiber: the fiber's checkpoint. @throws PerdureError `bad_state` outside of both.
   */
  override stash(data: unknown): void {
    const { fiber, turn } = getCurrentAgent();
    if (fiber !== undefined || turn === undefined) return super.stash(data);
    const { host } = this[parts];
    if (stashTurn(host, turn, writeJson(data, "What a turn stashes"))) return;
    throw new PerdureError("bad_state", "The turn has ended. What it stashed was not stored.");
  }

  // Turns by server code

  /** Merges messages into the conversation, without a turn. @throws PerdureError `not_found` for the session. */
  async persistMessages(messages: MessageInput, options: InSession = {}): Promise<void> {
    persist(this.#chat, messages, { session: this.#named(options.session) });
    await this[parts].host.durable();
  }

  /**
   * Adds messages and runs a turn that answers them; resolves with how it ended. A function is given the
   * conversation as it is when nothing else is running. Aborting the signal stops the turn. Not to be awaited inside
   * `onChatMessage`: turns run one at a time, so it would wait for itself.
   */
  async saveMessages(
    messages: MessageInput | ((messages: UIMessage[]) => MessageInput | Promise<MessageInput>),
    options: { signal?: AbortSignal } & ForTurn = {},
  ): Promise<SaveMessagesResult> {
    const named = options.session;
    if (named !== undefined) this.#named(named);
    const elsewhere = countElsewhere(this[parts].host);
    if (elsewhere !== undefined) await elsewhere;
    if (typeof messages === "function") await this.#chat.idle();
    const session = this.#named(named);
    const list = typeof messages === "function" ? await messages(messagesIn(this.#chat, session)) : messages;
    const input = { kind: "messages", messages: toMessages(list), joins: "now" } as const;
    const turn = accept(this.#chat, { session, input, identity: givenIdentity(options) });
    return this.#follow(turn.id, options.signal);
  }

  /** Lets the last answer go on without a new message. `skipped` when the last message is not an answer. */
  async continueLastTurn(
    body?: Record<string, unknown>,
    options: { signal?: AbortSignal } & ForTurn = {},
  ): Promise<SaveMessagesResult> {
    const where = { session: this.#named(options.session), identity: givenIdentity(options) };
    const elsewhere = countElsewhere(this[parts].host);
    if (elsewhere !== undefined) await elsewhere;
    const turn = acceptMore(this.#chat, { body, ...where });
    return turn === undefined ? { requestId: "", status: "skipped" } : this.#follow(turn.id, options.signal);
  }

  /** Counts one more turn that came of a turn of this agent. Other agents call this. @returns the bound, if it is one too many */
  countOwnTurn(turn: string): number | undefined {
    return countTurn(this[parts].host, this, turn);
  }

  /** Stops a turn for good. False when there is no such turn under way. */
  abortRequest(requestId: string): boolean {
    return this.#chat.cancel(requestId);
  }

  /** Stops every turn that runs or waits. */
  abortAllRequests(): void {
    this.#chat.cancelAll();
  }

  /** Forgets the conversation, but for what other sessions show of it, and stops its turns. */
  clearMessages(options: InSession = {}): void {
    this.#chat.clear(undefined, this.#named(options.session));
  }

  /** Resolves with true when no turn runs or waits, with false after `timeout` milliseconds. */
  waitUntilStable(options: { timeout?: number } = {}): Promise<boolean> {
    return this.#chat.idle(options.timeout);
  }

  /** @throws PerdureError `not_found` */
  #named(session = sessionNow(this.#chat)): string {
    return sessionNamed(this.#chat, session);
  }

  async #follow(requestId: string, signal: AbortSignal | undefined): Promise<SaveMessagesResult> {
    const stop = () => void this.abortRequest(requestId);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const end = await this.#chat.settled(requestId);
    signal?.removeEventListener("abort", stop);
    return { requestId, ...end };
  }
}

function recoveryOf(setting: ChatRecoveryConfig | boolean): ChatRecoveryConfig {
  if (typeof setting !== "boolean") return setting;
  return setting ? {} : { maxAttempts: 0 };
}
