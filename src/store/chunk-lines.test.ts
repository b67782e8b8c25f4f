import { expect, test } from "vitest";
import { readLines, writeLines } from "./chunk-lines.ts";

const delta = (text: string, id = "t0", more: object = {}) =>
  JSON.stringify({ type: "text-delta", id, delta: text, ...more });

test.each<[string, string[]]>([
  ["deltas", [delta("a"), delta("b"), delta("")]],
  ["of several parts in turns", [delta("a"), delta("b", "t1"), delta("c"), delta("d", "t1")]],
  [
    "with quotes, line breaks and backslashes",
    ['say "x"', "\n", "\\", '\\"', "+", "}", '"}'].map((text) => delta(text)),
  ],
  ["that have more behind", [delta("a"), delta("b", "t0", { providerMetadata: { x: { y: "z" } } }), delta("c")]],
  ["whose id looks like a delta", [delta("a", '"delta":"'), delta("b", '"delta":"'), delta("c", "delta")]],
  ["among others", [JSON.stringify({ type: "start" }), delta("a"), JSON.stringify({ type: "text-end" }), delta("b")]],
  ["of tools", ["{", '"a', '":1}'].map((text) => JSON.stringify({ type: "tool-input-delta", inputTextDelta: text }))],
  ["any JSON", ['"text"', "1", "null", '{"delta":"a"}', '{"delta":"b"}', '{"delta":["b"]}', "{}"]],
])("%s come back to the letter", (_name, chunks) => {
  expect(readLines(writeLines(chunks))).toEqual(chunks);
});

test("deltas that differ in their letters take little more than those", () => {
  const chunks = Array.from({ length: 1_000 }, (_, n) => delta(`w${n % 10} `));
  expect(writeLines(chunks).length).toBeLessThan(1_000 * 6);
});

test("rows that were written whole are read as before", () => {
  const chunks = [delta("a"), delta("b"), '{"type":"finish"}'];
  expect(readLines(chunks.join("\n"))).toEqual(chunks);
});
