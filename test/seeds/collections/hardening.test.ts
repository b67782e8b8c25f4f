import { chat, toolDefinition } from "@tanstack/ai";
import { and, createCollection, createLiveQueryCollection, eq, gt, or, queryOnce } from "@tanstack/db";
import {
  agentCollections,
  createAgent,
  createApprovals,
  createToolExecutionEffect,
  durableAgent,
  getApprovalStatus,
  getContextMessages,
  getLastPersistedChunkIndex,
  logCollectionOptions,
  openLocalLog,
  recoverOrphanedOperations,
  resumeToolChain,
  rowsOf,
  summarizeOldMessages,
  waitForToolResult,
} from "perdure/collections";
import type {
  AgentCollections,
  ApprovalEvent,
  GenerationRecord,
  SummaryRecord,
  ToolCallRecord,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { kept } from "./desk.ts";

const now = () => new Date().toISOString();
const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** A conversation of so many questions, each with its answer. */
async function talk({ messages }: AgentCollections, count: number) {
  const rows = rowsOf(messages);
  for (let index = 0; index < count; index++) {
    const base = { createdAt: now(), processed: true, generationId: `g${index}` };
    const asked = { id: `q${index}`, role: "user" as const, actorId: "u", targetAgent: "researcher" };
    const said = { id: `g${index}:reply`, role: "assistant" as const, actorId: "researcher", targetAgent: "u" };
    await rows.insert({ ...asked, ...base, content: `question ${index}` });
    await rows.insert({ ...said, ...base, content: `answer ${index}` });
  }
}

test("summaries from elsewhere: buildMessages puts them before the latest messages", async () => {
  const log = openLocalLog();
  const collections = agentCollections(log);
  const { messages } = collections;
  await talk(collections, 2);
  // The sample's summaries are a Query collection; what was tried with that is in docs/collections.md.
  const summaries = createCollection(
    logCollectionOptions<SummaryRecord>({ log, name: "own-summaries", getKey: (s) => s.id }),
  );
  const summary = { id: "s1", agentName: "researcher", createdAt: now(), coveringUpTo: now(), content: "Before that." };
  await rowsOf(summaries).insert(summary);
  const adapter = scriptedText(["Noted."]);
  kept(
    createAgent({
      name: "researcher",
      instructions: "…",
      adapter,
      collections: { messages },
      buildMessages: async (_pending, ctx) => {
        const sums = await queryOnce((q) => q.from({ s: summaries }).orderBy(({ s }) => s.createdAt));
        const recent = await queryOnce((q) =>
          q
            .from({ m: messages })
            .where(({ m }) => or(eq(m.targetAgent, ctx.agentName), eq(m.actorId, ctx.agentName)))
            // By its place in the log, where the sample has `createdAt`: two may have the same.
            .orderBy(({ m }) => m.seq, "desc")
            .limit(3),
        );
        return [
          ...sums.map((s) => ({ role: "user" as const, content: `[Summary] ${s.content}` })),
          ...recent.toReversed().map((m) => ({
            role: m.role === "assistant" ? ("assistant" as const) : ("user" as const),
            content: m.content,
          })),
        ];
      },
      generate: async ({ messages: shown, adapter: model }) => chat({ adapter: model, messages: shown, stream: false }),
    }),
  );
  messages.insert({ actorId: "u", targetAgent: "researcher", content: "and now?" });
  await until(() => adapter.calls.length === 1);
  expect(adapter.calls[0]?.messages.map(({ content }) => content)).toEqual([
    "[Summary] Before that.",
    "question 1",
    "answer 1",
    "and now?",
  ]);
});

test("history: the context is derived from rows, the same everywhere; summaries are made by hand or by the agent", async () => {
  const collections = agentCollections(openLocalLog());
  await talk(collections, 12);
  // getContextMessages and summarizeOldMessages are exported; in the proposal they are an app's own functions. Counting
  // is a query: collections have no `count`, and `and(x, undefined)` would find nothing.
  const own = await queryOnce((q) => q.from({ m: collections.messages }).where(({ m }) => eq(m.actorId, "researcher")));
  expect(own).toHaveLength(12);
  const summary = await summarizeOldMessages("researcher", collections, {
    adapter: scriptedText(["Ten questions were answered."]),
    threshold: 20,
    windowSize: 4,
  });
  expect(summary).toMatchObject({ agentName: "researcher", content: "Ten questions were answered." });
  // A place in the log, as text; the proposal has a time there.
  expect(Number(summary?.coveringUpTo)).toBeGreaterThan(0);
  const later = await queryOnce((q) =>
    q.from({ m: collections.messages }).where(({ m }) => gt(m.seq, Number(summary?.coveringUpTo))),
  );
  expect(later.length).toBeGreaterThan(0);
  const context = await getContextMessages("researcher", collections, 50);
  expect(context.map(({ content }) => content)).toEqual([
    "[Summary] Ten questions were answered.",
    ...["question 10", "answer 10", "question 11", "answer 11"],
  ]);
  const auto = agentCollections(openLocalLog());
  await talk(auto, 6);
  const researcher = kept(
    createAgent(
      durableAgent({
        name: "researcher",
        instructions: "…",
        adapter: scriptedText(["Fine."]),
        collections: auto,
        autoSummarize: { threshold: 10, windowSize: 4, adapter: scriptedText(["So far."]) },
      }),
    ),
  );
  researcher.collections.messages.insert({ actorId: "u", targetAgent: "researcher", content: "and now?" });
  await until(() => rowsOf(auto.summaries).all().length === 1);
  expect(rowsOf(auto.summaries).all()[0]?.content).toBe("So far.");
});

test("what a page shows: a live query over the agent's messages, and an insert when somebody sends", async () => {
  const log = openLocalLog();
  const adapter = scriptedText(({ userText }) => `re: ${userText}`);
  const agents = ["a", "b"].map((name) => kept(createAgent(durableAgent({ name, instructions: "…", adapter, log }))));
  // `useLiveQuery` takes the same query and gives { data }; it is used so in examples/newsroom.
  const messagesCollection = agentCollections(log).messages;
  const [agent] = agents;
  const one = createLiveQueryCollection((q) =>
    q
      .from({ m: messagesCollection })
      .where(({ m }) => or(eq(m.targetAgent, agent!.name), eq(m.actorId, agent!.name)))
      .orderBy(({ m }) => m.seq),
  );
  const all = createLiveQueryCollection((q) => q.from({ m: messagesCollection }).orderBy(({ m }) => m.seq));
  await Promise.all([one.preload(), all.preload()]);
  const send = (targetAgent: string, content: string) =>
    messagesCollection.insert({ targetAgent, role: "user", content, actorId: "user-1" });
  for (const { name } of agents) send(name, `hello ${name}`);
  await until(() => all.size === 4);
  expect(one.toArray.map(({ content }) => content)).toEqual(["hello a", "re: hello a"]);
});

test("approvals: events that are only added; a call runs when somebody has said yes", async () => {
  const dangerousTool = toolDefinition({
    name: "deleteAllData",
    description: "Deletes everything",
    needsApproval: true,
  });
  const log = openLocalLog();
  const toolCalls = createCollection(
    logCollectionOptions<ToolCallRecord>({ log, name: "toolCalls", getKey: (row) => row.id }),
  );
  const approvalEvents = createCollection(
    logCollectionOptions<ApprovalEvent>({ log, name: "approvals", getKey: (row) => row.id, orderAs: "seq" }),
  );
  const did: string[] = [];
  kept(
    createToolExecutionEffect({
      query: (q) =>
        q
          .from({ tc: toolCalls })
          .join({ ae: approvalEvents }, ({ tc, ae }) => eq(tc.id, ae.toolCallId))
          .where(({ tc, ae }) => and(eq(tc.status, "pending"), eq(tc.$synced, true), eq(ae?.action, "approved"))),
      tools: [dangerousTool],
      // Says that the query lists only what was allowed. Better is `approvals: createApprovals(…)`, which takes the first
      // decision for the one that counts: a join also finds an approval that came behind a denial.
      approvals: "query",
      implementations: { deleteAllData: async (_args, { row }) => (did.push(row.tc.id), "deleted") },
    }),
  );
  const call = (id: string): ToolCallRecord => ({
    ...{ id, generationId: "g", name: "deleteAllData", args: {}, status: "pending", needsApproval: true },
    ...{ createdAt: now(), updatedAt: now() },
  });
  await rowsOf(toolCalls).insertAll([call("1"), call("2")]);
  const decide = (toolCallId: string, action: ApprovalEvent["action"]) =>
    approvalEvents.insert({ id: crypto.randomUUID(), toolCallId, action, actorId: "ann", timestamp: now() });
  await decide("1", "requested").isPersisted.promise;
  await decide("2", "denied").isPersisted.promise;
  expect(getApprovalStatus(approvalEvents.toArray, "1")).toBe("pending");
  await decide("1", "approved").isPersisted.promise;
  expect(await waitForToolResult(toolCalls, "1")).toBe("deleted");
  expect(did).toEqual(["1"]);
  const approvals = kept(createApprovals({ events: approvalEvents }));
  await approvals.ready;
  expect([approvals.status("1"), approvals.status("2")]).toEqual(["approved", "denied"]);
  expect(approvals.history("1").map(({ action }) => action)).toEqual(["requested", "approved"]);
});

test("recovery: what a crash has left is put back, a chain of tools goes on, partial chunks stay to be shown", async () => {
  const { generations, toolCalls, chunks } = agentCollections(openLocalLog());
  const times = { createdAt: LONG_AGO, updatedAt: LONG_AGO };
  const generation: GenerationRecord = { id: "g1", agentName: "a", model: "m", status: "generating", ...times };
  await rowsOf(generations).insert(generation);
  const call = (id: string, status: ToolCallRecord["status"]): ToolCallRecord => {
    return { id, generationId: "g1", name: "search", args: {}, status, ...times };
  };
  await rowsOf(toolCalls).insertAll([call("1", "completed"), call("2", "executing")]);
  await rowsOf(chunks).insertAll(
    ["Once ", "upon "].map((content, index) => {
      return { id: `g1-${index}`, generationId: "g1", index, type: "text" as const, content };
    }),
  );
  // The functions of this chapter are exported.
  const report = await recoverOrphanedOperations({ generations, toolCalls, timeoutMs: 60_000 });
  expect(report.generations).toMatchObject([{ id: "g1", to: "failed" }]);
  expect(report.toolCalls).toMatchObject([{ id: "2", to: "pending", attempt: 1 }]);
  const chain = await resumeToolChain("g1", { generations, toolCalls });
  expect(chain).toEqual({ resumed: true, completed: ["1"], open: ["2"] });
  expect(rowsOf(generations).get("g1")).toMatchObject({ status: "pending", resumeFromToolIndex: 1 });
  expect(getLastPersistedChunkIndex(chunks, "g1")).toBe(1);
  expect(getLastPersistedChunkIndex(chunks, "g2")).toBe(-1);
});
