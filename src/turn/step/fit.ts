import { sameJson } from "../../base/json.ts";
import type { Part, UIMessageChunk } from "../../message/types.ts";
import type { CallIdSource } from "../engine/call-ids.ts";
import { CallFit } from "./fit-calls.ts";
import { SpokenFit } from "./fit-spoken.ts";

/*
 * Fitting a repeated model call
 *
 * Clients have seen what a cut call had brought; it stays. The model is asked again and may go on where it stopped,
 * or say all of it once more. Text that repeats what is there is passed over, and from where it differs or is longer
 * it is appended; reasoning that differs becomes a part of its own. A tool call of the cut attempt has never run here;
 * the same call with the same input stands for it, with its result if a client or the provider has given one, and one
 * that does not come again ends as not run.
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
