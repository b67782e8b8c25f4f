import { chat, toolDefinition } from "@tanstack/ai";
import {
  createAgent,
  createWorkerAgent,
  forgetGenerations,
  durableAgent,
  readChunks,
  rowsOf,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import { gate, replies, say, startPlace } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

const schemas = {
  inputSchema: z.object({ claim: z.string() }),
  outputSchema: z.object({ verified: z.boolean(), evidence: z.array(z.string()).default([]) }),
};

const search = toolDefinition({
  name: "search",
  description: "Finds things.",
  inputSchema: z.object({ query: z.string() }),
  outputSchema: z.object({ results: z.array(z.string()) }),
});

const base = {
  name: "fact-checker",
  description: "Verifies claims.",
  instructions: "Be rigorous.",
  ...schemas,
  buildMessages: ({ claim }: { claim: string }) => [{ role: "user" as const, content: `Verify: ${claim}` }],
};

test("requirement: Worker agents: each call is fresh, works with its tools and returns an object", async () => {
  const adapter = scriptedText([
    { toolCalls: [{ name: "search", input: { query: "earth" } }] },
    "It is old.",
    { structured: { verified: true, evidence: ["a rock"] } },
    "No idea.",
    { structured: { verified: false } },
  ]);
  const seen: string[] = [];
  const tool = search.server(async ({ query }) => {
    seen.push(query);
    return { results: ["a rock"] };
  });
  const worker = createWorkerAgent({ ...base, adapter, tools: [tool] });
  expect(await worker.run({ claim: "The earth is old" })).toEqual({ verified: true, evidence: ["a rock"] });
  expect(await worker.run({ claim: "The moon is cheese" })).toEqual({ verified: false, evidence: [] });
  expect(seen).toEqual(["earth"]);
  const second = adapter.calls.find((call) => call.userText.includes("moon"));
  expect(second?.messages).toMatchObject([{ role: "user", content: "Verify: The moon is cheese" }]);
  expect(second?.systemPrompts).toContain("Be rigorous.");
});

test("it is a tool like any other", async () => {
  const worker = createWorkerAgent({ ...base, adapter: scriptedText([{ structured: { verified: true } }]) });
  const adapter = scriptedText([{ toolCalls: [{ name: "fact-checker", input: { claim: "x" } }] }, "It is true."]);
  const messages = [{ role: "user" as const, content: "Is x true?" }];
  expect(await chat({ adapter, messages, tools: [worker], stream: false })).toBe("It is true.");
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"verified":true,"evidence":[]}');
});

test("inputs, outputs and models that are not as they must be fail the call", async () => {
  const worker = createWorkerAgent({
    ...base,
    adapter: scriptedText([{ structured: { verified: "perhaps" } }, "prose", { error: "no model" }]),
  });
  await expect(worker.run({ claim: 1 } as never)).rejects.toMatchObject({ code: "bad_input" });
  await expect(worker.run({ claim: "x" })).rejects.toMatchObject({ code: "bad_input" });
  await expect(worker.run({ claim: "x" })).rejects.toThrow();
  await expect(worker.run({ claim: "x" })).rejects.toThrow("no model");
});

test("a worker that calls itself is stopped by the depth, and its model is told so", async () => {
  const adapter = scriptedText((call) => {
    if (call.structured) return { structured: { verified: false } };
    return call.step === 0 ? { toolCalls: [{ name: "fact-checker", input: { claim: "x" } }] } : "done";
  });
  const tools: ReturnType<typeof createWorkerAgent>[] = [];
  const worker = createWorkerAgent({ ...base, adapter, tools: tools as never, maxDepth: 3 });
  tools.push(worker as never);
  expect(await worker.run({ claim: "x" })).toEqual({ verified: false, evidence: [] });
  const told = adapter.calls.flatMap((call) => call.messages.map((message) => String(message.content)));
  expect(told.find((text) => text.includes("4 workers deep, and 3 are allowed"))).toBeDefined();
});

