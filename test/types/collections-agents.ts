import { chat, toolDefinition } from "@tanstack/ai";
import type { AnyTextAdapter } from "@tanstack/ai";
import { and, createCollection, eq, Query } from "@tanstack/db";
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
