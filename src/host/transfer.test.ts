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

test("keys that are symbols pass, hidden ones stay hidden, and what is computed is there as a value", () => {
  const [own, shared] = [Symbol("own"), Symbol.for("shared")];
  const value = {
    [own]: { deep: [1] },
    [shared]: true,
    get sum() {
      return 3;
    },
  };
  Object.defineProperty(value, "hidden", { value: "here", enumerable: false });
  const copy = transfer(value);
  expect(copy).toEqual(value);
  expect(copy[own]).not.toBe(value[own]);
  expect([copy[shared], copy.sum, Reflect.get(copy, "hidden")]).toEqual([true, 3, "here"]);
  expect(Object.keys(copy)).toEqual(["sum"]);
  const found = Object.assign([1, 2], { index: 5, [shared]: "x" });
  const list = transfer(found);
  expect([[...list], list.index, list[shared]]).toEqual([[1, 2], 5, "x"]);
  expect(Object.getPrototypeOf(transfer(Object.create(null)))).toBe(null);
});

test("what cannot be handed over is refused with words", () => {
  const broken = {
    get secret(): never {
      throw new Error("locked");
    },
  };
  expect(() => transfer({ broken })).toThrow("The property secret cannot be passed to another agent");
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = { deep };
  expect(() => transfer(deep)).toThrow("nested too deep");
});

test("bytes are cut to what was handed over", () => {
  const whole = new Uint8Array(1000);
  const copy = transfer(whole.subarray(10, 20));
  expect([copy.length, copy.buffer.byteLength]).toEqual([10, 10]);
});

test("a Buffer is copied like any bytes", () => {
  const own = Buffer.from("mine");
  const copy = transfer({ own }).own;
  copy[0] = 0;
  expect([own.toString(), Buffer.isBuffer(copy), copy.length]).toEqual(["mine", true, 4]);
});
