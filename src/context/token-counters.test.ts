import { expect, test } from "vitest";
import { unitsOfText } from "./text-units.ts";
import { MAX_PIECE, type TextCounter, TokenCounters } from "./token-counters.ts";

const words: TextCounter = (text) => text.split(/\s+/).filter((word) => word !== "").length;

const throws = (): number => {
  throw new Error("no vocabulary");
};

/** Counters for a model `a/b`, with what they were given and what was told. */
function counting(own: unknown) {
  const given: string[] = [];
  const told: string[] = [];
  const noted = (text: string) => {
    given.push(text);
    return (own as TextCounter)(text);
  };
  const counters = new TokenCounters(
    () => (typeof own === "function" ? noted : own) as TextCounter,
    (model, error) => void told.push(`${model}: ${error}`),
  );
  return { counters, given, told };
}

test("a text is counted once", () => {
  const { counters, given } = counting(words);
  expect([counters.of("a/b")("one two three"), counters.of("a/b")("one two three")]).toEqual([3, 3]);
  expect(counters.of("a/b")("")).toBe(0);
  expect(given).toEqual(["one two three"]);
});

test("a counter that is not there yet is asked for again", () => {
  let loaded = false;
  const counters = new TokenCounters(
    () => (loaded ? words : undefined),
    () => {},
  );
  expect([counters.of("a/b")("one two three!"), counters.rowOf("a/b")]).toEqual([3.5, "a/b"]);
  loaded = true;
  expect([counters.of("a/b")("one two three!"), counters.rowOf("a/b")]).toEqual([3, "counted:a/b"]);
});

test("a long text comes in pieces, with words and pairs whole", () => {
  const { counters, given } = counting(words);
  expect(counters.of("a/b")("lorem ipsum ".repeat(4_000))).toBe(8_000);
  expect(given.length).toBeGreaterThan(4);
  const emoji = `x${"😀".repeat(12_000)}`;
  const pairs = counting((text: string) => Array.from(text).length);
  expect(pairs.counters.of("a/b")(emoji)).toBe(12_001);
  expect([...given, ...pairs.given].every((piece) => piece.length <= MAX_PIECE && piece.isWellFormed())).toBe(true);
});

test("of a very long text some is counted, from its beginning to its end", () => {
  const { counters, given } = counting(words);
  const text = "abcdefg ".repeat(50_000) + "a b c d ".repeat(50_000);
  const tokens = counters.of("a/b")(text);
  expect(given.join("").length).toBeLessThanOrEqual(12 * MAX_PIECE);
  expect(Math.abs(tokens - 250_000) / 250_000).toBeLessThan(0.1);
});

test("what is remembered is bounded", () => {
  const { counters, given } = counting(words);
  const count = counters.of("a/b");
  const text = (index: number) => `${index} ${"word ".repeat(18_000)}`;
  for (let index = 0; index < 30; index++) count(text(index));
  const before = given.length;
  count(text(29));
  expect(given.length).toBe(before);
  count(text(0));
  expect(given.length).toBeGreaterThan(before);
});

test.each([
  ["throws", throws, /no vocabulary/],
  ["says less than nothing", () => -1, /returned -1/],
  ["says what is no number", () => Number.NaN, /returned NaN/],
  ["says that there is no end", () => Number.POSITIVE_INFINITY, /returned Infinity/],
  ["says nothing", () => undefined, /returned undefined/],
  ["answers later", async () => 3, /returned a promise/],
  ["is none", "words", /must return a function/],
])("a counter that %s: texts are estimated, and it is told once", (_name, own, error) => {
  const { counters, given, told } = counting(own);
  const held = counters.of("a/b");
  for (const text of ["some words of a text", "and more"]) {
    expect(held(text)).toBe(unitsOfText(text));
    expect(counters.of("a/b")(text)).toBe(unitsOfText(text));
  }
  expect(counters.of("a/b")).toBe(unitsOfText);
  expect(counters.rowOf("a/b")).toBe("a/b");
  expect(given.length).toBeLessThanOrEqual(1);
  expect(told).toEqual([expect.stringMatching(error)]);
});

test("what is asked for a counter and throws is told once too", () => {
  const told: string[] = [];
  const counters = new TokenCounters(
    () => {
      throw new Error("no tokenizer");
    },
    (model, error) => void told.push(`${model}: ${error}`),
  );
  expect([counters.of("a/b"), counters.of("a/b")]).toEqual([unitsOfText, unitsOfText]);
  expect(told).toEqual(["a/b: no tokenizer"]);
});

test("a counter that fails in the middle leaves nothing of it in what is weighed", () => {
  const { counters } = counting((text: string) => (text === "bad" ? -1 : 1_000));
  expect(counters.weigh("a/b", (count) => count("good") + count("bad"))).toBe(1.75);
});
