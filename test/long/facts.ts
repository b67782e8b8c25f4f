// What must not get lost in a long conversation: how it is found in a stored message, and in what a model was sent.
import type { UIMessage } from "ai";
import type { ModelPrompt } from "../../src/testing/model-types.ts";
import { type Part, toolName, toolParts } from "../../src/message/types.ts";

/** Who says it: somebody, or a call of this tool. */
export type Source = "user" | "assistant" | { readonly tool: string; readonly in: "input" | "output" | "error" };

/** Something that may be said more than once; what was said last is true. The pattern's first group is its value. */
export interface Fact {
  readonly key: string;
  readonly from: Source;
  readonly pattern: RegExp;
}

/** A text, and who says it. */
export interface Saying {
  readonly from: Source;
  readonly text: string;
}

/** The values that are true after all of these, by their keys. @param values those that were true before. */
export function valuesIn(
  facts: readonly Fact[],
  sayings: Iterable<Saying>,
  values: ReadonlyMap<string, string> = new Map(),
): Map<string, string> {
  const found = new Map(values);
  for (const { from, text } of sayings) {
    for (const fact of facts) {
      if (!sameSource(fact.from, from)) continue;
      for (const [, value] of text.matchAll(new RegExp(fact.pattern, "gu"))) {
        if (value !== undefined) found.set(fact.key, value);
      }
    }
  }
  return found;
}

function sameSource(one: Source, other: Source): boolean {
  if (typeof one === "string" || typeof other === "string") return one === other;
  return one.tool === other.tool && one.in === other.in;
}

/** What a stored message says. */
export function sayingsOf(message: UIMessage): Saying[] {
  const from = message.role === "user" ? "user" : "assistant";
  const sayings: Saying[] = message.parts.flatMap((part: Part) => {
    if (part.type === "text") return [{ from, text: part.text }];
    return part.type === "steering-message" ? [{ from: "user", text: JSON.stringify(part.parts) }] : [];
  });
  for (const part of toolParts(message)) {
    const tool = toolName(part);
    sayings.push({ from: { tool, in: "input" }, text: JSON.stringify(part.input) });
    if (part.state === "output-available") sayings.push({ from: { tool, in: "output" }, text: plain(part.output) });
    if (part.state === "output-error") sayings.push({ from: { tool, in: "error" }, text: part.errorText ?? "" });
  }
  return sayings;
}

/** What a request says, from one of its messages on. */
export function sayingsInPrompt(prompt: ModelPrompt): Saying[] {
  const sayings: Saying[] = [];
  for (const message of prompt) {
    if (message.role === "system") continue;
    for (const part of message.content) {
      if (part.type === "text") sayings.push({ from: message.role === "user" ? "user" : "assistant", text: part.text });
      if (part.type === "tool-call") {
        sayings.push({ from: { tool: part.toolName, in: "input" }, text: JSON.stringify(part.input) });
      }
      if (part.type !== "tool-result") continue;
      const { output, toolName: tool } = part;
      const kind = output.type.startsWith("error") ? "error" : "output";
      sayings.push({ from: { tool, in: kind }, text: "value" in output ? plain(output.value) : "" });
    }
  }
  return sayings;
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
