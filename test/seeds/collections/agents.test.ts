import { chat } from "@tanstack/ai";
import { and, createCollection, eq, or, queryOnce } from "@tanstack/db";
import {
  agentCollections,
  agentMessageSchema,
  createAgent,
  createToolExecutionEffect,
  durableAgent,
  logCollectionOptions,
  makeDurableTools,
  openLocalLog,
  rowsOf,
} from "perdure/collections";
import type { Agent, AgentCollections, AgentGenerateInput, AgentMessage, RowLog } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { calls, db, durability, kept, openDesk, searchTool } from "./desk.ts";

const echo = () => scriptedText(({ userText }) => `re: ${userText}`);
const search = searchTool.server(async ({ query }) => ({ results: await db.search(query) }));

/** `generate` of the samples that bring their own. */
const generateWithChat = async ({
  messages,
  tools,
  adapter,
  instructions,
  signal,
}: Pick<AgentGenerateInput<object>, "messages" | "tools" | "adapter" | "instructions" | "signal">) => {
  const abortController = new AbortController();
  signal.addEventListener("abort", () => abortController.abort());
  return chat({ adapter, systemPrompts: [instructions], messages, tools, abortController, stream: false });
};

const texts = (messages: Parameters<typeof rowsOf<AgentMessage>>[0]) =>
  rowsOf(messages)
    .all()
    .flatMap(({ role, content }) => (role === "assistant" && content !== "" ? [content] : []));

test("the composition pattern: a factory's configuration, or one that is written out", async () => {
  const { messages } = agentCollections(openLocalLog());
  const base = { instructions: "…", adapter: echo() };
  const made = kept(createAgent(durableAgent({ name: "a", ...base, log: openLocalLog() })));
  const raw = kept(createAgent({ name: "b", ...base, collections: { messages }, generate: generateWithChat }));
  for (const agent of [made, raw]) {
    agent.collections.messages.insert({ actorId: "u", targetAgent: agent.name, content: "hi" });
    await until(() => texts(agent.collections.messages).length === 1);
    expect(texts(agent.collections.messages)).toEqual(["re: hi"]);
  }
});

test("tools and agents: external tools that are durable, and agents that are asked by message", async () => {
  const desk = openDesk();
  const collections = agentCollections(desk.log);
  const agent = (name: string) =>
    kept(createAgent(durableAgent({ name, instructions: "…", adapter: echo(), collections })));
  const [researcher, writer] = [agent("researcher"), agent("writer")];
  kept(
    createToolExecutionEffect({
      query: (q) => q.from({ tc: desk.toolCalls }).where(({ tc }) => eq(tc.status, "pending")),
      tools: [searchTool],
      implementations: { searchDatabase: async ({ query }) => ({ results: await db.search(query) }) },
    }),
  );
  const adapter = scriptedText([
    calls("searchDatabase", { query: "owls" }),
    {
      toolCalls: [
        { name: "researcher", input: { message: "look" }, id: "r" },
        { name: "writer", input: { message: "write" }, id: "w" },
      ],
    },
    "Planned.",
  ]);
  const planner = kept(
    createAgent(
      durableAgent({
        name: "planner",
        instructions: "…",
        adapter,
        collections,
        tools: [
          ...makeDurableTools([searchTool], desk.toolCalls, {
            transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
            ...durability,
          }),
        ],
        agents: [
          { agent: researcher, description: "Research topics thoroughly" },
          { agent: writer, description: "Write clear, concise content", timeout: 60_000 },
        ],
      }),
    ),
  );
  planner.collections.messages.insert({ actorId: "u", targetAgent: "planner", content: "Plan." });
  await until(() => texts(collections.messages).includes("Planned."));
  const results = adapter.calls[2]?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  expect(results).toEqual(['{"results":["about owls"]}', '{"response":"re: look"}', '{"response":"re: write"}']);
});

test("durableAgent, quick: short inserts, a second message while it thinks, dispose", async () => {
  const thinking = Promise.withResolvers<void>();
  const adapter = scriptedText(({ index, userText }) =>
    index === 0 ? { text: [thinking.promise, `first: ${userText}`] } : `then: ${userText}`,
  );
  const researcher = createAgent(
    durableAgent({
      name: "researcher",
      instructions: "You are a thorough research assistant.",
      adapter,
      tools: [search],
      // The sample's `streamUrl` is in quick-start.test.ts.
      log: openLocalLog(),
    }),
  );
  const insert = (content: string) =>
    researcher.collections.messages.insert({
      role: "user",
      actorId: "user-123",
      targetAgent: researcher.name,
      content,
    });
  insert("What are the latest advances?");
  await until(() => adapter.calls.length === 1);
  insert("Also check this week's papers");
  thinking.resolve();
  await until(() => texts(researcher.collections.messages).length === 2);
  expect(texts(researcher.collections.messages)).toEqual([
    "first: What are the latest advances?",
    "then: Also check this week's papers",
  ]);
  await researcher.dispose();
  expect(researcher.state).toBe("disposed");
});

