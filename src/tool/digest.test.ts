import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type Random, seeded } from "../../test/support/seeded.ts";
import { canonicalJson, digestOf } from "./digest.ts";

const KEYS = ["a", "b", "10", "9", "ä", "Z", "", "__proto__", "😀", "\ud800", "toJSON"];
const LEAVES = [null, true, false, 0, 1, -1.5, 1e21, "", "1", "true", "null", "é", '\u0000\n"\\'];

function value(rand: Random, depth: number): unknown {
  const kind = depth === 0 ? 0 : rand(4);
  if (kind < 2) return LEAVES[rand(LEAVES.length)];
  const size = rand(5);
  if (kind === 2) return Array.from({ length: size }, () => value(rand, depth - 1));
  const fields = Array.from({ length: size }, () => [KEYS[rand(KEYS.length)] ?? "", value(rand, depth - 1)]);
  return Object.fromEntries(fields) as unknown;
}

/** The same value with its keys put in another order. */
function shuffled(rand: Random, before: unknown): unknown {
  if (Array.isArray(before)) return before.map((item) => shuffled(rand, item));
  if (typeof before !== "object" || before === null) return before;
  const fields = Object.entries(before).map(([key, item]): [string, unknown] => [key, shuffled(rand, item)]);
  for (let at = fields.length - 1; at > 0; at--) {
    const other = rand(at + 1);
    [fields[at], fields[other]] = [fields[other] ?? ["", 0], fields[at] ?? ["", 0]];
  }
  return Object.fromEntries(fields);
}

test("the order of keys does not matter, and the text is the value's JSON", () => {
  const rand = seeded(11);
  for (let run = 0; run < 2_000; run++) {
    const before = value(rand, 4);
    const text = canonicalJson(before);
    expect(canonicalJson(shuffled(rand, before))).toBe(text);
    expect(JSON.parse(text)).toEqual(before);
    expect(canonicalJson(JSON.parse(text))).toBe(text);
  }
});

test("different values have different texts", () => {
  const rand = seeded(12);
  for (let run = 0; run < 2_000; run++) {
    const a = value(rand, 3);
    const b = value(rand, 3);
    expect(canonicalJson(a) === canonicalJson(b)).toBe(same(a, b));
  }
});

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, at) => same(item, b[at]));
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  return left.size === right.size && [...left].every(([key, item]) => right.has(key) && same(item, right.get(key)));
}

test("types are told apart", () => {
  const texts = [1, "1", true, "true", null, "null", [], {}, [1], ["1"], { a: 1 }, { a: "1" }, { a: [1] }];
  expect(new Set(texts.map(canonicalJson)).size).toBe(texts.length);
});

test("what JSON leaves out does not count", () => {
  expect(canonicalJson({ b: undefined, a: 1, f: () => 1 })).toBe('{"a":1}');
  expect(canonicalJson([undefined, Number.NaN])).toBe("[null,null]");
  expect(canonicalJson(undefined)).toBe("null");
  expect(canonicalJson({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
});

test("what JSON cannot hold is refused", async () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const bad of [cycle, { n: 1n }, () => 1]) {
    expect(() => canonicalJson(bad)).toThrow(expect.objectContaining({ code: "bad_input" }));
  }
  await expect(digestOf("t", cycle)).rejects.toThrow(expect.objectContaining({ code: "bad_input" }));
});

test("the digest is SHA-256 of tool and input, and binds both", async () => {
  const expected = createHash("sha256").update('["send",{"a":1,"b":[2]}]').digest("hex");
  expect(await digestOf("send", { b: [2], a: 1 })).toBe(expected);
  const others = [
    await digestOf("send2", { a: 1, b: [2] }),
    await digestOf("send", { a: 1, b: ["2"] }),
    await digestOf("send", { a: 1 }),
    await digestOf("send", [{ a: 1, b: [2] }]),
    await digestOf("", undefined),
  ];
  expect(new Set([expected, ...others]).size).toBe(others.length + 1);
});
