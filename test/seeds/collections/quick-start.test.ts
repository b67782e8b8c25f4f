import { DurableStreamTestServer } from "@durable-streams/server";
import { chat, toolDefinition } from "@tanstack/ai";
import { and, createEffect, eq, queryOnce } from "@tanstack/db";
import { createAgent, createToolExecutionEffect, durableAgent, makeDurableTools, rowsOf } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { calls, db, durability, kept, openDesk, textOf } from "./desk.ts";

const searchTool = toolDefinition({
  name: "search",
  // TanStack AI wants a description of each tool.
  description: "Searches",
  inputSchema: z.object({ query: z.string() }),
  outputSchema: z.object({ results: z.array(z.string()) }),
});

test("quick start with durableAgent: an agent on a stream, a tool that runs elsewhere, a message in full", async () => {
  const server = new DurableStreamTestServer({ port: 0 });
  const streamUrl = `${await server.start()}/v1/stream/sessions/session-123`;
  onTestFinished(() => server.stop());
  const adapter = scriptedText([calls("search", { query: "quantum computing" }), "Here is what is new."]);
  const researcher = createAgent(
    durableAgent({
      name: "researcher",
      instructions: "You are a research assistant. Search for information and provide detailed answers.",
      adapter,
      tools: [searchTool],
      streamUrl,
    }),
  );
  kept(researcher);
  const { messages, toolCalls } = researcher.collections;
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => eq(tc.status, "pending")),
      tools: [searchTool] as const,
      implementations: { search: async (args) => ({ results: await db.search(args.query) }) },
    }),
  );
  messages.insert({
    id: crypto.randomUUID(),
    role: "user",
    actorId: "user-123",
    targetAgent: researcher.name,
    content: "What are the latest advances in quantum computing?",
    processed: false,
    createdAt: new Date().toISOString(),
  });
  const rows = rowsOf(messages);
  const reply = await until(() => rows.all().find((row) => row.content === "Here is what is new."));
  expect(reply).toMatchObject({ role: "assistant", actorId: "researcher", targetAgent: "user-123" });
  expect(rowsOf(toolCalls).all()).toMatchObject([
    { status: "completed", result: { results: ["about quantum computing"] } },
  ]);
});

test("quick start with primitives: an effect generates, a tool call is a row, an executor without more options", async () => {
  const { messages, toolCalls } = openDesk();
  const durableTools = makeDurableTools([searchTool], toolCalls, {
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
    ...durability,
  });
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => and(eq(tc.status, "pending"), eq(tc.$synced, true))),
      tools: [searchTool] as const,
      implementations: { search: async (args) => ({ results: await db.search(args.query) }) },
    }),
  );
  const answers: string[] = [];
  const adapter = scriptedText([calls("search", { query: "owls" }), "Owls fly."]);
  // The published `createEffect` has `onEnter` where the proposal has `on: "enter"` and `handler`.
  const effect = createEffect({
    query: (q) => q.from({ m: messages }).where(({ m }) => and(eq(m.$synced, true), eq(m.processed, false))),
    onEnter: async () => {
      const history = await queryOnce((q) =>
        q
          .from({ m: messages })
          .orderBy(({ m }) => m.createdAt)
          .limit(100),
      );
      const shown = history.map((m) => ({ role: m.role, content: m.content }));
      answers.push(await textOf(chat({ adapter, messages: shown, tools: durableTools })));
    },
  });
  kept(effect);
  messages.insert({ id: "m1", role: "user", content: "Owls?", processed: false, createdAt: new Date().toISOString() });
  await until(() => answers.length === 1);
  expect(answers).toEqual(["Owls fly."]);
  expect(rowsOf(toolCalls).all()).toMatchObject([{ status: "completed", name: "search" }]);
});
