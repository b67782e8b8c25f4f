import { expect, test } from "vitest";
import { builderFrom, newBuilder, toMessage } from "./builder.ts";
import { applyChunk, isBoundary } from "./fold.ts";
import type { Part, UIMessage, UIMessageChunk } from "./types.ts";

function fold(...chunks: UIMessageChunk[]): Part[] {
  const builder = newBuilder("m");
  for (const chunk of chunks) applyChunk(builder, chunk);
  return toMessage(builder).parts;
}

const available: UIMessageChunk = { type: "tool-input-available", toolCallId: "c", toolName: "t", input: { a: 1 } };
const output: UIMessageChunk = { type: "tool-output-available", toolCallId: "c", output: 1 };

test("a delta without a start makes the part; an end without a start does nothing", () => {
  expect(fold({ type: "text-delta", id: "t", delta: "a" }, { type: "text-delta", id: "t", delta: "b" })).toEqual([
    { type: "text", text: "ab", state: "streaming" },
  ]);
  expect(fold({ type: "reasoning-delta", id: "r", delta: "a" }, { type: "reasoning-end", id: "r" })).toEqual([
    { type: "reasoning", id: "r", text: "a", state: "done" },
  ]);
  expect(fold({ type: "text-end", id: "t" }, { type: "reasoning-end", id: "r" })).toEqual([]);
});

test("texts that are written at the same time do not mix", () => {
  const parts = fold(
    { type: "text-start", id: "1" },
    { type: "text-start", id: "2" },
    { type: "text-delta", id: "1", delta: "one" },
    { type: "text-delta", id: "2", delta: "two" },
    { type: "text-delta", id: "1", delta: "!" },
  );
  expect(parts.map((part) => part.type === "text" && part.text)).toEqual(["one!", "two"]);
});

test("provider metadata of start, deltas and end is merged", () => {
  const parts = fold(
    { type: "reasoning-start", id: "r", providerMetadata: { anthropic: { a: 1 } } },
    { type: "reasoning-delta", id: "r", delta: "", providerMetadata: { anthropic: { signature: "s" } } },
    { type: "reasoning-end", id: "r", providerMetadata: { other: { b: 2 } } },
  );
  expect(parts[0]).toMatchObject({ providerMetadata: { anthropic: { a: 1, signature: "s" }, other: { b: 2 } } });
});

test("unknown chunks, and results of unknown calls, change nothing", () => {
  const builder = newBuilder("m");
  const future = JSON.parse('{"type":"from-the-future"}') as UIMessageChunk;
  for (const chunk of [
    future,
    output,
    { type: "tool-output-error", toolCallId: "c", errorText: "x" },
    { type: "tool-output-denied", toolCallId: "c" },
    { type: "tool-input-delta", toolCallId: "c", inputTextDelta: "{" },
    { type: "tool-approval-request", toolCallId: "c", approvalId: "a" },
    { type: "tool-approval-response", approvalId: "a", approved: true },
    { type: "data-x", data: 1, transient: true },
    { type: "finish-step" },
    { type: "abort" },
    { type: "error", errorText: "x" },
  ] as UIMessageChunk[]) {
    expect(applyChunk(builder, chunk), chunk.type).toBe(false);
  }
  expect(toMessage(builder)).toEqual({ id: "m", role: "assistant", parts: [] });
});

test("tool chunks that come again do not take a call back", () => {
  const start: UIMessageChunk = { type: "tool-input-start", toolCallId: "c", toolName: "t" };
  const delta: UIMessageChunk = { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"a":1}' };
  const once = fold(start, delta, available, output);
  expect(fold(start, delta, start, delta, available, available, output, start, delta, available, output)).toEqual(once);
  expect(fold(available, output, { type: "tool-output-error", toolCallId: "c", errorText: "x" })).toEqual(
    fold(available, output),
  );
  expect(fold(available, output, { type: "tool-approval-request", toolCallId: "c", approvalId: "a" })).toEqual(
    fold(available, output),
  );
  const error: UIMessageChunk = { type: "tool-input-error", toolCallId: "c", toolName: "t", input: {}, errorText: "x" };
  expect(fold(available, output, error)).toEqual(fold(available, output));
});

test("a preliminary output gives way to the next one", () => {
  const parts = fold(available, { ...output, output: "50 %", preliminary: true }, { ...output, output: "all" });
  expect(parts).toEqual([
    { type: "tool-t", toolCallId: "c", state: "output-available", input: { a: 1 }, output: "all" },
  ]);
});

test("malformed inputs become objects", () => {
  for (const input of [null, "", "nonsense", [1], 5]) {
    expect(fold({ ...available, input })[0]).toMatchObject({ input: {} });
  }
  expect(fold({ ...available, input: '{"a":2}' })[0]).toMatchObject({ input: { a: 2 } });
  const text = fold(
    { type: "tool-input-start", toolCallId: "c", toolName: "t", inputEncoding: "text" },
    { type: "tool-input-delta", toolCallId: "c", inputTextDelta: "print" },
    { ...available, input: "print(1)" },
  );
  expect(text[0]).toMatchObject({ state: "input-available", input: "print(1)" });
});

