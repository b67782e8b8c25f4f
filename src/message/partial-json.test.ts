import { expect, test } from "vitest";
import { parsePartialJson } from "./partial-json.ts";
import { storedToolInput, toToolInput } from "./tool-input.ts";

test.each([
  ["", undefined],
  ["  ", undefined],
  ["nonsense", undefined],
  ["{", {}],
  ['{"a', {}],
  ['{"a"', {}],
  ['{"a":', {}],
  ['{"a":1', { a: 1 }],
  ['{"a":-', {}],
  ['{"a":1.', { a: 1 }],
  ['{"a":1.5e', { a: 1.5 }],
  ['{"a":tr', { a: true }],
  ['{"a":nul', { a: null }],
  ['{"a":"he', { a: "he" }],
  ['{"a":"he\\', { a: "he" }],
  ['{"a":"he\\u00', { a: "he" }],
  ['{"a":"\\u00e9', { a: "é" }],
  ['{"a":"x\\"}', { a: 'x"}' }],
  ['{"a":[1,{"b":2},', { a: [1, { b: 2 }] }],
  ['{"a":[1,2],"b":{"c":"d', { a: [1, 2], b: { c: "d" } }],
  ['{"a":1,"b', { a: 1 }],
  ["[1, 2", [1, 2]],
  ["nu", null],
  ["12", 12],
])("the beginning %j stands for %j", (text, value) => {
  expect(parsePartialJson(text)).toEqual(value);
});

test("every beginning of a JSON text can be read, and deep ones do not overflow", () => {
  const text = JSON.stringify({ a: [1, { b: 'x\\"\n' }, [true, null]], c: { d: -1.5, e: "" } });
  for (let length = 1; length <= text.length; length++)
    expect(parsePartialJson(text.slice(0, length))).toBeTypeOf("object");
  expect(parsePartialJson("[".repeat(50_000))).toBeInstanceOf(Array);
});

test("a tool input is always an object, unless the tool takes text", () => {
  const object = { a: 1 };
  expect(toToolInput(object)).toBe(object);
  expect(toToolInput(' {"a":1}')).toEqual({ a: 1 });
  for (const bad of [null, undefined, "", "x", "{broken", "[1]", [1], 5, true]) expect(toToolInput(bad)).toEqual({});
  expect(storedToolInput({ inputEncoding: "text" }, "print(1)")).toBe("print(1)");
  expect(storedToolInput({ inputEncoding: "text" }, null)).toEqual({});
});
