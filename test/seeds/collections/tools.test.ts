import { chat, toolDefinition } from "@tanstack/ai";
import { and, createCollection, eq, inArray } from "@tanstack/db";
import type { InitialQueryBuilder } from "@tanstack/db";
import {
  createToolExecutionEffect,
  logCollectionOptions,
  makeAsyncTool,
  makeDurableTool,
  makeDurableTools,
  openLocalLog,
  rowsOf,
  waitForToolResult,
} from "perdure/collections";
import type { ToolCallContract } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { analysisTool, analyze, calls, db, durability, kept, openDesk, searchTool, textOf } from "./desk.ts";

type Desk = ReturnType<typeof openDesk>;

const question = [{ role: "user" as const, content: "Find something." }];
const pendingOf =
  ({ toolCalls }: Pick<Desk, "toolCalls">) =>
  (q: InitialQueryBuilder) =>
    q.from({ tc: toolCalls }).where(({ tc }) => and(eq(tc.status, "pending"), eq(tc.$synced, true)));

/** Both tools, as most samples implement them. */
const implementations = {
  searchDatabase: async ({ query }: { query: string }) => ({ results: await db.search(query) }),
  analyzeDocument: async ({ document }: { document: string }) => ({ summary: await analyze(document) }),
};

test("filtering by $synced: the query with the filter runs a call once, and so does the one without", async () => {
  const { toolCalls } = openDesk();
  const ran: string[] = [];
  for (const query of [
    pendingOf({ toolCalls }),
    // The proposal calls this one wrong: it would run twice. Here it does not; see the table in docs/collections.md.
    (q: InitialQueryBuilder) => q.from({ tc: toolCalls }).where(({ tc }) => eq(tc.status, "pending")),
  ]) {
    const effect = createToolExecutionEffect({
      query,
      tools: [searchTool],
      implementations: { searchDatabase: async ({ query: text }) => (ran.push(text), { results: [] }) },
    });
    const id = `call-${ran.length}`;
    toolCalls.insert({ id, name: "searchDatabase", args: { query: id }, status: "pending" });
    await waitForToolResult(toolCalls, id);
    await effect.dispose();
  }
  expect(ran).toEqual(["call-0", "call-1"]);
});

test("durable tool wrappers: one tool, typed through, with a row type and schema of the app", async () => {
  interface MyToolCallRow extends ToolCallContract {
    status: "pending" | "executing" | "completed" | "failed" | "cancelled";
    result?: { results: string[] };
    error?: string;
    generationId?: string;
  }
  const log = openLocalLog();
  const toolCalls = createCollection(
    logCollectionOptions<MyToolCallRow>({ log, name: "toolCalls", getKey: (row) => row.id }),
  );
  const durableSearchTool = makeDurableTool(searchTool, toolCalls, {
    timeout: 60_000,
    transform: (toolCall, generationId) => ({
      id: toolCall.id,
      name: toolCall.name,
      args: toolCall.args,
      status: "pending" as const,
      generationId,
    }),
    isComplete: (row) => row.status === "completed" || row.status === "failed",
    getResult: (row): { results: string[] } => {
      if (row.status === "failed") throw new Error(row.error);
      return row.result!;
    },
  });
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => eq(tc.status, "pending")),
      tools: [searchTool],
      implementations: { searchDatabase: implementations.searchDatabase },
    }),
  );
  const adapter = scriptedText([calls("searchDatabase", { query: "owls" }), "Found."]);
  expect(await textOf(chat({ adapter, messages: question, tools: [durableSearchTool] }))).toBe("Found.");
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"results":["about owls"]}');
  // How it works inside is not the proposal's: a call's id is no random one, so that a second run finds its row.
});

test("the wrapper for several tools: a failed one is an error that the model reads", async () => {
  const desk = openDesk();
  const durableTools = makeDurableTools([searchTool, analysisTool], desk.toolCalls, {
    timeout: 60_000,
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
    ...durability,
  });
  kept(
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools: [searchTool, analysisTool],
      implementations: {
        ...implementations,
        analyzeDocument: async () => {
          throw new Error("no such document");
        },
      },
    }),
  );
  const both = {
    toolCalls: [
      { name: "searchDatabase", input: { query: "owls" }, id: "c1" },
      { name: "analyzeDocument", input: { document: "d1" }, id: "c2" },
    ],
  };
  const adapter = scriptedText([both, "Half of it."]);
  expect(await textOf(chat({ adapter, tools: durableTools, messages: question }))).toBe("Half of it.");
  const results = adapter.calls[1]?.messages.slice(-2).map(({ content }) => String(content));
  expect(results).toEqual(['{"results":["about owls"]}', expect.stringContaining("no such document")]);
});