test("an input that is still streaming is read as far as it goes, and kept for a continuation", () => {
  const builder = newBuilder("m");
  applyChunk(builder, { type: "tool-input-start", toolCallId: "c", toolName: "t" });
  applyChunk(builder, { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"city":"Pa' });
  const message = toMessage(builder);
  expect(message.parts[0]).toMatchObject({ state: "input-streaming", input: { city: "Pa" }, rawInput: '{"city":"Pa' });
  const continued = builderFrom(message);
  applyChunk(continued, { type: "tool-input-delta", toolCallId: "c", inputTextDelta: 'ris"}' });
  expect(toMessage(continued).parts[0]).toMatchObject({ input: { city: "Paris" } });
});

test("an approval that is asked for before the input is complete keeps its place when the input comes", () => {
  const start: UIMessageChunk = { type: "tool-input-start", toolCallId: "c", toolName: "t" };
  const ask: UIMessageChunk = { type: "tool-approval-request", toolCallId: "c", approvalId: "ap" };
  const early = fold(start, { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"a"' }, ask);
  expect(early[0]).toMatchObject({ state: "approval-requested", input: {}, approval: { id: "ap" } });
  expect(fold(start, ask, available)[0]).toMatchObject({ state: "approval-requested", input: { a: 1 } });
  // What was shown in full is not exchanged.
  expect(fold(available, ask, { ...available, input: { a: 2 } })[0]).toMatchObject({ input: { a: 1 } });
});

test("a person's yes is not undone by the stream; a refusal ends the call", () => {
  const ask: UIMessageChunk = { type: "tool-approval-request", toolCallId: "c", approvalId: "ap" };
  const say = (approved: boolean): UIMessageChunk => ({ type: "tool-approval-response", approvalId: "ap", approved });
  const deny: UIMessageChunk = { type: "tool-output-denied", toolCallId: "c" };
  expect(fold(available, ask, say(true), ask, say(false), deny)[0]).toMatchObject({
    state: "approval-responded",
    approval: { approved: true },
  });
  expect(fold(available, ask, say(false), deny)[0]).toMatchObject({
    state: "output-denied",
    approval: { approved: false },
  });
});

test("data with type and id is replaced where it is, other data is added, transient data is not kept", () => {
  expect(
    fold(
      { type: "data-s", id: "1", data: "a" },
      { type: "data-s", data: "log" },
      { type: "data-s", data: "log" },
      { type: "data-r", id: "1", data: "other type" },
      { type: "data-s", id: "1", data: "b" },
      { type: "data-s", id: "1", data: "never", transient: true },
    ),
  ).toEqual([
    { type: "data-s", id: "1", data: "b" },
    { type: "data-s", data: "log" },
    { type: "data-s", data: "log" },
    { type: "data-r", id: "1", data: "other type" },
  ]);
});

test("the stream's own id is taken once, and never by a continued message", () => {
  const builder = newBuilder("mine");
  applyChunk(builder, { type: "start", messageId: "theirs" });
  applyChunk(builder, { type: "start", messageId: "second" });
  expect(toMessage(builder).id).toBe("theirs");
  const continued = builderFrom({ id: "stored", role: "assistant", parts: [{ type: "text", text: "x" }] });
  applyChunk(continued, { type: "start", messageId: "theirs" });
  expect(toMessage(continued).id).toBe("stored");
});

test("metadata is merged and the finish reason kept", () => {
  const builder = newBuilder("m");
  applyChunk(builder, { type: "start", messageMetadata: { a: { b: 1 }, list: [1] } });
  applyChunk(builder, { type: "message-metadata", messageMetadata: { a: { c: 2 }, list: [2] } });
  applyChunk(builder, { type: "finish", finishReason: "length", messageMetadata: { end: true } });
  expect(toMessage(builder).metadata).toEqual({ a: { b: 1, c: 2 }, list: [2], end: true });
  expect(builder.finishReason).toBe("length");
});

test("a reset takes back the current step and nothing that was there before the stream", () => {
  const stored: UIMessage = {
    id: "m",
    role: "assistant",
    parts: [{ type: "step-start" }, { type: "text", text: "old" }],
  };
  const builder = builderFrom(stored);
  applyChunk(builder, { type: "data-s", id: "1", data: "gone" });
  applyChunk(builder, { type: "text-delta", id: "t", delta: "gone" });
  applyChunk(builder, { type: "reset-step" });
  expect(toMessage(builder)).toEqual(stored);
  applyChunk(builder, { type: "data-s", id: "1", data: "new" });
  applyChunk(builder, { type: "text-delta", id: "t", delta: "new" });
  expect(toMessage(builder).parts.slice(2)).toEqual([
    { type: "data-s", id: "1", data: "new" },
    { type: "text", text: "new", state: "streaming" },
  ]);
});

test("continuing changes neither the stored message nor an earlier snapshot, and keeps unknown fields", () => {
  const stored = {
    id: "m",
    role: "assistant" as const,
    createdAt: "then",
    parts: [available].map(() => ({ type: "text" as const, text: "a" })),
  };
  const builder = builderFrom(stored);
  applyChunk(builder, { type: "text-delta", id: "t", delta: "b" });
  const snapshot = toMessage(builder);
  applyChunk(builder, { type: "text-delta", id: "t", delta: "c" });
  expect(stored.parts).toEqual([{ type: "text", text: "a" }]);
  expect(snapshot.parts.at(-1)).toMatchObject({ text: "b" });
  expect(toMessage(builder)).toMatchObject({ createdAt: "then", parts: [{ text: "a" }, { text: "bc" }] });
});

test("whole things are boundaries, pieces are not", () => {
  const yes = [
    available,
    output,
    { type: "text-end", id: "t" },
    { type: "data-x", data: 1 },
    { type: "finish-step" },
    { type: "tool-approval-request", toolCallId: "c", approvalId: "a" },
  ];
  const no = [
    { type: "start" },
    { type: "start-step" },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "" },
    { type: "data-x", data: 1, transient: true },
    { ...output, preliminary: true },
    { type: "tool-input-delta", toolCallId: "c", inputTextDelta: "" },
  ];
  expect((yes as UIMessageChunk[]).map(isBoundary)).toEqual(yes.map(() => true));
  expect((no as UIMessageChunk[]).map(isBoundary)).toEqual(no.map(() => false));
});
