import { chat, StreamProcessor, toolDefinition } from "@tanstack/ai";
import type { StreamChunk } from "@tanstack/ai";
import { createCollection } from "@tanstack/db";
import { PerdureError } from "perdure";
import {
  assembleText,
  collectStream,
  isCompleteAnswer,
  logCollectionOptions,
  readChunks,
  rowsOf,
  streamToCollection,
} from "perdure/collections";
import { toRawChunk } from "perdure/collections/answer";
import type { ChunkRecord, GenerationError, RowLog } from "perdure/collections";
import type { RawChunkRecord } from "perdure/collections/answer";
import { scriptedText } from "perdure/testing";
import type { TextPiece } from "perdure/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { mortal } from "./mortal.ts";

const messages = [{ role: "user" as const, content: "Go." }];
const chunksOf = (log: RowLog) =>
  createCollection(logCollectionOptions<ChunkRecord>({ log, name: "chunks", getKey: (row) => row.id }));
const add = toolDefinition({
  name: "add",
  description: "Adds.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
}).server(async ({ a, b }) => a + b);

function textStream(text: string | readonly TextPiece[], more: object = {}) {
  return chat({ adapter: scriptedText([{ text, ...more }]), messages, debug: false });
}

function caught(work: Promise<unknown>): Promise<GenerationError> {
  return work.then(
    () => Promise.reject(new Error("it did not throw")),
    (error: GenerationError) => error,
  );
}

