import { expect, test } from "vitest";
import { transfer } from "./transfer.ts";

test("plain data is copied all the way down", () => {
  const value = {
    list: [1, { deep: true }],
    when: new Date(7),
    bytes: new Uint8Array([1, 2]),
    map: new Map([["a", [1]]]),
    set: new Set([{ x: 1 }]),
  };
  const copy = transfer(value);
  expect(copy).toEqual(value);
  expect(copy.list[1]).not.toBe(value.list[1]);
  expect(copy.when).not.toBe(value.when);
  copy.bytes[0] = 9;
  copy.map.get("a")?.push(2);
  expect([value.bytes[0], value.map.get("a")]).toEqual([1, [1]]);
});

test("what holds itself is copied once", () => {
  const ring: { self?: unknown; twin: unknown[] } = { twin: [] };
  ring.self = ring;
  ring.twin.push(ring.twin);
  const copy = transfer(ring);
  expect(copy).not.toBe(ring);
  expect(copy.self).toBe(copy);
  expect(copy.twin[0]).toBe(copy.twin);
});

test("functions, errors, streams, requests and objects of a class pass as they are", () => {
  class Own {}
  for (const value of [
    () => 1,
    new Error("x"),
    new ReadableStream(),
    new Request("http://a"),
    new AbortController().signal,
    new Own(),
  ]) {
    expect(transfer({ value }).value).toBe(value);
  }
});

test("simple values stay, a key called __proto__ is only a key", () => {
  for (const value of [undefined, null, 0, "", true, 5n]) expect(transfer(value)).toBe(value);
  const copy = transfer(JSON.parse('{"__proto__":{"bad":true}}') as { bad?: boolean });
  expect(copy.bad).toBeUndefined();
  expect(Object.keys(copy)).toEqual(["__proto__"]);
});

test("bytes are cut to what was handed over", () => {
  const whole = new Uint8Array(1000);
  const copy = transfer(whole.subarray(10, 20));
  expect([copy.length, copy.buffer.byteLength]).toEqual([10, 10]);
});
