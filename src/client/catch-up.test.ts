import { expect, test } from "vitest";
import { newBuilder, toMessage } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import type { UIMessageChunk } from "../message/types.ts";
import { catchUp, findAnswer } from "./catch-up.ts";

const stream: UIMessageChunk[] = [
  { type: "start", messageId: "a1" },
  { type: "start-step" },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "so " },
  { type: "reasoning-delta", id: "r", delta: "then" },
  { type: "reasoning-end", id: "r" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "one " },
  { type: "text-delta", id: "t", delta: "two" },
  { type: "text-end", id: "t" },
  { type: "tool-input-start", toolCallId: "c1", toolName: "add" },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"a":' },
  { type: "tool-input-available", toolCallId: "c1", toolName: "add", input: { a: 1 } },
  { type: "tool-output-available", toolCallId: "c1", output: 2 },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "tool-input-available", toolCallId: "c2", toolName: "pay", input: {}, dynamic: true },
  { type: "tool-approval-request", toolCallId: "c2", approvalId: "ap" },
  { type: "source-url", sourceId: "s", url: "https://example.com/" },
  { type: "file", url: "data:,x", mediaType: "text/plain" },
  { type: "data-x", id: "d", data: 1 },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "end" },
  { type: "text-end", id: "t" },
  { type: "finish" },
];

function fold(chunks: readonly UIMessageChunk[]) {
  const builder = newBuilder("?");
  for (const chunk of chunks) applyChunk(builder, chunk);
  return builder;
}

/** Cuts off what is kept of a streamed input: it is gone when the input is whole. */
const whole = toMessage(fold(stream));

test.each(stream.map((_, seen) => seen))("after %i chunks, what is told makes the whole message", (seen) => {
  const built = fold(stream.slice(0, seen));
  for (const chunk of catchUp(built, whole)) applyChunk(built, chunk);
  expect(JSON.parse(JSON.stringify(toMessage(built)))).toEqual(JSON.parse(JSON.stringify(whole)));
});

test("nothing is told of what is there, or of a message that became another", () => {
  expect(catchUp(fold(stream), whole)).toEqual([]);
  const other = { ...whole, parts: [{ type: "text" as const, text: "something else" }] };
  expect(catchUp(fold(stream.slice(0, 8)), other)).toEqual([]);
});

test("an answer is found by its id, or behind the message that it answers", () => {
  const ask = { id: "u1", role: "user" as const, parts: [] };
  const next = { id: "u2", role: "user" as const, parts: [] };
  expect(findAnswer([ask, whole, next], fold(stream), undefined)).toBe(whole);
  expect(findAnswer([ask, whole, next], newBuilder("?"), ["u1"])).toBe(whole);
  expect(findAnswer([ask, whole, next], newBuilder("?"), ["u2"])).toBeUndefined();
  expect(findAnswer([ask, whole, next], newBuilder("?"), undefined)).toBeUndefined();
});
