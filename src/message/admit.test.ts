import { readUIMessageStream } from "ai";
import { expect, test } from "vitest";
import { takeChunk } from "./admit.ts";
import type { AdmitOptions } from "./admit.ts";
import { builderFrom, newBuilder, toMessage } from "./builder.ts";
import type { MessageBuilder } from "./builder.ts";
import { applyToolApproval, applyToolResult } from "./tool-answer.ts";
import { isTerminal, toolParts } from "./types.ts";
import type { UIMessage, UIMessageChunk } from "./types.ts";

function take(builder: MessageBuilder, chunks: UIMessageChunk[], options?: AdmitOptions): UIMessageChunk[] {
  return chunks.flatMap((chunk) => takeChunk(builder, chunk, options));
}

const start: UIMessageChunk = { type: "tool-input-start", toolCallId: "c", toolName: "t" };
const delta: UIMessageChunk = { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"a":1}' };
const available: UIMessageChunk = { type: "tool-input-available", toolCallId: "c", toolName: "t", input: { a: 1 } };
const ask: UIMessageChunk = {
  type: "tool-approval-request",
  toolCallId: "c",
  approvalId: "ap",
  approvalDescriptor: { x: 1 },
  reason: "why",
};
const output: UIMessageChunk = { type: "tool-output-available", toolCallId: "c", output: 1 };
const denied: UIMessageChunk = { type: "tool-output-denied", toolCallId: "c" };

test("start tells the id that the message is stored under", () => {
  expect(take(newBuilder("mine"), [{ type: "start" }])).toEqual([{ type: "start", messageId: "mine" }]);
  const adopting = newBuilder("mine");
  const own: UIMessageChunk = { type: "start", messageId: "theirs", messageMetadata: { a: 1 } };
  const again: UIMessageChunk = { type: "start", messageId: "again" };
  expect(take(adopting, [own, again, { ...again, messageMetadata: { b: 2 } }])).toEqual([
    own,
    { type: "message-metadata", messageMetadata: { b: 2 } },
  ]);
  expect(toMessage(adopting).id).toBe("theirs");
});

test("an id that cannot be had is replaced by ours", () => {
  for (const messageId of ["", "taken", "x".repeat(10_000)]) {
    const builder = newBuilder("mine");
    expect(take(builder, [{ type: "start", messageId }], { isTaken: (id) => id === "taken" })).toEqual([
      { type: "start", messageId: "mine" },
    ]);
    expect(toMessage(builder).id).toBe("mine");
  }
});

test("a continuation tells no id", () => {
  const stored: UIMessage = { id: "m", role: "assistant", parts: [{ type: "text", text: "a" }] };
  const chunk: UIMessageChunk = { type: "start", messageId: "other", messageMetadata: { a: 1 } };
  const builder = builderFrom(stored);
  expect(take(builder, [chunk], { continuation: true })).toEqual([{ type: "start", messageMetadata: { a: 1 } }]);
  expect(take(newBuilder("m"), [{ type: "start" }], { continuation: true })).toEqual([{ type: "start" }]);
  expect(toMessage(builder)).toEqual({ ...stored, metadata: { a: 1 } });
});

test("what a model repeats of a call in the message is dropped", () => {
  const builder = newBuilder("m");
  take(builder, [start, delta, available, output]);
  const once = toMessage(builder);
  expect(
    take(builder, [
      start,
      delta,
      available,
      ask,
      denied,
      output,
      { type: "tool-output-error", toolCallId: "c", errorText: "x" },
    ]),
  ).toEqual([]);
  const error: UIMessageChunk = { type: "tool-input-error", toolCallId: "c", toolName: "t", input: {}, errorText: "x" };
  expect(take(builder, [error])).toEqual([]);
  expect(toMessage(builder)).toEqual(once);
});

test("a continuation that repeats the whole round trip sends none of it, also in a new step", () => {
  const first = newBuilder("m");
  take(first, [{ type: "start-step" }, available]);
  const answered = applyToolResult(toMessage(first), { toolCallId: "c", output: { lat: 1 } }).message;
  const builder = builderFrom(answered);
  const sent = take(
    builder,
    [
      { type: "start" },
      { type: "start-step" },
      start,
      delta,
      available,
      output,
      { type: "text-delta", id: "t", delta: "ok" },
    ],
    {
      continuation: true,
    },
  );
  expect(sent.map((chunk) => chunk.type)).toEqual(["start", "start-step", "text-start", "text-delta"]);
  expect(toMessage(builder).parts.slice(0, 2)).toEqual(answered.parts);
});

