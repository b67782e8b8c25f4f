import { findTool, type MessageBuilder } from "../../message/builder.ts";
import { sameJson } from "../../base/json.ts";
import { storedToolInput } from "../../message/tool-input.ts";
import { isTerminal, isToolPart, type ToolPart, toolName, type UIMessageChunk } from "../../message/types.ts";
import { type CallIdSource, freeCallId } from "../engine/call-ids.ts";
import { tooManyCalls } from "../engine/chunk-bounds.ts";
import { settledParts } from "./answer.ts";

/** What a call of a cut attempt says that was not asked for again. */
export const NOT_RUN_TEXT = "The call was cut off before it ran. It did not run.";

type ToolChunk = Extract<UIMessageChunk, { toolCallId: string }>;
type InputChunk = Extract<ToolChunk, { type: "tool-input-available" | "tool-input-error" }>;

/** Stands for what a model left out. Parts without a name are no calls, and the turn would just end. */
const UNNAMED = "unnamed";
/** A model that asks for so many times more than it may is stopped: what is refused is stored too. */
const REFUSED_FACTOR = 10;
/** What ids of calls never have: it stands between a call and those inside of it, in ids and in idempotency keys. */
const RESERVED = /[/#%]/g;

/** A call of an attempt, by the id that the model gave it. */
interface Named {
  readonly id: string;
  readonly tool: string;
  /** Its input, once that is complete: what comes next under the same id may be another call. */
  input?: { readonly value: unknown };
}

/**
 * Gives the tool calls of an attempt their ids, which no other call of the agent has: some providers leave them out, or
 * number their calls from zero again in every response. Calls of the step's earlier attempts are told apart from new ones,
 * and keep theirs.
 */
export class CallFit {
  readonly #source: CallIdSource;
  readonly #unused = new Set<ToolPart>();
  /** The ids of earlier steps and attempts. They stay theirs. */
  readonly #taken = new Set<string>();
  /** Calls that may turn out to be earlier ones: their first chunks. */
  readonly #held = new Map<string, ToolChunk[]>();
  /** The calls of this attempt, the latest of each id. */
  readonly #ids = new Map<string, Named>();
  #renamed = false;
  readonly #max: number;
  /** The calls of the step that are ours to run, or to refuse, in their order. */
  readonly #places = new Map<string, number>();
  /** How many were refused because the step has as many as it may have. */
  refused = 0;

  /**
   * @param from the index of the first part of the step: what is behind it was left by its earlier attempts.
   * @param max the most calls of a step; those beyond it are refused.
   */
  constructor(source: CallIdSource, from: number, max = Infinity) {
    const { builder } = source;
    this.#source = source;
    this.#max = max;
    for (const id of builder.tools.keys()) this.#taken.add(id);
    for (const [i, part] of builder.parts.entries()) {
      if (!isToolPart(part)) continue;
      this.#taken.add(part.toolCallId);
      if (i >= from && part.errorText !== NOT_RUN_TEXT) {
        this.#unused.add(part);
        this.#places.set(part.toolCallId, this.#places.size);
      }
    }
  }

  /** What goes out of a chunk. @throws PerdureError `limit` when the model goes on asking for what is refused */
  take(given: ToolChunk): UIMessageChunk[] {
    return this.#fit(given).flatMap((chunk) => ("toolCallId" in chunk ? this.#bounded(chunk) : [chunk]));
  }

  #bounded(chunk: ToolChunk): UIMessageChunk[] {
    const { toolCallId } = chunk;
    const isInput = chunk.type === "tool-input-available" || chunk.type === "tool-input-error";
    if (isInput || chunk.type === "tool-input-start") {
      // A provider runs its own.
      if (!this.#places.has(toolCallId) && chunk.providerExecuted !== true)
        this.#places.set(toolCallId, this.#places.size);
    }
    if ((this.#places.get(toolCallId) ?? 0) < this.#max) return [chunk];
    if (this.#places.size > this.#max * REFUSED_FACTOR) throw tooManyCalls(this.#max);
    if (!isInput) return [];
    this.refused += 1;
    const { toolName: name } = chunk;
    const errorText = `It did not run: a step may have at most ${this.#max} tool calls. Ask for it in the next step.`;
    return [{ type: "tool-input-error", toolCallId, toolName: name, input: {}, errorText }];
  }

  #fit(given: ToolChunk): UIMessageChunk[] {
    const chunk = "toolName" in given && given.toolName === "" ? { ...given, toolName: UNNAMED } : given;
    const { toolCallId } = chunk;
    if (chunk.type === "tool-input-available" || chunk.type === "tool-input-error") return this.#input(chunk);
    if (chunk.type === "tool-input-start" && this.#ids.get(toolCallId)?.input !== undefined)
      this.#ids.delete(toolCallId);
    if (chunk.type === "tool-input-start" && this.#named(toolCallId, chunk.toolName).length > 0) {
      this.#held.set(toolCallId, [chunk]);
      return [];
    }
    const held = this.#held.get(toolCallId);
    if (held !== undefined) {
      held.push(chunk);
      return [];
    }
    if (chunk.type === "tool-input-start") return [this.#add(chunk)];
    const id = this.#ids.get(toolCallId)?.id;
    if (id === undefined) return [chunk];
    const part = findTool(this.#source.builder, id);
    return part !== undefined && isTerminal(part) ? [] : [{ ...chunk, toolCallId: id }];
  }

  /** Whether a call has another id in the answer than the model gave it. */
  get renamed(): boolean {
    return this.#renamed;
  }

  /** The attempt is over: ends the calls that it did not ask for again. */
  finish(): UIMessageChunk[] {
    const chunks = endUnrun(this.#unused);
    this.#unused.clear();
    return chunks;
  }

  #input(chunk: InputChunk): UIMessageChunk[] {
    const known = this.#ids.get(chunk.toolCallId);
    if (known?.input !== undefined) {
      // A model that shows a call again, with all that it is, repeats itself.
      const same = known.tool === chunk.toolName && sameJson(known.input.value, chunk.input);
      if (same && chunk.toolCallId !== "") return [];
      this.#ids.delete(chunk.toolCallId);
    }
    const chunks = this.#complete(chunk);
    const named = this.#ids.get(chunk.toolCallId);
    if (named !== undefined) named.input = { value: chunk.input };
    return chunks;
  }

  #complete(chunk: InputChunk): UIMessageChunk[] {
    const held = this.#held.get(chunk.toolCallId) ?? [];
    this.#held.delete(chunk.toolCallId);
    const part = this.#earlier(chunk);
    if (part === undefined) return [...held, chunk].map((one) => this.#add(one));
    this.#unused.delete(part);
    this.#name(chunk.toolCallId, { id: part.toolCallId, tool: chunk.toolName });
    const news = part.state === "input-streaming" || (chunk.type === "tool-input-error" && !isTerminal(part));
    return news ? [{ ...chunk, toolCallId: part.toolCallId }] : [];
  }

  /** The earlier call that this one is: the same input, or one of which only the beginning is known. */
  #earlier({ toolCallId, toolName: name, input }: InputChunk): ToolPart | undefined {
    const calls = this.#named(toolCallId, name);
    const isHalf = (part: ToolPart) => part.state === "input-streaming";
    const isSame = (part: ToolPart) => !isHalf(part) && sameJson(part.input, storedToolInput(part, input));
    const [first] = calls;
    if (first?.toolCallId === toolCallId && isHalf(first)) return first;
    return calls.find(isSame) ?? calls.find(isHalf);
  }

  /** Earlier calls of the same tool; the one of the same id first. */
  #named(id: string, name: string): ToolPart[] {
    const calls: ToolPart[] = [];
    for (const part of this.#unused) {
      if (toolName(part) !== name) continue;
      if (part.toolCallId === id) calls.unshift(part);
      else calls.push(part);
    }
    return calls;
  }

  /** A call of its own, under an id of its own. */
  #add<C extends ToolChunk>(chunk: C): C {
    let id = this.#ids.get(chunk.toolCallId)?.id;
    if (id === undefined) {
      const wanted = chunk.toolCallId.replaceAll(RESERVED, "_");
      id = freeCallId(this.#source, wanted, (one) => this.#taken.has(one));
      this.#name(chunk.toolCallId, { id, tool: "toolName" in chunk ? chunk.toolName : "" });
      this.#taken.add(id);
    }
    return id === chunk.toolCallId ? chunk : { ...chunk, toolCallId: id };
  }

  #name(given: string, named: Named): void {
    this.#ids.set(given, named);
    if (given !== named.id) this.#renamed = true;
  }
}

/** Ends the calls of a step whose model call was cut and will not be made again: nobody is to run them. */
export function unrunCalls(builder: MessageBuilder, called: number): UIMessageChunk[] {
  const from = builder.inherited + settledParts(builder, called).length;
  return endUnrun(builder.parts.slice(from).flatMap((part): ToolPart[] => (isToolPart(part) ? [part] : [])));
}

function endUnrun(parts: Iterable<ToolPart>): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [];
  for (const part of parts) {
    if (isTerminal(part)) continue;
    const { toolCallId, providerExecuted } = part;
    // No input for one that was only half there: clients would run it.
    chunks.push({
      type: "tool-output-error",
      toolCallId,
      errorText: NOT_RUN_TEXT,
      ...(providerExecuted !== undefined && { providerExecuted }),
    });
  }
  return chunks;
}
