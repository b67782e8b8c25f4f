import { chat, toolDefinition } from "@tanstack/ai";
import type { AnyTextAdapter } from "@tanstack/ai";
import { and, createCollection, eq, or, Query, queryOnce } from "@tanstack/db";
import {
  agentCollections,
  agentMessageSchema,
  createAgent,
  createWorkerAgent,
  durableAgent,
  logCollectionOptions,
  openLocalLog,
} from "perdure/collections";
import type {
  Agent,
  AgentCollections,
  AgentMessage,
  CollectionAgentConfig,
  DurableStreamsWakePayload,
  QueryAgentConfig,
} from "perdure/collections";
import { expectTypeOf } from "vitest";
import { z } from "zod";

declare const adapter: AnyTextAdapter;
const log = openLocalLog();
const base = { name: "researcher", instructions: "Be brief.", adapter };

// The short way: collections are typed, and a message needs only who, whom and what.
const researcher = createAgent(durableAgent({ ...base, streamUrl: "https://streams.example.com/sessions/1" }));
expectTypeOf(researcher).toEqualTypeOf<Agent<AgentCollections>>();
researcher.collections.messages.insert({ actorId: "user-1", targetAgent: researcher.name, content: "Hello" });
// @ts-expect-error: a message has a text.
researcher.collections.messages.insert({ actorId: "user-1", targetAgent: researcher.name });
expectTypeOf(researcher.collections.messages.toArray[0]).toMatchTypeOf<AgentMessage | undefined>();
// @ts-expect-error: rows must be somewhere.
durableAgent(base);
// @ts-expect-error: and only there.
durableAgent({ ...base, log, streamUrl: "https://streams.example.com/sessions/1" });

// A factory gives what one may also write by hand.
expectTypeOf(durableAgent({ ...base, log })).toEqualTypeOf<CollectionAgentConfig<AgentCollections>>();

// Messages of one's own collection.
const messages = createCollection(
  logCollectionOptions({ log, name: "messages", schema: agentMessageSchema, getKey: (row) => row.id, orderAs: "seq" }),
);
const own = createAgent({
  ...base,
  collections: { messages },
  pendingWork: (q) => q.from({ m: messages }).where(({ m }) => eq(m.processed, false)),
  buildMessages: async (pending, context) => {
    expectTypeOf(pending).toEqualTypeOf<AgentMessage[]>();
    expectTypeOf(context.generationId).toEqualTypeOf<string>();
    return pending.map(({ content }) => ({ role: "user" as const, content }));
  },
  generate: async ({ adapter: model, messages: shown, tools, instructions, pending }) => {
    expectTypeOf(pending).toEqualTypeOf<AgentMessage[]>();
    return chat({ adapter: model, messages: shown, tools, systemPrompts: [instructions], stream: false });
  },
});
expectTypeOf(own.collections.messages).toEqualTypeOf(messages);

// What an agent was given can be queried where its context is: with the types of its rows.
createAgent({
  ...base,
  collections: {
    messages,
    notes: createCollection(logCollectionOptions<Note>({ log, name: "n", getKey: (n) => n.id })),
  },
  buildMessages: async (_pending, ctx) => {
    const history = await queryOnce((q) =>
      q
        .from({ m: ctx.collections.messages })
        .where(({ m }) => or(eq(m.targetAgent, ctx.agentName), eq(m.actorId, ctx.agentName)))
        .orderBy(({ m }) => m.createdAt)
        .limit(100),
    );
    expectTypeOf(history[0]!.content).toEqualTypeOf<string>();
    const notes = await queryOnce((q) => q.from({ n: ctx.collections.notes }));
    expectTypeOf(notes[0]!.handled).toEqualTypeOf<boolean>();
    return history.map(({ content }) => ({ role: "user" as const, content }));
  },
  onResponse: async (response, _pending, ctx) => {
    ctx.collections.messages.insert({ actorId: ctx.agentName, targetAgent: "ann", content: response });
    // @ts-expect-error: there is no such collection.
    void ctx.collections.drafts;
  },
  onError: (_error, _pending, ctx) => void expectTypeOf(ctx.collections.messages).toEqualTypeOf(messages),
  generate: async ({ context }) => {
    expectTypeOf(context.collections.messages).toEqualTypeOf(messages);
    return "x";
  },
});
durableAgent({
  ...base,
  log,
  buildMessages: async (_pending, ctx) => {
    const [first] = await queryOnce((q) => q.from({ g: ctx.collections.generations }));
    expectTypeOf(first!.model).toEqualTypeOf<string>();
    return [];
  },
});

