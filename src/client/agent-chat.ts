import { newId } from "../id.ts";
import { applyToolApproval, applyToolResult } from "../message/tool-answer.ts";
import { toolName, toolParts, type UIMessage } from "../message/types.ts";
import { ChatAudience } from "./chat-audience.ts";
import { type ChatConnection, type ChatFrame, readChatFrame, type ResponseFrame, sendFrame } from "./chat-frames.ts";
import { type ChatInput, toUserMessage } from "./chat-input.ts";
import { type ChatTrigger, clientToolsOf } from "./chat-request.ts";
import type { ChatHandlers, ChatSnapshot, DataChunk, RequestSettings, SendOptions } from "./chat-types.ts";
import { viewOf } from "./chat-view.ts";
import { LiveTurn } from "./live-turn.ts";
import { mergeTranscript } from "./merge-transcript.ts";
import { findCall, putMessage, updateMessage } from "./message-list.ts";
import { requestFrame } from "./request-frame.ts";
import { endOf, RecentIds } from "./turn-end.ts";
import { StreamFinder } from "./stream-finder.ts";
import { toolResultFrame } from "./tool-result-frame.ts";
import { type ToolOutput, ToolRunner } from "./tool-runner.ts";

/** How many turns that are over are remembered, so that a late word of one is known for what it is. */
const REMEMBERED_TURNS = 500;
const CUT_OFF = "WebSocket closed mid-stream";

/** Settings of {@link AgentChat}. */
export interface AgentChatOptions {
  /** The conversation to begin with. */
  readonly messages?: readonly UIMessage[];
  /** Whether to look for turns that run already. Default true. */
  readonly resume?: boolean;
  /**
   * Whether losing the connection mid-answer is shown as an error until it is back. Default false: the turn goes on,
   * and so does its status.
   */
  readonly disconnectIsError?: boolean;
}

/**
 * A chat with an agent, for any framework: one list of messages, in which own, resumed and watched turns are followed
 * in the same way. Every answer has one id from its first word on. Made once per connection; it listens as long as that
 * lives.
 */
export class AgentChat {
  readonly #connection: ChatConnection;
  readonly #options: AgentChatOptions;
  readonly #turns = new Map<string, LiveTurn>();
  readonly #ended = new RecentIds(REMEMBERED_TURNS);
  readonly #finder: StreamFinder;
  readonly #tools: ToolRunner;
  readonly #audience = new ChatAudience();
  #list: UIMessage[];
  #failure: Error | undefined;
  #cutOff = false;
  #recovering = false;
  #started = false;
  #snapshot: ChatSnapshot | undefined;

