import { chat, toolDefinition } from "@tanstack/ai";
import type { AnyTextAdapter, ModelMessage } from "@tanstack/ai";
import { createCollection, eq } from "@tanstack/db";
import {
  collectStream,
  createGenerationEffect,
  durableChat,
  logCollectionOptions,
  openLocalLog,
  readChunks,
  streamToCollection,
} from "perdure/collections";
import { toRawChunk } from "perdure/collections/answer";
import type {
  ChunkRecord,
  CompletedChat,
  DurableChatResult,
  StreamResult,
  ToolCallRecord,
  TurnRecord,
} from "perdure/collections";
import type { RawChunkRecord } from "perdure/collections/answer";
import { scriptedText } from "perdure/testing";
import type { ScriptedText } from "perdure/testing";
import { expectTypeOf } from "vitest";
import { z } from "zod";

declare const adapter: AnyTextAdapter;
const messages: ModelMessage[] = [{ role: "user", content: "Hello" }];
const log = openLocalLog();
const table = <TRow extends { id: string }>(name: string) =>
  createCollection(logCollectionOptions<TRow>({ log, name, getKey: (row) => row.id }));
const chunks = table<ChunkRecord>("chunks");
const raw = table<RawChunkRecord>("raw");
const turns = table<TurnRecord>("turns");
const toolCalls = table<ToolCallRecord>("toolCalls");

// Default rows need no transform; other rows do, and must be what the collection holds.
expectTypeOf(
  streamToCollection(chat({ adapter, messages }), { collection: chunks, generationId: "g" }),
).resolves.toEqualTypeOf<StreamResult>();
void streamToCollection(chat({ adapter, messages }), { collection: raw, generationId: "g", transform: toRawChunk });
const Line = z.object({ id: z.string(), generationId: z.string(), index: z.number(), line: z.string() });
const lines = createCollection(logCollectionOptions({ log, name: "lines", schema: Line, getKey: (row) => row.id }));
// @ts-expect-error: nobody knows what a line is.
void streamToCollection(chat({ adapter, messages }), { collection: lines, generationId: "g" });
void streamToCollection(chat({ adapter, messages }), {
  collection: lines,
  generationId: "g",
  transform: (chunk, index, generationId) =>
    chunk.type === "TEXT_MESSAGE_CONTENT"
      ? { id: `${generationId}-${index}`, generationId, index, line: chunk.delta }
      : undefined,
});
void streamToCollection(chat({ adapter, messages }), {
  collection: lines,
  generationId: "g",
  // @ts-expect-error: a line has a text.
  transform: (_chunk, index, generationId) => ({ id: `${index}`, generationId, index }),
});
expectTypeOf(readChunks(lines, "g")).toEqualTypeOf<z.infer<typeof Line>[]>();
void collectStream(chat({ adapter, messages, outputSchema: z.object({ n: z.number() }), stream: true }));

// durableChat takes what chat() takes, and says whether it is an answer.
const search = toolDefinition({ name: "search", description: "Searches.", inputSchema: z.object({ q: z.string() }) });
const result = durableChat({
  adapter,
  messages,
  systemPrompts: ["Be brief."],
  tools: [search],
  toolCalls: { collection: toolCalls, isComplete: (row) => row.result !== undefined },
  chunks: { collection: chunks },
  turns,
  mode: "suspend",
  modelOptions: {},
  generationId: "g",
});
expectTypeOf(result).resolves.toEqualTypeOf<DurableChatResult>();
void result.then((chatted) => {
  if (chatted.outcome === "suspended") expectTypeOf(chatted.pending).toEqualTypeOf<readonly string[]>();
  else expectTypeOf(chatted.lastText).toEqualTypeOf<string>();
});
void durableChat({ adapter, messages, chunks: { collection: raw, transform: toRawChunk } });
// @ts-expect-error: raw chunks need their transform.
void durableChat({ adapter, messages, chunks: { collection: raw } });
// @ts-expect-error: a model is needed.
void durableChat({ messages });
// @ts-expect-error: there are two modes.
void durableChat({ adapter, messages, mode: "wait" });

// The rows of an effect are those of its query; its results are those of generate.
interface Ask {
  id: string;
  status: string;
  prompt: string;
  answer?: string;
}
const asks = table<Ask>("asks");
createGenerationEffect({
  query: (q) => q.from({ ask: asks }).where(({ ask }) => eq(ask.status, "pending")),
  collection: asks,
  generate: async (row, run) => {
    expectTypeOf(row.prompt).toEqualTypeOf<string>();
    expectTypeOf(run.attempt).toEqualTypeOf<number>();
    return durableChat({ adapter, messages, generationId: run.generationId, signal: run.signal, when: run.when });
  },
  keepResult: (draft, answer) => {
    expectTypeOf(answer).toEqualTypeOf<CompletedChat>();
    draft.answer = answer.content;
  },
  onComplete: (row, answer) => void (row.prompt + answer.lastText),
  onCancelled: (_row, why) => void expectTypeOf(why).toEqualTypeOf<"cancelled" | "disposed">(),
});
createGenerationEffect({
  query: (q) => q.from({ ask: asks }).select(({ ask }) => ({ id: ask.id, text: ask.prompt })),
  generate: async (row) => row.text,
  onComplete: async (row, text) => {
    expectTypeOf(row).toMatchTypeOf<{ id: string; text: string }>();
    expectTypeOf(text).toEqualTypeOf<string>();
  },
});
createGenerationEffect({
  query: (q) => q.from({ ask: asks }),
  // @ts-expect-error: a number is no answer.
  generate: async () => 1,
});
createGenerationEffect({
  query: (q) => q.from({ ask: asks }),
  // @ts-expect-error: the rows have no such field.
  generate: async (row) => row.nothing,
});

// The model of tests is an adapter of chat().
expectTypeOf(scriptedText(["Hello"])).toEqualTypeOf<ScriptedText>();
void chat({ adapter: scriptedText([{ text: ["a", Promise.resolve(), () => 1, "b"], delayMs: 1 }]), messages });
// @ts-expect-error: what it is to say must be there.
scriptedText();
