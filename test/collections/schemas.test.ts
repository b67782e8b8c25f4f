import { chat, toolDefinition } from "@tanstack/ai";
import { createCollection, eq, localOnlyCollectionOptions } from "@tanstack/db";
import type { Collection, UtilsRecord } from "@tanstack/db";
import {
  createAgent,
  createGenerationEffect,
  createToolExecutionEffect,
  logCollectionOptions,
  makeDurableTool,
  openLocalLog,
  rowsOf,
  streamToCollection,
} from "perdure/collections";
import type { RowCollection, ToolCallContract } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { until } from "../support/until.ts";

const getKey = (row: { id: string }) => row.id;
const search = toolDefinition({
  name: "search",
  description: "Searches.",
  inputSchema: z.object({ query: z.string() }),
});

/** Calls whose queries are trimmed and short, and whose results are lists. It knows nothing of other fields. */
const Call = z.object({
  id: z.string(),
  name: z.string(),
  args: z.object({ query: z.string().trim().max(10) }),
  status: z.enum(["pending", "executing", "completed", "failed", "cancelled"]),
  result: z.object({ results: z.array(z.string().toUpperCase()) }).optional(),
  error: z.string().optional(),
  room: z.string().default("lobby"),
});

const options = {
  transform: ({ id, name, args }: { id: string; name: string; args: unknown }) => ({
    ...{ id, name, args: args as { query: string }, status: "pending" as const, room: undefined as unknown as string },
    colour: "red",
  }),
  isComplete: (row: ToolCallContract) => row.status === "completed" || row.status === "failed",
  getResult: (row: { result?: unknown; error?: string }) => {
    if (row.error !== undefined) throw new Error(row.error);
    return row.result;
  },
};

type Calls = Collection<z.output<typeof Call>, string, UtilsRecord, typeof Call, z.input<typeof Call>>;

function executor(calls: Calls, searched: (query: string) => unknown) {
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    tools: [search],
    collection: calls,
    implementations: { search: async ({ query }) => searched(query) },
    onProblem: () => {},
  });
  onTestFinished(() => effect.dispose());
  return effect;
}

describe.each(["a log", "no log"])("a collection with a schema, on %s", (kind) => {
  const open = () =>
    (kind === "a log"
      ? createCollection(logCollectionOptions({ log: openLocalLog(), name: "calls", schema: Call, getKey }))
      : createCollection(localOnlyCollectionOptions({ id: "calls", schema: Call, getKey }))) as unknown as Calls;

  test("a tool call is written as the schema makes it, and a second run finds it again", async () => {
    const calls = open();
    executor(calls, (query) => ({ results: [query] }));
    const tool = makeDurableTool(search, calls, { ...options, generationId: "g" });
    const ask = () => tool.execute?.({ query: "  owls " }, { toolCallId: "c1" } as never);
    expect(await ask()).toEqual({ results: ["OWLS"] });
    expect(await ask()).toEqual({ results: ["OWLS"] });
    expect(rowsOf(calls).all()).toMatchObject([{ args: { query: "owls" }, room: "lobby", status: "completed" }]);
    expect(rowsOf(calls).all()[0]).not.toHaveProperty("colour");
  });

  test("a tool call that the schema refuses is an error with its row and field, and no row", async () => {
    const calls = open();
    const tool = makeDurableTool(search, calls, { ...options, generationId: "g" });
    const asked = tool.execute?.({ query: "much too long to be asked" }, { toolCallId: "c1" } as never);
    await expect(asked).rejects.toMatchObject({
      code: "bad_input",
      message: expect.stringMatching(/"g:c1" of "calls".*args\.query: /),
    });
    expect(rowsOf(calls).all()).toEqual([]);
  });

  test("a result that the schema refuses fails the call, and the model reads which field it was", async () => {
    const calls = open();
    executor(calls, () => ({ results: [1] }));
    const tool = makeDurableTool(search, calls, { ...options, generationId: "g" });
    const asked = tool.execute?.({ query: "owls" }, { toolCallId: "c1" } as never);
    await expect(asked).rejects.toThrow(/"g:c1" of "calls".*result\.results\.0: /);
    expect(rowsOf(calls).get("g:c1")?.status).toBe("failed");
  });
});

test("chunks are written as the schema makes them, and one that it refuses ends the answer with its name", async () => {
  const Chunk = z.object({
    id: z.string(),
    generationId: z.string(),
    index: z.number(),
    text: z.string().max(6, "too long").toLowerCase(),
  });
  const log = openLocalLog();
  const chunks = createCollection(logCollectionOptions({ log, name: "chunks", schema: Chunk, getKey }));
  const say = (generationId: string, ...text: string[]) =>
    streamToCollection(chat({ adapter: scriptedText([{ text }]), messages: [{ role: "user", content: "?" }] }), {
      collection: chunks,
      generationId,
      filter: ({ type }) => type === "TEXT_MESSAGE_CONTENT",
      transform: (chunk, index) => ({
        ...{ id: `${generationId}-${index}`, generationId, index },
        text: chunk.type === "TEXT_MESSAGE_CONTENT" ? chunk.delta : "",
      }),
    });
  await say("a", "OWLS ", "Fly");
  // The mark of the end is none of the schema's fields, and stays all the same.
  expect(rowsOf(chunks).all()).toMatchObject([{ text: "owls " }, { text: "fly", isFinal: true }]);
  await expect(say("b", "Storks clatter")).rejects.toThrow(/"b-0" of "chunks".*text: too long/);
});

