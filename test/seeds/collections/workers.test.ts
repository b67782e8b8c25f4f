import { chat } from "@tanstack/ai";
import { createCollection, createEffect, eq } from "@tanstack/db";
import {
  agentCollections,
  createAgent,
  createWorkerAgent,
  durableAgent,
  logCollectionOptions,
  openLocalLog,
  rowsOf,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import type { ScriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";
import { calls, db, kept, searchTool } from "./desk.ts";

const verdict = { verified: true, confidence: 0.9, evidence: ["a study"], reasoning: "It was measured." };
const search = searchTool.server(async ({ query }) => ({ results: await db.search(query) }));

const checker = (adapter: ScriptedText) =>
  createWorkerAgent({
    name: "fact-checker",
    description: "Verifies factual claims by searching for supporting and contradicting evidence",
    instructions: "You verify claims. Search for both supporting and contradicting evidence. Be rigorous.",
    adapter,
    tools: [search],
    inputSchema: z.object({ claim: z.string().describe("The factual claim to verify") }),
    outputSchema: z.object({
      verified: z.boolean(),
      confidence: z.number().min(0).max(1),
      evidence: z.array(z.string()),
      reasoning: z.string(),
    }),
    buildMessages: (input) => [{ role: "user" as const, content: `Verify this claim: "${input.claim}"` }],
  });

/** Searches once, then gives its verdict. */
const verifies = () =>
  scriptedText(({ step, structured }) => {
    if (structured) return { structured: verdict };
    return step === 0 ? calls("searchDatabase", { query: "the earth" }) : JSON.stringify(verdict);
  });

test("a worker as a tool of an agent, beside other tools", async () => {
  const { messages } = agentCollections(openLocalLog());
  const adapter = scriptedText([calls("fact-checker", { claim: "The earth is old" }), "It is."]);
  const researcher = kept(
    createAgent({
      name: "researcher",
      instructions: "You research.",
      adapter,
      collections: { messages },
      tools: [search, checker(verifies())],
      generate: async ({ messages: shown, tools, adapter: model, instructions, signal }) => {
        const abortController = new AbortController();
        signal.addEventListener("abort", () => abortController.abort());
        return chat({
          adapter: model,
          systemPrompts: [instructions],
          messages: shown,
          tools,
          abortController,
          stream: false,
        });
      },
    }),
  );
  messages.insert({ actorId: "user-1", targetAgent: researcher.name, content: "How old is the earth?" });
  await until(() =>
    rowsOf(messages)
      .all()
      .some(({ content }) => content === "It is."),
  );
  expect(JSON.parse(String(adapter.calls[1]?.messages.at(-1)?.content))).toEqual(verdict);
});

test("a worker that is called directly: from an endpoint, from a script, from an effect", async () => {
  const factChecker = checker(verifies());
  // An endpoint of any framework.
  const post = async (request: Request) => {
    const { claim } = (await request.json()) as { claim: string };
    return Response.json(await factChecker.run({ claim }));
  };
  const answer = await post(new Request("http://x/", { method: "POST", body: JSON.stringify({ claim: "x" }) }));
  expect(await answer.json()).toEqual(verdict);
  // A script.
  const result = await factChecker.run({ claim: "The Earth is 4.5 billion years old" });
  expect([result.verified, result.reasoning]).toEqual([true, "It was measured."]);
  // An effect: the published `createEffect` has `onEnter`.
  interface Review {
    id: string;
    status: string;
    claim: string;
    review?: object;
  }
  const log = openLocalLog();
  const reviewRequests = createCollection(
    logCollectionOptions<Review>({ log, name: "reviews", getKey: (row) => row.id }),
  );
  const effect = createEffect<Review>({
    query: (q) => q.from({ r: reviewRequests }).where(({ r }) => eq(r.status, "open")),
    onEnter: async (event) => {
      const row = event.value;
      const review = await factChecker.run({ claim: row.claim });
      reviewRequests.update(row.id, (draft) => {
        draft.status = "done";
        draft.review = review;
      });
    },
  });
  kept(effect);
  reviewRequests.insert({ id: "1", status: "open", claim: "x" });
  await until(() => rowsOf(reviewRequests).get("1")?.status === "done");
  expect(rowsOf(reviewRequests).get("1")?.review).toEqual(verdict);
});

test("a worker whose work is kept: its calls and chunks are rows, and belong to the answer that called it", async () => {
  const { toolCalls, chunks } = agentCollections(openLocalLog());
  const factChecker = createWorkerAgent({
    name: "fact-checker",
    description: "Verifies factual claims",
    instructions: "…",
    adapter: verifies(),
    tools: [search],
    inputSchema: z.object({ claim: z.string() }),
    outputSchema: z.object({ verified: z.boolean(), evidence: z.array(z.string()) }),
    buildMessages: (input) => [{ role: "user", content: `Verify: "${input.claim}"` }],
    durable: { toolCalls, chunks },
  });
  const adapter = scriptedText([calls("fact-checker", { claim: "x" }), "Yes."]);
  const messages = [{ role: "user" as const, content: "Is it true?" }];
  await chat({ adapter, messages, tools: [factChecker], context: { generationId: "parent" }, stream: false });
  expect(rowsOf(toolCalls).all()).toMatchObject([
    { name: "searchDatabase", status: "completed", parentGenerationId: "parent" },
  ]);
  expect(
    rowsOf(chunks)
      .all()
      .every((row) => row.parentGenerationId === "parent"),
  ).toBe(true);
});

test("workers and agents together: a planner that asks a researcher, which asks its workers", async () => {
  const collections = agentCollections(openLocalLog());
  const summarizer = createWorkerAgent({
    name: "summarizer",
    description: "Summarizes long texts concisely",
    instructions: "Summarize.",
    adapter: scriptedText(({ structured }) => (structured ? { structured: { text: "short" } } : '{"text":"short"}')),
    inputSchema: z.object({ text: z.string() }),
    outputSchema: z.object({ text: z.string() }),
    buildMessages: (input) => [{ role: "user", content: input.text }],
  });
  const researcher = kept(
    createAgent(
      durableAgent({
        name: "researcher",
        instructions: "You research topics and verify facts...",
        adapter: scriptedText([calls("fact-checker", { claim: "owls fly" }), "Verified."]),
        collections,
        tools: [search, checker(verifies()), summarizer],
      }),
    ),
  );
  const adapter = scriptedText([
    calls("researcher", { message: "Do owls fly?" }),
    calls("summarizer", { text: "long" }, "c2"),
    "They do.",
  ]);
  const planner = kept(
    createAgent(
      durableAgent({
        name: "planner",
        instructions: "You coordinate research tasks...",
        adapter,
        collections,
        tools: [summarizer],
        agents: [{ agent: researcher, description: "Ask researcher to investigate (it remembers past work)" }],
      }),
    ),
  );
  planner.collections.messages.insert({ actorId: "user-1", targetAgent: "planner", content: "Owls?" });
  await until(() =>
    rowsOf(collections.messages)
      .all()
      .some(({ content }) => content === "They do."),
  );
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"response":"Verified."}');
  expect(adapter.calls[2]?.messages.at(-1)?.content).toBe('{"text":"short"}');
});
