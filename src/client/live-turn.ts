import { builderFrom, findTool, type MessageBuilder, newBuilder, replaceTool, toMessage } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import { isAnswered, type ToolPart, toolParts, type UIMessage, type UIMessageChunk } from "../message/types.ts";
import type { ResponseFrame } from "./chat-frames.ts";

/** What was sent to ask for a turn. */
export interface Asked {
  /** The user's message; undefined when none was sent with it. */
  readonly messageId: string | undefined;
  /** Sends it (again). Twice is once: the agent knows the id. */
  readonly request: () => void;
  /** How long the frame is that asks for it. */
  readonly size: () => number;
}

/** Chunks that say nothing to show. */
const SILENT: ReadonlySet<string> = new Set(["start", "start-step", "finish-step", "finish", "message-metadata"]);

/** A turn of the agent as a client follows it, from the first word of it to the last. */
export class LiveTurn {
  readonly id: string;
  readonly asked: Asked | undefined;
  /** Counts for the status of the chat: asked for here, or resumed. Others are only watched. */
  local: boolean;
  /** It goes on with an answer because of what was answered here. */
  toolContinuation = false;
  /** The request has been handed to a connection. */
  sent = false;
  /** The connection was lost since: what came then is missing here. */
  stale = false;
  /** Something of it was heard. */
  seen = false;
  /** The agent has the message that it answers. */
  accepted = false;
  /** The conversation was told without that message. */
  missing = false;
  /** Something to show has come. */
  hasContent = false;
  stopped = false;
  /** Its answer was taken off the screen: by a clear, an edit, or a regenerate. */
  hidden = false;
  error: string | undefined;
  /** The conversation was told since then, without the answer: if the turn is over, another took its place. */
  absent = false;
  /** The answer as the conversation had it, when nothing came after that. */
  snapshot: UIMessage | undefined;
  /** Rejects when the connection was closed for good before the end was heard. */
  readonly end = Promise.withResolvers<void>();
  #builder: MessageBuilder | undefined;
  #next = 0;
  /** It began with what was there of the answer. */
  #goesOn = false;
  #message: UIMessage | undefined;
  /** What a page that was loaded mid-answer has of it. */
  #shown: UIMessage | undefined;

  constructor(id: string, local: boolean, asked?: Asked) {
    this.id = id;
    this.local = local;
    this.asked = asked;
    // Not every turn has somebody who waits for its end.
    this.end.promise.catch(() => {});
  }

  /** Under way, as far as the status of the chat is concerned. */
  get isActive(): boolean {
    return this.local && !this.stopped && this.error === undefined;
  }

  /** Under way, and not asked for here. */
  get isWatched(): boolean {
    return !this.local && this.seen && this.error === undefined;
  }

  /** The id of the answer, once it is known. */
  get messageId(): string | undefined {
    return this.#builder?.id;
  }

  /** The answer as it is now; undefined while there is nothing to show. */
  get message(): UIMessage | undefined {
    if (this.hidden || this.#builder === undefined || !(this.hasContent || this.#goesOn)) return undefined;
    if (this.stale && this.snapshot !== undefined) return this.snapshot;
    if (this.#shown !== undefined) return this.#shown;
    return (this.#message ??= toMessage(this.#builder));
  }

  /**
   * Takes in a chunk. What was heard before is passed over by its number, so a replay changes nothing.
   * @param last the message that a continuation goes on with.
   * @returns the chunk if it was new.
   */
  apply(frame: ResponseFrame, last: () => UIMessage | undefined): UIMessageChunk | undefined {
    const { chunk, seq } = frame;
    // Until the replay is through, what the conversation had is more.
    if (!frame.done && (!frame.replay || frame.caughtUp)) this.#isCurrent();
    if (frame.done || !frame.replay || frame.caughtUp) this.#shown = undefined;
    if (chunk === undefined || (seq !== undefined && seq < this.#next)) return undefined;
    if (seq !== undefined) this.#next = seq + 1;
    // A server that does not number its chunks begins anew.
    const again = seq === undefined && frame.replay && chunk.type === "start" && !frame.continuation;
    if (this.#builder === undefined || again) {
      const base = frame.continuation ? last() : undefined;
      this.#builder = base === undefined ? newBuilder(this.id) : builderFrom(base);
      this.#goesOn = base !== undefined;
    }
    if (applyChunk(this.#builder, chunk)) this.#message = undefined;
    if (chunk.type === "start" && frame.replay && this.#builder.id === last()?.id) this.#shown = last();
    this.hasContent ||= !SILENT.has(chunk.type);
    if (!this.stale) this.snapshot = undefined;
    return chunk;
  }

  #isCurrent(): void {
    if (this.stale) this.snapshot = undefined;
    this.stale = false;
    this.absent = false;
  }

  /** A call is so, whatever was answered here. */
  takeCall(part: ToolPart): void {
    if (this.#builder === undefined || findTool(this.#builder, part.toolCallId) === undefined) return;
    replaceTool(this.#builder, part);
    this.#message = undefined;
  }

  /** Takes over the answers to calls from `message`, which is the same one. */
  takeAnswers(message: UIMessage): void {
    if (this.#builder === undefined) return;
    for (const part of toolParts(message)) if (isAnswered(part)) replaceTool(this.#builder, part);
    this.#message = undefined;
  }
}
