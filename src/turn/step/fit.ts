import { mergeJson, sameJson } from "../../base/json.ts";
import {
  isTerminal,
  isToolPart,
  type Part,
  type ProviderMetadata,
  type ReasoningUIPart,
  type TextUIPart,
  toolName,
  type ToolPart,
  type UIMessageChunk,
} from "../../message/types.ts";
import { type CallIdSource, freeCallId } from "../engine/call-ids.ts";
import { findTool, type MessageBuilder } from "../../message/builder.ts";
import { storedToolInput } from "../../message/tool-input.ts";
import { tooManyCalls } from "../engine/chunk-bounds.ts";
import { openStepAt } from "./answer.ts";

/*
 * Fitting a repeated model call
 *
 * Clients have seen what a cut call brought; it stays. Asked again, the model may go on where it stopped or repeat itself.
 * Repeated text is passed over and the rest appended; reasoning that differs becomes its own part. A tool call of the cut attempt
 * never ran here: the same call with the same input stands for it, with a result that a client or the provider gave; one that
 * does not come again ends as not run.
 */

/** Fits the chunks of one more attempt behind those of the step's earlier ones. One per attempt: it remembers. */
export class StepFit {
  readonly #text: SpokenFit;
  readonly #reasoning: SpokenFit;
  readonly #calls: CallFit;
  readonly #others: Set<Part>;

  /** @param from the index of the first part of the step. */
  constructor(source: CallIdSource, from: number, calls = new CallFit(source, from)) {
    const { builder } = source;
    const parts = builder.parts.slice(from);
    this.#text = new SpokenFit(builder, "text", parts);
    this.#reasoning = new SpokenFit(builder, "reasoning", parts);
    this.#calls = calls;
    this.#others = new Set(parts);
  }

  /** What goes out of a chunk of the new attempt. */
  take(chunk: UIMessageChunk): UIMessageChunk[] {
    switch (chunk.type) {
      case "text-start":
        return this.#text.start(chunk);
      case "text-delta":
        return this.#text.delta(chunk);
      case "text-end":
        return this.#text.end(chunk);
      case "reasoning-start":
        return this.#reasoning.start(chunk);
      case "reasoning-delta":
        return this.#reasoning.delta(chunk);
      case "reasoning-end":
        return this.#reasoning.end(chunk);
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-available":
      case "tool-input-error":
      case "tool-approval-request":
      case "tool-output-available":
      case "tool-output-error":
      case "tool-output-denied":
        return this.#calls.take(chunk);
      case "source-url":
      case "source-document":
      case "file":
      case "reasoning-file":
        return this.#isThere(chunk) ? [] : [chunk];
      default:
        return [chunk];
    }
  }

  /** The attempt is over: ends what it did not take up. */
  finish(): UIMessageChunk[] {
    return [...this.#reasoning.finish(), ...this.#text.finish(), ...this.#calls.finish()];
  }

  #isThere(chunk: UIMessageChunk): boolean {
    for (const part of this.#others) {
      if (part.type !== chunk.type || !sameJson(nameless(part), nameless(chunk))) continue;
      this.#others.delete(part);
      return true;
    }
    return false;
  }
}

/** What tells two sources or files apart: not the names that a provider gives them anew. */
function nameless(value: object): object {
  return { ...value, sourceId: undefined, providerMetadata: undefined };
}

/** What a call of a cut attempt says that was not asked for again. */
export const NOT_RUN_TEXT = "The call was cut off before it ran. It did not run.";

type ToolChunk = Extract<UIMessageChunk, { toolCallId: string }>;
type InputChunk = Extract<ToolChunk, { type: "tool-input-available" | "tool-input-error" }>;