  constructor(connection: ChatConnection, options: AgentChatOptions = {}) {
    this.#connection = connection;
    this.#options = options;
    this.#list = [...(options.messages ?? [])];
    this.#finder = new StreamFinder(connection, { turns: this.#turns, hasEnded: (id) => this.#ended.has(id) });
    this.#tools = new ToolRunner(
      (output) => this.addToolOutput(output),
      () => this.#changed(true),
    );
    connection.addEventListener("message", ({ data }) => {
      const frame = readChatFrame(data);
      if (frame !== undefined) this.#received(frame);
    });
    connection.addEventListener("open", () => this.#opened());
    connection.addEventListener("close", () => this.#closed());
  }

  /** Calls `listener` after each change; `urgent` when more than the text of an answer has changed. */
  subscribe(listener: (urgent: boolean) => void, handlers?: () => ChatHandlers): () => void {
    if (!this.#started) {
      this.#started = true;
      if (this.#connection.readyState === 1) this.#opened();
    }
    return this.#audience.add(listener, handlers);
  }

  /** What there is to show; the same object until something changes. */
  getSnapshot(): ChatSnapshot {
    return (this.#snapshot ??= this.#look());
  }

  /**
   * Sends a message, or with none asks the agent to go on. With `messageId`, it replaces that message, and what came
   * after it is answered anew. Resolves when its turn is over, however it ended.
   */
  async sendMessage(input?: ChatInput, options: SendOptions = {}, settings: RequestSettings = {}): Promise<void> {
    const replaces = input?.messageId;
    const made = input === undefined ? undefined : toUserMessage(input, replaces);
    const message = made instanceof Promise ? await made : made;
    if (message !== undefined) {
      if (replaces !== undefined) this.#cutBehind(replaces);
      this.#list = putMessage(this.#list, message);
    }
    return this.#submit("submit-message", message?.id, options, settings, replaces);
  }

  /** Answers anew: the last answer, or the one given. What came after it is forgotten. */
  async regenerate(
    given: SendOptions & { readonly messageId?: string } = {},
    settings: RequestSettings = {},
  ): Promise<void> {
    const list = this.messages;
    const at =
      given.messageId === undefined
        ? list.findLastIndex(({ role }) => role === "assistant")
        : list.findIndex(({ id }) => id === given.messageId);
    const keep = list[at]?.role === "assistant" ? list[at - 1] : (list[at] ?? list.at(-1));
    if (keep !== undefined) this.#cutBehind(keep.id);
    return this.#submit("regenerate-message", undefined, given, settings, given.messageId);
  }

  /** Stops what was asked for here, or else what runs. The agent keeps what there is of the answer. */
  async stop(): Promise<void> {
    const all = [...this.#turns.values()].filter(({ stopped }) => !stopped);
    const own = all.filter(({ local }) => local);
    for (const turn of own.length > 0 ? own : all) {
      turn.stopped = true;
      sendFrame(this.#connection, { type: "cf_agent_chat_request_cancel", id: turn.id });
    }
    this.#finder.awaiting = false;
    this.#cutOff = false;
    this.#changed(true);
  }

  /** Stops what was asked for here, and nothing else. */
  async stopOwn(): Promise<void> {
    if ([...this.#turns.values()].some(({ asked, stopped }) => asked !== undefined && !stopped)) await this.stop();
  }

  /** Empties the conversation, here and on the server. */
  clearHistory(): void {
    this.#forgetAll();
    sendFrame(this.#connection, { type: "cf_agent_chat_clear" });
  }

  /** Replaces the list. @param sync also tells the agent, which takes the user's messages from it. */
  setMessages(next: readonly UIMessage[] | ((messages: UIMessage[]) => readonly UIMessage[]), sync = true): void {
    this.#list = [...(typeof next === "function" ? next(this.messages) : next)];
    const ids = new Set(this.#list.map(({ id }) => id));
    for (const turn of this.#turns.values()) turn.hidden ||= turn.messageId !== undefined && !ids.has(turn.messageId);
    if (sync) sendFrame(this.#connection, { type: "cf_agent_chat_messages", messages: this.#list });
    this.#changed(true);
  }

  /** Gives a call its result. The first one counts, here and on the server. */
  addToolOutput(output: ToolOutput, autoContinue = true, settings: RequestSettings = {}): void {
    const { toolCallId } = output;
    this.#change(toolCallId, (message) => applyToolResult(message, output).message);
    const goesOn = autoContinue && output.state !== "output-error";
    const part = findCall(this.#list, toolCallId);
    const name = part === undefined ? "" : toolName(part);
    sendFrame(this.#connection, toolResultFrame(name, output, goesOn, clientToolsOf(settings.tools)));
    this.#answered(goesOn);
  }

  /** Answers a question for approval. @param id of the question, or of the call. */
  addToolApprovalResponse(
    { id, approved }: { readonly id: string; readonly approved: boolean },
    autoContinue = true,
  ): void {
    const part = findCall(this.messages, id);
    if (part === undefined) return;
    const { toolCallId } = part;
    this.#change(toolCallId, (message) => applyToolApproval(message, { toolCallId, approved }).message);
    sendFrame(this.#connection, { type: "cf_agent_tool_approval", toolCallId, approved, autoContinue });
    this.#answered(autoContinue);
  }

  /** Looks for a turn that runs, and goes on with it. */
  resumeStream(): void {
    this.#finder.ask();
  }

  clearError(): void {
    this.#failure = undefined;
    this.#changed(true);
  }

  get messages(): UIMessage[] {
    return this.getSnapshot().messages;
  }

  // What comes in

  #received(frame: ChatFrame): void {
    switch (frame.kind) {
      case "response":
        return this.#response(frame);
      case "transcript":
        return this.#transcript(frame.messages);
      case "cleared":
        return this.#forgetAll();
      case "updated": {
        this.#list = updateMessage(this.#list, frame.message);
        for (const turn of this.#turns.values())
          if (turn.messageId === frame.message.id) turn.takeAnswers(frame.message);
        return this.#changed(true);
      }
      case "recovering":
        this.#recovering = frame.recovering;
        return this.#changed(true);
      case "resuming":
      case "pending":
      case "none":
        if (this.#options.resume !== false || this.#finder.awaiting) this.#finder.answered(frame);
        if (frame.kind !== "none") this.#cutOff = false;
        this.#changed(true);
        return this.#goOn();
    }
  }

  #response(frame: ResponseFrame): void {
    if (this.#ended.has(frame.id)) return;
    let turn = this.#turns.get(frame.id);
    if (turn === undefined) {
      // The end of a turn of which nothing was heard is news all the same.
      turn = new LiveTurn(frame.id, this.#finder.awaiting && frame.continuation);
      if (turn.local) turn.toolContinuation = true;
      if (turn.local) this.#finder.awaiting = false;
      this.#turns.set(frame.id, turn);
    }
    const wasShown = turn.hasContent;
    Object.assign(turn, { seen: true, stale: false, accepted: true });
    if (turn.local) this.#cutOff = false;
    const chunk = turn.apply(frame, () => this.#list.findLast(({ role }) => role === "assistant"));
    if (chunk?.type.startsWith("data-") === true) this.#audience.tell("onData", chunk as DataChunk);
    if (chunk !== undefined && turn.isActive && turn.hasContent) this.#failure = undefined;
    const message = wasShown ? undefined : turn.message;
    if (message !== undefined) this.#list = putMessage(this.#list, message, turn.asked?.messageId);
    if (frame.error !== undefined && turn.error === undefined) this.#failed(turn, frame.error);
    if (frame.done) this.#over(turn, frame);
    else this.#changed(frame.error !== undefined || wasShown !== turn.hasContent);
  }

  #failed(turn: LiveTurn, text: string): void {
    const counts = turn.isActive;
    turn.error = text;
    if (!counts) return;
    this.#failure = new Error(text);
    this.#audience.tell("onError", this.#failure);
  }

  #over(turn: LiveTurn, frame: ResponseFrame): void {
    const { id, outcome } = frame;
    const message = turn.snapshot ?? turn.message;
    if (message !== undefined && !turn.hidden) this.#list = putMessage(this.#list, message, turn.asked?.messageId);
    this.#turns.delete(id);
    this.#ended.add(id);
    // Turned away: the conversation was told without the message that was sent.
    if (outcome === "skipped" && turn.missing) {
      this.#list = this.#list.filter((one) => one.id !== turn.asked?.messageId);
    }
    if (outcome !== "recovering") this.#recovering &&= !turn.seen || [...this.#turns.values()].some(({ seen }) => seen);
    this.#changed(true);
    turn.end.resolve();
    this.#finder.askByName();
    this.#goOn();
    if (turn.local && !turn.stopped && turn.error === undefined) void this.#sendAutomatically();
    if (outcome === "recovering") return;
    const end = endOf(frame, turn);
    if (message !== undefined && turn.local) {
      const { outcome: how } = end;
      const isError = how === "error";
      this.#audience.tell("onFinish", { message, messages: this.messages, isAbort: how === "aborted", isError });
    }
    // Behind the change of the status, so that it may send.
    queueMicrotask(() => this.#audience.tell("onTurnEnd", end));
  }

  #transcript(messages: readonly UIMessage[]): void {
    this.#list = mergeTranscript(this.messages, messages, this.#turns.values());
    this.#changed(true);
    this.#goOn();
  }

  #opened(): void {
    if (this.#options.resume !== false && this.#started) this.#finder.ask();
    else this.#finder.settled = true;
  }

  #closed(): void {
    const active = this.#active().filter(({ sent, asked }) => sent || asked === undefined);
    this.#finder.lost();
    if (this.#options.disconnectIsError === true && active.length > 0) {
      if (this.#options.resume === false) {
        for (const turn of active) turn.local = false;
        this.#failure = new Error(CUT_OFF);
      } else this.#cutOff = true;
    }
    this.#changed(true);
  }

  #forgetAll(): void {
    this.#list = [];
    for (const turn of this.#turns.values()) {
      turn.hidden = true;
      turn.end.resolve();
    }
    this.#finder.awaiting = false;
    this.#failure = undefined;
    this.#cutOff = false;
    this.#recovering = false;
    this.#changed(true);
  }

  // What goes out

  async #submit(
    trigger: ChatTrigger,
    messageId: string | undefined,
    options: SendOptions,
    settings: RequestSettings,
    replaces?: string,
  ): Promise<void> {
    this.#failure = undefined;
    this.#cutOff = false;
    const { messages } = this.#refreshed();
    const id = newId();
    let frame = "";
    const turn: LiveTurn = new LiveTurn(id, true, {
      messageId: messageId ?? messages.at(-1)?.id,
      request: () => this.#connection.send(frame, () => (turn.sent = true)),
    });
    turn.accepted = messageId === undefined || replaces !== undefined;
    this.#turns.set(id, turn);
    this.#changed(true);
    try {
      const made = requestFrame({ id, messages, trigger, messageId: replaces }, options, settings);
      frame = typeof made === "string" ? made : await made;
      // Stopped, or forgotten, while the data was on its way.
      if (!turn.stopped && !turn.hidden) turn.asked?.request();
      else {
        this.#turns.delete(id);
        return this.#changed(true);
      }
    } catch (error) {
      this.#turns.delete(id);
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#audience.tell("onError", this.#failure);
      return this.#changed(true);
    }
    return turn.end.promise;
  }

  /** Cuts the list behind a message; answers that are being written there are not shown any more. */
  #cutBehind(id: string): void {
    this.#list = this.#list.slice(0, this.#list.findIndex((message) => message.id === id) + 1);
    const ids = new Set(this.#list.map((message) => message.id));
    for (const turn of this.#turns.values()) turn.hidden ||= turn.messageId !== undefined && !ids.has(turn.messageId);
  }

  #change(toolCallId: string, change: (message: UIMessage) => UIMessage): void {
    this.#list = this.messages.map((message) =>
      toolParts(message).some((part) => part.toolCallId === toolCallId) ? change(message) : message,
    );
    for (const message of this.#list) {
      for (const turn of this.#turns.values()) if (turn.messageId === message.id) turn.takeAnswers(message);
    }
  }

  #answered(goesOn: boolean): void {
    this.#finder.awaiting ||= goesOn;
    this.#changed(true);
    this.#goOn();
    if (!goesOn) void this.#sendAutomatically();
  }

  /** When nothing runs: asks for the turn that answers make go on, and runs the calls that wait for this client. */
  #goOn(): void {
    if (this.#turns.size > 0) return;
    if (this.#finder.awaiting) this.#finder.ask();
    else if (this.#finder.settled && !this.#recovering) this.#runTools();
  }

  /** Asks the agent to go on, if one who listens wants that now. */
  async #sendAutomatically(): Promise<void> {
    for (const handlers of this.#audience.handlers()) {
      const { sendAutomaticallyWhen, ...settings } = handlers;
      if (sendAutomaticallyWhen === undefined || this.#turns.size > 0) continue;
      const wanted = await sendAutomaticallyWhen({ messages: this.messages });
      if (wanted && this.#turns.size === 0) return this.sendMessage(undefined, {}, settings);
    }
  }

  #runTools(): void {
    const last = this.messages.at(-1);
    if (last?.role !== "assistant") return;
    for (const handlers of this.#audience.handlers()) this.#tools.run(last, handlers);
  }

  // What is shown

  #active(): LiveTurn[] {
    return [...this.#turns.values()].filter(({ isActive }) => isActive);
  }

  #look(): ChatSnapshot {
    return viewOf({
      list: this.#list,
      turns: [...this.#turns.values()],
      awaiting: this.#finder.awaiting,
      toolsRun: this.#tools.isRunning,
      recovering: this.#recovering,
      failure: this.#cutOff ? new Error(CUT_OFF) : this.#failure,
      cutOff: this.#cutOff,
    });
  }

  #refreshed(): ChatSnapshot {
    this.#snapshot = undefined;
    return this.getSnapshot();
  }

  #changed(urgent: boolean): void {
    this.#snapshot = undefined;
    this.#audience.changed(urgent);
  }
}