test("an approved call is never asked about or denied again, and its output is taken", () => {
  const first = newBuilder("m");
  take(first, [available, ask]);
  const builder = builderFrom(applyToolApproval(toMessage(first), { toolCallId: "c", approved: true }).message);
  expect(take(builder, [available, ask, denied], { continuation: true })).toEqual([]);
  expect(take(builder, [output], { continuation: true })).toEqual([output]);
  expect(toMessage(builder).parts[0]).toMatchObject({
    state: "output-available",
    output: 1,
    approval: { id: "ap", approved: true },
  });
});

test("a denial that the stream itself announced is taken", () => {
  const builder = newBuilder("m");
  const chunks: UIMessageChunk[] = [
    available,
    ask,
    { type: "tool-approval-response", approvalId: "ap", approved: false },
    denied,
  ];
  expect(take(builder, chunks)).toEqual(chunks);
  expect(toMessage(builder).parts[0]).toMatchObject({ state: "output-denied" });
});

test("an input that completes after the question is followed by the question again", () => {
  const builder = newBuilder("m");
  take(builder, [start, ask]);
  expect(take(builder, [available])).toEqual([available, ask]);
  expect(toMessage(builder).parts[0]).toMatchObject({
    state: "approval-requested",
    input: { a: 1 },
    approval: { id: "ap" },
  });
  // The question was answered with this input in view; another one is not slipped in.
  expect(take(builder, [{ ...available, input: { a: 2 } }])).toEqual([available, ask]);
  expect(toMessage(builder).parts[0]).toMatchObject({ input: { a: 1 } });
});

test("what refers to something that clients do not have is put right or dropped", () => {
  const builder = newBuilder("m");
  expect(
    take(builder, [delta, output, ask, denied, { type: "tool-approval-response", approvalId: "x", approved: true }]),
  ).toEqual([]);
  expect(
    take(builder, [
      { type: "text-end", id: "t" },
      { type: "reasoning-end", id: "r" },
      { type: "error", errorText: "x" },
    ]),
  ).toEqual([]);
  expect(take(builder, [{ type: "reasoning-delta", id: "r", delta: "x" }])).toEqual([
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "x" },
  ]);
});

test("malformed inputs are sent as they are stored", () => {
  const builder = newBuilder("m");
  expect(take(builder, [{ ...available, input: "nonsense" }])).toEqual([{ ...available, input: {} }]);
});

test("whatever a model sends, what is admitted is a stream that the AI SDK reads without an error", async () => {
  const pool: UIMessageChunk[] = [
    start,
    delta,
    available,
    ask,
    output,
    denied,
    { ...output, preliminary: true },
    { type: "tool-output-error", toolCallId: "d", errorText: "x" },
    { type: "tool-input-start", toolCallId: "d", toolName: "u", dynamic: true },
    { type: "tool-input-delta", toolCallId: "d", inputTextDelta: "{}" },
    { type: "tool-input-error", toolCallId: "d", toolName: "u", input: "x", errorText: "bad" },
    { type: "tool-approval-response", approvalId: "ap", approved: true },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "x" },
    { type: "text-end", id: "t" },
    { type: "reasoning-delta", id: "t", delta: "x" },
    { type: "reasoning-end", id: "t" },
    { type: "start", messageId: "other" },
    { type: "start-step" },
    { type: "reset-step" },
    { type: "data-x", id: "1", data: 1 },
  ];
  let state = 12345;
  const next = (count: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % count;
  };
  for (let round = 0; round < 200; round++) {
    const builder = newBuilder("m");
    const sent = takeChunk(builder, { type: "start" });
    for (let count = 0; count < 25; count++) {
      const chunk = pool[next(pool.length)] ?? start;
      // A step ends when its calls have; the SDK makes a second part of a call that goes on in the next one.
      if (chunk.type === "start-step" && !toolParts(toMessage(builder)).every(isTerminal)) continue;
      sent.push(...takeChunk(builder, chunk));
    }
    sent.push(...takeChunk(builder, { type: "data-flush", data: 0 }));
    const stream = new ReadableStream<UIMessageChunk>({
      start(controller) {
        for (const chunk of structuredClone(sent)) controller.enqueue(chunk);
        controller.close();
      },
    });
    let seen: UIMessage | undefined;
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) seen = message;
    expect(seen?.id).toBe("m");
    const states = (message: UIMessage | undefined) =>
      message?.parts.map((part) => [part.type, "state" in part ? part.state : "", "text" in part ? part.text : ""]);
    expect(states(toMessage(builder)), `round ${round}: ${sent.map((chunk) => chunk.type).join(" ")}`).toEqual(
      states(seen),
    );
  }
});