describe.each(backends)("chunks on $name", (backend) => {
  let place: TestPlace;
  beforeEach(async () => {
    place = await backend.start();
  });
  afterEach(() => place.stop());

  test("requirement: Chunk streaming: chunks persist with ordering guarantees, deterministic reassembly", async () => {
    const collection = chunksOf(await place.open());
    const adapter = scriptedText([
      {
        reasoning: ["h", "m"],
        text: ["Let me ", "see. "],
        toolCalls: [{ id: "c1", name: "add", input: { a: 1, b: 2 } }],
        usage: { promptTokens: 3, completionTokens: 4 },
      },
      { text: ["It is ", "3."], usage: { promptTokens: 5, completionTokens: 6 } },
    ]);
    const stream = chat({ adapter, messages, tools: [add] });
    const result = await streamToCollection(stream, { collection, generationId: "g1" });
    expect(result).toMatchObject({
      content: "Let me see. It is 3.",
      lastText: "It is 3.",
      outcome: "completed",
      finishReason: "stop",
      interrupts: [],
      usage: { promptTokens: 8, completionTokens: 10, totalTokens: 18 },
    });
    const chunks = readChunks(chunksOf(await place.open()), "g1");
    expect(chunks.map((chunk) => chunk.index)).toEqual(Array.from({ length: result.chunks }, (_, index) => index));
    expect(result.nextIndex).toBe(result.chunks);
    expect(chunks.filter((chunk) => chunk.isFinal)).toEqual([chunks.at(-1)]);
    expect(chunks.filter((chunk) => chunk.type !== "other").map(({ type, content }) => [type, content])).toEqual([
      ["thinking", "h"],
      ["thinking", "m"],
      ["text", "Let me "],
      ["text", "see. "],
      ["tool-call-start", ""],
      ["tool-call-args", '{"a":1,"b":2}'],
      ["tool-call-end", ""],
      ["tool-result", "3"],
      ["text", "It is "],
      ["text", "3."],
    ]);
    expect(chunks.find((chunk) => chunk.type === "tool-call-start")).toMatchObject({
      toolCallId: "c1",
      toolName: "add",
    });
    expect(assembleText(chunks.toReversed())).toBe(result.content);
    expect(isCompleteAnswer(chunks)).toBe(true);
  });

  test("invariant 2: 4,000 chunks, beside another answer, are numbered in order, and every reader reassembles them alike", async () => {
    const pieces = (name: string) => Array.from({ length: name === "a" ? 4_000 : 100 }, (_, n) => `${name}${n} `);
    const collection = chunksOf(await place.open());
    const results = await Promise.all(
      ["a", "b"].map((name) =>
        streamToCollection(textStream(pieces(name)), { collection, generationId: name, filter: isText }),
      ),
    );
    const reader = chunksOf(await place.open());
    for (const [index, name] of ["a", "b"].entries()) {
      const chunks = readChunks(reader, name);
      expect(chunks.map((chunk) => chunk.index)).toEqual([...pieces(name).keys()]);
      expect(assembleText(chunks)).toBe(pieces(name).join(""));
      expect(results[index]).toMatchObject({ content: pieces(name).join(""), chunks: pieces(name).length });
      expect(chunks.filter((chunk) => chunk.isFinal).map((chunk) => chunk.index)).toEqual([pieces(name).length - 1]);
    }
  });

  test("a crash between chunks leaves a part that is visible, not final and no answer", async () => {
    const log = mortal(await place.open());
    const watching = rowsOf(chunksOf(await place.open()));
    const seen = Promise.withResolvers<void>();
    watching.subscribe(() => {
      if (watching.all().some((chunk) => chunk.content === "two ")) seen.resolve();
    });
    const stream = textStream(["one ", "two ", () => seen.promise, () => log.die(), "three"]);
    const error = await caught(streamToCollection(stream, { collection: chunksOf(log), generationId: "g1" }));
    expect(PerdureError.is(error, "disconnected")).toBe(true);
    const chunks = readChunks(chunksOf(await place.open()), "g1");
    expect(assembleText(chunks)).toBe("one two ");
    expect(isCompleteAnswer(chunks)).toBe(false);
    expect(chunks.some((chunk) => chunk.isFinal)).toBe(false);
  });

  test("invariant 3: an abort ends the stream at once, and what was stored is not final", async () => {
    const collection = chunksOf(await place.open());
    const rows = rowsOf(collection);
    const abortController = new AbortController();
    const adapter = scriptedText([{ text: ["one ", new Promise(() => {}), "two"] }]);
    const stop = rows.subscribe(() => {
      if (rows.all().some((chunk) => chunk.content === "one ")) abortController.abort(new Error("enough"));
    });
    const stream = chat({ adapter, messages, abortController });
    const { signal } = abortController;
    const error = await caught(streamToCollection(stream, { collection, generationId: "g1", signal }));
    stop();
    expect(error).toMatchObject({ code: "cancelled", partial: { content: "one ", chunks: 3 } });
    expect(error.cause).toMatchObject({ message: "enough" });
    expect(isCompleteAnswer(readChunks(collection, "g1"))).toBe(false);
    expect(adapter.calls[0]?.status).toBe("aborted");
  });

  test("trap: an error of the model's server ends the stream of chat() without a throw; here it throws, with the part", async () => {
    const collection = chunksOf(await place.open());
    for (const end of [{ error: "overloaded" }, { throws: new Error("overloaded") }]) {
      const generationId = Object.keys(end).join();
      const error = await caught(streamToCollection(textStream(["par", "t"], end), { collection, generationId }));
      expect(error).toMatchObject({ code: "model_failed", partial: { content: "part" } });
      expect(error.message).toContain("overloaded");
      const chunks = readChunks(collection, generationId);
      expect(assembleText(chunks)).toBe("part");
      expect(chunks).toHaveLength(error.partial.chunks);
      expect(isCompleteAnswer(chunks)).toBe(false);
    }
  });

  test("a second writer of the same answer is refused, and so is one whose condition does not hold any more", async () => {
    const one = chunksOf(await place.open());
    const two = chunksOf(await place.open());
    const owners = createCollection(
      logCollectionOptions<{ id: string; who: string }>({
        log: await place.open(),
        name: "owners",
        getKey: (r) => r.id,
      }),
    );
    await streamToCollection(textStream("mine"), { collection: one, generationId: "g1" });
    expect(
      await caught(streamToCollection(textStream("yours"), { collection: two, generationId: "g1" })),
    ).toMatchObject({ code: "fenced", partial: { chunks: 0 } });
    expect(assembleText(readChunks(one, "g1"))).toBe("mine");

    const rows = rowsOf(owners);
    await rows.insert({ id: "g2", who: "first" });
    const when = [rows.unchanged("g2")!];
    const takeOver = () => rows.update("g2", (row) => void (row.who = "second"));
    const stored = stores(one, "old ");
    const zombie = textStream(["old ", () => stored, takeOver, "never"]);
    const error = await caught(streamToCollection(zombie, { collection: one, generationId: "g2", when }));
    expect(error).toMatchObject({ code: "fenced" });
    expect(assembleText(readChunks(one, "g2"))).toBe("old ");
  });

  test("a zombie of an earlier epoch is fenced", async () => {
    const [one, two] = [chunksOf(await place.open()), chunksOf(await place.open())];
    const next = () =>
      streamToCollection(textStream("new"), {
        collection: two,
        generationId: "g1#2",
        producer: { id: "runner", epoch: 2 },
      });
    const stored = stores(one, "old ");
    const zombie = streamToCollection(textStream(["old ", () => stored, next, "never"]), {
      collection: one,
      generationId: "g1#1",
      producer: { id: "runner", epoch: 1 },
    });
    expect(await caught(zombie)).toMatchObject({ code: "fenced", partial: { content: "old never" } });
    expect(assembleText(readChunks(two, "g1#1"))).toBe("old ");
    expect(assembleText(readChunks(two, "g1#2"))).toBe("new");
  });

  test("raw chunks are enough for TanStack AI to rebuild the messages", async () => {
    const collection = createCollection(
      logCollectionOptions<RawChunkRecord>({ log: await place.open(), name: "raw", getKey: (row) => row.id }),
    );
    const adapter = scriptedText([
      { text: "Let me see. ", toolCalls: [{ id: "c1", name: "add", input: { a: 1, b: 2 } }] },
      "It is 3.",
    ]);
    const stream = chat({ adapter, messages, tools: [add] });
    await streamToCollection(stream, { collection, generationId: "g1", transform: toRawChunk });
    const reader = createCollection(
      logCollectionOptions<RawChunkRecord>({ log: await place.open(), name: "raw", getKey: (row) => row.id }),
    );
    const processor = new StreamProcessor();
    for (const { chunk } of readChunks(reader, "g1")) processor.processChunk(chunk);
    const parts = processor.getMessages().flatMap((message) => message.parts);
    expect(parts).toMatchObject([
      { type: "text", content: "Let me see. " },
      { type: "tool-call", name: "add", arguments: '{"a":1,"b":2}' },
      { type: "tool-result", toolCallId: "c1", content: "3" },
      { type: "text", content: "It is 3." },
    ]);
  });
});

