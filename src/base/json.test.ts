import { expect, test } from "vitest";
import { mergeJson, sameJson, utf8Length } from "./json.ts";

test("equal JSON is equal whatever the order of keys, and undefined fields do not count", () => {
  expect(sameJson({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1, d: undefined })).toBe(true);
  expect(sameJson({ a: 1, d: undefined }, { a: 1 })).toBe(true);
  expect(sameJson({ a: undefined }, { b: 1 })).toBe(false);
  expect(sameJson([1, 2], [1])).toBe(false);
  expect(sameJson([1], { 0: 1 })).toBe(false);
  expect(sameJson({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  expect(sameJson({}, { toString: 1 })).toBe(false);
});

test("merging replaces lists, goes into objects, and never reaches a prototype", () => {
  const base = { a: { x: 1 }, list: [1, 2], keep: true };
  expect(mergeJson(base, { a: { y: 2 }, list: [3], keep: undefined })).toEqual({
    a: { x: 1, y: 2 },
    list: [3],
    keep: true,
  });
  expect(base).toEqual({ a: { x: 1 }, list: [1, 2], keep: true });
  const attack: unknown = JSON.parse('{"__proto__":{"evil":1},"constructor":{"prototype":{"evil":1}},"ok":1}');
  const merged = mergeJson({ a: 1 }, attack) as Record<string, unknown>;
  expect(merged).toEqual({ a: 1, ok: 1 });
  expect(merged.evil).toBeUndefined();
  expect(({} as Record<string, unknown>).evil).toBeUndefined();
});

test("counts UTF-8 bytes like an encoder", () => {
  for (const text of ["", "abc", "é", "€", "😀", "a😀é€", "\ud83d", "\ud83dx", "\ude00"]) {
    expect(utf8Length(text), JSON.stringify(text)).toBe(new TextEncoder().encode(text).length);
  }
});