test("requirement: Cancellation: an aborted worker gives no result, before or during its work", async () => {
  const began = gate();
  const adapter = scriptedText([{ text: ["half", () => began.open(), new Promise(() => {})] }]);
  const worker = createWorkerAgent({ ...base, adapter });
  const abort = new AbortController();
  const run = worker.run({ claim: "x" }, { signal: abort.signal });
  await began.opened;
  abort.abort();
  await expect(run).rejects.toMatchObject({ code: "cancelled" });
  await expect(worker.run({ claim: "x" }, { signal: abort.signal })).rejects.toMatchObject({ code: "cancelled" });
  expect(adapter.calls).toHaveLength(1);
});

describe.each(backends)("durable workers on $name", (backend) => {
  let place: Place;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  test("its calls and chunks are rows that name the answer it works for; a second run takes finished calls from them", async () => {
    const { collections } = await place.open();
    let runs = 0;
    const tool = search.server(async () => ({ results: [`run ${++runs}`] }));
    const calling = { toolCalls: [{ name: "search", input: { query: "x" }, id: "s1" }] };
    const durable = { toolCalls: collections.toolCalls, chunks: collections.chunks };
    const stuck = gate();
    const cut = scriptedText([calling, { text: [() => stuck.open(), new Promise(() => {})] }]);
    const abort = new AbortController();
    const first = createWorkerAgent({ ...base, adapter: cut, tools: [tool], durable });
    const lost = first.run({ claim: "x" }, { id: "w1", signal: abort.signal });
    await stuck.opened;
    abort.abort();
    await expect(lost).rejects.toMatchObject({ code: "cancelled" });
    const adapter = scriptedText([calling, "so", { structured: { verified: true } }]);
    const second = createWorkerAgent({ ...base, adapter, tools: [tool], durable });
    expect(await second.run({ claim: "x" }, { id: "w1" })).toMatchObject({ verified: true });
    expect(runs).toBe(1);
    expect(rowsOf(collections.toolCalls).get("w1:s1")).toMatchObject({
      status: "completed",
      result: { results: ["run 1"] },
    });
    expect(readChunks(collections.chunks, "w1").map((row) => row.index)).toEqual(
      readChunks(collections.chunks, "w1").map((_, index) => index),
    );
    expect(readChunks(collections.chunks, "w1").length).toBeGreaterThan(0);
  });

  test("in an agent's tools its calls and chunks name the agent's answer, and can be forgotten with it", async () => {
    const { collections } = await place.open();
    const tool = search.server(async () => ({ results: [] }));
    const worker = createWorkerAgent({
      ...base,
      adapter: scriptedText([
        { toolCalls: [{ name: "search", input: { query: "x" } }] },
        "so",
        { structured: { verified: true } },
      ]),
      tools: [tool],
      durable: collections,
    });
    const agent = createAgent(
      durableAgent({
        name: "researcher",
        instructions: "Be brief.",
        adapter: scriptedText([{ toolCalls: [{ name: "fact-checker", input: { claim: "x" } }] }, "It is true."]),
        tools: [worker],
        collections,
      }),
    );
    onTestFinished(() => agent.dispose());
    await say(collections, "researcher", "Is x true?");
    const [reply] = await replies(collections, "researcher", 1);
    expect(reply?.content).toBe("It is true.");
    const mine = rowsOf(collections.toolCalls)
      .all()
      .filter((row) => row.parentGenerationId === reply?.generationId);
    expect(mine).toMatchObject([{ name: "search", status: "completed" }]);
    const pieces = () => rowsOf(collections.chunks).all();
    expect(pieces().filter((row) => row.parentGenerationId === reply?.generationId).length).toBeGreaterThan(0);
    await agent.drainUntilIdle();
    // And the one that the test before has run.
    await forgetGenerations(collections, [reply?.generationId ?? "", "w1"]);
    expect([pieces(), rowsOf(collections.toolCalls).all(), rowsOf(collections.turns).all()]).toEqual([[], [], []]);
    expect((await replies(collections, "researcher", 1))[0]?.content).toBe("It is true.");
  });
});