test("on a collection of messages, written out: context by a query over ctx.collections, durable tools", async () => {
  const log = openLocalLog();
  const desk = openDesk(log);
  const messages = createCollection(
    logCollectionOptions({ log, name: "agentMessages", schema: agentMessageSchema, getKey: (row) => row.id }),
  );
  const adapter = echo();
  const researcher = kept(
    createAgent({
      name: "researcher",
      instructions: "You are a thorough research assistant.",
      adapter,
      tools: [
        ...makeDurableTools([searchTool], desk.toolCalls, {
          transform: (tc, genId) => ({ ...tc, status: "pending", generationId: genId }),
          ...durability,
        }),
      ],
      collections: { messages },
      buildMessages: async (_pending, ctx) => {
        const history = await queryOnce((q) =>
          q
            .from({ m: ctx.collections.messages })
            .where(({ m }) => or(eq(m.targetAgent, ctx.agentName), eq(m.actorId, ctx.agentName)))
            .orderBy(({ m }) => m.createdAt)
            .limit(100),
        );
        // A message may have the role "system" or "tool" too, which chat() takes in other forms.
        return history.map((m) => ({ role: m.role === "assistant" ? "assistant" : "user", content: m.content }));
      },
      generate: generateWithChat,
    }),
  );
  messages.insert({ role: "user", actorId: "user-123", targetAgent: researcher.name, content: "one" });
  await until(() => texts(messages).length === 1);
  messages.insert({ role: "user", actorId: "user-123", targetAgent: researcher.name, content: "two" });
  await until(() => texts(messages).length === 2);
  expect(adapter.calls[1]?.messages.map(({ content }) => content)).toEqual(["one", "re: one", "two"]);
});

const MyMessageSchema = z.object({
  id: z.string(),
  body: z.string(),
  sender: z.string(),
  recipient: z.string(),
  type: z.enum(["user", "assistant"]),
  handled: z.boolean(),
  ts: z.string(),
});

test("with queries and mutations: a schema of one's own", async () => {
  // The sample's collection is one of Electric; what was tried with that is in docs/collections.md.
  const messages = createCollection(
    logCollectionOptions({ log: openLocalLog(), name: "m", schema: MyMessageSchema, getKey: (m) => m.id }),
  );
  kept(
    createAgent({
      name: "researcher",
      instructions: "You are a thorough research assistant.",
      adapter: echo(),
      tools: [search],
      pendingWork: (q) =>
        q
          .from({ m: messages })
          .where(({ m }) => and(eq(m.recipient, "researcher"), eq(m.handled, false), eq(m.$synced, true))),
      buildMessages: async () => {
        const history = await queryOnce((q) =>
          q
            .from({ m: messages })
            .where(({ m }) => or(eq(m.recipient, "researcher"), eq(m.sender, "researcher")))
            .orderBy(({ m }) => m.ts)
            .limit(100),
        );
        return history.map((m) => ({ role: m.type, content: m.body }));
      },
      generate: generateWithChat,
      onResponse: async (response, pending) => {
        for (const msg of pending) {
          messages.update(msg.id, (draft) => {
            draft.handled = true;
          });
        }
        messages.insert({
          id: crypto.randomUUID(),
          type: "assistant",
          body: response,
          sender: "researcher",
          recipient: "researcher",
          handled: true,
          ts: new Date().toISOString(),
        });
      },
    }),
  );
  const ts = new Date().toISOString();
  messages.insert({ id: "1", body: "hi", sender: "u", recipient: "researcher", type: "user", handled: false, ts });
  await until(() => rowsOf(messages).all().length === 2);
  await until(() => rowsOf(messages).get("1")?.handled);
  expect(rowsOf(messages).all()[1]).toMatchObject({ body: "re: hi", sender: "researcher" });
});

const SharedMessage = z.object({
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  content: z.string(),
  targetAgent: z.string(),
  actorId: z.string(),
  processed: z.boolean(),
  createdAt: z.string(),
  requestId: z.string().optional(),
  inReplyTo: z.string().optional(),
});

