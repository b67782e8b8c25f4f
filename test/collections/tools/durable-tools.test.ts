import { chat, toolDefinition } from "@tanstack/ai";
import type { ModelMessage } from "@tanstack/ai";
import {
  createToolExecutionEffect,
  makeAsyncTool,
  makeDurableTool,
  makeDurableTools,
  waitForToolResult,
} from "perdure/collections";
import {
  cancelToolCalls,
  durableToolOf,
  openToolCalls,
  toolCallResults,
  toolCallRowId,
  waitForToolCalls,
} from "perdure/collections/answer";
import type { AgentToolCall, RowLog } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { add, gate, note, openCalls, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

const user: ModelMessage[] = [{ role: "user", content: "1 + 2?" }];
const asks = (id = "c1") => ({ toolCalls: [{ name: "add", input: { a: 1, b: 2 }, id }] });

async function textOf(stream: AsyncIterable<{ type: string; delta?: unknown }>): Promise<string> {
  let text = "";
  for await (const chunk of stream) if (chunk.type === "TEXT_MESSAGE_CONTENT") text += String(chunk.delta);
  return text;
}

describe.each(backends)("durable tools on $name", (backend) => {
  let place: TestPlace;
  let log: RowLog;
  let other: RowLog;
  let tables = 0;
  beforeAll(async () => {
    place = await backend.start();
    log = await place.open();
    other = await place.open();
  });
  afterAll(() => place.stop());
  const open = (on = log) => openCalls(on, `calls${tables}`);
  const fresh = () => {
    tables++;
    return open();
  };
  /** Another process that executes. */
  const executor = (did: string[] = []) => {
    const { calls } = open(other);
    return createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: ({ a, b }, run) => {
          did.push(run.idempotencyKey);
          return { sum: a + b };
        },
      },
    });
  };

  test("a call of chat() is a row that another process executes, and its result goes on", async () => {
    const { calls, rows } = fresh();
    const did: string[] = [];
    const effect = executor(did);
    const adapter = scriptedText([asks(), (({ sum }) => `It is ${sum}.`)({ sum: 3 })]);
    const tools = makeDurableTools([add], calls);
    const text = await textOf(chat({ adapter, messages: user, tools, context: { generationId: "g" } }));
    expect(text).toBe("It is 3.");
    expect(did).toEqual(["g:c1"]);
    expect(adapter.calls[1]?.messages.at(-1)).toMatchObject({ role: "tool", toolCallId: "c1", content: '{"sum":3}' });
    expect(rows.get("g:c1")).toMatchObject({
      id: toolCallRowId("g", "c1"),
      generationId: "g",
      toolCallId: "c1",
      name: "add",
      args: { a: 1, b: 2 },
      status: "completed",
      result: { sum: 3 },
    });
    // A second run of the same answer finds the row, and its result at once.
    const again = scriptedText([asks(), "Still 3."]);
    expect(await textOf(chat({ adapter: again, messages: user, tools, context: { generationId: "g" } }))).toBe(
      "Still 3.",
    );
    expect(rows.all()).toHaveLength(1);
    expect(did).toHaveLength(1);
    await effect.dispose();
  });

  test("a run that ended while it waited is taken up by another one: one row, one execution", async () => {
    const { calls, rows } = fresh();
    const tool = makeDurableTool(add, calls, { generationId: "g" });
    const first = tool.execute?.({ a: 1, b: 2 }, context("c1"));
    const second = makeDurableTool(add, open(other).calls).execute?.({ b: 2, a: 1 }, context("c1", "g"));
    await until(() => rows.get("g:c1") !== undefined);
    const did: string[] = [];
    const effect = executor(did);
    expect(await Promise.all([first, second])).toEqual([{ sum: 3 }, { sum: 3 }]);
    expect(did).toEqual(["g:c1"]);
    await effect.dispose();
  });

  test("the same id with other arguments is an error, not somebody else's result", async () => {
    const { calls, rows } = fresh();
    await rows.insert(pending("g:c1", { status: "completed", result: { sum: 3 } }));
    const tool = makeDurableTool(add, calls, { generationId: "g" });
    await expect(tool.execute?.({ a: 1, b: 3 }, context("c1"))).rejects.toMatchObject({ code: "conflict" });
    expect(await tool.execute?.({ b: 2, a: 1 }, context("c1"))).toEqual({ sum: 3 });
  });

  test("failed and cancelled calls are errors of the tool; the model sees why", async () => {
    const { calls, rows } = fresh();
    await rows.insertAll([
      pending("g:failed", { status: "failed", error: "No such number." }),
      pending("g:cancelled", { status: "cancelled" }),
    ]);
    const tool = makeDurableTool(add, calls, { generationId: "g" });
    const call = (id: string) => tool.execute?.({ a: 1, b: 2 }, context(id));
    await expect(call("failed")).rejects.toMatchObject({ code: "call_failed", message: "No such number." });
    await expect(call("cancelled")).rejects.toMatchObject({ code: "cancelled" });
    const adapter = scriptedText([asks("failed"), "Sorry."]);
    await textOf(chat({ adapter, messages: user, tools: [tool] }));
    expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"error":"No such number."}');
  });

  test("a call that takes too long is a clear error and stays a call, unless it is to be cancelled", async () => {
    const { calls, rows } = fresh();
    const tool = makeDurableTool(add, calls, { generationId: "g", timeout: 5 });
    await expect(tool.execute?.({ a: 1, b: 2 }, context("slow"))).rejects.toMatchObject({ code: "timeout" });
    expect(rows.get("g:slow")?.status).toBe("pending");
    const strict = makeDurableTool(add, calls, { generationId: "g", timeout: 5, cancelOnTimeout: true });
    await expect(strict.execute?.({ a: 1, b: 2 }, context("slow"))).rejects.toMatchObject({ code: "timeout" });
    expect(rows.get("g:slow")?.status).toBe("cancelled");
  });

  test("invariant 3: aborting chat() cancels the call that it waits for, and with it the execution", async () => {
    const { calls, rows } = fresh();
    const started = gate();
    const aborted = gate();
    const { calls: theirs } = open(other);
    const effect = createToolExecutionEffect({
      query: waiting(theirs),
      tools: [add],
      collection: theirs,
      implementations: {
        add: (_args, { signal }) => {
          signal.addEventListener("abort", () => aborted.resolve());
          started.resolve();
          return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
        },
      },
    });
    const abortController = new AbortController();
    const tools = makeDurableTools([add], calls);
    const adapter = scriptedText([asks(), "never"]);
    const run = textOf(chat({ adapter, messages: user, tools, abortController, context: { generationId: "g" } }));
    await started.promise;
    abortController.abort();
    await run;
    await aborted.promise;
    await until(() => rows.get("g:c1")?.status === "cancelled");
    expect(adapter.calls).toHaveLength(1);
    await effect.dispose();
  });

  test("suspend: the run ends, all calls of the turn are rows at once, and the results continue it", async () => {
    const { calls, rows } = fresh();
    const tools = makeDurableTools([add, note], calls, { mode: "suspend" });
    expect(durableToolOf(tools[0])).toEqual({ mode: "suspend" });
    const adapter = scriptedText([
      { toolCalls: [1, 2, 3].map((n) => ({ name: "add", input: { a: n, b: n }, id: `c${n}` })) },
      "Done.",
    ]);
    const made: AgentToolCall[] = [];
    let interrupts = 0;
    for await (const chunk of chat({ adapter, messages: user, tools })) {
      if (chunk.type === "TOOL_CALL_START")
        made.push({ id: chunk.toolCallId, name: chunk.toolCallName, arguments: "" });
      if (chunk.type === "TOOL_CALL_ARGS") made.at(-1)!.arguments += chunk.delta;
      if (chunk.type === "RUN_FINISHED" && chunk.outcome?.type === "interrupt")
        interrupts = chunk.outcome.interrupts.length;
    }
    expect(interrupts).toBe(3);
    const before = log.position;
    const ids = await openToolCalls(tools, made, { generationId: "g" });
    expect(ids).toEqual(["g:c1", "g:c2", "g:c3"]);
    expect(log.position > before).toBe(true);
    expect(rows.all().map((row) => row.status)).toEqual(["pending", "pending", "pending"]);
    // Again after a crash: the rows that are there are kept.
    await openToolCalls(tools, made, { generationId: "g" });
    expect(rows.all()).toHaveLength(3);
    expect(await toolCallResults(tools, made, { generationId: "g" })).toEqual({ messages: [], open: made });
    const all = waitForToolCalls(tools, made, { generationId: "g" });
    // They run side by side: each waits for all of them.
    let running = 0;
    const { calls: theirs } = open(other);
    const effect = createToolExecutionEffect({
      query: waiting(theirs),
      tools: [add],
      collection: theirs,
      implementations: {
        add: async ({ a, b }) => {
          running++;
          await until(() => running === 3);
          if (a === 3) throw new Error("Three is too much.");
          return { sum: a + b };
        },
      },
    });
    const results = await all;
    expect(results).toEqual([
      { role: "tool", toolCallId: "c1", content: '{"sum":2}' },
      { role: "tool", toolCallId: "c2", content: '{"sum":4}' },
      { role: "tool", toolCallId: "c3", content: '{"error":"Three is too much."}' },
    ]);
    const toolCalls = made.map(({ id, name, arguments: text }) => ({
      id,
      type: "function" as const,
      function: { name, arguments: text },
    }));
    const history: ModelMessage[] = [...user, { role: "assistant", content: null, toolCalls }, ...results];
    expect(await textOf(chat({ adapter, messages: history, tools }))).toBe("Done.");
    await effect.dispose();
  });

  test("suspend: what is open can be cancelled, and the wait for it ended", async () => {
    const { calls, rows } = fresh();
    const tools = [makeDurableTool(add, calls, { mode: "suspend" })];
    const made = [{ id: "c1", name: "add", arguments: '{"a":1,"b":2}' }];
    const of = { generationId: "g" };
    await openToolCalls(tools, made, of);
    const stop = new AbortController();
    const waits = waitForToolCalls(tools, made, { ...of, signal: stop.signal });
    stop.abort();
    await expect(waits).rejects.toMatchObject({ code: "cancelled" });
    await expect(waitForToolCalls(tools, made, { ...of, timeout: 2 })).rejects.toMatchObject({ code: "timeout" });
    await cancelToolCalls(tools, made, of);
    expect(rows.get("g:c1")?.status).toBe("cancelled");
    expect((await toolCallResults(tools, made, of)).open).toEqual([]);
    await expect(openToolCalls(tools, [{ ...made[0]!, id: "c2", arguments: "{" }], of)).rejects.toMatchObject({
      code: "bad_input",
    });
  });

  test("a tool that needs approval is written before anybody is asked, and says so in its row", async () => {
    const { calls, rows } = fresh();
    const asking = toolDefinition({ ...addConfig, needsApproval: true });
    const tool = makeDurableTool(asking, calls, { timeout: 5 });
    const adapter = scriptedText([asks(), "No."]);
    expect(await textOf(chat({ adapter, messages: user, tools: [tool], context: { generationId: "g" } }))).toBe("No.");
    expect(rows.get("g:c1")).toMatchObject({ status: "pending", needsApproval: true });
    const careless = makeDurableTool(asking, calls, {
      generationId: "g",
      transform: ({ needsApproval: _dropped, ...call }) => ({ ...pending(call.id), ...call }),
    });
    await expect(careless.execute?.({ a: 1, b: 2 }, context("c2"))).rejects.toMatchObject({ code: "bad_config" });
  });

  test("a background tool answers at once; its work goes on when the run is over", async () => {
    const { calls, rows } = fresh();
    const tools = [makeAsyncTool(add, calls)];
    const adapter = scriptedText([asks(), "Started."]);
    const stop = new AbortController();
    const run = chat({ adapter, messages: user, tools, context: { generationId: "g" }, abortController: stop });
    expect(await textOf(run)).toBe("Started.");
    stop.abort();
    expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"jobId":"g:c1","status":"queued"}');
    expect(rows.get("g:c1")).toMatchObject({ status: "pending", isAsync: true });
    const effect = executor();
    expect(await waitForToolResult(calls, "g:c1")).toEqual({ sum: 3 });
    await effect.dispose();
  });

  test("a background tool whose outputSchema is what the model is told at once: the work may give anything", async () => {
    const { calls, rows } = fresh();
    const draw = toolDefinition({
      name: "draw",
      description: "Draws; gives a job id, and is done later.",
      inputSchema: z.object({ prompt: z.string() }),
      outputSchema: z.object({ jobId: z.string(), status: z.literal("queued") }),
    });
    const drawing = makeAsyncTool(draw, calls, {
      transform: (call, generationId) => ({ ...pending(call.id), ...call, generationId, isAsync: true }),
      getImmediateResult: (row) => ({ jobId: row.id, status: "queued" }),
    });
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [draw],
      implementations: { draw: async ({ prompt }) => ({ url: `https://pictures.example/${prompt}` }) },
    });
    const adapter = scriptedText([{ toolCalls: [{ name: "draw", input: { prompt: "owl" }, id: "c1" }] }, "Started."]);
    const run = chat({ adapter, messages: user, tools: [drawing], context: { generationId: "g" } });
    expect(await textOf(run)).toBe("Started.");
    expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"jobId":"g:c1","status":"queued"}');
    expect(await waitForToolResult(calls, "g:c1")).toEqual({ url: "https://pictures.example/owl" });
    expect(rows.get("g:c1")).toMatchObject({ status: "completed", isAsync: true });
    await effect.dispose();
  });
});

const addConfig = {
  name: "add",
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  outputSchema: z.object({ sum: z.number() }),
} as const;

/** What chat() gives to a tool. */
function context(toolCallId: string, generationId?: string) {
  return {
    toolCallId,
    emitCustomEvent: () => {},
    context: generationId === undefined ? undefined : { generationId },
  };
}
