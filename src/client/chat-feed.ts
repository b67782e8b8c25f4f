import { PerdureError } from "../base/error.ts";
import { batchState } from "../message/tool-answer.ts";
import { isAnswered, type ToolPart, toolParts, type UIMessage } from "../message/types.ts";
import { KnownBranches } from "./branch-places.ts";
import { type ChatConnection, type ChatFrame, readChatFrame, type ResponseFrame } from "./chat-frames.ts";
import type { ChatInput } from "./chat-input.ts";
import type { ChatHandlers, ChatSnapshot, ChatStatus, DataChunk, RequestSettings, SendOptions } from "./chat-types.ts";
import { History } from "./history.ts";
import { endOf, LiveTurn, mergeTranscript } from "./live-turn.ts";
import { findCall, putMessage, updateMessage, withCall } from "./message-list.ts";
import { StreamFinder } from "./stream-finder.ts";
import { type ToolOutput, ToolRunner } from "./tool-runner.ts";
import { closeCode } from "../wire/close-code.ts";
import type { TranscriptFrame } from "../wire/frames.ts";
import type { SessionStateFrame } from "../wire/session-frames.ts";
import type { BranchStorage } from "./branch-memory.ts";

/** How many turns that are over are remembered, so that a late word of one is known for what it is. */
const REMEMBERED_TURNS = 500;
const NONE: readonly never[] = [];
const TOO_LARGE = "The message is too large for the server.";

/** Settings of {@link AgentChat}. */
export interface AgentChatOptions {
  /** The conversation to begin with. */
  readonly messages?: readonly UIMessage[];
  /** That is what the agent has stored. Default false. */
  readonly loaded?: boolean;
  /** Whether to look for turns that run already. Default true. */
  readonly resume?: boolean;
  /** The session to be in. Default: whichever is the agent's current one. */
  readonly session?: string;
  /** Where to keep which branch this client shows, so that it is the same after a reload: `sessionStorage`, say. */
  readonly rememberBranch?: BranchStorage;
}

interface CallAnswer {
  /** Shows it and sends it. */
  give(): void;
}

type Told = "onData" | "onError" | "onFinish" | "onTurnEnd";

/** Those who show a chat, and those who listen to it. */
class ChatAudience {
  readonly #listeners = new Set<(urgent: boolean) => void>();
  readonly #handlers = new Set<() => ChatHandlers>();

  add(listener: (urgent: boolean) => void, handlers: (() => ChatHandlers) | undefined): () => void {
    this.#listeners.add(listener);
    if (handlers !== undefined) this.#handlers.add(handlers);
    return () => {
      this.#listeners.delete(listener);
      if (handlers !== undefined) this.#handlers.delete(handlers);
    };
  }

