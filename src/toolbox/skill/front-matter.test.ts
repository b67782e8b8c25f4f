import { expect, test } from "vitest";
import { parseFrontMatter } from "./front-matter.ts";

const fieldsOf = (yaml: string): unknown => parseFrontMatter(`---\n${yaml}\n---\nbody`).fields;

test("names, texts, quotes and comments", () => {
  const fields = fieldsOf(
    `# a comment
name: release-notes
plain: it's plain, with "quotes" and a # that is none: no
`.replace(" a # that is none: no", " a#b"),
  );
  expect(fields).toEqual({ name: "release-notes", plain: `it's plain, with "quotes" and a#b` });
  expect(fieldsOf(`a: "x: \\"y\\" \\n\\u00e9" # why\nb: 'it''s # fine'\nc: 1.0 # text\nd:\ne: true`)).toEqual({
    a: 'x: "y" \né',
    b: "it's # fine",
    c: "1.0",
    d: "",
    e: "true",
  });
});

test("blocks keep lines or fold them", () => {
  expect(fieldsOf("a: |\n  one\n    two\n\n  three\nb: x")).toEqual({ a: "one\n  two\n\nthree", b: "x" });
  expect(fieldsOf("a: >-\n  one\n  two\n\n  three\nb: >\n  x\n")).toEqual({ a: "one two\nthree", b: "x" });
  expect(fieldsOf("a: |\n  # no comment\n  b: no name")).toEqual({ a: "# no comment\nb: no name" });
  expect(fieldsOf("a: one\n  two\n  three")).toEqual({ a: "one two three" });
});

test("lists and maps", () => {
  expect(fieldsOf("a:\n  - one\n  - 'two'\nb: [x, \"y, z\"]\nc: []\nd:\n- e")).toEqual({
    a: ["one", "two"],
    b: ["x", "y, z"],
    c: [],
    d: ["e"],
  });
  expect(fieldsOf('metadata:\n  author: Ada\n  version: "1.0" # now\n  "a b": c')).toEqual({
    metadata: { author: "Ada", version: "1.0", "a b": "c" },
  });
});

test("names of JavaScript's own are names like others", () => {
  const fields = parseFrontMatter("---\n__proto__: x\nmetadata:\n  __proto__: y\n---\n").fields;
  expect(Object.keys(fields)).toEqual(["__proto__", "metadata"]);
  expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
});

test("the body follows, whatever the line endings", () => {
  expect(parseFrontMatter("\uFEFF---\r\nname: x\r\n---\r\n\r\n# Title\r\n---\r\nmore\r\n")).toEqual({
    fields: { name: "x" },
    body: "# Title\n---\nmore",
  });
});

test.each([
  ["name: x", /does not begin with/],
  ["---\nname: x", /no closing line/],
  ["---\njust text\n---", /Line 2 .*must be `name: value`/],
  ["---\na: x\na: y\n---", /Line 3 .*`a` is there twice/],
  ["---\n  a: x\n---", /Line 2 .*belongs to no name/],
  ["---\na:\n\tb: x\n---", /Line 3 .*tabs/],
  ["---\na: {b: c}\n---", /Line 2 .*must be in quotes/],
  ["---\na: &x y\n---", /must be in quotes/],
  ["---\na: !!str y\n---", /must be in quotes/],
  ["---\na: b: c\n---", /must be in quotes, or a block/],
  ['---\na: "open\n---', /does not end where the line does/],
  ['---\na: "x\\q"\n---', /is not supported/],
  ["---\na: [x, y\n---", /no closing/],
  ["---\na:\n  b:\n    c: d\n---", /only one level/],
  ["---\na:\n  - b\n    c: d\n---", /more than one line/],
  ["---\na:\n  b: c\n  b: d\n---", /`b` is there twice/],
])("what it cannot read, it refuses: %j", (text, message) => {
  expect(() => parseFrontMatter(text)).toThrow(message);
});

test("front matter has an end", () => {
  expect(() => parseFrontMatter(`---\n${"# x\n".repeat(600)}---`)).toThrow(/more than 500 lines/);
});

test("a line has an end too: what it takes grows with the square of its length", () => {
  const blanks = " ".repeat(90_000);
  expect(() => parseFrontMatter(`---\na:\n  b${blanks}c\n---`)).toThrow(/Line 3 has more than 4000 characters/);
  expect(() => parseFrontMatter(`---\na: [b,${blanks},c]\n---`)).toThrow(/Line 2 has more than 4000 characters/);
  expect(parseFrontMatter(`---\na: b\n---\n${"c".repeat(5_000)}`).body).toHaveLength(5_000);
});
