import { expect, test } from "vitest";
import { takeChunk } from "./admit.ts";
import { newBuilder, toMessage } from "./builder.ts";
import { textChunker } from "./chunk-from-text.ts";

test("plain text becomes one text part with one id", () => {
  const chunker = textChunker("req");
  expect(chunker.push("Hel")).toEqual([
    { type: "start" },
    { type: "text-start", id: "req" },
    { type: "text-delta", id: "req", delta: "Hel" },
  ]);
  expect(chunker.push("")).toEqual([]);
  expect(chunker.push("lo")).toEqual([{ type: "text-delta", id: "req", delta: "lo" }]);
  expect(chunker.end()).toEqual([
    { type: "text-end", id: "req" },
    { type: "finish", finishReason: "stop" },
  ]);
  expect([...chunker.end(), ...chunker.push("late")]).toEqual([]);
});

test("bytes may be cut inside a character", () => {
  const builder = newBuilder("m");
  const chunker = textChunker("req");
  for (const byte of new TextEncoder().encode("é€😀!")) {
    for (const chunk of chunker.push(Uint8Array.of(byte))) takeChunk(builder, chunk);
  }
  for (const chunk of chunker.end()) takeChunk(builder, chunk);
  expect(toMessage(builder)).toEqual({
    id: "m",
    role: "assistant",
    parts: [{ type: "text", text: "é€😀!", state: "done" }],
  });
});

test("a character that never completes shows as one that is missing", () => {
  const chunker = textChunker("req");
  chunker.push(Uint8Array.of(0xe2, 0x82));
  expect(chunker.end()).toContainEqual({ type: "text-delta", id: "req", delta: "\ufffd" });
});

test("an empty answer has no part", () => {
  expect(textChunker("req").end()).toEqual([{ type: "start" }, { type: "finish", finishReason: "stop" }]);
});