const imageGenTool = toolDefinition({
  name: "generateImage",
  description: "Generate an image (returns job ID, completes asynchronously)",
  inputSchema: z.object({ prompt: z.string() }),
  // `z.literal`, where the sample has a bare "queued", which is no schema of zod.
  outputSchema: z.object({ jobId: z.string(), status: z.literal("queued") }),
});

test("async tools: the loop goes on at once; status by a callback, by a message and by a tool that asks", async () => {
  const { toolCalls, messages } = openDesk();
  const asyncImageTool = makeAsyncTool(imageGenTool, toolCalls, {
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId, isAsync: true }),
    getImmediateResult: (row) => ({ jobId: row.id, status: "queued" }),
  });
  const checkStatusTool = toolDefinition({
    name: "checkAsyncJobStatus",
    description: "Check status of a background job",
    inputSchema: z.object({ jobId: z.string() }),
  }).server(async ({ jobId }) => {
    const job = toolCalls.get(jobId);
    return { status: job?.status, result: job?.result };
  });
  const script = scriptedText(async ({ index }) => {
    if (index === 0) return calls("generateImage", { prompt: "owl" });
    if (index === 1) return "It is being drawn.";
    return index === 2 ? calls("checkAsyncJobStatus", { jobId: "g1:c1" }, "c2") : "It is ready.";
  });
  const tools = [asyncImageTool, checkStatusTool];
  const run = () => textOf(chat({ adapter: script, messages: question, tools, context: { generationId: "g1" } }));
  expect(await run()).toBe("It is being drawn.");
  expect(script.calls[1]?.messages.at(-1)?.content).toBe('{"jobId":"g1:c1","status":"queued"}');
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: toolCalls }).where(({ tc }) => and(eq(tc.isAsync, true), eq(tc.status, "pending"))),
      tools: [imageGenTool] as const,
      implementations: { generateImage: async (args) => ({ url: `https://pictures.example/${args.prompt}` }) },
      onComplete: async (row, result) => {
        toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
          draft.result = result;
          draft.completedAt = new Date().toISOString();
        });
        const { url } = result as { url: string };
        messages.insert({
          ...{ id: "m1", role: "assistant", processed: true, createdAt: new Date().toISOString() },
          content: `Image generation completed: ${url}`,
        });
      },
    }),
  );
  await until(() => rowsOf(messages).all().length === 1);
  expect(await run()).toBe("It is ready.");
  expect(JSON.parse(String(script.calls[3]?.messages.at(-1)?.content))).toEqual({
    status: "completed",
    result: { url: "https://pictures.example/owl" },
  });
});

test("the tool execution effect: a query, tools, implementations, and callbacks that write the rows", async () => {
  const desk = openDesk();
  const { toolCalls } = desk;
  const tools = [searchTool, analysisTool] as const;
  kept(
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools,
      implementations: {
        searchDatabase: async (args, ctx) => {
          ctx.signal.throwIfAborted();
          return { results: await db.search(args.query) };
        },
        analyzeDocument: async (args) => {
          throw new Error(`${args.document} is locked`);
        },
      },
      onExecuting: async (row) => {
        toolCalls.update(row.id, (draft) => {
          draft.status = "executing";
        });
      },
      onComplete: async (row, result) => {
        toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
          draft.result = result;
        });
      },
      onError: async (row, error) => {
        toolCalls.update(row.id, (draft) => {
          draft.status = "failed";
          draft.error = error.message;
        });
      },
    }),
  );
  toolCalls.insert({ id: "1", name: "searchDatabase", args: { query: "owls" }, status: "pending" });
  toolCalls.insert({ id: "2", name: "analyzeDocument", args: { document: "d1" }, status: "pending" });
  expect(await waitForToolResult(toolCalls, "1")).toEqual({ results: ["about owls"] });
  await expect(waitForToolResult(toolCalls, "2")).rejects.toThrow("d1 is locked");
});

test("composing the two sides: each has its own collection over the same rows", async () => {
  const log = openLocalLog();
  const [generation, execution] = [openDesk(log), openDesk(log)];
  const durableTools = makeDurableTools([searchTool, analysisTool], generation.toolCalls, {
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
    ...durability,
  });
  const adapter = scriptedText([calls("analyzeDocument", { document: "the report" }), "Summarized."]);
  const handleGeneration = (prompt: string) =>
    textOf(chat({ adapter, messages: [{ role: "user", content: prompt }], tools: durableTools }));
  kept(
    createToolExecutionEffect({
      query: pendingOf(execution),
      tools: [searchTool, analysisTool] as const,
      implementations,
      onComplete: async (row, result) => {
        execution.toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
          draft.result = result;
        });
      },
    }),
  );
  expect(await handleGeneration("Summarize the report.")).toBe("Summarized.");
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"summary":"the report in short"}');
});

