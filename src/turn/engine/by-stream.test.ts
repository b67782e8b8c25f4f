import { createUIMessageStreamResponse } from "ai";
import { expect, test } from "vitest";
import type { UIMessageChunk } from "../../message/types.ts";
import { type ChatAnswer, readAnswer, type SourceChunk } from "./by-stream.ts";

const CHUNKS: readonly UIMessageChunk[] = [
  { type: "start" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "é 😀" },
  { type: "text-end", id: "t" },
  { type: "finish" },
];
const encoder = new TextEncoder();

async function read(answer: ChatAnswer, signal = new AbortController().signal): Promise<UIMessageChunk[]> {
  const chunks = await Array.fromAsync(readAnswer(answer, "request-1", signal));
  return chunks.map(({ chunk }) => chunk);
}

function streamOf<T>(values: readonly T[]): ReadableStream<T> {
  return new ReadableStream({
    start(controller) {
      for (const value of values) controller.enqueue(value);
      controller.close();
    },
  });
}

function events(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

async function* list<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}

test("a response of the AI SDK, with the JSON that it came in", async () => {
  const answer = createUIMessageStreamResponse({ stream: streamOf(CHUNKS) });
  const chunks: SourceChunk[] = await Array.fromAsync(readAnswer(answer, "r", new AbortController().signal));
  expect(chunks.map(({ chunk }) => chunk)).toEqual(CHUNKS);
  for (const { chunk, json } of chunks) expect(JSON.parse(json ?? "")).toEqual(chunk);
});

test("chunks as a stream and as an async iterable", async () => {
  expect(await read(streamOf(CHUNKS))).toEqual(CHUNKS);
  expect(await read(list(CHUNKS))).toEqual(CHUNKS);
});

test("what is no chunk is passed over", async () => {
  const bad: unknown[] = [
    null,
    7,
    "x",
    {},
    { type: "" },
    { type: "text-delta", id: "t" },
    { type: "tool-input-start" },
  ];
  expect(await read(list([...bad, ...CHUNKS] as UIMessageChunk[]))).toEqual(CHUNKS);
  const lines = [
    "not json",
    "{",
    ...bad.map((value) => JSON.stringify(value)),
    ...CHUNKS.map((chunk) => JSON.stringify(chunk)),
  ];
  expect(await read(events(lines.map((line) => `data: ${line}\n\n`).join("")))).toEqual(CHUNKS);
});

test("chunk types of the future pass", async () => {
  const chunk = { type: "hologram", depth: 3 } as unknown as UIMessageChunk;
  expect(await read(list([chunk]))).toEqual([chunk]);
});

test("plain text becomes one text part with the request's id, also when a character is split", async () => {
  const bytes = encoder.encode("é 😀");
  const body = streamOf([...bytes].map((byte) => Uint8Array.of(byte)));
  const chunks = await read(new Response(body));
  expect(chunks[0]).toEqual({ type: "start" });
  expect(chunks[1]).toEqual({ type: "text-start", id: "request-1" });
  expect(chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("")).toBe("é 😀");
  expect(chunks.slice(-2)).toEqual([
    { type: "text-end", id: "request-1" },
    { type: "finish", finishReason: "stop" },
  ]);
});

test("an empty text and a response without a body", async () => {
  expect(await read(new Response(""))).toEqual([{ type: "start" }, { type: "finish", finishReason: "stop" }]);
  expect(await read(new Response(null))).toEqual([]);
});

test.each([
  [new Response("No such model.", { status: 404 }), "No such model."],
  [new Response(null, { status: 502 }), "The answer was a response with status 502."],
  [new Response("x".repeat(2_000), { status: 500 }), "x".repeat(500)],
])("a response that is an error: %#", async (answer, message) => {
  await expect(read(answer)).rejects.toMatchObject({ code: "bad_input", message });
});

test("what the producer throws comes through", async () => {
  async function* broken(): AsyncGenerator<UIMessageChunk> {
    yield { type: "start" };
    throw new Error("lost");
  }
  await expect(read(broken())).rejects.toThrow("lost");
  const failing = new ReadableStream<UIMessageChunk>({ pull: (controller) => controller.error(new Error("lost")) });
  await expect(read(failing)).rejects.toThrow("lost");
});

// Producers that never say anything and do not know about the signal.
const deaf: Record<string, (left: () => void) => ChatAnswer> = {
  "a stream": (left) => new ReadableStream<UIMessageChunk>({ cancel: left }),
  "a response": (left) => {
    const body = new ReadableStream<Uint8Array>({ cancel: left });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  },
  "plain text": (left) => new Response(new ReadableStream<Uint8Array>({ cancel: left })),
  "an iterable": (left) => ({
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<UIMessageChunk>>(() => {}),
      return: () => {
        left();
        return Promise.resolve({ done: true as const, value: undefined });
      },
    }),
  }),
};

test.each(Object.keys(deaf))("an abort ends the wait for %s, and the producer is told", async (kind) => {
  const { promise: told, resolve } = Promise.withResolvers<void>();
  const abort = new AbortController();
  const answer = deaf[kind]?.(resolve) ?? new Response();
  const chunks = read(answer, abort.signal);
  await new Promise((done) => setImmediate(done));
  abort.abort(new Error("stop"));
  expect((await chunks).filter((chunk) => chunk.type === "text-delta")).toEqual([]);
  await told;
});

test.each(Object.keys(deaf))("nothing is read of %s when the abort was there first", async (kind) => {
  const answer = deaf[kind]?.(() => {}) ?? new Response();
  const chunks = await read(answer, AbortSignal.abort());
  expect(chunks.filter(({ type }) => type !== "start" && type !== "finish")).toEqual([]);
});

test("a reader that leaves early lets the producer know", async () => {
  const { promise: told, resolve } = Promise.withResolvers<void>();
  const endless = new ReadableStream<UIMessageChunk>({
    pull: (controller) => controller.enqueue({ type: "start" }),
    cancel: () => resolve(),
  });
  for await (const { chunk } of readAnswer(endless, "r", new AbortController().signal)) {
    expect(chunk.type).toBe("start");
    break;
  }
  await told;
});

test("after an abort a plain text answer is not dressed up as finished", async () => {
  const abort = new AbortController();
  const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(encoder.encode("half")) });
  const types: string[] = [];
  for await (const { chunk } of readAnswer(new Response(body), "r", abort.signal)) {
    types.push(chunk.type);
    if (chunk.type === "text-delta") abort.abort();
  }
  expect(types).toEqual(["start", "text-start", "text-delta"]);
});