test("several agents over one collection: views by queries; a planner asks the two others", async () => {
  const messages = createCollection(
    logCollectionOptions({ log: openLocalLog(), name: "m", schema: SharedMessage, getKey: (m) => m.id }),
  );
  const rows = rowsOf(messages);
  const insert = (
    row: Partial<z.infer<typeof SharedMessage>> & { content: string; actorId: string; targetAgent: string },
  ) =>
    rows.insert({
      ...{ id: crypto.randomUUID(), role: "user", processed: false, createdAt: new Date().toISOString() },
      ...row,
    });
  const agent = (name: string, adapter = echo(), agents: Parameters<typeof durableAgent>[0]["agents"] = []) =>
    kept(
      createAgent({
        name,
        instructions: `You are the ${name}...`,
        adapter,
        agents,
        pendingWork: (q) =>
          q
            .from({ m: messages })
            .where(({ m }) => and(eq(m.targetAgent, name), eq(m.processed, false), eq(m.$synced, true))),
        buildMessages: async (pending) => pending.map((m) => ({ role: m.role, content: m.content })),
        generate: generateWithChat,
        onResponse: async (response, pending) => {
          for (const { id, actorId, requestId } of pending) {
            await rows.update(id, (draft) => void (draft.processed = true));
            const reply = { role: "assistant" as const, content: response, actorId: name, targetAgent: actorId };
            await insert({ ...reply, processed: true, ...(requestId === undefined ? {} : { inReplyTo: requestId }) });
          }
        },
        // Agents with queries say themselves where a reply is to be found, and `insertMessage` how they are asked.
        watchForResponse: async (requestId) => {
          const reply = await until(() => rows.all().find(({ inReplyTo }) => inReplyTo === requestId));
          return { content: reply.content };
        },
      }),
    );
  const [researcher, writer] = [agent("researcher"), agent("writer")];
  const reference = (one: typeof researcher, description: string) => ({
    agent: one,
    description,
    insertMessage: async (message: { content: string; actorId: string; requestId: string }) => {
      const { content, actorId, requestId } = message;
      await insert({ content, actorId, requestId, targetAgent: one.name });
    },
  });
  const adapter = scriptedText([
    {
      toolCalls: [
        { name: "researcher", input: { message: "look" }, id: "r" },
        { name: "writer", input: { message: "write" }, id: "w" },
      ],
    },
    "All done.",
  ]);
  agent("planner", adapter, [
    reference(researcher, "Ask researcher to investigate (it remembers past work)"),
    reference(writer, "Ask writer to draft content"),
  ]);
  await insert({ content: "Go", actorId: "u", targetAgent: "planner" });
  await until(() => rows.all().some(({ content }) => content === "All done."));
  const results = adapter.calls[1]?.messages.slice(-2).map(({ content }) => content);
  expect(results).toEqual(['{"response":"re: look"}', '{"response":"re: write"}']);
});

test("errors: onError is told after the last try", async () => {
  const { messages } = agentCollections(openLocalLog());
  const told: string[] = [];
  kept(
    createAgent({
      name: "clerk",
      instructions: "…",
      adapter: scriptedText(() => {
        throw new Error("no model");
      }),
      collections: { messages },
      generate: generateWithChat,
      onError: async (error, pending, ctx) => {
        told.push(`${ctx.agentName}: ${error.message} (${pending.length})`);
      },
      // The proposal has no retries: a message would wait for the next change of any row.
      retry: { maxAttempts: 1 },
      onFailure: () => {},
    }),
  );
  messages.insert({ actorId: "u", targetAgent: "clerk", content: "hi" });
  await until(() => rowsOf(messages).all()[0]?.processed);
  expect(told).toEqual([expect.stringMatching(/^clerk: .*no model.* \(1\)$/)]);
});

/** What the samples have as a Durable Object: something that holds an agent while there is work. */
class AgentHolder {
  agent: Agent<AgentCollections> | undefined;
  private idleAlarm: ReturnType<typeof setTimeout> | undefined;
  private readonly log: RowLog;

  constructor(log: RowLog) {
    this.log = log;
  }

  async wake() {
    this.agent = createAgent(
      durableAgent({ name: "researcher", instructions: "…", adapter: echo(), tools: [search], log: this.log }),
    );
    this.resetIdleTimer();
  }

  async sleep() {
    clearTimeout(this.idleAlarm);
    await this.agent?.dispose();
    this.agent = undefined;
  }

  /** A webhook: wakes, works, and sleeps again. */
  async fetch() {
    await this.wake();
    const drained = await this.agent?.drainUntilIdle();
    await this.sleep();
    return Response.json(drained);
  }

  private resetIdleTimer() {
    clearTimeout(this.idleAlarm);
    this.idleAlarm = setTimeout(() => void this.sleep(), 60_000);
  }
}

test("sleep and wake: created again from its collections, it answers what came while it slept", async () => {
  const log = openLocalLog();
  const page = agentCollections(log);
  const holder = new AgentHolder(log);
  await holder.wake();
  await holder.sleep();
  page.messages.insert({ actorId: "u", targetAgent: "researcher", content: "while you slept" });
  expect(texts(page.messages)).toEqual([]);
  expect(await (await holder.fetch()).json()).toMatchObject({ completed: true });
  expect(texts(page.messages)).toEqual(["re: while you slept"]);
  expect(holder.agent).toBeUndefined();
});
