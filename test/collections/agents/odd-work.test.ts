import { toolDefinition } from "@tanstack/ai";
import { eq } from "@tanstack/db";
import {
  agentCollections,
  agentPeer,
  createAgent,
  createToolExecutionEffect,
  createWorkerAgent,
  durableAgent,
  openLocalLog,
  readChunks,
  rowsOf,
} from "perdure/collections";
import type { AgentCollections, AgentMessage, DurableAgentOptions } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import { dying } from "../dying.ts";
import { gate, replies, say, seen } from "./agent-session.ts";

const wait = toolDefinition({ name: "wait", description: "Waits.", inputSchema: z.object({}) });

const agent = (name: string, collections: AgentCollections, more: Partial<DurableAgentOptions> = {}) =>
  createAgent(
    durableAgent({
      ...{ name, instructions: "", onFailure: () => {}, retry: { maxAttempts: 5, delayMs: 1 } },
      adapter: scriptedText((call) => `re ${call.userText}`),
      ...(more as object),
      collections,
    } as DurableAgentOptions),
  );

test.each(backends.filter(({ name }) => name === "perdure agent"))(
  "1,200 messages that wait are all answered on $name",
  async (backend) => {
    const place = await backend.start();
    const collections = agentCollections(await place.open());
    const rows = rowsOf(collections.messages);
    await rows.ready();
    const content = "x".repeat(3_000);
    for (let n = 0; n < 12; n++) {
      const part = Array.from({ length: 100 }, (_, k): AgentMessage => {
        const id = `m${String(n * 100 + k).padStart(4, "0")}`;
        return { id, role: "user", actorId: "ann", targetAgent: "busy", content, createdAt: "t", processed: false };
      });
      await rows.insertAll(part);
    }
    const busy = agent("busy", collections, { adapter: scriptedText(() => "all of them") });
    await busy.drainUntilIdle();
    const mine = rows.all().filter((row) => row.targetAgent === "busy");
    expect(mine).toHaveLength(1_200);
    expect(mine.filter((row) => !row.processed || row.error !== undefined)).toEqual([]);
    await busy.dispose();
    await place.stop();
  },
);

test("the signal of a drain that is over does not stop the next one", async () => {
  const collections = agentCollections(openLocalLog());
  const signals: AbortSignal[] = [];
  const go = gate();
  const generate: DurableAgentOptions["generate"] = async ({ signal }) => {
    if (signals.push(signal) === 2) await go.opened;
    return "yes";
  };
  const busy = agent("busy", collections, { generate, live: false });
  const first = new AbortController();
  await say(collections, "busy", "one");
  await busy.drainUntilIdle({ signal: first.signal });
  await say(collections, "busy", "two");
  const second = busy.drainUntilIdle();
  await expect.poll(() => signals.length).toBe(2);
  first.abort();
  expect(signals[1]?.aborted).toBe(false);
  go.open();
  expect(await second).toEqual({ completed: true, cycles: 1 });
  await busy.dispose();
});

test("a drain that runs out of time keeps the call that it waited for", async () => {
  const collections = agentCollections(openLocalLog());
  const adapter = scriptedText((call) => (call.step === 0 ? { toolCalls: [{ name: "wait" }] } : "done"));
  const slow = agent("slow", collections, { adapter, tools: [wait], live: false });
  await say(collections, "slow", "go");
  const time = new AbortController();
  const drained = slow.drainUntilIdle({ signal: time.signal }).catch(() => undefined);
  const call = await seen(collections.toolCalls, ([row]) => row);
  time.abort();
  await drained;
  expect(rowsOf(collections.toolCalls).get(call.id)?.status).toBe("pending");
  await rowsOf(collections.toolCalls).update(
    call.id,
    (row) => void Object.assign(row, { status: "completed", result: 1 }),
  );
  await slow.drainUntilIdle();
  expect((await replies(collections, "slow", 1)).map((row) => row.content)).toEqual(["done"]);
  expect(adapter.calls).toHaveLength(2);
  await slow.dispose();
});

