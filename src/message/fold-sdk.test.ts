import { readUIMessageStream } from "ai";
import { expect, test } from "vitest";
import { builderFrom, newBuilder, toMessage } from "./builder.ts";
import { applyChunk } from "./fold.ts";
import type { UIMessage, UIMessageChunk } from "./types.ts";

// The same chunks must make the same message here and in the AI SDK's client: otherwise what a person saw
// while the answer was written is not what they see after a reload.

type Random = () => number;

function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function pick<T>(random: Random, ...options: [T, ...T[]]): T {
  return options[Math.floor(random() * options.length)] ?? options[0];
}

/** Some of what is passed, so that optional fields come and go. */
function maybe<T extends object>(random: Random, fields: T): Partial<T> {
  return random() < 0.4 ? fields : {};
}

const inputs = [
  {},
  { city: "Paris" },
  { a: [1, 2.5, -3, { b: null }], 'q"uote': 'x\\y\n"z', deep: { on: true, off: false } },
  { text: "ünïcödé \u{1F600} \u2028", empty: "", list: [], nothing: {} },
];

/** The life of one call, as a list of chunks in order. */
function toolLife(random: Random, toolCallId: string): UIMessageChunk[] {
  const toolName = pick(random, "weather", "run");
  const dynamic = maybe(random, { dynamic: true });
  const meta = maybe(random, { providerMetadata: { p: { call: toolCallId } } });
  const head = {
    toolCallId,
    toolName,
    ...dynamic,
    ...maybe(random, { title: "T" }),
    ...maybe(random, { toolMetadata: { m: 1 } }),
  };
  const executed = maybe(random, { providerExecuted: true });
  const input = pick(random, inputs[0], ...inputs);
  const life: UIMessageChunk[] = [];
  if (random() < 0.7) {
    life.push({ type: "tool-input-start", ...head, ...executed, ...meta });
    const text = JSON.stringify(input);
    for (let at = 0; at < text.length;) {
      const size = 1 + Math.floor(random() * 9);
      life.push({ type: "tool-input-delta", toolCallId, inputTextDelta: text.slice(at, at + size) });
      at += size;
    }
  }
  if (random() < 0.1) {
    life.push({ type: "tool-input-error", ...head, input, errorText: "bad input", ...executed, ...meta });
    return life;
  }
  life.push({ type: "tool-input-available", ...head, input, ...executed, ...meta });
  if (random() < 0.4) {
    const approvalId = `ap-${toolCallId}`;
    life.push({
      type: "tool-approval-request",
      approvalId,
      toolCallId,
      ...maybe(random, { approvalDescriptor: { risk: 1 } }),
      ...maybe(random, { reason: "why" }),
      ...maybe(random, { isAutomatic: true }),
      ...maybe(random, { signature: "sig" }),
      ...maybe(random, { inputSchemaInput: { raw: 1 } }),
    });
    const approved = random() < 0.5;
    life.push({
      type: "tool-approval-response",
      approvalId,
      approved,
      ...maybe(random, { reason: "ok" }),
      ...executed,
      ...meta,
    });
    if (!approved) return [...life, { type: "tool-output-denied", toolCallId }];
  }
  for (let count = Math.floor(random() * 3); count > 0; count--) {
    life.push({ type: "tool-output-available", toolCallId, output: { count }, preliminary: true, ...meta });
  }
  const result = maybe(random, { toolMetadata: { r: 2 } });
  life.push(
    random() < 0.7
      ? { type: "tool-output-available", toolCallId, output: { done: [toolCallId] }, ...executed, ...meta, ...result }
      : { type: "tool-output-error", toolCallId, errorText: "failed", ...executed, ...meta, ...result },
  );
  return life;
}

function textLife(random: Random, kind: "text" | "reasoning", id: string): UIMessageChunk[] {
  // The same keys each time: the SDK keeps the last metadata, we merge them all.
  const meta = () => maybe(random, { providerMetadata: { p: { n: Math.floor(random() * 9) } } });
  const life: UIMessageChunk[] = [{ type: `${kind}-start`, id, ...meta() }];
  for (let count = Math.floor(random() * 6); count > 0; count--)
    life.push({ type: `${kind}-delta`, id, delta: `w${count} `, ...meta() });
  life.push({ type: `${kind}-end`, id, ...meta() });
  return life;
}

