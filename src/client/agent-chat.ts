import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { applyToolApproval, applyToolResult } from "../message/tool-answer.ts";
import { toolName, toolParts, type UIMessage } from "../message/types.ts";
import type { ChatRequestFrame, ClientFrame, ClientTool, ToolResultFrame } from "../wire/frames.ts";
import { writeJson } from "../wire/json.ts";
import { sendFrame } from "./chat-frames.ts";
import { type ChatInput, toUserMessage } from "./chat-input.ts";
import { bodyOf, type ChatTrigger, clientToolsOf, requestBody } from "./chat-request.ts";
import type { RequestSettings, SendOptions } from "./chat-types.ts";
import { LiveTurn } from "./live-turn.ts";
import { beforeAnswer, findCall, putMessage } from "./message-list.ts";
import { SessionChat } from "./session-chat.ts";
import type { ToolOutput } from "./tool-runner.ts";

/**
 * A chat with an agent, for any framework: one list of messages in which own, resumed and watched turns are followed alike. An
 * answer keeps one id from its first word on. Make one per connection; it listens as long as that lives.
 */
export class AgentChat extends SessionChat {
  /**
   * Sends a message, or with none asks the agent to go on. With `messageId`, it replaces that message, and what came after is
   * answered anew. Resolves when its turn is over, however it ended. Rejects with the `connectionError` when the connection is
   * closed for good; that is the chat's `error` too, so nobody has to catch it.
   */
  override sendMessage(input?: ChatInput, options: SendOptions = {}, settings: RequestSettings = {}): Promise<void> {
    return told(this.#sendMessage(input, options, settings));
  }

  async #sendMessage(input: ChatInput | undefined, options: SendOptions, settings: RequestSettings): Promise<void> {
    const replaces = input?.messageId;
    const made = input === undefined ? undefined : toUserMessage(input, replaces);
    const message = made instanceof Promise ? await made : made;
    if (this.place.moving !== undefined) await this.place.moving;
    if (message !== undefined) {
      if (replaces !== undefined) this.#cutBehind(replaces);
      this.list = putMessage(this.list, message);
    }
    return this.#submit("submit-message", message?.id, options, settings, replaces);
  }

  /** Answers anew: the last answer, or the one given. What came after it is forgotten. Rejects as `sendMessage` does. */
  regenerate(given: SendOptions & { readonly messageId?: string } = {}, settings: RequestSettings = {}): Promise<void> {
    return told(this.#regenerate(given, settings));
  }

  async #regenerate(given: SendOptions & { readonly messageId?: string }, settings: RequestSettings): Promise<void> {
    if (this.place.moving !== undefined) await this.place.moving;
    const keep = beforeAnswer(this.messages, given.messageId);
    if (keep !== undefined) this.#cutBehind(keep.id);
    return this.#submit("regenerate-message", undefined, given, settings, given.messageId);
  }

  /** Stops what was asked for here, or else what runs. The agent keeps what there is of the answer. */
  async stop(): Promise<void> {
    const all = [...this.turns.values()].filter(({ stopped }) => !stopped);
    const own = all.filter(({ whose }) => whose !== "others");
    for (const turn of own.length > 0 ? own : all) {
      turn.stopped = true;
      sendFrame(this.connection, { type: "cf_agent_chat_request_cancel", id: turn.id });
    }
    this.finder.awaiting = false;
    this.changed(true);
  }

  /** Stops a call that goes on without its turn; the model is told. The list of `backgroundCalls` shows when it is over. */
  stopCall(toolCallId: string): void {
    sendFrame(this.connection, { type: "perdure_tool_stop", toolCallId });
  }

  /** Stops what was asked for here, and nothing else. */
  async stopOwn(): Promise<void> {
    if ([...this.turns.values()].some(({ asked, stopped }) => asked !== undefined && !stopped)) await this.stop();
  }

