import { expect, test } from "vitest";
import { boundMessage, KEPT_OUTPUT_BYTES, KEPT_TEXT_CHARS, MAX_MESSAGE_BYTES } from "./bound.ts";
import { cutValue } from "./cut-value.ts";
import { isToolPart } from "./types.ts";
import type { Part, UIMessage } from "./types.ts";

const message = (parts: Part[], metadata?: unknown): UIMessage => ({
  id: "a",
  role: "assistant",
  parts,
  ...(metadata !== undefined && { metadata }),
});
const tool = (id: string, output: unknown, input: unknown = {}): Part => ({
  type: "tool-t",
  toolCallId: id,
  state: "output-available",
  input,
  output,
});
const bytes = (text: string) => new TextEncoder().encode(text).length;

/** Cuts a message and checks what holds for every one; `undefined` means that all of it does. */
function fault(before: UIMessage, limit = MAX_MESSAGE_BYTES): string | undefined {
  const bound = boundMessage(before, limit);
  if (bytes(bound.json) > limit) return `${bytes(bound.json)} bytes`;
  if (bound.json !== JSON.stringify(bound.message)) return "the JSON is of another message";
  if (bound.message.id !== before.id) return "another id";
  return boundMessage(bound.message, limit).message === bound.message ? undefined : "cut again";
}

function cut(before: UIMessage): UIMessage {
  expect(fault(before)).toBeUndefined();
  return boundMessage(before).message;
}

test("a message that fits is returned as it is, with its JSON", () => {
  for (const text of ["short", "x".repeat(1_700_000), "é".repeat(800_000)]) {
    const fits = message([{ type: "text", text }]);
    expect(boundMessage(fits)).toEqual({ message: fits, json: JSON.stringify(fits) });
    expect(boundMessage(fits).message).toBe(fits);
  }
});

test("the limit counts bytes, not characters", () => {
  const after = cut(message([{ type: "text", text: "€".repeat(700_000) }]));
  expect(after.metadata).toEqual({ compactedTextParts: [0] });
});

test("the largest outputs are cut first and only as many as needed, in their shape", () => {
  const rows = Array.from({ length: 30_000 }, (_, n) => ({ n, name: `row ${n}`, text: "lorem ipsum dolor" }));
  const before = message(
    [
      tool("small", "s".repeat(900)),
      tool("medium", "m".repeat(200_000)),
      tool("large", { rows, total: 30_000 }),
      { type: "text", text: "t".repeat(5_000) },
    ],
    { kept: true },
  );
  const after = cut(before);
  expect(after.metadata).toEqual({ kept: true, compactedToolOutputs: ["large"] });
  expect([after.parts[0], after.parts[1], after.parts[3]]).toEqual([before.parts[0], before.parts[1], before.parts[3]]);
  const large = after.parts[2] as { output: { rows: unknown[]; total?: number; note: string } };
  expect(large.output.rows[0]).toMatchObject({ n: 0 });
  expect(large.output.note).toContain("Run the tool again");
  expect(bytes(JSON.stringify(large.output))).toBeLessThan(2 * KEPT_OUTPUT_BYTES);
});

test("of equal outputs the older goes first", () => {
  const after = cut(message([tool("one", "x".repeat(1_000_000)), tool("two", "x".repeat(1_000_000))]));
  expect(after.metadata).toEqual({ compactedToolOutputs: ["one"] });
  expect(after.parts[0]).toMatchObject({ output: expect.stringContaining("1000000 characters") as string });
});

test("texts are cut when outputs are not enough, and what was cut before stays on record", () => {
  const before = message(
    [
      tool("c", "x".repeat(100_000)),
      { type: "text", text: "a".repeat(1_900_000), state: "done" },
      { type: "reasoning", text: "r".repeat(600) },
    ],
    { compactedToolOutputs: ["older"], compactedTextParts: [7] },
  );
  const after = cut(before);
  expect(after.metadata).toEqual({ compactedToolOutputs: ["older", "c"], compactedTextParts: [7, 1] });
  const text = (after.parts[1] as { text: string }).text;
  expect(text.startsWith("a".repeat(KEPT_TEXT_CHARS) + "…")).toBe(true);
  expect(text.length).toBeLessThan(KEPT_TEXT_CHARS + 100);
  expect(after.parts[2]).toEqual(before.parts[2]);
});