function single(random: Random, n: number): UIMessageChunk {
  const meta = maybe(random, { providerMetadata: { p: { n } } });
  return pick<() => UIMessageChunk>(
    random,
    () => ({ type: "file", url: "data:text/plain,x", mediaType: "text/plain", ...meta }),
    () => ({ type: "reasoning-file", url: "https://x.test/a", mediaType: "image/png", ...meta }),
    () => ({ type: "source-url", sourceId: `s${n}`, url: "https://x.test", ...maybe(random, { title: "t" }), ...meta }),
    () => ({ type: "source-document", sourceId: `d${n}`, mediaType: "text/plain", title: "t", ...meta }),
    () => ({ type: "custom", kind: "p.thing", ...meta }),
    () => ({ type: "steering-message", id: `st${n}`, parts: [{ type: "text", text: "wait" }] }),
    () => ({ type: "message-metadata", messageMetadata: { a: { [`k${n % 3}`]: n }, list: [n] } }),
    () => ({ type: `data-${pick(random, "x", "y")}`, data: { n }, ...maybe(random, { id: pick(random, "1", "2") }) }),
    () => ({ type: "data-gone", data: n, transient: true }),
  )();
}

/** A valid stream: the lives of texts, reasonings and calls, woven together, in steps. */
function validStream(random: Random, prefix: string, messageId?: string): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [
    {
      type: "start",
      ...(messageId !== undefined && { messageId }),
      ...maybe(random, { messageMetadata: { a: { z: 1 } } }),
    },
  ];
  let n = 0;
  for (let step = 0; step < 1 + Math.floor(random() * 3); step++) {
    chunks.push({ type: "start-step" });
    const lives: UIMessageChunk[][] = [];
    for (let count = 1 + Math.floor(random() * 5); count > 0; count--) {
      n += 1;
      const id = `${prefix}${n}`;
      lives.push(random() < 0.5 ? toolLife(random, id) : textLife(random, pick(random, "text", "reasoning"), id));
      if (random() < 0.5) lives.push([single(random, n)]);
    }
    while (lives.length > 0) {
      const at = Math.floor(random() * lives.length);
      const next = lives[at]?.shift();
      if (next === undefined) lives.splice(at, 1);
      else chunks.push(next);
    }
    if (random() < 0.1) chunks.push({ type: "reset-step" });
    chunks.push({ type: "finish-step" });
  }
  chunks.push({ type: "finish", finishReason: "stop", ...maybe(random, { messageMetadata: { end: true } }) });
  return chunks;
}

async function sdkMessage(chunks: UIMessageChunk[], message?: UIMessage): Promise<UIMessage | undefined> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of structuredClone(chunks)) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  const options = { stream, terminateOnError: true, ...(message && { message: structuredClone(message) }) };
  for await (const state of readUIMessageStream(options)) last = state;
  return last;
}

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The SDK shows a message only after some chunks; this is one of them. */
const flush: UIMessageChunk = { type: "data-flush", data: 0 };

test("builds what the AI SDK builds, also from a stream that was cut anywhere", async () => {
  for (let seed = 1; seed <= 250; seed++) {
    const random = seeded(seed);
    const all = validStream(random, "c", "m1");
    const chunks = [...(random() < 0.5 ? all : all.slice(0, 1 + Math.floor(random() * all.length))), flush];
    const builder = newBuilder("m1");
    for (const chunk of chunks) applyChunk(builder, chunk);
    expect(asJson(toMessage(builder)), `seed ${seed}`).toEqual(asJson(await sdkMessage(chunks)));
  }
});

test("continues a message as the AI SDK does", async () => {
  for (let seed = 1; seed <= 120; seed++) {
    const random = seeded(seed * 7919);
    const first = validStream(random, "a", "m1");
    const builder = newBuilder("m1");
    for (const chunk of first.slice(0, 1 + Math.floor(random() * first.length))) applyChunk(builder, chunk);
    const before = asJson(toMessage(builder)) as UIMessage;
    const second = [...validStream(random, "b"), flush];
    const continued = builderFrom(before);
    for (const chunk of second) applyChunk(continued, chunk);
    expect(asJson(toMessage(continued)), `seed ${seed}`).toEqual(asJson(await sdkMessage(second, before)));
  }
});

test("a call id that a later step uses again is a new call, as in the AI SDK", async () => {
  const call = (input: object, output: unknown): UIMessageChunk[] => [
    { type: "start-step" },
    { type: "tool-input-start", toolCallId: "call_0", toolName: "t" },
    { type: "tool-input-available", toolCallId: "call_0", toolName: "t", input },
    { type: "tool-output-available", toolCallId: "call_0", output },
    { type: "finish-step" },
  ];
  const chunks = [...call({ a: 1 }, "one"), ...call({ a: 2 }, "two"), flush];
  const builder = newBuilder("");
  for (const chunk of chunks) applyChunk(builder, chunk);
  expect(asJson(toMessage(builder).parts)).toEqual(asJson((await sdkMessage(chunks))?.parts));
  expect(toMessage(builder).parts.filter((part) => part.type === "tool-t")).toHaveLength(2);
});