test("rows that no page would write harm nobody else", async () => {
  const log = openLocalLog();
  const collections = agentCollections(log);
  const odd: Record<string, object> = {
    empty: { targetAgent: "odd" },
    number: { targetAgent: "odd", actorId: "ann", content: 42, processed: false },
    system: { targetAgent: "odd", actorId: "ann", role: "system", content: "obey", processed: false },
    strange: { targetAgent: "odd", actorId: "ann", role: "robot", content: "x", attempts: "many", callers: 7 },
    own: { targetAgent: "odd", actorId: "odd", role: "assistant", content: "me", processed: false },
    nobody: { targetAgent: "nobody", actorId: "ann", role: "user", content: "x", processed: false },
    aimless: { actorId: "ann", content: "x", processed: false },
    begun: { targetAgent: "odd", actorId: "ann", role: "user", content: "b", processed: false, generationId: "ghost" },
  };
  for (const [id, value] of Object.entries(odd)) {
    await log.write({ changes: [{ table: "messages", key: id, operation: "insert", value: { id, ...value } }] });
  }
  const one = agent("odd", collections);
  await say(collections, "odd", "hello");
  await one.drainUntilIdle();
  const late = await say(collections, "odd", "still there?");
  await one.drainUntilIdle();
  const rows = rowsOf(collections.messages);
  expect(rows.get(late)).toMatchObject({ processed: true });
  expect(rows.get(late)).not.toHaveProperty("error");
  expect(rows.all().filter((row) => row.targetAgent === "odd" && row.processed !== true)).toEqual([]);
  await one.dispose();
});

test("a message that carries the id of an answer that is over does not change that answer", async () => {
  const log = openLocalLog();
  const collections = agentCollections(log);
  const one = agent("again", collections);
  await say(collections, "again", "first");
  const [first] = await replies(collections, "again", 1);
  await one.drainUntilIdle();
  const generationId = first?.generationId ?? "";
  const id = await say(collections, "again", "second", { generationId });
  await seen(collections.messages, (rows) => rows.find((row) => row.id === id && row.processed));
  await one.drainUntilIdle();
  expect(rowsOf(collections.generations).get(generationId)?.status).toBe("completed");
  expect(rowsOf(collections.messages).get(id)).not.toHaveProperty("error");
  expect((await replies(collections, "again", 1)).map((row) => row.content)).toEqual(["re first", "re second"]);
  await one.dispose();
});

test("disposed while it answers and made again at once, it answers once", async () => {
  const collections = agentCollections(openLocalLog());
  const begun = gate();
  const never = gate();
  const first = agent("phoenix", collections, {
    adapter: scriptedText(() => ({ text: ["so ", () => (begun.open(), never.opened), "late"] })),
  });
  await say(collections, "phoenix", "hi");
  await begun.opened;
  const ended = first.dispose();
  const second = agent("phoenix", collections);
  expect((await replies(collections, "phoenix", 1)).map((row) => row.content)).toEqual(["re hi"]);
  never.open();
  await ended;
  await second.drainUntilIdle();
  expect(await replies(collections, "phoenix", 1)).toHaveLength(1);
  await second.dispose();
});

test("a summary that fails is no reason not to answer", async () => {
  const collections = agentCollections(openLocalLog());
  const failures: string[] = [];
  const one = agent("terse", collections, {
    autoSummarize: { threshold: 2, windowSize: 1, adapter: scriptedText(() => ({ error: "no summary" })) },
    onFailure: (error: Error) => void failures.push(error.message),
  });
  for (const text of ["a", "b", "c"]) {
    await say(collections, "terse", text);
    await one.drainUntilIdle();
  }
  expect((await replies(collections, "terse", 3)).map((row) => row.content)).toEqual(["re a", "re b", "re c"]);
  expect(failures.length).toBeGreaterThan(0);
  expect(rowsOf(collections.summaries).all()).toEqual([]);
  await one.dispose();
});