test("a text is not cut inside a character", () => {
  const after = cut(message([{ type: "text", text: "x".repeat(KEPT_TEXT_CHARS - 1) + "😀".repeat(700_000) }]));
  expect((after.parts[0] as { text: string }).text.isWellFormed()).toBe(true);
});

const huge = "h".repeat(2_500_000);
test.each<[string, UIMessage]>([
  ["an input", message([tool("c", 1, { code: huge })])],
  ["an error text", message([{ type: "tool-t", toolCallId: "c", state: "output-error", input: {}, errorText: huge }])],
  ["a data part", message([{ type: "data-x", id: "1", data: { list: [huge] } }])],
  ["a file", message([{ type: "file", mediaType: "image/png", url: `data:image/png;base64,${huge}` }])],
  ["a source", message([{ type: "source-url", sourceId: "s", url: huge }])],
  ["provider metadata", message([{ type: "text", text: "kept", providerMetadata: { p: { x: huge } } }])],
  ["metadata", message([{ type: "text", text: "kept" }], { x: huge })],
  ["metadata that is a string", message([tool("c", huge)], huge)],
  ["an unknown field", { ...message([{ type: "text", text: "kept" }]), note: huge } as UIMessage],
  [
    "very many parts",
    message(Array.from({ length: 60_000 }, (_, n): Part => ({ type: "text", text: `part number ${n}` }))),
  ],
  ["very many calls", message(Array.from({ length: 3_000 }, (_, n) => tool(`c${n}`, "o".repeat(1_200))))],
  ["a call id", message([{ ...tool("c", 1), toolCallId: huge } as Part])],
  ["escapes", message([tool("c", "\u0001".repeat(900_000)), { type: "text", text: '"\\'.repeat(900_000) }])],
  ["deep JSON", message([tool("c", JSON.parse("[".repeat(3_000) + "1" + "]".repeat(3_000)), { x: huge })])],
])("always fits: %s", (_name, before) => {
  expect(fault(before)).toBeUndefined();
});

test("what JSON cannot hold is replaced instead of thrown", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const after = boundMessage(
    message([
      tool("c", cycle),
      tool("d", { n: 1n }, cycle),
      { type: "data-x", data: cycle },
      { type: "text", text: "kept" },
    ]),
  );
  const parts = (JSON.parse(after.json) as UIMessage).parts;
  expect(parts[0]).toMatchObject({
    toolCallId: "c",
    state: "output-available",
    output: expect.stringContaining("not JSON") as string,
  });
  expect(parts[1]).toMatchObject({ toolCallId: "d", input: {} });
  expect(parts[3]).toEqual({ type: "text", text: "kept" });
});

test("calls stay whole enough to be sent to a model", () => {
  const after = cut(
    message([tool("c", huge, { code: huge }), { ...tool("d", huge), type: "dynamic-tool", toolName: "x" } as Part]),
  );
  expect(after.parts.every((part) => isToolPart(part) && typeof part.input === "object")).toBe(true);
});

test.each([2_000, 5_000, 20_000])("a limit of %i holds too", (limit) => {
  const output = { a: "x".repeat(9_000), b: ["y".repeat(9_000)] };
  const before = message([{ type: "step-start" }, tool("c", output), { type: "text", text: "t".repeat(9_000) }], {
    m: "z",
  });
  expect(fault(before, limit)).toBeUndefined();
});

test("cutting keeps what is small and shares the room", () => {
  expect(cutValue({ a: 1, b: "short", c: [true, null] }, 500)).toEqual({ a: 1, b: "short", c: [true, null] });
  const smaller = cutValue(
    { big: "x".repeat(5_000), small: "kept", list: Array.from({ length: 1_000 }, (_, n) => n) },
    600,
  ) as Record<string, unknown>;
  expect(smaller.small).toBe("kept");
  expect(smaller.big).toContain("5000 characters in all");
  expect((smaller.list as unknown[]).at(-1)).toContain("more items cut");
  expect(cutValue(JSON.parse('{"__proto__":"x","a":1}'), 500)).toEqual(JSON.parse('{"__proto__":"x","a":1}'));
});
