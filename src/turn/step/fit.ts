import type { MessageBuilder } from "../../message/builder.ts";
import { sameJson } from "../../message/json.ts";
import {
  isTerminal,
  isToolPart,
  type Part,
  type ReasoningUIPart,
  type TextUIPart,
  type ToolPart,
  toolName,
  type UIMessageChunk,
} from "../../message/types.ts";

/*
 * Fitting a repeated model call
 *
 * Clients have seen what a cut call had brought; it stays. The model is asked again and may go on where it stopped,
 * or say all of it once more. Text that repeats what is there is passed over, and from where it differs or is longer
 * it is appended. A tool call of the cut attempt has never run; the same call with the same input stands for it, and
 * one that does not come again ends as not run.
 */

/** What a call of a cut attempt says that was not asked for again. */
export const NOT_RUN_TEXT = "The call was cut off before it ran. It did not run.";

type Spoken = TextUIPart | ReasoningUIPart;

interface TextFit {
  /** What was there before. */
  readonly base: string;
  /** The id under which it is still open; undefined when it was closed. */
  readonly openId: string | undefined;
  said: string;
  /** From now on everything is new. */
  caughtUp: boolean;
  /** The id under which new text goes out, once it does. */
  outId: string | undefined;
}

/** Fits the chunks of one more attempt behind those of the step's earlier ones. One per attempt: it remembers. */
export class StepFit {
  readonly #builder: MessageBuilder;
  readonly #unused: Set<Part>;
  readonly #texts = new Map<string, TextFit>();
  readonly #held = new Map<string, UIMessageChunk[]>();

  /** @param from the index of the first part of the step. */
  constructor(builder: MessageBuilder, from: number) {
    this.#builder = builder;
    this.#unused = new Set(builder.parts.slice(from));
  }

  /** What goes out of a chunk of the new attempt. */
  take(chunk: UIMessageChunk): UIMessageChunk[] {
    switch (chunk.type) {
      case "text-start":
      case "reasoning-start":
        return this.#begin(chunk, chunk.type === "text-start" ? "text" : "reasoning");
      case "text-delta":
      case "reasoning-delta":
        return this.#say(chunk);
      case "text-end":
      case "reasoning-end":
        return this.#end(chunk);
      case "tool-input-start":
        if (this.#calls(chunk.toolCallId, chunk.toolName).length === 0) return [chunk];
        this.#held.set(chunk.toolCallId, [chunk]);
        return [];
      case "tool-input-delta": {
        const held = this.#held.get(chunk.toolCallId);
        held?.push(chunk);
        return held === undefined ? [chunk] : [];
      }
      case "tool-input-available":
        return this.#call(chunk);
      case "tool-input-error":
        return [...this.#release(chunk.toolCallId), chunk];
      default:
        return [chunk];
    }
  }

  /** The attempt is over: ends what it did not take up. */
  finish(): UIMessageChunk[] {
    const chunks: UIMessageChunk[] = [];
    for (const part of this.#unused) {
      if (part.type === "reasoning" && this.#openId(part) !== undefined) {
        chunks.push({ type: "reasoning-end", id: this.#openId(part) ?? "" });
      } else if (isToolPart(part) && !isTerminal(part) && part.providerExecuted !== true) {
        const { toolCallId } = part;
        if (part.state === "input-streaming") {
          const input = part.input ?? {};
          chunks.push({ type: "tool-input-available", toolCallId, toolName: toolName(part), input });
        }
        chunks.push({ type: "tool-output-error", toolCallId, errorText: NOT_RUN_TEXT });
      }
    }
    this.#unused.clear();
    return chunks;
  }

  #begin(chunk: UIMessageChunk & { id: string }, type: "text" | "reasoning"): UIMessageChunk[] {
    for (const part of this.#unused) {
      if (part.type !== type) continue;
      this.#unused.delete(part);
      const { text } = part as Spoken;
      const openId = this.#openId(part as Spoken);
      this.#texts.set(chunk.id, { base: text, openId, said: "", caughtUp: false, outId: undefined });
      return [];
    }
    return [chunk];
  }

  #say(chunk: UIMessageChunk & { id: string; delta: string }): UIMessageChunk[] {
    const fit = this.#texts.get(chunk.id);
    if (fit === undefined) return [chunk];
    fit.said += chunk.delta;
    if (fit.caughtUp) return this.#append(chunk, fit, chunk.delta);
    if (fit.base.startsWith(fit.said)) return [];
    fit.caughtUp = true;
    // It says the same and more, or something else: then it goes on from what was there.
    const rest = fit.said.startsWith(fit.base) ? fit.said.slice(fit.base.length) : fit.said;
    return this.#append(chunk, fit, rest);
  }

  #append(chunk: UIMessageChunk & { id: string }, fit: TextFit, delta: string): UIMessageChunk[] {
    const type = chunk.type.startsWith("text") ? "text" : "reasoning";
    if (fit.outId !== undefined) return [{ type: `${type}-delta`, id: fit.outId, delta }];
    fit.outId = fit.openId ?? chunk.id;
    const begin: UIMessageChunk[] = fit.openId === undefined ? [{ type: `${type}-start`, id: fit.outId }] : [];
    return [...begin, { type: `${type}-delta`, id: fit.outId, delta }];
  }

  #end(chunk: UIMessageChunk & { id: string }): UIMessageChunk[] {
    const fit = this.#texts.get(chunk.id);
    if (fit === undefined) return [chunk];
    this.#texts.delete(chunk.id);
    // It ended where it could still have been a repetition, but it did not repeat all: so it went on, with few words.
    const short = !fit.caughtUp && fit.said !== "" && fit.said.length < fit.base.length;
    const said = short ? this.#append(chunk, fit, fit.said) : [];
    const id = fit.outId ?? fit.openId;
    return id === undefined ? said : [...said, { ...chunk, id } as UIMessageChunk];
  }

  #call(chunk: Extract<UIMessageChunk, { type: "tool-input-available" }>): UIMessageChunk[] {
    for (const part of this.#calls(chunk.toolCallId, chunk.toolName)) {
      const half = part.state === "input-streaming";
      if (!half && !sameJson(part.input, chunk.input)) continue;
      this.#unused.delete(part as Part);
      this.#held.delete(chunk.toolCallId);
      return half ? [{ ...chunk, toolCallId: part.toolCallId }] : [];
    }
    // The same id for another input: it is that call now.
    for (const part of this.#unused)
      if (isToolPart(part) && part.toolCallId === chunk.toolCallId) this.#unused.delete(part as Part);
    return [...this.#release(chunk.toolCallId), chunk];
  }

  /** Calls of the cut attempt that this one may be; the one of the same id first. */
  #calls(id: string, name: string): ToolPart[] {
    const calls: ToolPart[] = [];
    for (const part of this.#unused) {
      if (!isToolPart(part) || isTerminal(part) || toolName(part) !== name) continue;
      if (part.toolCallId === id) calls.unshift(part);
      else calls.push(part);
    }
    return calls;
  }

  #release(id: string): UIMessageChunk[] {
    const held = this.#held.get(id) ?? [];
    this.#held.delete(id);
    return held;
  }

  #openId(part: Spoken): string | undefined {
    const open: ReadonlyMap<string, Spoken> =
      part.type === "text" ? this.#builder.openText : this.#builder.openReasoning;
    for (const [id, one] of open) if (one === part) return id;
    return undefined;
  }
}
