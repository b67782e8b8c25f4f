import { chat } from "@tanstack/ai";
import { and, createCollection, eq } from "@tanstack/db";
import {
  agentCollections,
  agentPeer,
  createAgent,
  durableAgent,
  logCollectionOptions,
  openLocalLog,
  rowsOf,
} from "perdure/collections";
import type {
  AgentCollections,
  AgentMessage,
  AgentPeer,
  AgentReference,
  CollectionAgentConfig,
  RowLog,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import { gate, replies, say, seen, startPlace } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

type Script = Parameters<typeof scriptedText>[0];

const ask = (agent: string, message: string, id = "ask-1") => ({
  toolCalls: [{ name: agent, input: { message }, id }],
});

describe.each(backends)("agents together on $name", (backend) => {
  let place: Place;
  let count = 0;
  const newNames = () => [`planner-${++count}`, `researcher-${count}`] as const;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  function start(collections: AgentCollections, name: string, script: Script, agents: AgentReference[] = []) {
    const adapter = scriptedText(script);
    const agent = createAgent(
      durableAgent({
        name,
        instructions: "Be brief.",
        adapter,
        agents,
        collections,
        exclusive: false,
        retry: { maxAttempts: 1 },
        onFailure: () => {},
      }),
    );
    onTestFinished(() => agent.dispose());
    return { agent, adapter };
  }

  const refer = (agent: AgentPeer, more: Partial<AgentReference> = {}): AgentReference => ({
    agent,
    description: "Looks things up.",
    ...more,
  });

  test("two agents that are asked in one turn work at the same time", async () => {
    const [planner, researcher] = newNames();
    const writer = `${researcher}-w`;
    const { collections } = await place.open();
    // Neither answers before both were asked.
    const begun: string[] = [];
    const both = gate();
    const answering =
      (name: string): Script =>
      async ({ userText }) => {
        begun.push(name);
        if (begun.length === 2) both.open();
        await both.opened;
        return `${userText}, done`;
      };
    const found = start(collections, researcher, answering("researcher"));
    const written = start(collections, writer, answering("writer"));
    const call = (name: string, id: string) => ({ name, input: { message: id }, id });
    const script = [{ toolCalls: [call(researcher, "look"), call(writer, "write")] }, "Both are done."];
    const { adapter } = start(collections, planner, script, [refer(found.agent), refer(written.agent)]);
    await say(collections, planner, "Go");
    const [reply] = await replies(collections, planner, 1);
    expect(reply?.content).toBe("Both are done.");
    const results = adapter.calls[1]?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    expect(results).toEqual(['{"response":"look, done"}', '{"response":"write, done"}']);
    const requests = rowsOf(collections.messages)
      .all()
      .filter(({ requestId, actorId }) => requestId && actorId === planner);
    expect(requests.map(({ content }) => content)).toEqual(["look", "write"]);
  });

  test("requirement: Agent composition: an agent asks another by message, and the reply is its tool's result", async () => {
    const [planner, researcher] = newNames();
    // Two processes: the planner knows the researcher by name only.
    const [here, there] = [await place.open(), await place.open()];
    const asked = start(there.collections, researcher, (call) => `found: ${call.userText}`);
    const asking = start(
      here.collections,
      planner,
      [ask(researcher, "cats"), "They purr."],
      [refer(agentPeer(researcher, here.collections))],
    );
    await say(here.collections, planner, "Tell me of cats");
    expect((await replies(here.collections, planner, 1))[0]?.content).toBe("They purr.");
    expect(asking.adapter.calls[1]?.messages.at(-1)?.content).toBe('{"response":"found: cats"}');
    expect(asked.adapter.calls[0]?.messages).toMatchObject([{ role: "user", content: "cats" }]);
    // Not doubled: the call is no row of tool calls.
    expect(
      rowsOf(here.collections.toolCalls)
        .all()
        .filter((row) => row.name === researcher),
    ).toEqual([]);
  });

  test("invariant 5: each request has its own reply, which carries its id and goes to who asked", async () => {
    const [planner, researcher] = newNames();
    const { collections } = await place.open();
    for (const n of [1, 2]) {
      await say(collections, researcher, `question ${n}`, {
        actorId: `${planner}-${n}`,
        requestId: `${planner}-r${n}`,
      });
    }
    await say(collections, researcher, "from a person");
    const { agent, adapter } = start(collections, researcher, (call) => `re: ${call.userText}`);
    const waits = [1, 2].map((n) => agent.watchForResponse(`${planner}-r${n}`, { callerName: `${planner}-${n}` }));
    expect(await Promise.all(waits)).toEqual([{ content: "re: question 1" }, { content: "re: question 2" }]);
    const found = await replies(collections, researcher, 3);
    expect(found.map(({ content, inReplyTo, targetAgent }) => ({ content, inReplyTo, targetAgent }))).toEqual([
      { content: "re: question 1", inReplyTo: `${planner}-r1`, targetAgent: `${planner}-1` },
      { content: "re: question 2", inReplyTo: `${planner}-r2`, targetAgent: `${planner}-2` },
      { content: "re: from a person", inReplyTo: undefined, targetAgent: "ann" },
    ]);
    // Nobody sees questions that are not its own turn's.
    expect(adapter.calls[0]?.messages).toHaveLength(1);
    // A reply that is there already is found too.
    expect(await agent.watchForResponse(`${planner}-r1`)).toEqual({ content: "re: question 1" });
  });

  test("a request that was given up fails the wait, and one that nobody answers ends by its time", async () => {
    const [planner, researcher] = newNames();
    const { collections } = await place.open();
    const bad = start(collections, researcher, [{ error: "no model" }]);
    const { adapter } = start(
      collections,
      planner,
      [ask(researcher, "cats"), ask("nobody", "cats", "ask-2"), "Sorry."],
      [refer(bad.agent), refer(agentPeer("nobody", collections), { timeout: 5 })],
    );
    await say(collections, planner, "Tell me of cats");
    await replies(collections, planner, 1);
    expect(String(adapter.calls[1]?.messages.at(-1)?.content)).toContain("no model");
    expect(String(adapter.calls[2]?.messages.at(-1)?.content)).toContain("did not answer within 5 ms");
  });

  test("agents that would wait for each other are told so at once", async () => {
    const [planner, researcher] = newNames();
    const { collections } = await place.open();
    const peer = agentPeer(planner, collections);
    const other = start(collections, researcher, [ask(planner, "What for?"), "I do not know."], [refer(peer)]);
    start(collections, planner, [ask(researcher, "cats"), "Nobody knows."], [refer(other.agent)]);
    await say(collections, planner, "Tell me of cats");
    expect((await replies(collections, planner, 1))[0]?.content).toBe("Nobody knows.");
    const refused = String(other.adapter.calls[1]?.messages.at(-1)?.content);
    expect(refused).toContain(`${planner} -> ${researcher} -> ${planner}`);
  });

  test("agents that ask each other at the same time do not wait for each other: one of them is told so", async () => {
    const [one, two] = newNames();
    const { collections } = await place.open();
    let begun = 0;
    const both = gate();
    const meet = async () => {
      if (++begun === 2) both.open();
      await both.opened;
    };
    const script =
      (other: string): Script =>
      (call) => {
        if (call.userText === "go" && call.step === 0) return { ...ask(other, "question"), text: [meet, ""] };
        return call.userText === "go" ? `with ${String(call.messages.at(-1)?.content)}` : "reply";
      };
    start(collections, one, script(two), [refer(agentPeer(two, collections))]);
    start(collections, two, script(one), [refer(agentPeer(one, collections))]);
    await Promise.all([say(collections, one, "go"), say(collections, two, "go")]);
    const answers = await Promise.all(
      [one, two].map((name) =>
        seen<AgentMessage, string>(
          collections.messages,
          (rows) => rows.find((row) => row.actorId === name && row.content.startsWith("with"))?.content,
        ),
      ),
    );
    expect(answers.filter((content) => content.includes('{"response":"reply"}'))).toHaveLength(1);
    expect(answers.filter((content) => content.includes("is waiting for this very answer"))).toHaveLength(1);
  });

  test("carried on after a cut, an agent finds its request and its reply instead of asking again", async () => {
    const [planner, researcher] = newNames();
    const { collections } = await place.open();
    const peer = agentPeer(researcher, collections);
    const first = start(collections, planner, [ask(researcher, "cats")], [refer(peer)]);
    await say(collections, planner, "Tell me of cats");
    const isRequest = (row: AgentMessage) => row.targetAgent === researcher && row.requestId !== undefined;
    await seen<AgentMessage, true>(collections.messages, (rows) => rows.some(isRequest));
    await first.agent.dispose();
    start(collections, researcher, (call) => `found: ${call.userText}`);
    await replies(collections, researcher, 1);
    const second = start(collections, planner, (call) => String(call.messages.at(-1)?.content), [refer(peer)]);
    expect((await replies(collections, planner, 1))[0]?.content).toBe('{"response":"found: cats"}');
    expect(second.adapter.calls).toHaveLength(1);
    expect(rowsOf(collections.messages).all().filter(isRequest)).toHaveLength(1);
  });

  test("requirement: Multi-agent sessions: agents share messages, each with its own loop and its own view", async () => {
    const [one, two] = newNames();
    const { collections } = await place.open();
    const hold = gate();
    const first = start(collections, one, [{ text: [hold.opened.then(() => undefined), "late"] }, "later"]);
    const second = start(collections, two, (call) => `two: ${call.userText}`);
    await say(collections, one, "a");
    await say(collections, two, "b");
    // The second one does not wait for the first.
    expect((await replies(collections, two, 1))[0]?.content).toBe("two: b");
    hold.open();
    expect((await replies(collections, one, 1))[0]?.content).toBe("late");
    expect(first.adapter.calls[0]?.messages).toMatchObject([{ content: "a" }]);
    expect(second.adapter.calls[0]?.messages).toMatchObject([{ content: "b" }]);
    // A word of one agent to another without a request is a message like any other.
    await say(collections, one, "fyi", { actorId: two, role: "assistant" });
    expect((await replies(collections, one, 2))[1]?.content).toBe("later");
    expect(first.adapter.calls[1]?.messages.at(-1)).toMatchObject({ role: "user", content: "fyi" });
  });

  test("an agent with queries works on rows of any shape, and can be asked", async () => {
    interface Note {
      id: string;
      body: string;
      sender: string;
      recipient: string;
      handled: boolean;
      answers?: string;
      request?: string;
    }
    const [planner, researcher] = newNames();
    const { collections, log } = await place.open();
    const notes = openNotes(log);
    const rows = rowsOf(notes);
    await rows.ready();
    const put = (note: Omit<Note, "id">) => rows.insert({ id: crypto.randomUUID(), ...note });
    const agent = createAgent({
      name: researcher,
      instructions: "Be brief.",
      adapter: scriptedText((call) => `found: ${call.userText}`),
      pendingWork: (q) => q.from({ n: notes }).where(({ n }) => and(eq(n.recipient, researcher), eq(n.handled, false))),
      buildMessages: async (pending) => pending.map((note) => ({ role: "user" as const, content: note.body })),
      generate: async ({ messages }) => `found: ${messages.map(({ content }) => String(content)).join("+")}`,
      onResponse: async (response, pending) => {
        for (const note of pending) {
          await put({
            body: response,
            sender: researcher,
            recipient: note.sender,
            handled: true,
            ...(note.request === undefined ? {} : { answers: note.request }),
          });
          await rows.update(note.id, (draft) => void (draft.handled = true));
        }
      },
      watchForResponse: (requestId) =>
        seen<Note, { content: string }>(notes, (all) => {
          const found = all.find((note) => note.answers === requestId);
          return found === undefined ? undefined : { content: found.body };
        }),
    });
    onTestFinished(() => agent.dispose());
    await agent.ready;
    await put({ body: "dogs", sender: "ann", recipient: researcher, handled: false });
    await seen<Note, true>(notes, (all) => all.some((note) => note.recipient === "ann" && note.body === "found: dogs"));
    const insertMessage: AgentReference["insertMessage"] = async ({ content, actorId, requestId }) => {
      await put({ body: content, sender: actorId, recipient: researcher, handled: false, request: requestId });
    };
    start(collections, planner, [ask(researcher, "cats"), "They purr."], [refer(agent, { insertMessage })]);
    await say(collections, planner, "Tell me of cats");
    expect((await replies(collections, planner, 1))[0]?.content).toBe("They purr.");

    function openNotes(on: RowLog) {
      return createCollection(logCollectionOptions<Note>({ log: on, name: "notes", getKey: (note) => note.id }));
    }
  });
});

test("two agents are asked at the same time by a generate of one's own, too, and with arguments of their own", async () => {
  const { messages } = agentCollections(openLocalLog());
  const begun: string[] = [];
  const both = gate();
  const adapter = (script: Script) => scriptedText(script);
  const plain: CollectionAgentConfig["generate"] = async ({ adapter: model, messages: shown, tools }) =>
    chat({ adapter: model, messages: shown, tools, stream: false });
  const asked = (name: string) =>
    createAgent({
      ...{ name, instructions: "", collections: { messages }, generate: plain },
      adapter: adapter(async ({ userText }) => {
        begun.push(userText);
        if (begun.length === 2) both.open();
        await both.opened;
        return `re ${userText}`;
      }),
    });
  const [one, two] = [asked("one"), asked("two")];
  const inputSchema = z.object({ city: z.string().trim() });
  const planner = createAgent({
    ...{ name: "planner", instructions: "", collections: { messages }, generate: plain },
    adapter: adapter([
      {
        toolCalls: [
          { name: "one", input: { message: "hi" }, id: "a" },
          { name: "two", input: { city: " Rome " }, id: "b" },
          // What a tool would not take is not asked at all.
          { name: "two", input: { city: 7 }, id: "c" },
        ],
      },
      "Done.",
    ]),
    agents: [
      { agent: one, description: "First." },
      { agent: two, description: "Second.", inputSchema },
    ],
  });
  onTestFinished(async () => void (await Promise.all([planner, one, two].map((agent) => agent.dispose()))));
  await say({ messages }, "planner", "Go");
  await replies({ messages }, "planner", 1);
  expect(begun.toSorted()).toEqual(["hi", '{"city":"Rome"}']);
});