/** Stands for what a model left out. Parts without a name are no calls, and the turn would just end. */
const UNNAMED = "unnamed";
/** A model that asks for so many times more than it may is stopped: what is refused is stored too. */
const REFUSED_FACTOR = 10;
/** Never part of a call's id: separates a call from those inside it, in ids and idempotency keys. */
const RESERVED = /[/#%]/g;

/** A call of an attempt, by the id that the model gave it. */
interface Named {
  readonly id: string;
  readonly tool: string;
  /** Its input, once that is complete: what comes next under the same id may be another call. */
  input?: { readonly value: unknown };
}

/**
 * Gives an attempt's tool calls unique ids: some providers omit them, or count from zero. Calls of earlier attempts keep theirs.
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

  /** @param from the first part of the step, with those of earlier attempts @param max calls of a step; more are refused */
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
  return endUnrun(
    builder.parts.slice(openStepAt(builder, called)).flatMap((part): ToolPart[] => (isToolPart(part) ? [part] : [])),
  );
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

type Kind = "text" | "reasoning";
type Spoken = TextUIPart | ReasoningUIPart;
type Chunk<T extends "start" | "delta" | "end"> = Extract<UIMessageChunk, { type: `${Kind}-${T}` }>;

interface Fit {
  /** What was there before. */
  readonly base: string;
  /** The id under which it is still open; undefined when it was closed. */
  readonly openId: string | undefined;
  /** What the new attempt has said of it and did not go out: the beginning of `base`. */
  said: string;
  /** What a provider had attached to that. */
  metadata: ProviderMetadata | undefined;
  /** The id under which new words go out, once they do. */
  outId: string | undefined;
}

/** Fits the texts, or the reasoning, of one more attempt behind those of the step's earlier ones. */
class SpokenFit {
  readonly #kind: Kind;
  readonly #open: ReadonlyMap<string, Spoken>;
  readonly #unused = new Set<Spoken>();
  readonly #fits = new Map<string, Fit>();

  /** @param parts what the earlier attempts have left of the step. */
  constructor(builder: MessageBuilder, kind: Kind, parts: readonly Part[]) {
    this.#kind = kind;
    this.#open = kind === "text" ? builder.openText : builder.openReasoning;
    for (const part of parts)
      if ((part.type === "text" || part.type === "reasoning") && part.type === kind) this.#unused.add(part);
  }

  start(chunk: Chunk<"start">): UIMessageChunk[] {
    const [part] = this.#unused;
    const fit: Fit = {
      base: part?.text ?? "",
      openId: part === undefined ? undefined : this.#openId(part),
      said: "",
      metadata: chunk.providerMetadata,
      outId: undefined,
    };
    this.#fits.set(chunk.id, fit);
    if (part === undefined) return [this.#begin(chunk.id, fit)];
    this.#unused.delete(part);
    return [];
  }

  delta(chunk: Chunk<"delta">): UIMessageChunk[] {
    const fit = this.#fits.get(chunk.id);
    if (fit === undefined) return [chunk];
    if (fit.outId !== undefined) return [{ ...chunk, id: fit.outId }];
    const repeats = fit.base.startsWith(chunk.delta, fit.said.length);
    fit.said += chunk.delta;
    fit.metadata = merge(fit.metadata, chunk.providerMetadata);
    return repeats ? [] : this.#goOn(chunk.id, fit);
  }

  end(chunk: Chunk<"end">): UIMessageChunk[] {
    const fit = this.#fits.get(chunk.id);
    if (fit === undefined) return [chunk];
    this.#fits.delete(chunk.id);
    // It ended where it could still have been a repetition, but it did not repeat all: so it went on, with few words.
    const short = fit.outId === undefined && fit.said !== "" && fit.said.length < fit.base.length;
    const said = short ? this.#goOn(chunk.id, fit) : [];
    const id = fit.outId ?? fit.openId;
    if (id === undefined) return said;
    return [...said, { ...chunk, id, ...attached(merge(fit.metadata, chunk.providerMetadata)) }];
  }

  /** The attempt is over: ends what is open. */
  finish(): UIMessageChunk[] {
    const chunks = [...this.#fits.keys()].flatMap((id) => this.end({ type: `${this.#kind}-end`, id }));
    for (const part of this.#unused) {
      const id = this.#openId(part);
      if (id !== undefined) chunks.push({ type: `${this.#kind}-end`, id });
    }
    this.#unused.clear();
    return chunks;
  }

  /** It has said the same and more, or something else. */
  #goOn(id: string, fit: Fit): UIMessageChunk[] {
    const { base, said } = fit;
    const more = said.startsWith(base);
    if (fit.openId !== undefined && more) return [this.#append(fit, fit.openId, said.slice(base.length))];
    if (this.#kind === "reasoning") {
      // Providers sign what was thought as a whole and refuse it when it was changed: it stays in a part of its own.
      const ended: UIMessageChunk[] = fit.openId === undefined ? [] : [{ type: "reasoning-end", id: fit.openId }];
      return [...ended, this.#begin(id, fit), this.#append(fit, fit.outId ?? id, said)];
    }
    const openId = fit.openId ?? (more ? undefined : this.#lastOpen());
    if (openId !== undefined) return [this.#append(fit, openId, said)];
    return [this.#begin(id, fit), this.#append(fit, fit.outId ?? id, more ? said.slice(base.length) : said)];
  }

  /** A part of its own. */
  #begin(id: string, fit: Fit): UIMessageChunk {
    let outId = id;
    for (let n = 2; this.#open.has(outId) && outId !== fit.openId; n++) outId = `${id}-${n}`;
    fit.outId = outId;
    return { type: `${this.#kind}-start`, id: outId, ...takeMetadata(fit) };
  }

  #append(fit: Fit, id: string, delta: string): UIMessageChunk {
    fit.outId = id;
    return { type: `${this.#kind}-delta`, id, delta, ...takeMetadata(fit) };
  }

  /** The last text that was being said: a model that goes on goes on from there. */
  #lastOpen(): string | undefined {
    const part = [...this.#unused].findLast((one) => this.#openId(one) !== undefined);
    if (part === undefined) return undefined;
    this.#unused.delete(part);
    return this.#openId(part);
  }

  #openId(part: Spoken): string | undefined {
    for (const [id, one] of this.#open) if (one === part) return id;
    return undefined;
  }
}

function takeMetadata(fit: Fit): { providerMetadata?: ProviderMetadata } {
  const { metadata } = fit;
  fit.metadata = undefined;
  return attached(metadata);
}

function attached(metadata: ProviderMetadata | undefined): { providerMetadata?: ProviderMetadata } {
  return metadata === undefined ? {} : { providerMetadata: metadata };
}

function merge(base: ProviderMetadata | undefined, over: ProviderMetadata | undefined): ProviderMetadata | undefined {
  return mergeJson(base, over) as ProviderMetadata | undefined;
}
