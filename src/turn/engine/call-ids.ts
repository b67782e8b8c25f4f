import { findTool, type MessageBuilder } from "../../message/builder.ts";
import { sameJson } from "../../base/json.ts";
import { storedToolInput } from "../../message/tool-input.ts";
import { isTerminal, type ToolPart, toolName, type UIMessageChunk } from "../../message/types.ts";

/** Stands for an id that a provider left out, and for one that means another place in an address. */
const NO_ID = "call";
const NONE = ["", ".", ".."];
/** Clients name calls in their answers, and what they send is bounded. */
const MAX_CALL_ID = 200;

/** What is known of the ids of calls, in one turn. */
export interface CallIdSource {
  readonly builder: MessageBuilder;
  /** The turn's number: what a repeated id gets behind it. The same however often the turn is tried. */
  readonly turn: number;
  /** Whether a call of another message has this id. */
  isTakenElsewhere(id: string): boolean;
}

/** A call id that nothing else of the agent has, nor `isTaken`: some providers omit ids, or count from zero in each response. */
export function freeCallId(
  source: CallIdSource,
  given: string,
  isTaken: (id: string) => boolean = () => false,
): string {
  const isHere = (id: string) => isTaken(id) || source.builder.tools.has(id);
  const isFree = (id: string) => !isHere(id) && !source.isTakenElsewhere(id);
  const wanted = NONE.includes(given) ? NO_ID : given.slice(0, MAX_CALL_ID).toWellFormed();
  if (isFree(wanted)) return wanted;
  const stem = isHere(wanted) ? wanted : `${wanted}-t${source.turn}`;
  if (isFree(stem)) return stem;
  for (let n = 2; ; n++) if (isFree(`${stem}-${n}`)) return `${stem}-${n}`;
}

type ToolChunk = Extract<UIMessageChunk, { toolCallId: string }>;
type InputChunk = Extract<ToolChunk, { type: "tool-input-start" | "tool-input-available" | "tool-input-error" }>;

/** A call of this stream, by the id that the stream gives it. */
interface Named {
  readonly id: string;
  readonly toolName: string;
  input: unknown;
  /** Its input is complete: what comes next under the same id may be another call. */
  complete: boolean;
}

/** Gives the calls of a stream that others make ids of their own. One per attempt: it remembers. */
export class StreamCallIds {
  readonly #source: CallIdSource;
  readonly #named = new Map<string, Named>();

  constructor(source: CallIdSource) {
    this.#source = source;
  }

  /** The chunk with the id that its call has in the answer; the same object where that is the one it was given. */
  take(chunk: UIMessageChunk): UIMessageChunk {
    if (!("toolCallId" in chunk)) return chunk;
    const id = this.#idOf(chunk);
    return id === chunk.toolCallId ? chunk : { ...chunk, toolCallId: id };
  }

  #idOf(chunk: ToolChunk): string {
    const known = this.#named.get(chunk.toolCallId);
    if (chunk.type === "tool-input-start")
      return known === undefined || known.complete || chunk.toolCallId === "" ? this.#begin(chunk) : known.id;
    if (chunk.type !== "tool-input-available" && chunk.type !== "tool-input-error")
      return known?.id ?? chunk.toolCallId;
    if (known === undefined) return this.#begin(chunk);
    if (known.complete) return chunk.toolCallId !== "" && isSame(known, chunk) ? known.id : this.#begin(chunk);
    Object.assign(known, { complete: true, input: chunk.input });
    return known.id;
  }

  #begin(chunk: InputChunk): string {
    const { builder } = this.#source;
    const known = this.#named.has(chunk.toolCallId) ? undefined : findTool(builder, chunk.toolCallId);
    const id =
      known !== undefined && isAbout(known, chunk) ? known.toolCallId : freeCallId(this.#source, chunk.toolCallId);
    const isStart = chunk.type === "tool-input-start";
    this.#named.set(chunk.toolCallId, {
      ...{ id, toolName: chunk.toolName, complete: !isStart },
      input: isStart ? undefined : chunk.input,
    });
    return id;
  }
}

function isSame(known: Named, chunk: Exclude<InputChunk, { type: "tool-input-start" }>): boolean {
  return known.toolName === chunk.toolName && sameJson(known.input, chunk.input);
}

/** Whether a chunk is about a call that was there before the stream: one that waits, or one that is shown again. */
function isAbout(part: ToolPart, chunk: InputChunk): boolean {
  if (toolName(part) !== chunk.toolName) return false;
  if (!isTerminal(part)) return true;
  return chunk.type !== "tool-input-start" && sameJson(part.input, storedToolInput(part, chunk.input));
}
