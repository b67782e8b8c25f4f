import { expect, test } from "vitest";
import type { UIMessage } from "../../message/types.ts";
import { describeCompletion, describeMilestone, lastText, summaryOf } from "./run-views.ts";
import type { AgentToolLifecycleResult, AgentToolRunInfo } from "./types.ts";

type Part = UIMessage["parts"][number];

const text = (said: string): Part => ({ type: "text", text: said });
const call: Part = { type: "tool-read", toolCallId: "c", state: "output-available", input: {}, output: "x" };
const step: Part = { type: "step-start" };

function answer(...parts: Part[]): UIMessage[] {
  return [
    { id: "u", role: "user", parts: [text("Hello.")] },
    { id: "a", role: "assistant", parts },
  ];
}

const table: [what: string, messages: UIMessage[], said: string][] = [
  ["no messages", [], ""],
  ["no answer", [{ id: "u", role: "user", parts: [text("Hello.")] }], ""],
  ["one text", answer(step, text("Three.")), "Three."],
  ["texts around a call", answer(step, text("Let me see."), call, step, text("Three.")), "Three."],
  ["an answer that was cut and carried on", answer(step, text("One "), step, text("two.")), "One two."],
  ["both", answer(text("Let me see."), call, step, text("One "), text("two.")), "One two."],
  ["a call at the end", answer(text("Let me see."), call), "Let me see."],
  ["an empty text after a call", answer(text("Three."), call, text("")), "Three."],
  ["only calls", answer(call), ""],
  ["reasoning is not said", answer({ type: "reasoning", text: "Hm." }, text("Three.")), "Three."],
  ["two answers", [...answer(text("One.")), ...answer(text("Two."))], "Two."],
];

for (const [what, messages, said] of table) {
  test(`the last text: ${what}`, () => expect(lastText(messages)).toBe(said));
}

test("a summary is the text, trimmed and not too long", () => {
  expect(summaryOf("  Three.\n")).toBe("Three.");
  const long = summaryOf("é".repeat(2000));
  expect(new TextEncoder().encode(long).length).toBeLessThan(700);
  expect(long.startsWith("ééé")).toBe(true);
});

test("what is said of an end and of a milestone", () => {
  const run: AgentToolRunInfo = { runId: "r", agentType: "Reader", status: "completed", displayOrder: 1, startedAt: 0 };
  const shown = { ...run, display: { name: "The reader" } };
  const said = (result: AgentToolLifecycleResult) => describeCompletion(shown, result);
  expect(said({ status: "completed", summary: "Three." })).toBe(
    "The background work of The reader is done. It says:\n\nThree.",
  );
  expect(describeCompletion(run, { status: "completed" })).toBe("The background work of Reader is done.");
  expect(said({ status: "error", error: "No ink." })).toBe("The background work of The reader failed. Reason: No ink.");
  expect(said({ status: "aborted" })).toBe("The background work of The reader was stopped.");
  expect(said({ status: "interrupted", error: "Too long." })).toContain("was given up. Reason: Too long.");
  expect(describeMilestone(run, { name: "half", sequence: 0, at: 0 })).toBe("Reader has reached: half.");
  expect(describeMilestone(shown, { name: "half", sequence: 0, at: 0 })).toBe("The reader has reached: half.");
});
