import type { ModelMessage, ToolModelMessage } from "ai";
import { expect, test } from "vitest";
import { BoundOutputs, outputBound } from "./bound-shown.ts";
import { overflowPolicy } from "./overflow.ts";
import { unitsOfMessage } from "./units.ts";

type Output = Extract<ToolModelMessage["content"][number], { type: "tool-result" }>["output"];

const results = (...outputs: Output[]): ModelMessage => ({
  role: "tool",
  content: outputs.map((output, i) => ({ type: "tool-result", toolCallId: `c${i}`, toolName: "read", output })),
});
const text = (value: string): Output => ({ type: "text", value });
const bounded = (message: ModelMessage, one = 1_000, step = 2 * one) =>
  new BoundOutputs().of([message], { one, step }, () => "m1")[0] ?? message;
const lines = (count: number, word = "word") => Array.from({ length: count }, (_, i) => `${word} ${i}`).join("\n");

test("what is within the bound is the same object, and so is what is bounded when it is asked for again", () => {
  const known = new BoundOutputs();
  const messages = [
    results(text("short")),
    results(text(lines(5_000))),
    { role: "user", content: lines(9_000) },
  ] as const;
  const bound = { one: 1_000, step: 2_000 };
  const first = known.of(messages, bound, () => "m1");
  expect(first[0]).toBe(messages[0]);
  expect(first[2]).toBe(messages[2]);
  expect(first[1]).not.toBe(messages[1]);
  expect(known.originalOf(first[1] as ModelMessage)).toBe(messages[1]);
  expect(known.of(messages, { ...bound }, () => "m1")[1]).toBe(first[1]);
  expect(JSON.stringify(known.of(messages, { one: 500, step: 900 }, () => "m1")[1])).not.toBe(JSON.stringify(first[1]));
  expect(known.of(messages, bound, () => "m1")).toEqual(first);
});

const KEPT = "f".repeat(64);
const long: [string, Output][] = [
  ["a text", text(lines(9_000))],
  ["a text of other scripts", text(lines(4_000, "海の天気"))],
  ["one whose end weighs more than its beginning", text(`${"a".repeat(20_000)}${"海".repeat(20_000)}`)],
  ["an error", { type: "error-text", value: lines(9_000) }],
  [
    "JSON",
    { type: "json", value: { name: "a", body: lines(9_000), list: Array.from({ length: 900 }, (_, i) => ({ i })) } },
  ],
  ["a list", { type: "json", value: Array.from({ length: 5_000 }, (_, i) => `item ${i}`) }],
  [
    "parts",
    {
      type: "content",
      value: [
        { type: "text", text: lines(5_000) },
        { type: "text", text: lines(5_000) },
      ],
    },
  ],
];

test.each(long)("%s is as long as the bound, about, with its beginning and its place", (_what, output) => {
  const shown = bounded(results(output));
  const units = unitsOfMessage(shown);
  expect(units).toBeLessThanOrEqual(1_000 + 80);
  expect(units).toBeGreaterThan(500);
  expect(shown.role === "tool" && shown.content[0]).toMatchObject({ toolCallId: "c0", output: { type: output.type } });
  expect(JSON.stringify(shown)).toContain("left out");
});

test("the end of a text is shown too, with where the rest is: the call, and what was kept when it was produced", () => {
  const cut = `${lines(4_000)}\n[… 9 characters left out; the whole text is in ${KEPT} …]\n${lines(4_000)}`;
  const shown = JSON.stringify(bounded(results(text(cut))));
  expect(shown).toContain("word 0\\n");
  expect(shown).toContain("word 3999");
  expect(shown).toContain("call c0 of message m1 has the whole output");
  expect(shown).toContain(`the whole text is in ${KEPT}`);
});

test("the outputs of one step share what a step may have; short ones stay whole", () => {
  const shown = bounded(results(text("short"), ...Array.from({ length: 9 }, () => text(lines(2_000)))), 1_000, 2_000);
  expect(unitsOfMessage(shown)).toBeLessThan(2_000 + 9 * 20);
  expect(shown.role === "tool" && shown.content[0]).toMatchObject({ output: { value: "short" } });
});

test("pictures stay, and so does what is no output of a tool of ours", () => {
  const file = { type: "file", data: { type: "data", data: "A".repeat(9_000) }, mediaType: "image/png" } as const;
  const shown = bounded(results({ type: "content", value: [{ type: "text", text: lines(9_000) }, file] }));
  expect(JSON.stringify(shown)).toContain("A".repeat(9_000));
  const own: ModelMessage = {
    role: "assistant",
    content: [{ type: "tool-result", toolCallId: "p", toolName: "web_search", output: text(lines(9_000)) }],
  };
  expect(bounded(own)).toBe(own);
});

test("the bound is a quarter of what may be sent, by the model and the app's own bound alone", () => {
  const policy = overflowPolicy({});
  const own = overflowPolicy({ proactive: { maxInputTokens: 10_000, threshold: 0.8 } });
  if (policy === undefined || own === undefined) throw new Error("off");
  expect(outputBound({ window: 16_000 }, policy)).toEqual({ one: 2_000, step: 4_000 });
  expect(outputBound({ window: 200_000, input: 100_000 }, policy)).toEqual({ one: 25_000, step: 50_000 });
  expect(outputBound({ window: 200_000 }, own)).toEqual({ one: 2_000, step: 4_000 });
});