// A schema of one's own may know less than a message can have.
const Short = z.object({
  ...{ id: z.string(), role: z.enum(["user", "assistant", "system"]), content: z.string() },
  ...{ targetAgent: z.string(), actorId: z.string(), processed: z.boolean(), createdAt: z.string() },
});
const short = createCollection(logCollectionOptions({ log, name: "short", schema: Short, getKey: (row) => row.id }));
createAgent({ ...base, collections: { messages: short }, generate: async ({ pending }) => pending[0]!.content });
// @ts-expect-error: but it must be one of messages.
createAgent({ ...base, collections: { messages: agentCollections(log).chunks }, generate: async () => "x" });
createAgent({
  ...base,
  collections: { messages },
  pendingWork: new Query().from({ m: messages }).where(({ m }) => eq(m.processed, false)),
  generate: async () => "x",
});
// @ts-expect-error: an agent needs a way to generate.
createAgent({ ...base, collections: { messages } });

// Rows of any shape: what the callbacks get is what the query gives.
interface Note {
  id: string;
  body: string;
  recipient: string;
  handled: boolean;
}
const notes = createCollection(logCollectionOptions<Note>({ log, name: "notes", getKey: (row) => row.id }));
const asked = createAgent({
  ...base,
  pendingWork: (q) =>
    q
      .from({ n: notes })
      .where(({ n }) => and(eq(n.recipient, "researcher"), eq(n.handled, false)))
      .select(({ n }) => ({ id: n.id, body: n.body })),
  buildMessages: async (pending) => {
    expectTypeOf(pending[0]!.body).toEqualTypeOf<string>();
    // @ts-expect-error: it was not selected.
    void pending[0]?.handled;
    return [];
  },
  generate: async ({ pending }) => pending.map((note) => note.body).join(),
  onResponse: async (response, pending) => {
    expectTypeOf(response).toEqualTypeOf<string>();
    for (const { id } of pending) await notes.update(id, (draft) => void (draft.handled = true)).isPersisted.promise;
  },
});
expectTypeOf(asked.collections).toEqualTypeOf<undefined>();
createAgent({
  ...base,
  pendingWork: (q) => q.from({ n: notes }),
  buildMessages: async () => [],
  generate: async () => "x",
  // @ts-expect-error: a number is not stored.
  onResponse: async (response: number) => void response,
});
// By the name of its rows.
const byHand: QueryAgentConfig<Note> = {
  ...base,
  pendingWork: (q) => q.from({ n: notes }),
  buildMessages: async (pending) => pending.map(({ body }) => ({ role: "user" as const, content: body })),
  generate: async () => "x",
  onResponse: async () => {},
};
createAgent(byHand);

// Wakes are those of the adapter.
declare const runtime: NonNullable<CollectionAgentConfig<AgentCollections, DurableStreamsWakePayload>["runtime"]>;
const woken = createAgent(durableAgent<DurableStreamsWakePayload>({ ...base, log, runtime }));
expectTypeOf(woken.runWake).parameter(0).toEqualTypeOf<DurableStreamsWakePayload>();
expectTypeOf(woken.handleWake).parameter(0).toEqualTypeOf<Request>();

// Workers: in and out by their schemas, and a tool like any other.
const checker = createWorkerAgent({
  name: "fact-checker",
  description: "Verifies claims.",
  instructions: "Be rigorous.",
  adapter,
  inputSchema: z.object({ claim: z.string(), sources: z.number().default(3) }),
  outputSchema: z.object({ verified: z.boolean(), evidence: z.array(z.string()).default([]) }),
  buildMessages: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ claim: string; sources: number }>();
    return [{ role: "user" as const, content: input.claim }];
  },
  durable: { toolCalls: agentCollections(log).toolCalls },
});
expectTypeOf(checker.run({ claim: "x" })).resolves.toEqualTypeOf<{ verified: boolean; evidence: string[] }>();
// @ts-expect-error: the input is checked.
void checker.run({ claim: 1 });
const search = toolDefinition({ name: "search", description: "Finds.", inputSchema: z.object({ query: z.string() }) });
durableAgent({
  ...base,
  log,
  tools: [search, search.server(async () => ({})), checker],
  agents: [
    { agent: researcher, description: "Ask it." },
    { agent: asked, description: "Ask it too." },
  ],
});
void chat({ adapter, messages: [], tools: [checker] });
