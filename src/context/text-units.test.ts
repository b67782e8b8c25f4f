import { expect, test } from "vitest";
import { unitsOfJson, unitsOfText } from "./text-units.ts";

test("ASCII is a quarter of a unit a character", () => {
  expect(unitsOfText("")).toBe(0);
  expect(unitsOfText("a")).toBe(0.25);
  expect(unitsOfText("const x = 1;\n\t{}~\x7f")).toBe(18 / 4);
});

test.each([
  ["Han", "漢字", 2],
  ["Han, rare", "㐀", 1],
  ["Han, compatible", "豈", 1],
  ["Hiragana", "ひらがな", 4],
  ["Katakana", "カタカナ", 4],
  ["Katakana, half width", "ｶﾅ", 2],
  ["Hangul", "한국어", 3],
  ["Hangul letters", "ㄱㅏ", 2],
  ["Hangul, in pieces", "\u1112\u1161\u11ab", 3],
  ["Bopomofo", "ㄅㄆ", 2],
  ["full width", "ＡＢＣ！", 4],
  ["punctuation", "、。「」", 4],
])("%s is one unit a character", (_name, text, units) => {
  expect(unitsOfText(text)).toBe(units);
});

test.each([
  ["Cyrillic", "Привет"],
  ["Greek", "Καλημέρα"],
  ["Arabic", "مرحبا"],
  ["Arabic, in forms", "\ufb50\ufe8d"],
  ["Hebrew", "שלום"],
  ["Hindi", "नमस्ते"],
  ["Thai", "สวัสดี"],
  ["accents", "éèüß"],
  ["quotes and dashes", "“”–…"],
  ["box drawing", "│├──"],
  ["private use", "\ue000\uf8ff"],
])("%s is half a unit a character", (_name, text) => {
  expect(unitsOfText(text)).toBe(text.length / 2);
});

test("an emoji is about two", () => {
  expect(unitsOfText("🎉")).toBe(2);
  expect(unitsOfText("🎉🎉🎉")).toBe(6);
  // A family of three: three pairs and two joiners.
  expect(unitsOfText("👨‍👩‍👧")).toBe(7);
  // A Han character outside the first plane.
  expect(unitsOfText("𠀀")).toBe(2);
});

test("half of a pair counts too", () => {
  expect(unitsOfText("\ud83d")).toBe(1);
  expect(unitsOfText("a\udc00b")).toBe(1.5);
});

test("it adds up exactly, however a text is cut", () => {
  const text = "Hello, 世界! Привет 🎉 ".repeat(5_000);
  for (const at of [1, 7, 13, 4_999, 60_001]) {
    expect(unitsOfText(text.slice(0, at)) + unitsOfText(text.slice(at))).toBe(unitsOfText(text));
  }
});

test("JSON counts as it is written, a string as it is", () => {
  expect(unitsOfJson({ a: 1 })).toBe(unitsOfText('{"a":1}'));
  expect(unitsOfJson("a text")).toBe(unitsOfText("a text"));
  expect(unitsOfJson(undefined)).toBe(0);
  expect(unitsOfJson(1n)).toBe(0);
  const self: unknown[] = [];
  self.push(self);
  expect(unitsOfJson(self)).toBe(0);
});
