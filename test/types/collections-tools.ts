import { toolDefinition } from "@tanstack/ai";
import { createCollection, eq } from "@tanstack/db";
import {
  createToolExecutionEffect,
  logCollectionOptions,
  makeDurableTool,
  makeDurableTools,
  openLocalLog,
  waitForToolResult,
} from "perdure/collections";
import type { ToolCallContract, ToolCallRecord, ToolImplementations } from "perdure/collections";
import { expectTypeOf } from "vitest";
import { z } from "zod";

const search = toolDefinition({
  name: "search",
  description: "Searches.",
  inputSchema: z.object({ query: z.string() }),
  outputSchema: z.object({ results: z.array(z.string()) }),
});
const count = toolDefinition({
  name: "count",
  description: "Counts.",
  needsApproval: true,
  inputSchema: z.object({ text: z.string(), from: z.number().optional() }),
  outputSchema: z.number(),
});

const log = openLocalLog();
const calls = createCollection(logCollectionOptions<ToolCallRecord>({ log, name: "calls", getKey: (row) => row.id }));

interface OwnRow extends ToolCallContract {
  status: "pending" | "executing" | "completed" | "failed" | "cancelled";
  conversation: string;
  output?: { results: string[] };
}
const own = createCollection(logCollectionOptions<OwnRow>({ log, name: "own", getKey: (row) => row.id }));

// Rows that a ToolCallRecord fits need no options at all; others need a transform.
const plain = makeDurableTool(search, calls);
makeDurableTool(search, calls, { mode: "suspend", timeout: 1000 });
// @ts-expect-error `conversation` must come from somewhere
makeDurableTool(search, own);
const mapped = makeDurableTool(search, own, {
  transform: (call, generationId) => {
    expectTypeOf(call.args).toEqualTypeOf<{ query: string }>();
    expectTypeOf(call.name).toEqualTypeOf<"search">();
    return { id: call.id, name: call.name, args: call.args, status: "pending", conversation: generationId };
  },
  isComplete: (row) => {
    expectTypeOf(row).toEqualTypeOf<OwnRow>();
    return row.output !== undefined;
  },
  getResult: (row) => row.output ?? { results: [] },
});
makeDurableTool(search, own, {
  transform: (call) => ({ id: call.id, name: call.name, args: call.args, status: "pending", conversation: "" }),
  // @ts-expect-error not what the tool's outputSchema says
  getResult: (row) => row.conversation,
});
expectTypeOf(plain.name).toEqualTypeOf<"search">();
expectTypeOf<Awaited<ReturnType<NonNullable<typeof mapped.execute>>>>().toEqualTypeOf<{ results: string[] }>();

const both = makeDurableTools([search, count], calls, {
  transform: (call, generationId) => {
    if (call.name === "count") expectTypeOf(call.args).toEqualTypeOf<{ text: string; from?: number | undefined }>();
    return { ...call, status: "pending", generationId, createdAt: "", updatedAt: "" };
  },
});
expectTypeOf(both[0].name).toEqualTypeOf<"search">();
expectTypeOf<Awaited<ReturnType<NonNullable<(typeof both)[1]["execute"]>>>>().toEqualTypeOf<number>();

expectTypeOf(
  waitForToolResult(
    own,
    "a",
    (row) => row.output !== undefined,
    (row) => row.conversation,
  ),
).toEqualTypeOf<Promise<string>>();

// The row comes from the query, arguments and results from the tools, without `as const`.
createToolExecutionEffect({
  query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
  tools: [search, count],
  collection: calls,
  implementations: {
    search: async (args, run) => {
      expectTypeOf(args).toEqualTypeOf<{ query: string }>();
      expectTypeOf(run.signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(run.idempotencyKey).toEqualTypeOf<string>();
      expectTypeOf(run.row.generationId).toEqualTypeOf<string>();
      return { results: [args.query] };
    },
    count: ({ text, from }) => text.length + (from ?? 0),
  },
  onComplete: (row, result) => {
    expectTypeOf(row.toolCallId).toEqualTypeOf<string | undefined>();
    expectTypeOf(result).toEqualTypeOf<number | { results: string[] }>();
  },
  onError: (row, error) => {
    expectTypeOf(row.status).toEqualTypeOf<ToolCallRecord["status"]>();
    expectTypeOf(error).toEqualTypeOf<Error>();
  },
});

createToolExecutionEffect({
  query: (q) => q.from({ c: own }).where(({ c }) => eq(c.conversation, "x")),
  tools: [search, count],
  onComplete: () => {},
  // @ts-expect-error `count` has no implementation
  implementations: { search: async () => ({ results: [] }) },
});

createToolExecutionEffect({
  query: (q) => q.from({ c: own }).where(({ c }) => eq(c.conversation, "x")),
  tools: [search],
  implementations: { search: async ({ query }, { row }) => ({ results: [query, row.conversation] }) },
  onComplete: (row) => void expectTypeOf(row.conversation).toEqualTypeOf<string>(),
});

createToolExecutionEffect({
  query: (q) => q.from({ c: own }),
  tools: [count],
  collection: own,
  // @ts-expect-error the result is a number
  implementations: { count: async () => "three" },
});

createToolExecutionEffect({
  query: (q) => q.from({ c: own }),
  tools: [count],
  collection: own,
  // @ts-expect-error there is no such tool
  implementations: { count: async () => 3, counts: async () => 3 },
});

const notes = createCollection(logCollectionOptions<{ id: string }>({ log, name: "notes", getKey: (row) => row.id }));
createToolExecutionEffect({
  query: (q) => q.from({ c: own }),
  tools: [count],
  // @ts-expect-error rows without a status are no calls
  collection: notes,
  implementations: { count: async () => 3 },
});

const kept: ToolImplementations<[typeof search], ToolCallRecord> = {
  search: async ({ query }, { row, progress }) => {
    void progress({ at: row.generationId });
    return { results: [query] };
  },
};
void kept;
