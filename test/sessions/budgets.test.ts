// Budgets that turns of several sessions share.
import type { Budgets } from "perdure";
import { scriptedModel } from "perdure/testing";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { openThink } from "../think/harness.ts";

/** Each call uses 100 tokens, and may use a few more: its prompt is estimated, and its answer may have 40. */
const usage = { inputTokens: 60, outputTokens: 40 };

/** Answers are held back until the test lets them go. */
async function sharing(budgets: Budgets) {
  const gate = Promise.withResolvers<void>();
  const model = scriptedModel(async ({ userText }) => {
    if (userText.startsWith("slow")) await gate.promise;
    return { text: `re ${userText}`, usage };
  });
  const reached: unknown[] = [];
  onTestFinished(subscribe("chat:budget:reached", ({ payload }) => void reached.push(payload)));
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override budgets = budgets;
        override getModel() {
          return model;
        }
        override getSystemPrompt() {
          return "";
        }
        override beforeTurn() {
          return { maxOutputTokens: 40, maxRetries: 0, system: "" };
        }
      },
  );
  return { kit, agent: await kit.agent(), model, reached, open: () => gate.resolve() };
}

test.each<[string, Budgets]>([
  ["hard", { agent: { maxTokens: 220 } }],
  ["soft", { agent: { maxTokens: 1_000, soft: 0.15 } }],
])("a call that fits a %s limit but for what another may use waits for that one's end", async (_, budgets) => {
  const { agent, model, reached, open } = await sharing(budgets);
  const { id } = agent.createSession();
  const long = "and so on ".repeat(45);
  const slow = agent.runTurn({ input: `slow ${long}`, session: "main" });
  await eventually(() => model.calls.length === 1, "the first call");
  const quick = agent.runTurn({ input: "quick", session: id });
  expect(agent.usage().reservedTokens).toBeGreaterThan(100);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([model.calls.length, reached.length]).toEqual([1, 0]);
  open();
  expect([await slow, await quick]).toMatchObject([{ status: "completed" }, { status: "completed" }]);
  expect(textIn(agent.getHistory(null, { session: id })[1])).toBe("re quick");
  expect(reached).toEqual([]);
  expect(agent.usage()).toMatchObject({ calls: 2, tokens: 200, reservedTokens: 0 });
});

test("a turn that waits for another's call can be stopped, and books nothing", async () => {
  const { agent, model, open } = await sharing({ agent: { maxTokens: 220 } });
  const { id } = agent.createSession();
  const slow = agent.runTurn({ input: `slow ${"and so on ".repeat(45)}`, session: "main" });
  await eventually(() => model.calls.length === 1, "the first call");
  const stop = new AbortController();
  const quick = agent.runTurn({ input: "quick", session: id, signal: stop.signal });
  await new Promise((resolve) => setTimeout(resolve, 50));
  stop.abort();
  expect(await quick).toMatchObject({ status: "aborted" });
  open();
  expect(await slow).toMatchObject({ status: "completed" });
  expect(agent.usage()).toMatchObject({ calls: 1, tokens: 100, reservedTokens: 0 });
});

test("what does not fit without the others either is refused at once", async () => {
  const { agent, model, reached, open } = await sharing({ agent: { maxTokens: 120 }, session: { maxTokens: 100 } });
  const { id } = agent.createSession();
  const slow = agent.runTurn({ input: "slow", session: "main" });
  await eventually(() => model.calls.length === 1, "the first call");
  const long = await agent.runTurn({ input: "and so on ".repeat(60), session: id });
  expect(long).toMatchObject({ status: "error", error: expect.stringContaining("budget of this session") });
  expect(reached).toMatchObject([{ scope: "session" }]);
  open();
  expect(await slow).toMatchObject({ status: "completed" });
});

test("one yes to a question of the agent's budget answers those of all sessions; one of a session's only its own", async () => {
  const { kit, agent, model } = await sharing({
    agent: { maxTokens: 10_000, soft: 0.01 },
    session: { maxTokens: 1_000, soft: 0.2 },
  });
  const ask = (input: string, session: string) => agent.runTurn({ input, session });
  const sessions = ["main", agent.createSession().id, agent.createSession().id];
  await ask("first", "main");
  for (const session of sessions) await ask("again", session);
  const asked = () => agent.pendingApprovals().map(({ input }) => (input as { scope: string }).scope);
  expect(asked()).toEqual(["agent", "agent", "agent"]);
  expect(model.calls).toHaveLength(1);
  const [question] = agent.pendingApprovals();
  agent.answerApproval(question?.toolCallId ?? "", true, { approver: "ann" });
  await agent.waitUntilStable();
  expect(model.calls).toHaveLength(4);
  expect(asked()).toEqual([]);
  for (const session of sessions) expect(textIn(agent.getHistory(null, { session }).at(-1))).toBe("re again");
  const rows = await kit.rows<{ approver: string }>("SELECT approver FROM perdure_tool_call");
  expect(rows.map(({ approver }) => approver)).toEqual(["ann", "ann", "ann"]);
  // Each session has its own budget, and its own question.
  for (const session of sessions) {
    await ask("more", session);
    await ask("more still", session);
  }
  expect(asked()).toEqual(["session", "session", "session"]);
  const [own] = agent.pendingApprovals();
  agent.answerApproval(own?.toolCallId ?? "", true);
  await agent.waitUntilStable();
  expect(asked()).toEqual(["session", "session"]);
});