test("an answer that the schema refuses fails its row, with the field, and tries are counted all the same", async () => {
  const Ask = z.object({
    id: z.string(),
    prompt: z.string(),
    status: z.enum(["pending", "generating", "completed", "failed"]),
    answer: z.string().trim().max(5).optional(),
  });
  const log = openLocalLog();
  const asks = createCollection(logCollectionOptions({ log, name: "asks", schema: Ask, getKey }));
  const tries: number[] = [];
  const effect = createGenerationEffect({
    query: (q) => q.from({ a: asks }).where(({ a }) => eq(a.status, "pending")),
    collection: asks,
    retry: { maxAttempts: 2, delayMs: 1 },
    generate: async ({ prompt }, { attempt }) => {
      tries.push(attempt);
      if (prompt === "no") throw new Error("no model");
      return prompt;
    },
    keepResult: (draft, text) => void (draft.answer = text),
    onProblem: () => {},
  });
  onTestFinished(() => effect.dispose());
  const rows = rowsOf(asks);
  await rows.insert({ id: "a", prompt: "  yes ", status: "pending" });
  await until(() => rows.get("a")?.status === "completed");
  expect(rows.get("a")).toMatchObject({ answer: "yes" });
  await rows.insert({ id: "b", prompt: "a long story", status: "pending" });
  await until(() => rows.get("b")?.status === "failed");
  expect(rows.get("b")).toMatchObject({ error: expect.stringMatching(/"b" of "asks".*answer: /) });
  tries.length = 0;
  await rows.insert({ id: "c", prompt: "no", status: "pending" });
  await until(() => rows.get("c")?.status === "failed");
  expect(tries).toEqual([1, 2]);
});

test("a reply that the schema of the messages refuses is the message's error; what it allows is stored as it makes it", async () => {
  const Message = z.object({
    id: z.string(),
    role: z.enum(["user", "assistant", "system"]),
    content: z.string().trim().max(12),
    actorId: z.string(),
    targetAgent: z.string(),
    processed: z.boolean().default(false),
    createdAt: z.string().default(() => new Date().toISOString()),
  });
  const log = openLocalLog();
  const messages = createCollection(logCollectionOptions({ log, name: "messages", schema: Message, getKey }));
  const agent = createAgent({
    name: "clerk",
    instructions: "",
    adapter: scriptedText([]),
    collections: { messages },
    retry: { maxAttempts: 2, delayMs: 1 },
    generate: async ({ pending }) => `  re ${pending[0]?.content}`,
    onFailure: () => {},
  });
  onTestFinished(() => agent.dispose());
  const rows = rowsOf(messages);
  const from = { role: "user" as const, actorId: "ann", targetAgent: "clerk" };
  messages.insert({ id: "a", content: "short", ...from });
  await until(() => rows.get("a")?.processed);
  expect(rows.all().map(({ content }) => content)).toEqual(["short", "re short"]);
  messages.insert({ id: "b", content: "longer text", ...from });
  await until(() => rows.get("b")?.processed);
  expect(rows.get("b")).toMatchObject({ attempts: 2, error: expect.stringMatching(/of "messages".*content: /) });
  expect(rows.all()).toHaveLength(3);
});

test("a tool that needs approval is not opened where the schema would drop the question", async () => {
  const calls = createCollection(localOnlyCollectionOptions({ id: "calls", schema: Call, getKey }));
  const pay = toolDefinition({ name: "pay", description: "Pays.", needsApproval: true });
  const transform = ({ id, name }: { id: string; name: string }) => ({
    ...{ id, name, args: { query: "" }, status: "pending" as const, room: "lobby", needsApproval: true },
  });
  const tool = makeDurableTool(pay, calls, { transform, generationId: "g" });
  await expect(tool.execute?.({}, { toolCallId: "c1" } as never)).rejects.toMatchObject({ code: "bad_config" });
});

test("a field that is left as it was is not judged, or changed, a second time", async () => {
  const Row = z.object({ id: z.string(), length: z.string().transform((text) => text.length), on: z.boolean() });
  const log = openLocalLog();
  const collection = createCollection(logCollectionOptions({ log, name: "rows", schema: Row, getKey }));
  await collection.insert({ id: "a", length: "four", on: false }).isPersisted.promise;
  const rows = rowsOf(collection as never as RowCollection<z.output<typeof Row>>);
  expect(rows.get("a")).toEqual({ id: "a", length: 4, on: false });
  await rows.update("a", (row) => void (row.on = true));
  expect(rows.get("a")).toEqual({ id: "a", length: 4, on: true });
  await expect(rows.update("a", (row) => void (row.on = "yes" as never))).rejects.toThrow(/"a" of "rows".*on: /);
});
