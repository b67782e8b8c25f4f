import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { capMemory } from "./cap-memory.ts";

const engine = readFileSync(createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm"));
/** A module with one memory of 1 page, exported as "m". */
const small = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 109, 2, 0]);

test("the memory cannot grow over the maximum", () => {
  for (const maximum of [1, 2, 127, 128, 300]) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(capMemory(small, maximum)));
    const memory = exports.m as WebAssembly.Memory;
    memory.grow(maximum - 1);
    expect(() => memory.grow(1)).toThrow(RangeError);
  }
});

test("the engine is still a module", () => {
  expect(WebAssembly.validate(capMemory(engine, 1_000))).toBe(true);
});

test.each([
  ["no module", new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 0xff])],
  ["no memory", small.subarray(0, 8)],
])("%s is refused", (_name, bytes) => {
  expect(() => capMemory(bytes, 10)).toThrow();
});

test("a maximum below the start is refused", () => {
  expect(() => capMemory(engine, 1)).toThrow(/starts with/);
});
