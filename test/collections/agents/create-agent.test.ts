import { chat } from "@tanstack/ai";
import { createAgent, reviveMessage, rowsOf } from "perdure/collections";
import type { AgentMessage, CollectionAgentConfig } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { backends } from "../backends.ts";
import { gate, replies, say, seen, startPlace } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

type Generate = CollectionAgentConfig["generate"];

const plainChat: Generate = ({ adapter, messages, instructions, tools, signal }) => {
  const abortController = new AbortController();
  signal.addEventListener("abort", () => abortController.abort());
  return chat({ adapter, messages, systemPrompts: [instructions], tools, abortController, stream: false });
};

describe.each(backends)("createAgent on $name", (backend) => {
  let place: Place;
  let names = 0;
  const newName = () => `agent-${++names}`;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  /** An agent of its own in a process of its own. */
  async function open(config: Partial<CollectionAgentConfig> & { name?: string } = {}) {
    const { collections, log } = await place.open();
    const name = config.name ?? newName();
    const failures: Error[] = [];
    const agent = createAgent({
      name,
      instructions: "Be brief.",
      adapter: scriptedText((call) => `re: ${call.userText}`),
      collections,
      generate: plainChat,
      retry: { maxAttempts: 3, delayMs: 1 },
      onFailure: (error) => failures.push(error),
      ...config,
    });
    onTestFinished(() => agent.dispose());
    return { agent, name, collections, log, failures };
  }

  test("requirement: Persistent agents: it answers what waits, then what comes, and is idle again", async () => {
    const { collections } = await place.open();
    const name = newName();
    const first = await say(collections, name, "one");
    const { agent } = await open({ name });
    const [reply] = await replies(collections, name, 1);
    expect(reply).toMatchObject({ content: "re: one", targetAgent: "ann", processed: true });
    await say(collections, name, "two");
    expect((await replies(collections, name, 2)).map((row) => row.content)).toEqual(["re: one", "re: two"]);
    expect((await agent.drainUntilIdle()).completed).toBe(true);
    expect(rowsOf(collections.messages).get(first)).toMatchObject({
      processed: true,
      attempts: 1,
      generationId: reply?.generationId,
    });
  });

  test("all that waits is one turn, and what comes during a turn is the next one", async () => {
    const hold = gate();
    const began = gate();
    const adapter = scriptedText((call) => ({
      text: [
        async () => {
          began.open();
          await hold.opened;
        },
        call.messages.map((message) => String(message.content)).join("|"),
      ],
    }));
    const { collections } = await place.open();
    const name = newName();
    await say(collections, name, "a");
    await say(collections, name, "b");
    await open({ name, adapter });
    await began.opened;
    await say(collections, name, "c");
    await say(collections, name, "d");
    hold.open();
    const found = await replies(collections, name, 2);
    expect(found.map((row) => row.content)).toEqual(["a|b", "a|b|a|b|c|d"]);
    expect(adapter.calls).toHaveLength(2);
  });

  test("a try that fails is made again, then given up for good, and others are answered", async () => {
    const adapter = scriptedText((call) => (call.userText === "poison" ? { error: "no" } : `re: ${call.userText}`));
    const { collections } = await place.open();
    const name = newName();
    const bad = await say(collections, name, "poison");
    const errors: string[] = [];
    const { agent, failures } = await open({
      name,
      adapter,
      onError: (error, pending) => void errors.push(`${error.message} ${pending.map((row) => row.content).join()}`),
    });
    const row = await seen<AgentMessage, AgentMessage>(collections.messages, (rows) =>
      rows.find((one) => one.id === bad && one.processed),
    );
    expect(row).toMatchObject({ attempts: 3, error: expect.stringContaining("no") });
    expect(errors).toHaveLength(1);
    expect(failures).toHaveLength(3);
    await say(collections, name, "fine");
    expect((await replies(collections, name, 1))[0]?.content).toBe("re: fine");
    // What was given up is not shown to the model again.
    expect(adapter.calls.at(-1)?.messages).toHaveLength(1);
    expect((await agent.drainUntilIdle()).completed).toBe(true);
    expect(adapter.calls).toHaveLength(4);
  });

  test("a message that was given up can be given back, with all its tries", async () => {
    let isDown = true;
    const { collections } = await place.open();
    const name = newName();
    const id = await say(collections, name, "try");
    await open({ name, adapter: scriptedText(() => (isDown ? { error: "down" } : "done")) });
    await seen<AgentMessage, AgentMessage>(collections.messages, (rows) =>
      rows.find((one) => one.id === id && one.error !== undefined),
    );
    isDown = false;
    expect(await Promise.all([1, 2].map(() => reviveMessage(collections.messages, id)))).toEqual([true, false]);
    expect((await replies(collections, name, 1))[0]?.content).toBe("done");
    expect(await reviveMessage(collections.messages, id)).toBe(false);
  });

  test("a message that no model can answer does not take the others with it", async () => {
    const adapter = scriptedText((call) =>
      call.messages.some((message) => message.content === "poison") ? { error: "no" } : `re: ${call.userText}`,
    );
    const { collections } = await place.open();
    const name = newName();
    await say(collections, name, "poison");
    await say(collections, name, "fine");
    await open({ name, adapter });
    expect((await replies(collections, name, 1))[0]?.content).toBe("re: fine");
  });

  test("an empty string is no answer, what is returned after an abort is none, and an empty answer can be meant", async () => {
    let content: string = "";
    const { name, collections, failures } = await open({
      retry: { maxAttempts: 1 },
      generate: async () => (content === "" ? "" : { content: "", outcome: "completed" }),
    });
    const id = await say(collections, name, "one");
    await seen<AgentMessage, true>(collections.messages, (rows) => rows.some((row) => row.id === id && row.processed));
    expect(failures[0]).toMatchObject({ code: "call_failed" });
    content = "x";
    await say(collections, name, "two");
    expect((await replies(collections, name, 1))[0]?.content).toBe("");
  });

  test("a message that has cut off the agent again and again is given up without another try", async () => {
    const { collections } = await place.open();
    const name = newName();
    const id = await say(collections, name, "crash", { attempts: 3, generationId: `${name}-before` });
    const adapter = scriptedText(["never"]);
    await open({ name, adapter });
    const row = await seen<AgentMessage, AgentMessage>(collections.messages, (rows) =>
      rows.find((one) => one.id === id && one.processed),
    );
    expect(row.error).toContain("cut off 3 times");
    expect(adapter.calls).toHaveLength(0);
  });

  test("an answer that says it is suspended is asked for again, and its tries do not count", async () => {
    let calls = 0;
    const { name, collections } = await open({
      generate: async ({ context }) =>
        ++calls < 4 ? { content: "half", outcome: "suspended" } : `after ${calls}, try ${context.attempt}`,
    });
    await say(collections, name, "one");
    expect((await replies(collections, name, 1)).map((row) => row.content)).toEqual(["after 4, try 1"]);
  });

  test("a message may be changed while it is answered: the change is kept, and the answer is stored", async () => {
    const began = gate();
    const hold = gate();
    const { name, collections } = await open({
      generate: async () => {
        began.open();
        await hold.opened;
        return "answer";
      },
    });
    const id = await say(collections, name, "helo");
    await began.opened;
    await collections.messages.update(id, (row) => void (row.content = "hello")).isPersisted.promise;
    hold.open();
    await replies(collections, name, 1);
    expect(rowsOf(collections.messages).get(id)).toMatchObject({ content: "hello", processed: true });
  });

  test("disposed during a turn it stores nothing, gives the message back, and another one answers it", async () => {
    const began = gate();
    const adapter = scriptedText([{ text: ["half", () => began.open(), new Promise(() => {})] }]);
    const { agent, name, collections } = await open({ adapter });
    const id = await say(collections, name, "one");
    await began.opened;
    await agent.dispose();
    expect(agent.state).toBe("disposed");
    expect(rowsOf(collections.messages).get(id)).toMatchObject({ processed: false, attempts: 0 });
    await open({ name });
    expect((await replies(collections, name, 1))[0]?.content).toBe("re: one");
  });

  test("a zombie's reply is refused: who took the message over has the only reply", async () => {
    const began = gate();
    const hold = gate();
    const first = await open({
      generate: async () => {
        began.open();
        await hold.opened;
        return "from the zombie";
      },
    });
    const { name, collections } = first;
    await say(collections, name, "one");
    await began.opened;
    // Another process that takes the first one for dead.
    const second = await open({ name });
    await replies(second.collections, name, 1);
    hold.open();
    await seen<AgentMessage, true>(collections.messages, (rows) => rows.some((row) => row.content === "re: one"));
    await first.agent.runGenerationCycle();
    expect(await replies(collections, name, 1)).toHaveLength(1);
    expect(first.failures.every((error) => "code" in error && error.code === "fenced")).toBe(true);
  });

  test("two runners that know nothing of each other share the messages: each has one reply", async () => {
    const name = newName();
    const runners = [await open({ name }), await open({ name })];
    const { collections } = await place.open();
    await Promise.all(runners.map(({ agent }) => agent.ready));
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) ids.push(await say(collections, name, `m${n}`));
    const asked = await seen<AgentMessage, AgentMessage[]>(collections.messages, (rows) => {
      const mine = rows.filter((row) => ids.includes(row.id));
      return mine.every((row) => row.processed) && mine;
    });
    const answered = rowsOf(collections.messages)
      .all()
      .filter((row) => row.actorId === name)
      .map((row) => row.generationId);
    expect(answered.toSorted()).toEqual([...new Set(asked.map((row) => row.generationId))].toSorted());
    expect(asked.map((row) => row.error)).toEqual(ids.map(() => undefined));
  });

  test("runGenerationCycle and drainUntilIdle share the work with the loop", async () => {
    const adapter = scriptedText((call) => `re: ${call.userText}`);
    const { agent, name, collections } = await open({ live: false, adapter });
    await say(collections, name, "one");
    expect(await agent.hasPendingWork()).toBe(true);
    await agent.runGenerationCycle();
    expect(await agent.hasPendingWork()).toBe(false);
    await agent.runGenerationCycle();
    await say(collections, name, "two");
    expect(await agent.drainUntilIdle()).toEqual({ completed: true, cycles: 1 });
    expect(adapter.calls).toHaveLength(2);
  });

  test("a callback of one's own stores the answer; what it leaves is marked", async () => {
    const { name, collections } = await open({
      onResponse: async (response, pending, context) => {
        await rowsOf(collections_.messages).insert(
          {
            id: `${context.generationId}-own`,
            role: "assistant",
            actorId: context.agentName,
            targetAgent: pending[0]?.actorId ?? "",
            content: response.toUpperCase(),
            createdAt: new Date().toISOString(),
            processed: true,
          },
          context.fence,
        );
      },
    });
    const collections_ = collections;
    const id = await say(collections, name, "one");
    await seen<AgentMessage, true>(collections.messages, (rows) => rows.some((row) => row.id === id && row.processed));
    expect((await replies(collections, name, 1)).map((row) => row.content)).toEqual(["RE: ONE"]);
  });

  test("messages that are deleted during their turn are not answered", async () => {
    const began = gate();
    const adapter = scriptedText([{ text: ["half", () => began.open(), new Promise(() => {})] }, "second"]);
    const { agent, name, collections } = await open({ adapter });
    const id = await say(collections, name, "one");
    await began.opened;
    await rowsOf(collections.messages).delete(id);
    await say(collections, name, "two");
    expect((await replies(collections, name, 1)).map((row) => row.content)).toEqual(["second"]);
    expect(await agent.hasPendingWork()).toBe(false);
  });
});
