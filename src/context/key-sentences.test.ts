import { expect, test } from "vitest";
import { keySentences, saidIn } from "./user-words.ts";

const found = (text: string, known: readonly string[] = []) =>
  keySentences(text, (word) => known.includes(word)).map(({ from, to }) => text.slice(from, to));

test.each([
  ["Hello there. The port is 7400. Thanks!", ["The port is 7400."]],
  ["please go on with src/api/a.ts\nand then rest", ["please go on with src/api/a.ts"]],
  ["call it retryBudget. fine", ["call it retryBudget."]],
  ["We met Ole in Bergen. It rained.", ["We met Ole in Bergen."]],
  ["Never call before nine. It rained.", ["Never call before nine."]],
  ['He said "go". It rained.', ['He said "go".']],
  ["Ask Dr. Berg, i.e. the doctor. It rained.", ["Ask Dr. Berg, i.e. the doctor."]],
  ["It costs 3.50 euros e.g. at noon. It rained.", ["It costs 3.50 euros e.g. at noon."]],
  ["天気です。港は九時と17番です。はい。", ["港は九時と17番です。"]],
  ["It rained. I think that I may go.", []],
  ["", []],
])("%j", (text, sentences) => {
  expect(found(text)).toEqual(sentences);
});

test("names that are known already make no sentence", () => {
  expect(found("Go on with src/a.ts.", ["src/a.ts"])).toEqual([]);
  expect(found("Go on with src/a.ts at line 3.", ["src/a.ts"])).toEqual(["Go on with src/a.ts at line 3."]);
});

test("of a very long sentence, what stands around the place that matters", () => {
  const [one = ""] = found(`${"word ".repeat(400)}port 7400 ${"word ".repeat(400)}`);
  expect(one).toContain("port 7400");
  expect(one.length).toBeLessThanOrEqual(300);
  const [glued = ""] = found("9".repeat(4_000));
  expect(glued.length).toBeLessThanOrEqual(300);
});

test("a text says a sentence when it has each of its numbers with the words around it", () => {
  const [key] = keySentences("You should know that order A-7034 came without the supply.");
  const says = (text: string) => key !== undefined && saidIn(text)(key);
  expect(says("- Order A-7034 came without supply")).toBe(true);
  expect(says("- order A-7034 left the warehouse")).toBe(false);
  expect(says("- for that order\n- A-7034 came without")).toBe(true);
  expect(says("- know that order\n- A-7034 came\n- without")).toBe(false);
  expect(says("")).toBe(false);
});