  /** Something to show has changed. */
  changed(urgent: boolean): void {
    for (const listener of this.#listeners) listener(urgent);
  }

  tell<K extends Told>(name: K, value: Parameters<NonNullable<ChatHandlers[K]>>[0]): void {
    for (const handlers of this.handlers()) (handlers[name] as ((value: unknown) => void) | undefined)?.(value);
  }

  /** As they are now. */
  *handlers(): Generator<ChatHandlers> {
    for (const handlers of this.#handlers) yield handlers();
  }
}

/** The ids that were added last. */
class RecentIds {
  readonly #limit: number;
  readonly #ids = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > this.#limit && oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** What a chat hears of its agent and makes of it. {@link AgentChat} adds what can be done. */
export abstract class ChatFeed {
  protected readonly connection: ChatConnection;
  protected readonly options: AgentChatOptions;
  protected readonly turns = new Map<string, LiveTurn>();
  readonly #ended = new RecentIds(REMEMBERED_TURNS);
  protected readonly finder: StreamFinder;
  protected readonly tools: ToolRunner;
  protected readonly history: History;
  protected readonly audience = new ChatAudience();
  protected readonly branches = new KnownBranches();
  protected told: SessionStateFrame | undefined;
  /** The session that `list` is the conversation of, once that was said. */
  #place: string | undefined;
  /** Answers to calls that the agent has not shown to have. */
  protected readonly answers = new Map<string, CallAnswer>();
  /** Messages that could not be sent; they go with the next one. */
  protected readonly unsent = new Set<string>();
  protected list: UIMessage[];
  protected failure: Error | undefined;
  /** Why this client may not answer a question, by its call. */
  readonly #refusals = new Map<string, Error>();
  /** The refusal that was told last. */
  #refusal: Error | undefined;
  protected recovering = false;
  #started = false;
  #loaded: boolean;
  /** Something of the conversation was told before. */
  #told = false;
  protected snapshot: ChatSnapshot | undefined;

  constructor(connection: ChatConnection, options: AgentChatOptions = {}) {
    this.connection = connection;
    this.options = options;
    this.list = [...(options.messages ?? [])];
    this.#loaded = options.loaded ?? false;
    this.finder = new StreamFinder(connection, { turns: this.turns, hasEnded: (id) => this.#ended.has(id) });
    this.history = new History(connection);
    this.tools = new ToolRunner(
      (output) => this.addToolOutput(output),
      () => this.changed(true),
    );
    connection.addEventListener("message", ({ data }) => {
      const frame = readChatFrame(data);
      if (frame !== undefined) this.#received(frame);
    });
    connection.addEventListener("open", () => this.#opened());
    connection.addEventListener("close", (event) => this.#closed(event));
    // After the close: who hears of that may have opened it again.
    connection.addEventListener("change", () => this.#refused());
  }

  abstract sendMessage(input?: ChatInput, options?: SendOptions, settings?: RequestSettings): Promise<void>;
  abstract addToolOutput(output: ToolOutput): void;

  /** Calls `listener` after each change; `urgent` when more than the text of an answer has changed. */
  subscribe(listener: (urgent: boolean) => void, handlers?: () => ChatHandlers): () => void {
    if (!this.#started) {
      this.#started = true;
      if (this.connection.readyState === 1) this.#opened();
    }
    return this.audience.add(listener, handlers);
  }

  /** What there is to show; the same object until something changes. */
  getSnapshot(): ChatSnapshot {
    return (this.snapshot ??= this.#look());
  }

  get messages(): UIMessage[] {
    return this.getSnapshot().messages;
  }

  // What comes in

  #received(frame: ChatFrame): void {
    switch (frame.type) {
      case "cf_agent_use_chat_response":
        return this.#response(frame);
      case "cf_agent_chat_messages":
        this.#loaded = true;
        this.#isIn(frame.session);
        if (this.#isNoNews(frame)) return this.changed(true);
        this.branches.told(frame.messages, frame.branches);
        this.#transcript(this.history.told(this.messages, frame.messages, frame.before));
        if (frame.connect === true) this.#answerAgain(frame.messages);
        return this.goOn();
      case "perdure_chat_older":
        this.list = [...this.history.came(this.list, frame)];
        this.branches.told(frame.messages, frame.branches);
        return this.changed(true);
      case "perdure_session_state":
        this.told = frame;
        this.#place ??= frame.session.id;
        return this.changed(true);
      case "cf_agent_chat_clear":
        return this.forgetAll();
      case "perdure_message_renamed":
        this.list = this.list.map((message) => (message.id === frame.from ? { ...message, id: frame.to } : message));
        this.branches.renamed(frame.from, frame.to);
        return this.changed(true);
      case "cf_agent_message_updated":
        this.list = updateMessage(this.list, frame.message);
        for (const part of toolParts(frame.message)) if (isAnswered(part)) this.#isAnswered(part.toolCallId);
        this.takeAnswers(frame.message);
        return this.changed(true);
      case "perdure_chat_approval_refused": {
        // It is not given again, nothing follows it, and what was shown as answered is not.
        this.answers.delete(frame.toolCallId);
        this.finder.awaiting = false;
        if (frame.part !== undefined) this.#reopen(frame.part);
        const refusal = new PerdureError("not_allowed", frame.reason);
        this.#refusals.set(frame.toolCallId, refusal);
        return this.fails(refusal);
      }
      case "cf_agent_chat_recovering":
        this.recovering = frame.recovering;
        return this.changed(true);
      case "cf_agent_stream_resuming":
      case "cf_agent_stream_pending":
      case "cf_agent_stream_resume_none":
        if (this.options.resume !== false || this.finder.awaiting) this.finder.answered(frame);
        this.changed(true);
        return this.goOn();
    }
  }

  #response(frame: ResponseFrame): void {
    if (this.#ended.has(frame.id)) return;
    let turn = this.turns.get(frame.id);
    if (turn === undefined) {
      // The end of a turn of which nothing was heard is news all the same.
      const continued = this.finder.awaiting && frame.continuation === true;
      turn = new LiveTurn(frame.id, continued ? "continued" : "others");
      if (continued) this.finder.awaiting = false;
      this.turns.set(frame.id, turn);
    }
    const wasShown = turn.hasContent;
    turn.reached = "heard";
    this.#told = true;
    const chunk = turn.apply(frame, () => this.list.findLast(({ role }) => role === "assistant"));
    if (chunk?.type.startsWith("data-") === true) this.audience.tell("onData", chunk as DataChunk);
    if (chunk !== undefined && turn.isActive && turn.hasContent) this.failure = undefined;
    const message = wasShown ? undefined : turn.message;
    if (message !== undefined) this.list = putMessage(this.list, message, turn.asked?.messageId);
    if (frame.error !== undefined && turn.error === undefined) this.#failed(turn, frame.error);
    if (frame.done) this.#over(turn, frame);
    else this.changed(frame.error !== undefined || wasShown !== turn.hasContent);
  }

  #failed(turn: LiveTurn, text: string): void {
    const counts = turn.isActive;
    turn.error = text;
    if (counts) this.fails(new Error(text));
  }

  #isAnswered(toolCallId: string): void {
    this.answers.delete(toolCallId);
    if (this.failure === this.#refusals.get(toolCallId)) this.failure = undefined;
    this.#refusals.delete(toolCallId);
  }

  #reopen(part: ToolPart): void {
    this.list = this.list.map((message) => withCall(message, part));
    for (const turn of this.turns.values()) turn.takeCall(part);
  }

  /** Something could not be done, and is shown as the chat's error. */
  protected fails(error: Error): void {
    this.failure = error;
    this.audience.tell("onError", error);
    this.changed(true);
  }

  #over(turn: LiveTurn, frame: ResponseFrame): void {
    const { id, outcome } = frame;
    const message = turn.told ?? turn.message;
    if (message !== undefined && !turn.hidden && turn.told !== null)
      this.list = putMessage(this.list, message, turn.asked?.messageId);
    this.turns.delete(id);
    this.#ended.add(id);
    // Turned away, or cut off while nothing was heard: the conversation was told without the message that was sent.
    if ((outcome === "skipped" || turn.stream === "cut") && turn.question === "without") {
      this.list = this.list.filter((one) => one.id !== turn.asked?.messageId);
    }
    if (outcome !== "recovering")
      this.recovering &&= [...this.turns.values()].some(({ reached }) => reached === "heard");
    this.changed(true);
    turn.end.resolve();
    this.finder.askByName();
    this.goOn();
    if (turn.isActive) void this.sendAutomatically();
    if (outcome === "recovering") return;
    const end = endOf(frame, turn);
    if (message !== undefined && turn.whose !== "others") {
      const { outcome: how } = end;
      const isError = how === "error";
      this.audience.tell("onFinish", { message, messages: this.messages, isAbort: how === "aborted", isError });
    }
    // Behind the change of the status, so that it may send.
    queueMicrotask(() => this.audience.tell("onTurnEnd", end));
  }

  /** The client was put into another session: what it had is of no interest any more. What runs here is asked for. */
  #isIn(session: string | undefined): void {
    const isElsewhere = session !== undefined && this.#place !== undefined && session !== this.#place;
    this.#place = session ?? this.#place;
    if (!isElsewhere) return;
    for (const turn of this.turns.values()) turn.end.resolve();
    this.turns.clear();
    this.told = undefined;
    this.finder.lost();
    this.forgetAll();
    if (this.options.resume === false) this.finder.settled = true;
    else this.finder.ask();
  }

  /** Nothing was said yet, and nothing else was told before: what is shown may be the app's own greeting. */
  #isNoNews({ connect, messages }: TranscriptFrame): boolean {
    const isFirst = !this.#told;
    this.#told = true;
    return isFirst && connect === true && messages.length === 0;
  }

  #transcript(messages: readonly UIMessage[]): void {
    this.list = mergeTranscript(this.messages, messages, this.turns.values(), this.unsent);
    this.branches.keep(this.list);
    this.changed(true);
  }

  /** After a reconnect: an answer that was lost on its way is given again. The first one counts, so twice is once. */
  #answerAgain(messages: readonly UIMessage[]): void {
    for (const [toolCallId, answer] of this.answers) {
      const part = findCall(messages, toolCallId);
      if (part === undefined || isAnswered(part)) this.answers.delete(toolCallId);
      else answer.give();
    }
  }

  #opened(): void {
    if (this.failure !== undefined && this.failure === this.#refusal) this.failure = undefined;
    if (this.options.resume !== false && this.#started) this.finder.ask();
    else this.finder.settled = true;
  }

  #closed(event: Event): void {
    if ("code" in event && event.code === closeCode.tooLarge) this.#refuseLargest();
    this.finder.lost();
    this.history.lost();
    this.changed(true);
  }

  /** The connection is closed for good. What was not taken is sent with the next message, if there is one. */
  #refused(): void {
    const { connectionError } = this.connection;
    if (connectionError === undefined || connectionError === null || connectionError === this.#refusal) return;
    this.#refusal = connectionError;
    for (const turn of this.turns.values()) {
      if (!turn.isAccepted && turn.asked?.messageId !== undefined) this.unsent.add(turn.asked.messageId);
      turn.end.reject(connectionError);
    }
    this.turns.clear();
    this.finder.awaiting = false;
    this.recovering = false;
    this.fails(connectionError);
  }

  /** The server does not take a frame of this size. Sent again it would close the next connection too, for ever. */
  #refuseLargest(): void {
    const waiting = [...this.turns.values()].filter(({ reached, asked }) => reached === "sent" && asked !== undefined);
    const largest = waiting.toSorted((a, b) => (b.asked?.size() ?? 0) - (a.asked?.size() ?? 0))[0];
    if (largest !== undefined) this.#response(refusal(largest.id));
  }

  protected forgetAll(): void {
    this.list = [];
    this.branches.keep([]);
    this.history.forget();
    this.unsent.clear();
    this.answers.clear();
    for (const turn of this.turns.values()) {
      turn.hidden = true;
      turn.end.resolve();
    }
    this.finder.awaiting = false;
    this.failure = undefined;
    this.recovering = false;
    this.changed(true);
  }

  /** When nothing runs: asks for the turn that answers make go on, and runs the calls that wait for this client. */
  protected goOn(): void {
    if (this.turns.size > 0) return;
    if (this.finder.awaiting) this.finder.ask();
    else if (this.finder.settled && !this.recovering) this.#runTools();
  }

  #runTools(): void {
    const last = this.messages.at(-1);
    if (last?.role !== "assistant") return;
    for (const handlers of this.audience.handlers()) this.tools.run(last, handlers);
  }

