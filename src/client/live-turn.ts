import { builderFrom, findTool, type MessageBuilder, newBuilder, replaceTool, toMessage } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import { isAnswered, type ToolPart, toolParts, type UIMessage, type UIMessageChunk } from "../message/types.ts";
import type { ResponseFrame } from "./chat-frames.ts";
import type { TurnEnd } from "./chat-types.ts";
import { idBefore, keepObjects, putMessage } from "./message-list.ts";

/** What was sent to ask for a turn. */
interface Asked {
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
  /**
   * `others` are only watched; the rest count for the chat's status. `ours`: asked for here, or resumed. `continued`: it resumes
   * an answer because of what was answered here.
   */
  whose: "others" | "ours" | "continued";
  /** How far it came: its request was `sent` over a connection, something of it was `heard`. */
  reached: "nowhere" | "sent" | "heard" = "nowhere";
  /** The message that it answers: the agent `has` it, or told the conversation `without` it. */
  question: "unknown" | "without" | "has" = "unknown";
  /** `cut`: the connection was lost, and what came since is missing here. */
  stream: "live" | "cut" = "live";
  /**
   * The answer as the conversation had it, if it came last. Null: told without it while the stream was cut, so if the turn is
   * over, another took its place.
   */
  told: UIMessage | null | undefined;
  /** Something to show has come. */
  hasContent = false;
  stopped = false;
  /** Its answer was taken off the screen: by a clear, an edit, or a regenerate. */
  hidden = false;
  error: string | undefined;
  /** Rejects when the connection was closed for good before the end was heard. */
  readonly end = Promise.withResolvers<void>();
  #builder: MessageBuilder | undefined;
  #next = 0;
  /** It began with what was there of the answer. */
  #goesOn = false;
  #message: UIMessage | undefined;
  /** What a page that was loaded mid-answer has of it. */
  #shown: UIMessage | undefined;

  constructor(id: string, whose: LiveTurn["whose"], asked?: Asked) {
    this.id = id;
    this.whose = whose;
    this.asked = asked;
    // Not every turn has somebody who waits for its end.
    this.end.promise.catch(() => {});
  }

  /** Under way, as far as the status of the chat is concerned. */
  get isActive(): boolean {
    return this.whose !== "others" && !this.stopped && this.error === undefined;
  }

  /** Under way, and not asked for here. */
  get isWatched(): boolean {
    return this.whose === "others" && this.reached === "heard" && this.error === undefined;
  }

  /** The agent has the message that it answers. */
  get isAccepted(): boolean {
    return this.reached === "heard" || this.question === "has";
  }

  /** The id of the answer, once it is known. */
  get messageId(): string | undefined {
    return this.#builder?.id;
  }

  /** The answer as it is now; undefined while there is nothing to show. */
  get message(): UIMessage | undefined {
    if (this.hidden || this.#builder === undefined || !(this.hasContent || this.#goesOn)) return undefined;
    if (this.stream === "cut" && this.told) return this.told;
    if (this.#shown !== undefined) return this.#shown;
    return (this.#message ??= toMessage(this.#builder));
  }

  /**
   * Takes in a chunk; one heard before is skipped by its number, so a replay changes nothing.
   * @param last the message that a continuation goes on with.
   * @returns the chunk if it was new.
   */
  apply(frame: ResponseFrame, last: () => UIMessage | undefined): UIMessageChunk | undefined {
    const { chunk, seq } = frame;
    // Until the replay is through, what the conversation had is more.
    if (!frame.done && (!frame.replay || frame.replayComplete) && this.stream === "cut") {
      this.stream = "live";
      this.told = undefined;
    }
    if (frame.done || !frame.replay || frame.replayComplete) this.#shown = undefined;
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
    if (this.stream === "live") this.told = undefined;
    return chunk;
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

/** How a turn ended, by its last frame. A server that does not say it has told of an error before, or of none. */
export function endOf({ id, outcome, messageIds, replay, error }: ResponseFrame, turn: LiveTurn): TurnEnd {
  const text = error ?? turn.error;
  const known = outcome === "recovering" ? undefined : outcome;
  const how = known ?? (text === undefined ? "completed" : "error");
  return {
    requestId: id,
    outcome: how,
    replay: replay === true,
    ...(messageIds !== undefined && { messageIds }),
    ...(how === "error" && { error: text ?? "" }),
  };
}

/**
 * The server's conversation plus what it cannot know yet: messages on their way, and what came of answers since. Turns note what
 * the server had of theirs.
 * @param old what is shown now.
 */
export function mergeTranscript(
  old: readonly UIMessage[],
  incoming: readonly UIMessage[],
  turns: Iterable<LiveTurn>,
  unsent: ReadonlySet<string>,
): UIMessage[] {
  const ids = new Set(incoming.map(({ id }) => id));
  let next = keepObjects(old, incoming);
  for (const message of old) {
    if (unsent.has(message.id)) next = putMessage(next, message, idBefore(old, message.id));
  }
  for (const turn of turns) {
    const asked = old.find(({ id }) => id === turn.asked?.messageId);
    if (asked !== undefined && turn.question !== "has") {
      turn.question = ids.has(asked.id) ? "has" : "without";
      // Not there yet, or never: its end will tell.
      if (!turn.isAccepted && !turn.hidden) next = putMessage(next, asked);
    }
    const { message } = turn;
    if (message === undefined) continue;
    const isCut = turn.stream === "cut";
    turn.told = incoming.find(({ id }) => id === message.id) ?? (isCut ? null : undefined);
    // Of a turn that was cut off the server knows more.
    if (!isCut) next = putMessage(next, message, idBefore(old, message.id));
  }
  return next;
}
