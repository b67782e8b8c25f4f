import { chat } from "@tanstack/ai";
import type { StreamChunk } from "@tanstack/ai";
import { and, createCollection, createLiveQueryCollection, eq, toArray } from "@tanstack/db";
import {
  createGenerationEffect,
  createToolExecutionEffect,
  durableChat,
  logCollectionOptions,
  makeDurableTools,
  openLocalLog,
  rowsOf,
  streamToCollection,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { analysisTool, analyze, calls, db, durability, kept, openDesk, searchTool } from "./desk.ts";
import type { ChunkSchema } from "./desk.ts";

const GenerationRequest = z.object({
  id: z.string(),
  prompt: z.string(),
  state: z.enum(["pending", "generating", "done", "failed", "cancelled"]),
  response: z.string().optional(),
});

function openRequests() {
  const desk = openDesk();
  const generationRequests = createCollection(
    logCollectionOptions({ log: desk.log, name: "requests", schema: GenerationRequest, getKey: (row) => row.id }),
  );
  const durableTools = makeDurableTools([searchTool], desk.toolCalls, {
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
    ...durability,
  });
  kept(
    createToolExecutionEffect({
      query: (q) =>
        q.from({ tc: desk.toolCalls }).where(({ tc }) => and(eq(tc.status, "pending"), eq(tc.$synced, true))),
      tools: [searchTool] as const,
      implementations: { searchDatabase: async (args) => ({ results: await db.search(args.query) }) },
      onComplete: async (row, result) => {
        desk.toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
          draft.result = result;
        });
      },
    }),
  );
  return { ...desk, generationRequests, durableTools };
}

/** Events of TanStack AI as this app's chunks. */
function mapChunkType(aiType: string): z.infer<typeof ChunkSchema>["type"] {
  switch (aiType) {
    case "TOOL_CALL_START":
      return "tool-call-start";
    case "TOOL_CALL_ARGS":
      return "tool-call-args";
    case "TOOL_CALL_END":
      return "tool-call-end";
    // Reasoning is in these events; STEP_FINISHED, which the proposal names, has none in the published version.
    case "REASONING_MESSAGE_CONTENT":
      return "thinking";
    default:
      return "text";
  }
}

const toChunk = (chunk: StreamChunk, index: number, genId: string) => ({
  id: `${genId}-${index}`,
  generationId: genId,
  index,
  content: chunk.type === "TEXT_MESSAGE_CONTENT" ? chunk.delta : "",
  type: mapChunkType(chunk.type),
});

test("the generation effect: rows in, chat() with durable tools, answers into the rows by callbacks", async () => {
  const { generationRequests, durableTools } = openRequests();
  const adapter = scriptedText(({ userText, step }) => {
    if (userText === "fail") throw new Error("no model");
    return step === 0 ? calls("searchDatabase", { query: userText }) : `Found ${userText}.`;
  });
  kept(
    createGenerationEffect({
      query: (q) =>
        q.from({ req: generationRequests }).where(({ req }) => and(eq(req.state, "pending"), eq(req.$synced, true))),
      generate: async (row, ctx) => {
        generationRequests.update(row.id, (draft) => {
          draft.state = "generating";
        });
        const abortController = new AbortController();
        ctx.signal.addEventListener("abort", () => abortController.abort());
        return chat({
          adapter,
          messages: [{ role: "user", content: row.prompt }],
          tools: durableTools,
          abortController,
          stream: false,
        });
      },
      onComplete: async (row, result) => {
        generationRequests.update(row.id, (draft) => {
          draft.state = "done";
          draft.response = result;
        });
      },
      onError: async (row) => {
        generationRequests.update(row.id, (draft) => {
          draft.state = "failed";
        });
      },
      retry: { maxAttempts: 1 },
      onProblem: () => {},
    }),
  );
  generationRequests.insert({ id: "1", prompt: "owls", state: "pending" });
  generationRequests.insert({ id: "2", prompt: "fail", state: "pending" });
  const rows = rowsOf(generationRequests);
  await until(() => rows.get("1")?.state === "done" && rows.get("2")?.state === "failed");
  expect(rows.get("1")?.response).toBe("Found owls.");
});

test("streaming to collections: chunks by a transform and a mapping of types, in order, with tools on the way", async () => {
  const { generationRequests, durableTools, chunks } = openRequests();
  const adapter = scriptedText([
    { reasoning: "Hm.", text: "Let me see. ", ...calls("searchDatabase", { query: "owls" }) },
    { text: ["Owls ", "fly."] },
  ]);
  kept(
    createGenerationEffect({
      query: (q) => q.from({ req: generationRequests }).where(({ req }) => eq(req.state, "pending")),
      generate: async (row, ctx) => {
        generationRequests.update(row.id, (draft) => {
          draft.state = "generating";
        });
        const abortController = new AbortController();
        ctx.signal.addEventListener("abort", () => abortController.abort());
        const stream = chat({
          adapter,
          messages: [{ role: "user", content: row.prompt }],
          tools: durableTools,
          abortController,
        });
        const finalResult = await streamToCollection(stream, {
          collection: chunks,
          generationId: row.id,
          transform: toChunk,
        });
        return finalResult;
      },
      onComplete: async (row, result) => {
        generationRequests.update(row.id, (draft) => {
          draft.state = "done";
          draft.response = result.content;
        });
      },
    }),
  );
  generationRequests.insert({ id: "gen-1", prompt: "Owls?", state: "pending" });
  await until(() => rowsOf(generationRequests).get("gen-1")?.state === "done");
  const stored = rowsOf(chunks).all();
  expect(stored.map(({ index }) => index)).toEqual(stored.map((_, index) => index));
  expect(stored.map(({ content }) => content).join("")).toBe("Let me see. Owls fly.");
  const types = new Set(stored.map(({ type }) => type));
  expect([...types].toSorted()).toEqual(["text", "thinking", "tool-call-args", "tool-call-end", "tool-call-start"]);
});