  /** Empties the conversation, here and on the server. */
  clearHistory(): void {
    this.forgetAll();
    sendFrame(this.connection, { type: "cf_agent_chat_clear" });
  }

  /** Replaces the list. @param sync also tells the agent, which takes the user's messages from it. */
  setMessages(next: readonly UIMessage[] | ((messages: UIMessage[]) => readonly UIMessage[]), sync = true): void {
    this.list = [...(typeof next === "function" ? next(this.messages) : next)];
    this.#hideMissing();
    if (sync) sendFrame(this.connection, { type: "cf_agent_chat_messages", messages: this.list });
    this.changed(true);
  }

  /** Gives a call its result. The first one counts, here and on the server. */
  override addToolOutput(output: ToolOutput, autoContinue = true, settings: RequestSettings = {}): void {
    const { toolCallId } = output;
    const goesOn = autoContinue && output.state !== "output-error";
    const part = findCall(this.messages, toolCallId);
    const name = part === undefined ? "" : toolName(part);
    const frame = toolResultFrame(name, output, goesOn, clientToolsOf(settings.tools));
    this.#answer(toolCallId, frame, goesOn, (message) => applyToolResult(message, output).message);
  }

  /**
   * Answers a question for approval. If no message here has it, nothing is answered: the chat gets the error `not_found`, and
   * `onError` is told.
   * @param id of the question, or of the call.
   */
  addToolApprovalResponse(
    { id, approved }: { readonly id: string; readonly approved: boolean },
    autoContinue = true,
  ): void {
    const part = findCall(this.messages, id);
    if (part === undefined) {
      const text = `No message of this chat has a tool call, or a question for approval, "${id}".`;
      this.fails(new PerdureError("not_found", `${text} Nothing was answered: load the message first (loadOlder).`));
      return;
    }
    const { toolCallId } = part;
    const about = part.approval === undefined ? {} : { approvalId: part.approval.id };
    const frame = { type: "cf_agent_tool_approval", toolCallId, approved, autoContinue, ...about } as const;
    const given = { toolCallId, approved };
    this.#answer(toolCallId, frame, autoContinue, (message) => applyToolApproval(message, given).message);
  }

  /** Puts what was said before in front of the list. Resolves when it is there, or cannot be had now. */
  async loadOlder(): Promise<void> {
    const loaded = this.history.load();
    this.changed(true);
    return loaded;
  }

  /** Looks for a turn that runs, and goes on with it. */
  resumeStream(): void {
    this.finder.ask();
  }

  clearError(): void {
    this.failure = undefined;
    this.changed(true);
  }

  // What goes out

  async #submit(
    trigger: ChatTrigger,
    messageId: string | undefined,
    options: SendOptions,
    settings: RequestSettings,
    replaces?: string,
  ): Promise<void> {
    const { connectionError } = this.connection;
    if (connectionError !== undefined && connectionError !== null) {
      if (messageId !== undefined) this.unsent.add(messageId);
      this.fails(connectionError);
      throw connectionError;
    }
    this.failure = undefined;
    const { messages } = this.refreshed();
    const id = newId();
    let frame = "";
    const turn: LiveTurn = new LiveTurn(id, "ours", {
      messageId: messageId ?? messages.at(-1)?.id,
      request: () =>
        this.connection.send(frame, () => {
          if (turn.reached === "nowhere") turn.reached = "sent";
        }),
      size: () => frame.length,
    });
    if (messageId === undefined || replaces !== undefined) turn.question = "has";
    this.turns.set(id, turn);
    this.changed(true);
    try {
      const made = requestFrame({ id, messages, trigger, messageId: replaces, unsent: this.unsent }, options, settings);
      frame = typeof made === "string" ? made : await made;
      // Stopped, or forgotten, while the data was on its way.
      if (!turn.stopped && !turn.hidden) {
        turn.asked?.request();
        this.unsent.clear();
      } else {
        this.turns.delete(id);
        return this.changed(true);
      }
    } catch (error) {
      this.turns.delete(id);
      if (messageId !== undefined) this.unsent.add(messageId);
      return this.fails(error instanceof Error ? error : new Error(String(error)));
    }
    return turn.end.promise;
  }

  /** Cuts the list behind a message; answers that are being written there are not shown any more. */
  #cutBehind(id: string): void {
    this.list = this.list.slice(0, this.list.findIndex((message) => message.id === id) + 1);
    this.#hideMissing();
  }

  #hideMissing(): void {
    const ids = new Set(this.list.map(({ id }) => id));
    for (const turn of this.turns.values()) turn.hidden ||= turn.messageId !== undefined && !ids.has(turn.messageId);
  }

  #change(toolCallId: string, change: (message: UIMessage) => UIMessage): void {
    this.list = this.messages.map((message) =>
      toolParts(message).some((part) => part.toolCallId === toolCallId) ? change(message) : message,
    );
    for (const message of this.list) this.takeAnswers(message);
  }

  #answer(toolCallId: string, frame: ClientFrame, goesOn: boolean, show: (message: UIMessage) => UIMessage): void {
    const give = () => {
      this.#change(toolCallId, show);
      sendFrame(this.connection, frame);
      this.finder.awaiting ||= goesOn;
      this.changed(true);
    };
    this.answers.set(toolCallId, { give });
    give();
    this.goOn();
    if (!goesOn) void this.sendAutomatically();
  }
}