test("idempotency: with onExecuting as the mark, a row is executed once", async () => {
  const desk = openDesk();
  const ran: string[] = [];
  kept(
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools: [searchTool],
      implementations: { searchDatabase: async ({ query }) => (ran.push(query), { results: [] }) },
      onExecuting: async (row) => {
        desk.toolCalls.update(row.id, (draft) => {
          draft.status = "executing";
        });
      },
      onComplete: async (row) => {
        desk.toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
        });
      },
    }),
  );
  desk.toolCalls.insert({ id: "1", name: "searchDatabase", args: { query: "owls" }, status: "pending" });
  await waitForToolResult(desk.toolCalls, "1");
  expect(ran).toEqual(["owls"]);
});

test("tool definitions of TanStack AI: defined once, durable here, implemented there", async () => {
  const fileTool = toolDefinition({
    name: "readFile",
    description: "Read a file from disk",
    inputSchema: z.object({ path: z.string() }),
    outputSchema: z.object({ content: z.string() }),
  });
  const desk = openDesk();
  const { toolCalls } = desk;
  const durableTools = makeDurableTools([searchTool, fileTool], toolCalls, {
    transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
    ...durability,
  });
  kept(
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools: [searchTool, fileTool] as const,
      implementations: {
        searchDatabase: implementations.searchDatabase,
        readFile: async (args) => ({ content: `text of ${args.path}` }),
      },
      onComplete: async (row, result) => {
        toolCalls.update(row.id, (draft) => {
          draft.status = "completed";
          draft.result = result;
        });
      },
    }),
  );
  const adapter = scriptedText([calls("readFile", { path: "notes.txt" }), "Read."]);
  expect(await textOf(chat({ adapter, messages: question, tools: durableTools }))).toBe("Read.");
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"content":"text of notes.txt"}');
});

test("type-safe tools: a list of tools, and an implementation of each of them", async () => {
  // The proposal weighs three forms and takes this one. `.server()` tools in `tools`, and a builder, are not there.
  const desk = openDesk();
  const effect = kept(
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools: [searchTool, analysisTool] as const,
      implementations,
    }),
  );
  expect(() =>
    createToolExecutionEffect({
      query: pendingOf(desk),
      tools: [searchTool, analysisTool] as const,
      // @ts-expect-error: one is missing.
      implementations: { searchDatabase: implementations.searchDatabase },
    }),
  ).toThrow(/analyzeDocument/);
  await effect.ready;
});

test("several environments: each executes the tools that it has, by their names", async () => {
  const { toolCalls } = openDesk();
  const browserTool = toolDefinition({ name: "captureScreenshot", description: "Takes a picture of the screen" });
  kept(
    createToolExecutionEffect({
      query: (q) =>
        q
          .from({ tc: toolCalls })
          .where(({ tc }) =>
            and(
              eq(tc.status, "pending"),
              eq(tc.$synced, true),
              inArray(tc.name, ["searchDatabase", "analyzeDocument"]),
            ),
          ),
      tools: [searchTool, analysisTool] as const,
      implementations,
    }),
  );
  kept(
    createToolExecutionEffect({
      query: (q) =>
        q
          .from({ tc: toolCalls })
          .where(({ tc }) => and(eq(tc.status, "pending"), eq(tc.$synced, true), eq(tc.name, "captureScreenshot"))),
      tools: [browserTool] as const,
      implementations: { captureScreenshot: async () => "a picture" },
    }),
  );
  toolCalls.insert({ id: "1", name: "captureScreenshot", args: {}, status: "pending" });
  toolCalls.insert({ id: "2", name: "searchDatabase", args: { query: "owls" }, status: "pending" });
  expect(await waitForToolResult(toolCalls, "1")).toBe("a picture");
  expect(await waitForToolResult(toolCalls, "2")).toEqual({ results: ["about owls"] });
});

test("a shared module of tools: the generation side wraps it, the execution side implements it", async () => {
  const tools = [searchTool, analysisTool] as const;
  type ToolNames = (typeof tools)[number]["name"];
  const first: ToolNames = "searchDatabase";
  const desk = openDesk();
  const durableTools = makeDurableTools(tools, desk.toolCalls, {
    transform: (tc) => ({ ...tc, status: "pending" }),
    ...durability,
  });
  kept(createToolExecutionEffect({ query: pendingOf(desk), tools, implementations }));
  const adapter = scriptedText([calls(first, { query: "owls" }), "Found."]);
  expect(await textOf(chat({ adapter, messages: question, tools: [...durableTools] }))).toBe("Found.");
});