test("chunk materialization: a query gives each request its chunks", async () => {
  const { generationRequests, chunks } = openRequests();
  generationRequests.insert({ id: "g", prompt: "?", state: "done" });
  for (const [index, content] of ["Owls ", "fly."].entries()) {
    chunks.insert({ id: `g-${index}`, generationId: "g", index, content, type: "text" });
  }
  // The projection that the proposal waits for is there by now: a query in `select`, as a list.
  const generations = createLiveQueryCollection((q) =>
    q.from({ gen: generationRequests }).select(({ gen }) => ({
      ...gen,
      chunks: toArray(
        q
          .from({ chunk: chunks })
          .where(({ chunk }) => eq(chunk.generationId, gen.id))
          .orderBy(({ chunk }) => chunk.index),
      ),
    })),
  );
  await generations.preload();
  await until(() => generations.toArray[0]?.chunks.length === 2);
  expect(generations.toArray[0]?.chunks.map(({ content }) => content)).toEqual(["Owls ", "fly."]);
});

test("cancellation: disposing of the effect ends chat(), and onCancelled writes it", async () => {
  const { generationRequests } = openRequests();
  const adapter = scriptedText([{ text: ["Once ", new Promise(() => {}), "upon a time"] }]);
  const results: unknown[] = [];
  const effect = createGenerationEffect({
    query: (q) => q.from({ req: generationRequests }).where(({ req }) => eq(req.state, "pending")),
    generate: async (row, ctx) => {
      const abortController = new AbortController();
      ctx.signal.addEventListener("abort", () => abortController.abort());
      const messages = [{ role: "user" as const, content: row.prompt }];
      return chat({ adapter, messages, abortController, stream: false });
    },
    onComplete: async (_row, result) => void results.push(result),
    onCancelled: async (row) => {
      generationRequests.update(row.id, (draft) => {
        draft.state = "cancelled";
      });
    },
  });
  generationRequests.insert({ id: "1", prompt: "A story.", state: "pending" });
  await until(() => adapter.calls.length === 1);
  await effect.dispose();
  await until(() => rowsOf(generationRequests).get("1")?.state === "cancelled");
  // chat() resolves with "Once " when it is aborted: that is nobody's answer.
  expect(results).toEqual([]);
  expect(adapter.calls[0]?.status).toBe("aborted");
});

test("late results: onComplete looks at the answer, and discards what nobody waits for", async () => {
  const { toolCalls, generationRequests: generations } = openRequests();
  const late = Promise.withResolvers<void>();
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => and(eq(tc.name, "slow"), eq(tc.status, "pending"))),
      tools: [{ name: "slow", description: "Takes its time" }] as const,
      implementations: {
        slow: async () => {
          await late.promise;
          return "done";
        },
      },
      onComplete: async (row, result) => {
        const generation = generations.get(row.generationId ?? "");
        toolCalls.update(row.id, (draft) => {
          if (generation?.state === "cancelled") draft.status = "cancelled";
          else Object.assign(draft, { status: "completed", result });
        });
      },
    }),
  );
  generations.insert({ id: "g1", prompt: "?", state: "generating" });
  toolCalls.insert({ id: "1", generationId: "g1", name: "slow", args: {}, status: "pending" });
  generations.update("g1", (draft) => {
    draft.state = "cancelled";
  });
  late.resolve();
  await until(() => rowsOf(toolCalls).get("1")?.status === "cancelled");
  expect(rowsOf(toolCalls).get("1")).not.toHaveProperty("result");
  // Without a callback the executor does the same by itself: see `generations` and `lateResults`.
});

test("durableChat: tools, chunks and an abort controller in one call", async () => {
  const { toolCalls, chunks } = openDesk(openLocalLog());
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => eq(tc.status, "pending")),
      tools: [searchTool, analysisTool],
      implementations: {
        searchDatabase: async ({ query }) => ({ results: await db.search(query) }),
        analyzeDocument: async ({ document }) => ({ summary: await analyze(document) }),
      },
    }),
  );
  const abortController = new AbortController();
  const result = await durableChat({
    adapter: scriptedText([calls("searchDatabase", { query: "recent orders" }), "Three orders."]),
    messages: [{ role: "user", content: "Search for recent orders" }],
    tools: [searchTool, analysisTool],
    toolCalls: {
      collection: toolCalls,
      transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
      ...durability,
      timeout: 60_000,
    },
    chunks: {
      collection: chunks,
      generationId: "gen-123",
      transform: toChunk,
    },
    abortController,
  });
  // The proposal shows a text once and `{ content }` once; here it is `{ content, outcome, … }`.
  expect(result).toMatchObject({ content: "Three orders.", outcome: "completed", generationId: "gen-123" });
  expect(rowsOf(chunks).all()[0]).toMatchObject({ id: "gen-123-0", generationId: "gen-123", index: 0 });
  expect(rowsOf(toolCalls).all()).toMatchObject([{ generationId: "gen-123", status: "completed" }]);
});
