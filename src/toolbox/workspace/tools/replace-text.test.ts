import { expect, test } from "vitest";
import { replaceText } from "./replace-text.ts";

const replace = (text: string, old: string, now: string, all = false) =>
  replaceText(text, { path: "/f", old, now, all });

test("what is there exactly is replaced, also when it looks like a pattern", () => {
  expect(replace("a $1 b", "$1", "$&")).toEqual({ text: "a $& b", lines: [1], loosely: false });
  expect(replace("x\ny\nx\n", "x", "z", true)).toEqual({ text: "z\ny\nz\n", lines: [1, 3], loosely: false });
});

test.each([
  [
    "other indentation",
    "  if (a) {\n    b();\n  }\n",
    "if (a) {\n  b();\n}",
    "if (a) {\n  c();\n}",
    "  if (a) {\n    c();\n  }\n",
  ],
  ["tabs for blanks", "\tfoo(a,\tb);\n", "foo(a, b);", "bar();", "\tbar();\n"],
  ["line ends of Windows", "one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n", "1\r\n2\r\nthree\r\n"],
  ["blanks at line ends", "a  \nb\n", "a\nb", "c\nd", "c\nd\n"],
  ["a part of a line", "let x  =  1;\n", "x = 1", "y = 2", "let y = 2;\n"],
])("white space does not count: %s", (_what, text, old, now, after) => {
  expect(replace(text, old, now)).toMatchObject({ text: after, loosely: true });
});

test("what is there several times is not guessed at", () => {
  expect(() => replace("a\nb\na\n", "a", "c")).toThrow(
    "old_string is in /f 2 times, at lines 1, 3. Nothing was changed.",
  );
  expect(() => replace("x  y\nx   y\n", "x y", "c")).toThrow("2 times, at lines 1, 2");
  expect(() => replace("a\n".repeat(20), "a", "c")).toThrow("lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more");
});

test("what is not there is answered with what comes near", () => {
  const text = "function add(a, b) {\n  return a + b;\n}\n";
  expect(() => replace(text, "function add(a, b, c) {\n  return", "x")).toThrow(
    "These lines come near:\n1\tfunction add(a, b) {",
  );
  expect(() => replace(text, "1\tfunction add(a, b) {\n2\t  return a + b;", "x")).toThrow(
    "line numbers: those are not part",
  );
  expect(() => replace(text, "   ", "x")).toThrow("old_string is not in /f.");
  expect(() => replace("", "something", "x")).toThrow("old_string is not in /f.");
});

test("a text with very many places, and a line with very many words", () => {
  const { lines } = replaceText("a\n".repeat(100_000), { path: "/f", old: "a", now: "b\nc", all: true });
  expect(lines.at(-1)).toBe(2 * 99_999 + 1);
  const text = Array.from({ length: 30_000 }, (_, at) => `w${at}`).join("\n");
  const old = Array.from({ length: 30_000 }, (_, at) => `v${at}`).join(" ");
  expect(() => replace(text, old, "x")).toThrow("old_string is not in /f.");
});

test("nothing that a model asks for goes through millions of places or makes a text of any length", () => {
  const file = "a".repeat(3_000_000);
  expect(() => replace(file, "a", "b", true)).toThrow(
    "old_string is in /f more than 100000 times. Nothing was changed.",
  );
  expect(() => replace(file, "a", "b")).toThrow("old_string is in /f more than 100000 times, at lines 1, 1");
  expect(() => replace("a".repeat(4_000_001), "a", "b")).toThrow("/f has 4000001 characters.");
  expect(() => replace("a".repeat(20_000), "a", "b".repeat(20_000), true)).toThrow(
    "/f would have too many characters.",
  );
  expect(() => replace("x  y ".repeat(1_000), "x y", "z", true)).toThrow("more than 100 times");
  expect(replace(`${file}b`, "b", "c")).toMatchObject({ lines: [1] });
});
