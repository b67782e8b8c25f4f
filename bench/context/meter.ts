import { estimateTokens } from "perdure/context";
import type { ScriptedCall } from "perdure/testing";
import { type Fact, newest, type PlannedCall } from "./conversation.ts";

/** What a token costs, beside one that is read for the first time. */
const CACHED_PRICE = 0.1;
const OUTPUT_PRICE = 5;
/** So much of an output must be there, from its beginning, to count as shown. */
const SHOWN_CHARS = 60;

/** A request as a provider reads it: the tools, then each message, as text. */
interface Sent {
  readonly segments: readonly string[];
  readonly tokens: number;
}

/** Counts what one model is sent and says. */
export class Meter {
  requests = 0;
  sentTokens = 0;
  staleTokens = 0;
  price = 0;
  /** Of requests that follow another one with nothing made shorter in between: tokens of the first, and how many still stand. */
  prefixTokens = 0;
  keptTokens = 0;
  #last: (Sent & { readonly compactions: number }) | undefined;

  /**
   * A request. @param compactions how many prunes and summaries were made so far.
   * @returns its tokens, and how many of them a provider has in its cache: the longest beginning that it shares with the
   * request before.
   */
  request(call: Pick<ScriptedCall, "prompt" | "tools">, compactions: number): { tokens: number; cached: number } {
    const segments = [JSON.stringify(call.tools), ...call.prompt.map((message) => JSON.stringify(message))];
    const tokens = segments.reduce((sum, text) => sum + estimateTokens(text), 0);
    const last = this.#last;
    const cached = last === undefined ? 0 : sharedTokens(last.segments, segments);
    if (last !== undefined && last.compactions === compactions) {
      this.prefixTokens += last.tokens;
      this.keptTokens += cached;
    }
    this.#last = { segments, tokens, compactions };
    this.requests++;
    this.sentTokens += tokens;
    this.price += tokens - cached + CACHED_PRICE * cached;
    return { tokens, cached };
  }

  answered(text: string): void {
    this.price += OUTPUT_PRICE * estimateTokens(text);
  }

  /** Counts outputs that a later one has made stale. @param made all calls so far, by their ids. */
  stale({ prompt }: Pick<ScriptedCall, "prompt">, made: ReadonlyMap<string, PlannedCall>): void {
    const newestOf = new Map<string, string>();
    for (const [id, { subject }] of made) if (subject !== undefined) newestOf.set(subject, id);
    for (const message of prompt) {
      if (message.role !== "tool") continue;
      for (const part of message.content) {
        const call = part.type === "tool-result" ? made.get(part.toolCallId) : undefined;
        if (part.type !== "tool-result" || call?.subject === undefined) continue;
        if (newestOf.get(call.subject) === part.toolCallId) continue;
        const text = JSON.stringify(part.output);
        // A note in the place of an output is not stale.
        if (text.includes(JSON.stringify(call.output).slice(1, SHOWN_CHARS))) this.staleTokens += estimateTokens(text);
      }
    }
  }
}

/** How many tokens two requests have in common from their beginning on. */
function sharedTokens(before: readonly string[], after: readonly string[]): number {
  let tokens = 0;
  for (const [i, text] of before.entries()) {
    const other = after[i] ?? "";
    if (text !== other) {
      let at = 0;
      while (at < text.length && text[at] === other[at]) at++;
      return tokens + estimateTokens(text.slice(0, at));
    }
    tokens += estimateTokens(text);
  }
  return tokens;
}

/** Which of the facts that hold in a turn are in a request, in their exact words. */
export class Recall {
  readonly #known = { user: 0, tool: 0 };
  readonly #found = { user: 0, tool: 0 };

  look({ prompt }: Pick<ScriptedCall, "prompt">, facts: readonly Fact[], turn: number): void {
    const text = JSON.stringify(prompt);
    for (const fact of newest(facts.filter((one) => one.turn < turn))) {
      this.#known[fact.by]++;
      if (text.includes(fact.text)) this.#found[fact.by]++;
    }
  }

  of(by: "user" | "tool"): number {
    return this.#found[by] / this.#known[by];
  }

  get all(): number {
    return (this.#found.user + this.#found.tool) / (this.#known.user + this.#known.tool);
  }
}
