import { toolDefinition } from "@tanstack/ai";
import { and, eq } from "@tanstack/db";
import {
  assembleText,
  createAgent,
  createApprovals,
  openLocalLog,
  createToolExecutionEffect,
  durableAgent,
  readChunks,
  rowsOf,
} from "perdure/collections";
import type { AgentMessage, DurableAgentOptions, GenerationRecord, ToolCallRecord } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import { gate, replies, say, seen, startPlace, stoppable } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

const search = toolDefinition({
  name: "search",
  description: "Finds things.",
  inputSchema: z.object({ query: z.string() }),
  outputSchema: z.object({ results: z.array(z.string()) }),
});

const searching = (query: string, id = "c1") => ({
  text: "Let me look. ",
  toolCalls: [{ name: "search", input: { query }, id }],
});

describe.each(backends)("durableAgent on $name", (backend) => {
  let place: Place;
  let names = 0;
  const newName = () => `durable-${++names}`;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  type Options = Partial<Omit<DurableAgentOptions, "log" | "streamUrl" | "headers" | "collections">>;

  async function open(options: Options = {}) {
    const { collections } = await place.open();
    const name = options.name ?? newName();
    const failures: Error[] = [];
    const agent = createAgent(
      durableAgent({
        name,
        instructions: "Be brief.",
        adapter: scriptedText((call) => `re: ${call.userText}`),
        retry: { maxAttempts: 3, delayMs: 1 },
        leaseMs: 1000,
        onFailure: (error) => failures.push(error),
        ...options,
        collections,
      }),
    );
    onTestFinished(() => agent.dispose());
    return { agent, name, collections, failures };
  }

  test("requirement: Option factories: a name, instructions, a model and a log are enough", async () => {
    const { log } = await place.open();
    const name = newName();
    const adapter = scriptedText([{ text: ["It ", "is ", "so."] }]);
    const agent = createAgent(durableAgent({ name, instructions: "Be brief.", adapter, log }));
    onTestFinished(() => agent.dispose());
    agent.collections.messages.insert({ actorId: "ann", targetAgent: name, content: "Is it?" });
    const [reply] = await replies(agent.collections, name, 1);
    expect(reply).toMatchObject({ content: "It is so.", role: "assistant", targetAgent: "ann", processed: true });
    const id = reply?.generationId ?? "";
    expect(assembleText(readChunks(agent.collections.chunks, id))).toBe("It is so.");
    expect(rowsOf(agent.collections.generations).get(id)).toMatchObject({
      agentName: name,
      status: "completed",
      attempt: 1,
      runner: `runner:${name}`,
    });
    expect(adapter.calls[0]?.systemPrompts).toEqual(["Be brief."]);
  });

  test("requirement: Agent persistence: tools, their results and answers are in the history of a later process", async () => {
    const tool = search.server(async ({ query }) => ({ results: [`about ${query}`] }));
    const first = await open({ adapter: scriptedText([searching("cats"), "Cats purr."]), tools: [tool] });
    const { name } = first;
    await say(first.collections, name, "What do cats do?");
    await replies(first.collections, name, 1);
    await first.agent.dispose();
    const adapter = scriptedText(["As I said."]);
    const second = await open({ name, adapter, tools: [tool] });
    await say(second.collections, name, "Again?");
    await replies(second.collections, name, 2);
    expect(adapter.calls[0]?.messages.map(({ role, content }) => `${role}: ${String(content)}`)).toEqual([
      "user: What do cats do?",
      "assistant: Let me look. ",
      'tool: {"results":["about cats"]}',
      "assistant: Cats purr.",
      "user: Again?",
    ]);
  });

  test("a tool without an implementation is executed elsewhere; suspended, the agent may sleep meanwhile", async () => {
    const first = await open({ adapter: scriptedText([searching("dogs")]), tools: [search], toolMode: "suspend" });
    const { name, collections } = first;
    await say(collections, name, "What do dogs do?");
    const [suspended] = await seen<GenerationRecord, GenerationRecord[]>(collections.generations, (rows) => {
      const mine = rows.filter((row) => row.agentName === name && row.status === "suspended");
      return mine.length > 0 && mine;
    });
    expect(await first.agent.hasPendingWork()).toBe(false);
    await first.agent.dispose();
    const elsewhere = await place.open();
    const executor = createToolExecutionEffect({
      query: (q) =>
        q
          .from({ call: elsewhere.collections.toolCalls })
          .where(({ call }) => and(eq(call.status, "pending"), eq(call.generationId, suspended?.id ?? ""))),
      tools: [search],
      implementations: { search: async ({ query }) => ({ results: [`${query} bark`] }) },
      collection: elsewhere.collections.toolCalls,
    });
    onTestFinished(() => executor.dispose());
    await seen<ToolCallRecord, true>(collections.toolCalls, (rows) =>
      rows.some((row) => row.generationId === suspended?.id && row.status === "completed"),
    );
    const adapter = scriptedText((call) => String(call.messages.at(-1)?.content));
    const second = await open({ name, adapter, tools: [search], toolMode: "suspend" });
    const [reply] = await replies(second.collections, name, 1);
    expect(reply).toMatchObject({ content: '{"results":["dogs bark"]}', generationId: suspended?.id });
    expect(adapter.calls).toHaveLength(1);
    expect(rowsOf(second.collections.generations).get(suspended?.id ?? "")).toMatchObject({ attempt: 1 });
  });

  test("an answer that is suspended lets others be answered, and goes on by itself", async () => {
    const adapter = scriptedText((call) =>
      call.userText === "slow" && call.step === 0 ? searching("x") : `re: ${call.userText} ${call.step}`,
    );
    const { name, collections } = await open({ adapter, tools: [search], toolMode: "suspend" });
    await say(collections, name, "slow");
    const call = await seen<ToolCallRecord, ToolCallRecord>(collections.toolCalls, (rows) =>
      rows.find((row) => row.status === "pending" && row.args !== undefined && row.generationId !== undefined),
    );
    await say(collections, name, "quick");
    expect((await replies(collections, name, 1))[0]?.content).toBe("re: quick 0");
    await rowsOf(collections.toolCalls).update(call.id, (row) => {
      row.status = "completed";
      row.result = { results: [] };
    });
    expect((await replies(collections, name, 2))[1]?.content).toBe("re: slow 2");
  });

  test("a suspended answer that is cancelled is not carried on", async () => {
    const adapter = scriptedText([searching("x")]);
    const { name, collections } = await open({ adapter, tools: [search], toolMode: "suspend" });
    const id = await say(collections, name, "slow");
    const suspended = await seen<GenerationRecord, GenerationRecord>(collections.generations, (rows) =>
      rows.find((row) => row.agentName === name && row.status === "suspended"),
    );
    await rowsOf(collections.generations).update(suspended.id, (row) => void (row.status = "cancelled"));
    const row = await seen<AgentMessage, AgentMessage>(collections.messages, (rows) =>
      rows.find((one) => one.id === id && one.processed),
    );
    expect(row.error).toContain("cancelled");
    expect(adapter.calls).toHaveLength(1);
  });

  test("a tool that needs approval waits for a person, and is then executed by the agent", async () => {
    const runs: string[] = [];
    const erase = toolDefinition({
      name: "erase",
      description: "Erases a file.",
      needsApproval: true,
      inputSchema: z.object({ path: z.string() }),
      outputSchema: z.object({ erased: z.boolean() }),
    }).server(async ({ path }) => {
      runs.push(path);
      return { erased: true };
    });
    const adapter = scriptedText([{ toolCalls: [{ name: "erase", input: { path: "a.txt" } }] }, "It is gone."]);
    const { name, collections } = await open({ adapter, tools: [erase] });
    await say(collections, name, "Erase a.txt");
    const page = await place.open();
    const approvals = createApprovals({ events: page.collections.approvals });
    onTestFinished(() => approvals.dispose());
    await approvals.ready;
    const asked = await seen(page.collections.approvals, () =>
      approvals.pending().find((event) => rowsOf(page.collections.toolCalls).get(event.toolCallId)?.name === "erase"),
    );
    expect(runs).toEqual([]);
    await approvals.approve(asked.toolCallId, { actorId: "ann" });
    expect((await replies(collections, name, 1))[0]?.content).toBe("It is gone.");
    expect(runs).toEqual(["a.txt"]);
  });

  test("a run that is cut off is carried on: finished tools are not run again", async () => {
    let runs = 0;
    const tool = search.server(async () => ({ results: [`run ${++runs}`] }));
    const stuck = gate();
    const adapter = scriptedText([searching("x"), { text: [() => stuck.open(), new Promise(() => {})] }]);
    const first = await open({ adapter, tools: [tool] });
    const { name } = first;
    await say(first.collections, name, "Look it up");
    await stuck.opened;
    await first.agent.dispose();
    const again = scriptedText((call) => String(call.messages.at(-1)?.content));
    const second = await open({ name, adapter: again, tools: [tool] });
    expect((await replies(second.collections, name, 1))[0]?.content).toBe('{"results":["run 1"]}');
    expect(runs).toBe(1);
  });

  test("invariant 6: one runner at a time; a standby takes over when the runner is gone", async () => {
    const began = gate();
    const held = gate();
    const busy = { text: [() => began.open(), held.opened.then(() => undefined), "never stored"] };
    const first = await open({ adapter: scriptedText([busy, "first again"]) });
    const { name } = first;
    await say(first.collections, name, "one");
    await began.opened;
    const adapter = scriptedText((call) => `second: ${call.userText}`);
    const second = await open({ name, adapter });
    await second.agent.ready;
    await say(second.collections, name, "two");
    expect(first.agent.state).toBe("working");
    expect(adapter.calls).toHaveLength(0);
    await first.agent.dispose();
    held.open();
    const found = await replies(second.collections, name, 1);
    expect(found.map((row) => row.content)).not.toContain("never stored");
    await second.agent.drainUntilIdle();
    expect(adapter.calls.length).toBeGreaterThan(0);
  });

  test("invariant 6: a runner that is dead for its lease is replaced, and what it writes later is refused", async () => {
    const name = newName();
    const began = gate();
    const held = gate();
    const process = stoppable((await place.open()).log);
    const adapter = scriptedText([{ text: [() => began.open(), held.opened.then(() => undefined), "from the dead"] }]);
    const failures: Error[] = [];
    const config = { name, instructions: "Be brief.", retry: { maxAttempts: 9 } };
    const onFailure = (error: Error) => failures.push(error);
    const zombie = createAgent(durableAgent({ ...config, leaseMs: 200, adapter, log: process, onFailure }));
    onTestFinished(() => zombie.dispose());
    const { collections } = await place.open();
    await say(collections, name, "one");
    await began.opened;
    process.stop();
    held.open();
    const second = await open({ ...config, adapter: scriptedText((call) => `re: ${call.userText}`) });
    expect((await replies(second.collections, name, 1))[0]?.content).toBe("re: one");
    process.goOn();
    // Behind everything that the dead one had in flight.
    await say(collections, name, "two");
    expect((await replies(second.collections, name, 2)).map((row) => row.content)).toEqual(["re: one", "re: two"]);
  });

  test("requirement: Cancellation: an answer is stopped by its row, from anywhere", async () => {
    const began = gate();
    const adapter = scriptedText([{ text: ["half", () => began.open(), new Promise(() => {})] }, "next"]);
    const { name, collections } = await open({ adapter });
    const id = await say(collections, name, "long");
    await began.opened;
    const page = await place.open();
    const generationId = await seen<AgentMessage, string>(
      page.collections.messages,
      (rows) => rows.find((row) => row.id === id)?.generationId,
    );
    await page.collections.generations.update(generationId, (row) => void (row.status = "cancelled")).isPersisted
      .promise;
    const row = await seen<AgentMessage, AgentMessage>(collections.messages, (rows) =>
      rows.find((one) => one.id === id && one.processed),
    );
    expect(row.error).toContain("cancelled");
    await say(collections, name, "short");
    expect((await replies(collections, name, 1)).map((one) => one.content)).toEqual(["next"]);
    expect(rowsOf(collections.generations).get(generationId)?.status).toBe("cancelled");
  });
});

test("options of durableAgent that were given to createAgent itself: it says what to do", () => {
  const options = { name: "planner", instructions: "", adapter: scriptedText([]), log: openLocalLog() };
  expect(() => createAgent(options as never)).toThrow(/createAgent\(durableAgent\(/);
});
