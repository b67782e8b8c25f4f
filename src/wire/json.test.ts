import { expect, test } from "vitest";
import { PerdureError } from "../base/error.ts";
import { readJson, writeJson } from "./json.ts";

const DEPTH = 8;

test("values come through", () => {
  const value = { a: [1, -0.5, "x", null, true, { b: [] }], constructor: "Ferrari", "": 1 };
  expect(readJson(JSON.stringify(value), DEPTH)).toEqual({ ok: true, value });
  for (const text of ["null", "0", '""', "[]", "true"]) {
    expect(readJson(text, DEPTH)).toEqual({ ok: true, value: JSON.parse(text) });
  }
});

test.each(["", "{", "undefined", "NaN", "{'a':1}", "\0", "[1,]", '{"a":1}x', "\ud800"])("%j is not JSON", (text) => {
  expect(readJson(text, DEPTH)).toEqual({ ok: false, why: "not-json" });
});

test("__proto__ keys go away at every level, also when escaped", () => {
  const text = String.raw`{"__proto__":{"x":1},"a":[{"\u005f_proto__":{"x":1},"b":2}]}`;
  const read = readJson(text, DEPTH);
  expect(read).toEqual({ ok: true, value: { a: [{ b: 2 }] } });
  if (!read.ok) return;
  const copy = Object.assign({}, read.value) as { x?: number };
  expect(copy.x).toBeUndefined();
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
});

test("numbers beyond a double are what JSON would write for them", () => {
  expect(readJson('{"a":1e999,"b":[-1e999,1e308],"c":1}', DEPTH)).toEqual({
    ok: true,
    value: { a: null, b: [null, 1e308], c: 1 },
  });
  expect(readJson("1e999", DEPTH)).toEqual({ ok: true, value: null });
});

test("the depth limit is exact and costs no stack", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  expect(readJson(nested(DEPTH), DEPTH).ok).toBe(true);
  expect(readJson(nested(DEPTH + 1), DEPTH)).toEqual({ ok: false, why: "too-deep" });
  expect(readJson('{"a":'.repeat(DEPTH + 1) + "1" + "}".repeat(DEPTH + 1), DEPTH)).toEqual({
    ok: false,
    why: "too-deep",
  });
  expect(readJson(nested(500_000), DEPTH)).toEqual({ ok: false, why: "too-deep" });
});

test("what JSON cannot hold is bad input", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const thrower = {
    toJSON() {
      throw new Error("no");
    },
  };
  let deep: unknown = 0;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  for (const value of [cycle, 1n, { n: 1n }, undefined, () => 1, Symbol("s"), thrower, deep]) {
    let thrown: unknown;
    try {
      writeJson(value, "The result");
    } catch (error) {
      thrown = error;
    }
    expect(PerdureError.is(thrown, "bad_input")).toBe(true);
    expect((thrown as Error).message).toMatch(/^The result cannot be written as JSON: [^\n]+$/);
  }
});