/** Its failure is shown by the chat: a page that does not wait for it need not catch it. */
function told(sent: Promise<void>): Promise<void> {
  sent.catch(() => {});
  return sent;
}

interface ChatAsk {
  readonly id: string;
  readonly messages: UIMessage[];
  readonly trigger: ChatTrigger;
  /** The message that is edited or answered anew. */
  readonly messageId: string | undefined;
  /** Messages that the agent has not got. */
  readonly unsent: ReadonlySet<string>;
}

/**
 * The frame that asks for a turn. A promise only when the app's data has to be waited for.
 * @throws what the app's functions throw; PerdureError `bad_input` when JSON cannot hold it.
 */
function requestFrame(ask: ChatAsk, options: SendOptions, settings: RequestSettings): string | Promise<string> {
  const own = bodyOf(settings.body);
  const prepare = (ready: object | undefined): string | Promise<string> => {
    const all = { ...ready, ...options.body };
    const body = Object.keys(all).length > 0 ? all : undefined;
    const { unsent: _unsent, ...asked } = ask;
    const prepared = settings.prepareSendMessagesRequest?.({ ...asked, body });
    const finish = (more: { readonly body?: object } | undefined) =>
      write(ask, [ready, more?.body, options.body], settings);
    return prepared instanceof Promise ? prepared.then(finish) : finish(prepared);
  };
  return own instanceof Promise ? own.then(prepare) : prepare(own);
}

function write(
  { id, messages, trigger, unsent }: ChatAsk,
  bodies: readonly (object | undefined)[],
  settings: RequestSettings,
): string {
  const request = requestBody(messages, trigger, clientToolsOf(settings.tools), bodies, unsent);
  const init = { method: "POST" as const, body: writeJson(request, "The body of a chat request") };
  const frame: ChatRequestFrame = { type: "cf_agent_use_chat_request", id, init };
  return JSON.stringify(frame);
}

/** The frame that gives a call its result. @param name of the tool, when `output` does not say it. */
function toolResultFrame(
  name: string,
  output: ToolOutput,
  autoContinue: boolean,
  clientTools: readonly ClientTool[] | undefined,
): ToolResultFrame {
  const { toolCallId, toolName = name, state, errorText } = output;
  const failed = state === "output-error";
  return {
    type: "cf_agent_tool_result",
    toolCallId,
    toolName,
    autoContinue,
    ...(failed ? { state } : { output: output.output }),
    ...(failed && errorText !== undefined && { errorText }),
    ...(clientTools !== undefined && { clientTools }),
  };
}