test.each(["after"] as const)(
  "wherever a runner dies (%s a write), another answers all that wait; suspended, each tool runs once",
  async (moment) => {
    let survived = false;
    for (let at = 1; !survived; at++) {
      const what = `death at write ${at}`;
      const log = openLocalLog();
      const collections = agentCollections(log);
      const executed: string[] = [];
      const tools = createToolExecutionEffect({
        query: (q) => q.from({ c: collections.toolCalls }).where(({ c }) => eq(c.status, "pending")),
        tools: [wait],
        collection: collections.toolCalls,
        implementations: { wait: async (_args, { idempotencyKey }) => (executed.push(idempotencyKey), "ok") },
      });
      const run = (on: AgentCollections) => {
        const adapter = scriptedText((call) =>
          call.step === 0 ? { text: "Hm. ", toolCalls: [{ name: "wait" }] } : `re ${call.userText}`,
        );
        return agent("sleepy", on, { adapter, tools: [wait], toolMode: "suspend", owner: "sleepy" });
      };
      const victim = dying(log, at, moment);
      await say(collections, "sleepy", "one");
      await say(collections, "sleepy", "two");
      await say(collections, "sleepy", "three", { requestId: "own" });
      run(agentCollections(victim.log));
      const over = () =>
        seen(collections.messages, (rows) => {
          const answers = rows.filter(
            (row) => row.actorId === "sleepy" && row.role === "assistant" && row.toolCalls === undefined,
          );
          return answers.length >= 2 && rows.every((row) => row.processed) && answers;
        });
      survived = await Promise.race([victim.died.then(() => false), over().then(() => true)]);
      const second = survived ? undefined : run(collections);
      const answers = await over();
      expect(answers.map((row) => `${row.content} ${row.inReplyTo}`).toSorted(), what).toEqual([
        "re three own",
        "re two undefined",
      ]);
      expect(
        rowsOf(collections.messages)
          .all()
          .filter((row) => row.error !== undefined),
        what,
      ).toEqual([]);
      expect(executed.length, what).toBe(2);
      await second?.drainUntilIdle();
      for (const { generationId = "" } of answers) {
        const chunks = readChunks(collections.chunks, generationId);
        expect(
          chunks.map((row) => row.index),
          what,
        ).toEqual(chunks.map((_, index) => index));
        expect(
          chunks.filter((row) => row.isFinal === true),
          what,
        ).toHaveLength(1);
        expect(rowsOf(collections.generations).get(generationId)?.status, what).toBe("completed");
      }
      await Promise.all([tools.dispose(), second?.dispose()]);
    }
  },
);

test.each(["after"] as const)(
  "wherever the middle one of three agents dies (%s a write), each request has one reply",
  async (moment) => {
    let survived = false;
    for (let at = 1; !survived; at++) {
      const what = `death at write ${at}`;
      const log = openLocalLog();
      const collections = agentCollections(log);
      const asks = (other: string) =>
        scriptedText((call) => {
          if (call.step === 0) return { toolCalls: [{ name: other, input: { message: `${call.userText}>${other}` } }] };
          return `via ${other}: ${String(call.messages.at(-1)?.content)}`;
        });
      const middle = (on: AgentCollections) =>
        agent("b", on, { adapter: asks("c"), agents: [{ agent: agentPeer("c", on), description: "C" }], owner: "b" });
      const a = agent("a", collections, {
        adapter: asks("b"),
        agents: [{ agent: agentPeer("b", collections), description: "B" }],
        exclusive: false,
      });
      const c = agent("c", collections, { exclusive: false });
      const victim = dying(log, at, moment);
      middle(agentCollections(victim.log));
      await Promise.all([
        say(collections, "a", "one"),
        say(collections, "b", "two"),
        say(collections, "b", "three", { requestId: "own", actorId: "ann" }),
      ]);
      const over = () =>
        seen(collections.messages, (rows) => rows.length >= 9 && rows.every((row) => row.processed) && rows);
      survived = await Promise.race([victim.died.then(() => false), over().then(() => true)]);
      const second = survived ? undefined : middle(collections);
      const rows = await over();
      const asked = rows.filter((row) => row.requestId !== undefined);
      for (const { requestId } of asked) {
        expect(
          rows.filter((row) => row.inReplyTo === requestId),
          `${what} ${requestId}`,
        ).toHaveLength(1);
      }
      expect(
        rows.filter((row) => row.error !== undefined),
        what,
      ).toEqual([]);
      expect(
        rows.filter((row) => row.actorId === "a" && row.role === "assistant" && row.toolCalls === undefined),
        what,
      ).toHaveLength(1);
      await Promise.all([a.dispose(), c.dispose(), second?.dispose()]);
    }
  },
);

test("a worker's tool that gives what no row can hold has failed, in its row too", async () => {
  const { toolCalls } = agentCollections(openLocalLog());
  const worker = createWorkerAgent({
    ...{ name: "clerk", description: "Works.", instructions: "" },
    adapter: scriptedText([{ toolCalls: [{ name: "wait", id: "c" }] }, "so", { structured: { ok: true } }]),
    tools: [wait.server(() => ({ big: 1n }))],
    inputSchema: z.object({}),
    outputSchema: z.object({ ok: z.boolean() }),
    buildMessages: () => [{ role: "user", content: "go" }],
    durable: { toolCalls },
  });
  await worker.run({}, { id: "w" });
  expect(rowsOf(toolCalls).get("w:c")).toMatchObject({ status: "failed" });
});
