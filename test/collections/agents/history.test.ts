import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import { createAgent, durableAgent, getContextMessages, rowsOf, summarizeOldMessages } from "perdure/collections";
import type { AgentMessage, NewAgentMessage, SummaryRecord } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { backends } from "../backends.ts";
import { gate, replies, say, seen, startPlace } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

const texts = (messages: readonly { role: string; content: unknown }[]) =>
  messages.map(({ role, content }) => `${role[0]}:${String(content)}`);

describe.each(backends)("history on $name", (backend) => {
  let place: Place;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  test("two devices derive the same context, by the order of the log, whatever their clocks say", async () => {
    const [one, two] = [await place.open(), await place.open()];
    const name = "ordered";
    await say(one.collections, name, "first", { createdAt: "2030-01-01T00:00:00.000Z", processed: true });
    await say(two.collections, name, "second", { createdAt: "2020-01-01T00:00:00.000Z", processed: true });
    await say(one.collections, name, "third", { createdAt: "2025-01-01T00:00:00.000Z", processed: true });
    for (const { collections } of [one, two]) {
      await seen<AgentMessage, true>(collections.messages, (rows) => rows.some((row) => row.content === "third"));
    }
    const contexts = await Promise.all([one, two].map(({ collections }) => getContextMessages(name, collections)));
    expect(contexts[0]).toEqual(contexts[1]);
    expect(texts(contexts[0] ?? [])).toEqual(["u:first", "u:second", "u:third"]);
  });

  test("a turn stays together, also when other messages came in between", async () => {
    const { collections } = await place.open();
    const held = gate();
    const began = gate();
    const adapter = scriptedText([
      { text: [() => began.open(), held.opened.then(() => undefined), "answer 1"] },
      "answer 2",
    ]);
    const name = "together";
    const agent = createAgent(durableAgent({ name, instructions: "", adapter, collections }));
    onTestFinished(() => agent.dispose());
    await say(collections, name, "question 1");
    await began.opened;
    await say(collections, name, "question 2");
    held.open();
    await replies(collections, name, 2);
    expect(texts(adapter.calls[1]?.messages ?? [])).toEqual(["u:question 1", "a:answer 1", "u:question 2"]);
    const later = await getContextMessages(name, collections);
    expect(texts(later)).toEqual(["u:question 1", "a:answer 1", "u:question 2", "a:answer 2"]);
  });

  test("summaries stand for what they cover, and two processes that make the same one have one row", async () => {
    const [one, two] = [await place.open(), await place.open()];
    const name = "long";
    for (let n = 0; n < 6; n++) {
      await say(one.collections, name, `q${n}`, { processed: true, generationId: `long-${n}` });
      await say(one.collections, "ann", `a${n}`, {
        role: "assistant",
        actorId: name,
        processed: true,
        generationId: `long-${n}`,
      });
    }
    await seen<AgentMessage, true>(two.collections.messages, (rows) => rows.some((row) => row.content === "a5"));
    const options = { threshold: 8, windowSize: 3 };
    const made = await Promise.all(
      [one, two].map(({ collections }) =>
        summarizeOldMessages(name, collections, { ...options, adapter: scriptedText(["It was about q."]) }),
      ),
    );
    expect(made.filter((summary) => summary !== undefined)).toHaveLength(1);
    const [summary] = await seen<SummaryRecord, SummaryRecord[]>(two.collections.summaries, (rows) => {
      const mine = rows.filter((row) => row.agentName === name);
      return mine.length > 0 && mine;
    });
    // Whole turns only: the fifth question stays with its answer.
    const context = await getContextMessages(name, two.collections);
    expect(texts(context)).toEqual(["u:[Summary] It was about q.", "u:q4", "a:a4", "u:q5", "a:a5"]);
    const last = rowsOf(two.collections.messages)
      .all()
      .find((row) => row.content === "a3");
    expect(summary?.coveringUpTo).toBe(String(last?.seq));
    expect(await getContextMessages(name, one.collections)).toEqual(context);
    expect(
      await summarizeOldMessages(name, one.collections, { ...options, adapter: scriptedText([]) }),
    ).toBeUndefined();
  });

  test("autoSummarize keeps the context short by itself", async () => {
    const { collections } = await place.open();
    const adapter = scriptedText((call) => `re: ${call.userText}`);
    const summarizer = scriptedText((call) => `all of ${String(call.messages[0]?.content).split("\n\n").length}`);
    const name = "auto";
    const agent = createAgent(
      durableAgent({
        name,
        instructions: "",
        adapter,
        collections,
        autoSummarize: { threshold: 4, windowSize: 2, adapter: summarizer },
      }),
    );
    onTestFinished(() => agent.dispose());
    for (let n = 0; n < 4; n++) {
      await say(collections, name, `q${n}`);
      await replies(collections, name, n + 1);
    }
    expect(texts(adapter.calls.at(-1)?.messages ?? [])).toEqual(["u:[Summary] all of 4", "u:q2", "a:re: q2", "u:q3"]);
  });
});

test("on a collection without a log the order is by time, and the agent works as well", async () => {
  const messages = createCollection(localOnlyCollectionOptions<AgentMessage, string>({ getKey: (row) => row.id }));
  const adapter = scriptedText((call) => `re: ${call.userText}`);
  const agent = createAgent({
    name: "plain",
    instructions: "",
    adapter,
    collections: { messages },
    generate: async ({ messages: shown }) => texts(shown).join(" "),
    onFailure: () => {},
  });
  onTestFinished(() => agent.dispose());
  const put = (row: Pick<NewAgentMessage, "content"> & Partial<AgentMessage>) =>
    messages.insert({
      id: crypto.randomUUID(),
      role: "user",
      actorId: "ann",
      targetAgent: "plain",
      createdAt: new Date().toISOString(),
      processed: false,
      ...row,
    });
  put({ content: "hello" });
  const replied = () => messages.toArray.filter((row) => row.actorId === "plain").map((row) => row.content);
  await agent.drainUntilIdle();
  expect(replied()).toEqual(["u:hello"]);
  // A clock has but so many ticks, and ids are random.
  await new Promise((resolve) => setTimeout(resolve, 2));
  put({ content: "again" });
  await agent.drainUntilIdle();
  expect(replied()).toContain("u:hello a:u:hello u:again");
  expect(await agent.hasPendingWork()).toBe(false);
});