describe("a stream", () => {
  test("trap: chat({ stream: false }) gives a part as the answer after an abort; here it throws", async () => {
    for (const onAbort of ["end", "throw", "error"] as const) {
      const abortController = new AbortController();
      const adapter = scriptedText([{ text: ["part", () => abortController.abort(), "rest"] }], { onAbort });
      const stream = chat({ adapter, messages, abortController, debug: false });
      const { signal } = abortController;
      expect(await caught(collectStream(stream, { signal }))).toMatchObject({
        code: "cancelled",
        partial: { content: "part" },
      });
    }
    const abortController = new AbortController();
    const adapter = scriptedText([{ text: ["part", () => abortController.abort(), "rest"] }]);
    expect(await chat({ adapter, messages, abortController, stream: false })).toBe("part");
    // Also for who does not tell of the abort: a stream that just ends is no answer.
    const again = new AbortController();
    const cut = scriptedText([{ text: ["part", () => again.abort(), "rest"] }]);
    const stream = chat({ adapter: cut, messages, abortController: again });
    expect(await caught(collectStream(stream))).toMatchObject({ code: "model_failed" });
  });

  test('trap: chat({ stream: false }) gives "" when it stops for an approval; here it says what it waits for', async () => {
    const risky = toolDefinition({ name: "risky", description: "Asks first.", needsApproval: true }).server(
      async () => 1,
    );
    const script = [{ text: "May I? ", toolCalls: [{ id: "c1", name: "risky" }] }];
    const result = await collectStream(chat({ adapter: scriptedText(script), messages, tools: [risky] }));
    expect(result).toMatchObject({ outcome: "interrupted", content: "May I? ", finishReason: "tool_calls" });
    expect(result.interrupts).toMatchObject([{ id: "approval_c1", toolCallId: "c1" }]);
  });

  test("the limit of the agent loop is no answer", async () => {
    const adapter = scriptedText(() => ({ text: "on ", toolCalls: [{ name: "add", input: { a: 1, b: 1 } }] }));
    const result = await collectStream(chat({ adapter, messages, tools: [add] }));
    expect(result).toMatchObject({ outcome: "interrupted", interrupts: [], finishReason: "tool_calls" });
    expect(adapter.calls).toHaveLength(5);
  });

  test("a signal that is aborted already reads nothing", async () => {
    let asked = false;
    const stream: AsyncIterable<StreamChunk> = {
      [Symbol.asyncIterator]: () => {
        asked = true;
        throw new Error("read");
      },
    };
    const signal = AbortSignal.abort();
    expect(await caught(collectStream(stream, { signal }))).toMatchObject({ code: "cancelled" });
    expect(asked).toBe(false);
  });

  test("it gives the object of a structured answer", async () => {
    const adapter = scriptedText([{ structured: { n: 1 } }]);
    const outputSchema = z.object({ n: z.number() });
    const result = await collectStream(chat({ adapter, messages, outputSchema, stream: true }));
    expect(result).toMatchObject({ outcome: "completed", object: { n: 1 } });
  });
});

function isText(chunk: StreamChunk): boolean {
  return chunk.type === "TEXT_MESSAGE_CONTENT";
}

/** Resolves when a chunk with this text can be read. */
function stores(collection: ReturnType<typeof chunksOf>, text: string): Promise<void> {
  const rows = rowsOf(collection);
  return new Promise((resolve) => {
    const stop = rows.subscribe(() => {
      if (!rows.all().some((chunk) => chunk.content === text)) return;
      stop();
      resolve();
    });
  });
}
