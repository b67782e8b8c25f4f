// A model in the hands of the test: each call of onChatMessage is a Stage that says what the test tells it to.
import type { UIMessage, UIMessageChunk } from "ai";
import type { ChatAnswer, ChatTurnOptions } from "perdure";

/** One call of `onChatMessage`. */
export interface Stage {
  readonly options: ChatTurnOptions;
  /** The conversation as the model would see it. */
  readonly messages: readonly UIMessage[];
  readonly answer: ReadableStream<UIMessageChunk>;
  /** Resolves when {@link Stage.open} was called; only slow chats wait for it. */
  readonly opened: Promise<void>;
  /** The provider answers: from now on there is a stream. */
  open(): Stage;
  /** Says chunks, as they are. */
  push(...chunks: UIMessageChunk[]): Stage;
  /** Starts the message and a step, and says some of its text, which stays open. */
  say(...deltas: string[]): Stage;
  /** A tool call whose input is complete. */
  call(toolCallId: string, toolName?: string, input?: unknown): Stage;
  ask(toolCallId: string, toolName?: string, input?: unknown): Stage;
  /** Ends the text, the step and the message. */
  end(finishReason?: "stop" | "tool-calls"): Stage;
  /** The provider's connection breaks. */
  fail(error: Error): Stage;
  /** Resolves when the turn was stopped. */
  readonly aborted: Promise<void>;
}

const TEXT = "text-1";

export function createStage(options: ChatTurnOptions, messages: readonly UIMessage[]): Stage {
  const gate = Promise.withResolvers<void>();
  let out: ReadableStreamDefaultController<UIMessageChunk> | undefined;
  let begun = false;
  let talking = false;
  let over = false;
  const answer = new ReadableStream<UIMessageChunk>({
    start(controller) {
      out = controller;
    },
    cancel() {
      over = true;
    },
  });
  const put = (chunk: UIMessageChunk) => {
    if (!over) out?.enqueue(chunk);
  };
  const begin = () => {
    if (begun) return;
    begun = true;
    put({ type: "start" });
    put({ type: "start-step" });
  };
  const hush = () => {
    if (talking) put({ type: "text-end", id: TEXT });
    talking = false;
  };
  const stage: Stage = {
    options,
    messages,
    answer,
    opened: gate.promise,
    open() {
      gate.resolve();
      return stage;
    },
    push(...chunks) {
      begun = true;
      for (const chunk of chunks) put(chunk);
      return stage;
    },
    say(...deltas) {
      begin();
      if (!talking) put({ type: "text-start", id: TEXT });
      talking = true;
      for (const delta of deltas) put({ type: "text-delta", id: TEXT, delta });
      return stage;
    },
    call(toolCallId, toolName = "lookUp", input = {}) {
      begin();
      hush();
      put({ type: "tool-input-start", toolCallId, toolName });
      put({ type: "tool-input-available", toolCallId, toolName, input });
      return stage;
    },
    ask(toolCallId, toolName, input) {
      stage.call(toolCallId, toolName, input);
      put({ type: "tool-approval-request", toolCallId, approvalId: `ask-${toolCallId}` });
      return stage;
    },
    end(finishReason = "stop") {
      begin();
      hush();
      put({ type: "finish-step" });
      put({ type: "finish", finishReason });
      if (!over) out?.close();
      over = true;
      return stage;
    },
    fail(error) {
      if (!over) out?.error(error);
      over = true;
      return stage;
    },
    aborted: new Promise((resolve) => {
      if (options.abortSignal.aborted) resolve();
      options.abortSignal.addEventListener("abort", () => resolve(), { once: true });
    }),
  };
  return stage;
}

/** What a test may answer with instead of a stage. */
export type Respond = (
  options: ChatTurnOptions,
  messages: readonly UIMessage[],
) => ChatAnswer | undefined | Promise<ChatAnswer | undefined>;
