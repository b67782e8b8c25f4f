import { expect, test } from "vitest";
import { isDeeperThan, MAX_OUTPUT_DEPTH, toPlainJson } from "./plain-json.ts";

const bytes = Uint8Array.from({ length: 100_000 }, (_, n) => n % 251);
const base64 = Buffer.from(bytes).toString("base64");

test.each<[string, unknown, unknown]>([
  ["undefined", undefined, null],
  ["null", null, null],
  ["a text", "a\ud800", "a\ud800"],
  ["a number", -1.5, -1.5],
  ["numbers that JSON does not know", [Number.NaN, 1 / 0], [null, null]],
  ["undefined fields and items", { a: undefined, b: [undefined] }, { b: [null] }],
  ["functions inside", { run: () => 1, list: [() => 1], n: 1 }, { list: [null], n: 1 }],
  ["big integers", { n: 12345678901234567890n }, { n: "12345678901234567890" }],
  ["dates", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["maps", new Map([["a", new Map([[1, 2]])]]), { a: [[1, 2]] }],
  ["sets", new Set([1, "a"]), [1, "a"]],
  ["errors", { failed: new TypeError("no") }, { failed: { name: "TypeError", message: "no" } }],
  ["bytes", { data: bytes }, { data: base64 }],
  ["buffers", [Buffer.from(bytes)], [base64]],
  ["array buffers", bytes.buffer, base64],
  [
    "texts that only look like prototype keys",
    { a: "__proto__", b: ["__proto__"] },
    { a: "__proto__", b: ["__proto__"] },
  ],
])("%s", (_name, before, after) => {
  expect(toPlainJson(before, "The output")).toEqual(after);
});

test("a prototype key is refused with words, and nothing is dropped in silence", () => {
  for (const text of ['{"__proto__":1}', '{"a":[{"__proto__":{"x":1},"b":2}]}'])
    expect(() => toPlainJson(JSON.parse(text), "The output")).toThrow('The output has a field called "__proto__"');
});

test("the result is a copy", () => {
  const list = [1];
  const output = toPlainJson({ list }, "The output");
  list.push(2);
  expect(output).toEqual({ list: [1] });
});

test("what is nested too deep is its text", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
  expect(toPlainJson(nested(MAX_OUTPUT_DEPTH), "The output")).toEqual(nested(MAX_OUTPUT_DEPTH));
  const deep = MAX_OUTPUT_DEPTH + 1;
  expect(toPlainJson(nested(deep), "The output")).toBe("[".repeat(deep) + "]".repeat(deep));
});

test("what JSON cannot hold is refused with words", () => {
  const cycle: unknown[] = [];
  cycle.push({ cycle });
  const broken = {
    toJSON() {
      throw new Error("own");
    },
  };
  for (const bad of [cycle, broken, () => 1, Symbol("x"), JSON.parse("[".repeat(100_000) + "]".repeat(100_000))]) {
    expect(() => toPlainJson(bad, 'The output of "t"')).toThrow(
      expect.objectContaining({ code: "bad_input", message: expect.stringContaining('The output of "t"') as string }),
    );
  }
});

test("how deep JSON is", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 5; level++) deep = level % 2 === 0 ? [deep] : { deep };
  expect([isDeeperThan(deep, 4), isDeeperThan(deep, 5), isDeeperThan("text", 0), isDeeperThan({}, 0)]).toEqual([
    ...[true, false, false, true],
  ]);
  const deepest: unknown = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  expect(isDeeperThan(deepest, 256)).toBe(true);
});
