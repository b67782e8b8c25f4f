import { toolDefinition } from "@tanstack/ai";
import { createCollection } from "@tanstack/db";
import { logCollectionOptions, openLocalLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { onTestFinished } from "vitest";
import { z } from "zod";

/**
 * What the programs of this folder share. They are the samples of the proposal that `perdure/collections` is made from,
 * told anew: the same names, options and shapes. In all of them a model is a script (`scriptedText`, not
 * `openaiText("gpt-4o")`), `@tanstack/ai-db` is `perdure/collections`, and rows are in this process's memory: where the
 * proposal has `createCollection({ schema, sync })`, here is `createCollection(logCollectionOptions({ log, … }))`.
 */
const statuses = z.enum(["pending", "executing", "completed", "failed", "cancelled"]);

/** Tool calls, in an app's own schema. */
export const ToolCallSchema = z.object({
  id: z.string(),
  generationId: z.string().optional(),
  name: z.string(),
  args: z.unknown(),
  status: statuses,
  result: z.unknown().optional(),
  error: z.string().optional(),
  isAsync: z.boolean().optional(),
  completedAt: z.string().optional(),
});

/** Chunks, in an app's own schema. */
export const ChunkSchema = z.object({
  id: z.string(),
  generationId: z.string(),
  index: z.number(),
  content: z.string(),
  type: z.enum(["text", "tool-call-start", "tool-call-args", "tool-call-end", "thinking"]),
});

/** Messages that are no agent's: an app's own. */
export const MessageSchema = z.object({
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  content: z.string(),
  processed: z.boolean(),
  createdAt: z.string(),
});

const getKey = (row: { id: string }) => row.id;

/** An app's collections of tool calls, of chunks and of messages, on one log. */
export function openDesk(log: RowLog = openLocalLog()) {
  return {
    log,
    toolCalls: createCollection(logCollectionOptions({ log, name: "toolCalls", schema: ToolCallSchema, getKey })),
    chunks: createCollection(logCollectionOptions({ log, name: "chunks", schema: ChunkSchema, getKey })),
    messages: createCollection(logCollectionOptions({ log, name: "messages", schema: MessageSchema, getKey })),
  };
}

/** Searches; as in most samples. */
export const searchTool = toolDefinition({
  name: "searchDatabase",
  description: "Search the database for relevant documents",
  inputSchema: z.object({ query: z.string() }),
  outputSchema: z.object({ results: z.array(z.string()) }),
});

/** The second tool of the samples that have two. */
export const analysisTool = toolDefinition({
  name: "analyzeDocument",
  description: "Summarize a document",
  inputSchema: z.object({ document: z.string() }),
  outputSchema: z.object({ summary: z.string() }),
});

/** What the samples' `db` and `analyze` are. */
export const db = { search: async (query: string) => [`about ${query}`] };
export const analyze = async (document: string) => `${document} in short`;

/** A turn of a scripted model that calls one tool. */
export const calls = (name: string, input: unknown, id = "c1") => ({ toolCalls: [{ name, input, id }] });

/** Disposes of it when the test is over. */
export function kept<T extends { dispose(): Promise<void> | void }>(made: T): T {
  onTestFinished(async () => {
    await made.dispose();
  });
  return made;
}

/** The text that a stream of `chat()` comes to. */
export async function textOf(stream: AsyncIterable<{ type: string; delta?: unknown }>): Promise<string> {
  let text = "";
  for await (const chunk of stream) if (chunk.type === "TEXT_MESSAGE_CONTENT") text += String(chunk.delta);
  return text;
}

/** How the tools of most samples are made durable. */
export const durability = {
  isComplete: (row: { status: string }) => row.status === "completed" || row.status === "failed",
  getResult: (row: { status: string; error?: string | undefined; result?: unknown }) =>
    row.status === "failed" ? Promise.reject(new Error(row.error)) : row.result,
};