  protected takeAnswers(message: UIMessage): void {
    for (const turn of this.turns.values()) if (turn.messageId === message.id) turn.takeAnswers(message);
  }

  /** Asks the agent to go on, if one who listens wants that now. */
  protected async sendAutomatically(): Promise<void> {
    for (const handlers of this.audience.handlers()) {
      const { sendAutomaticallyWhen, ...settings } = handlers;
      if (sendAutomaticallyWhen === undefined || this.turns.size > 0) continue;
      const wanted = await sendAutomaticallyWhen({ messages: this.messages });
      if (wanted && this.turns.size === 0) return this.sendMessage(undefined, {}, settings);
    }
  }

  // What is shown

  #look(): ChatSnapshot {
    const turns = [...this.turns.values()];
    const live = new Map<string, UIMessage>();
    for (const { message } of turns) if (message !== undefined) live.set(message.id, message);
    const messages = live.size === 0 ? this.list : this.list.map((message) => live.get(message.id) ?? message);
    const last = messages.at(-1);
    // The turn that is to go on waits for more answers: nobody has to wait for it.
    const isHeld = last?.role === "assistant" && batchState(last).waiting > 0;
    const active = turns.filter(
      (turn) => turn.isActive && (turn.reached === "heard" || turn.whose !== "continued" || !isHeld),
    );
    const awaiting = this.finder.awaiting && !isHeld;
    const isServerStreaming = this.tools.isRunning || turns.some(({ isWatched }) => isWatched);
    const status = statusOf(active, awaiting, this.failure);
    return {
      messages,
      status,
      error: this.failure,
      isServerStreaming,
      isStreaming: status === "streaming" || isServerStreaming,
      isRecovering: this.recovering,
      isLoaded: this.#loaded,
      hasOlder: this.history.hasOlder,
      isLoadingOlder: this.history.isLoading,
      branches: this.branches.find,
      session: this.told?.session,
      compactions: this.told?.compactions ?? NONE,
      contextState: this.told?.context ?? null,
      pins: this.told?.pins ?? NONE,
      backgroundCalls: this.told?.background ?? NONE,
      isToolContinuation: awaiting || active.some(({ whose }) => whose === "continued"),
    };
  }

  protected refreshed(): ChatSnapshot {
    this.snapshot = undefined;
    return this.getSnapshot();
  }

  protected changed(urgent: boolean): void {
    this.snapshot = undefined;
    this.audience.changed(urgent);
  }
}

/** The end of a turn whose request was not taken, as the server would have told it. */
function refusal(id: string): ResponseFrame {
  return { type: "cf_agent_use_chat_response", id, chunk: undefined, done: true, outcome: "error", error: TOO_LARGE };
}

function statusOf(active: readonly LiveTurn[], awaiting: boolean, failure: Error | undefined): ChatStatus {
  if (active.some(({ hasContent }) => hasContent)) return "streaming";
  if (active.length > 0 || awaiting) return "submitted";
  return failure === undefined ? "ready" : "error";
}
