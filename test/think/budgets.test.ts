import type { UIMessage } from "ai";
import type { Budgets } from "perdure";
import type { PriceTable } from "perdure/context";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, refusal, sent, serverTool } from "./harness.ts";

/** Each call uses 100 tokens. */
const usage = { inputTokens: 60, outputTokens: 40 };
const lookThenSay: Script = ({ step }) =>
  step === 0
    ? { text: "I look.", toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }], usage }
    : { text: " A boat.", usage };

/** What a call may use at most is small here: so many tokens of output, and a prompt of a few words. */
const OUTPUT = 40;

async function spending(
  { budgets = {}, prices }: { readonly budgets?: Budgets; readonly prices?: PriceTable },
  script: Script = lookThenSay,
) {
  const model = scriptedModel(script);
  const looked: number[] = [];
  const kit = await openThink((Base) => {
    class Talk extends Base {
      override budgets = budgets;
      override getModel() {
        return model;
      }
      override getSystemPrompt() {
        return "";
      }
      override getTools() {
        return { look: serverTool(() => looked.push(1)) };
      }
      override beforeTurn() {
        return { maxOutputTokens: OUTPUT, maxRetries: 0, system: "" };
      }
    }
    return Talk;
  });
  if (prices !== undefined) (await kit.agent()).prices = prices;
  return Object.assign(kit, { model, looked });
}

function question(message: UIMessage | undefined) {
  const part = message?.parts.find((one) => one.type === "dynamic-tool");
  return part?.type === "dynamic-tool" ? part : undefined;
}

test("a hard limit pauses the answer before the call that might pass it; a higher budget lets it go on", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 180 } } });
  const client = await kit.connect();
  client.request("r1", [user("u1", "What is there?")]);
  const end = await client.done("r1");
  expect(end).toMatchObject({ error: true });
  expect(end.body).toMatch(/budget of this agent .*100 tokens of 180 tokens/);
  expect(kit.model.calls).toHaveLength(1);
  expect(kit.looked).toHaveLength(1);
  const agent = await kit.agent();
  expect(agent.usage()).toMatchObject({ calls: 1, tokens: 100, reservedTokens: 0 });
  agent.budgets = { agent: { maxTokens: 10_000 } };
  expect(await agent.continueLastTurn()).toMatchObject({ status: "completed" });
  // The same answer; nothing that was done is done again.
  const messages = await kit.stored();
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(textIn(messages[1])).toBe("I look. A boat.");
  expect(kit.looked).toHaveLength(1);
  expect(sent(kit.model, 1).join()).toContain("I look.");
});

test.each<[string, Budgets]>([
  ["turn", { turn: { maxTokens: 10 } }],
  ["session", { session: { maxTokens: 10 } }],
  ["agent", { agent: { maxTokens: 10 } }],
])("nothing is asked of a model for which the budget of the %s has no room", async (scope, budgets) => {
  const kit = await spending({ budgets });
  const seen: unknown[] = [];
  onTestFinished(subscribe("chat:budget:reached", ({ payload }) => void seen.push(payload)));
  const end = await kit.ask("Hi.");
  expect(end.status).toBe("error");
  expect(end.error).toContain(`budget of this ${scope}`);
  expect(kit.model.calls).toHaveLength(0);
  expect(seen).toMatchObject([{ requestId: end.requestId, scope, limit: 10 }]);
});

test("the budget of a turn is new with every turn; that of the agent is not", async () => {
  const kit = await spending({ budgets: { turn: { maxTokens: 500 } } });
  expect(await kit.ask("1")).toMatchObject({ status: "completed" });
  expect(await kit.ask("2")).toMatchObject({ status: "completed" });
  (await kit.agent()).budgets = { agent: { maxTokens: 420 } };
  expect(await kit.ask("3")).toMatchObject({ status: "error" });
});

test("a budget holds across a restart", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 320 } } });
  expect(await kit.ask("1")).toMatchObject({ status: "completed" });
  await kit.restart();
  expect(await kit.ask("2")).toMatchObject({ status: "error" });
  expect((await kit.agent()).usage().tokens).toBeLessThanOrEqual(320);
});

test("a soft limit asks a person once, and a yes lets the turn go on", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 10_000, soft: 0.01 } } });
  expect(await kit.ask("What is there?")).toMatchObject({ status: "completed" });
  const asked = question(await kit.last());
  expect(asked).toMatchObject({
    toolName: "continue_over_budget",
    state: "approval-requested",
    input: { scope: "agent", used: 100, limit: 100, what: "tokens" },
  });
  const agent = await kit.agent();
  expect(agent.hasPendingInteraction()).toBe(true);
  expect(agent.pendingApprovals()).toMatchObject([{ tool: "continue_over_budget", toolCallId: asked?.toolCallId }]);
  expect(kit.model.calls).toHaveLength(1);
  expect(agent.answerApproval(asked?.toolCallId ?? "", true)).toBe(true);
  await kit.stable();
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect(textIn(await kit.last())).toBe("I look. A boat.");
  expect(kit.looked).toHaveLength(1);
  expect(agent.pendingApprovals()).toEqual([]);
  // The model never hears of it, and nobody is asked again.
  expect(sent(kit.model, 1).join()).not.toContain("continue_over_budget");
  expect(await kit.ask("And now?")).toMatchObject({ status: "completed" });
  expect(question(await kit.last())).toBeUndefined();
  expect(sent(kit.model, 2).join()).not.toContain("continue_over_budget");
});

test("a no ends the turn there, and what was said stays", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 10_000, soft: 0.01 } } });
  await kit.ask("What is there?");
  const agent = await kit.agent();
  agent.answerApproval(question(await kit.last())?.toolCallId ?? "", false);
  await kit.stable();
  expect(kit.model.calls).toHaveLength(1);
  expect(textIn(await kit.last())).toBe("I look.");
  expect(question(await kit.last())).toMatchObject({ state: "output-denied" });
  // Nobody is asked a second time in the same turn.
  expect((await kit.last())?.parts.filter(({ type }) => type === "dynamic-tool")).toHaveLength(1);
  expect(agent.hasPendingInteraction()).toBe(false);
});

test("after a yes the next stop is the hard limit", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 320, soft: 0.2 } } });
  await kit.ask("What is there?");
  const agent = await kit.agent();
  agent.answerApproval(question(await kit.last())?.toolCallId ?? "", true);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  const end = await kit.ask("And now?");
  expect(end.error).toContain("of 320 tokens");
});

test("dollars are counted by the price table, to the last billionth", async () => {
  const prices: PriceTable = { "scripted/scripted": { input: 2, output: 10 } };
  const kit = await spending({ prices });
  const { requestId } = await kit.ask("Hi.");
  const agent = await kit.agent();
  expect(agent.usage()).toMatchObject({ calls: 2, unpriced: 0, tokens: 200, input: 120, output: 80, cost: 0.00104 });
  expect(agent.usage({ turn: requestId })).toEqual(agent.usage());
  expect(agent.usage({ turn: "none" })).toMatchObject({ calls: 0, tokens: 0 });
});

test("a budget in dollars stops like one in tokens", async () => {
  const prices: PriceTable = () => ({ input: 2, output: 10 });
  const kit = await spending({ budgets: { agent: { maxCost: 0.0009 } }, prices });
  const end = await kit.ask("Hi.");
  expect(end.error).toMatch(/\$0\.0005 of \$0\.0009/);
});

test("a budget in dollars refuses a model of which nobody knows the price", async () => {
  const kit = await spending({ budgets: { agent: { maxCost: 1 } } });
  const end = await kit.ask("Hi.");
  expect(end.error).toContain("no price for scripted/scripted");
  expect(kit.model.calls).toHaveLength(0);
});

test("listUsage has one row for each try, the newest first, and can be narrowed and paged", async () => {
  const kit = await spending({}, ({ index, step }) =>
    index === 1 ? { error: refusal(400) } : step === 0 && index === 0 ? { text: "one", usage } : { text: "two", usage },
  );
  const first = await kit.ask("1");
  const second = await kit.ask("2");
  const agent = await kit.agent();
  expect(agent.listUsage()).toMatchObject([
    { turnId: second.requestId, status: "error", errorClass: "fatal", tokens: 0 },
    { turnId: first.requestId, status: "ok", model: "scripted/scripted", step: 0, attempt: 1, tokens: 100, input: 60 },
  ]);
  const [newest] = agent.listUsage({ limit: 1 });
  expect(agent.listUsage({ before: newest?.seq ?? 0 })).toHaveLength(1);
});

test("a call that was stopped in the middle is charged as if it had used all that was reserved", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 10_000 } } }, [{ text: "half", hang: true }]);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "half");
  client.cancel("r1");
  await client.done("r1");
  const agent = await kit.agent();
  await expect.poll(() => agent.listUsage()[0]?.status).toBe("cut");
  expect(agent.listUsage()[0]).toMatchObject({ estimated: true });
  expect(agent.usage().tokens).toBeGreaterThanOrEqual(OUTPUT);
  expect(agent.usage().reservedTokens).toBe(0);
});

test("a conversation that is forgotten in the middle of a turn leaves nothing reserved", async () => {
  const kit = await spending({ budgets: { agent: { maxTokens: 10_000 } } });
  const agent = await kit.agent();
  agent.beforeToolCall = () => agent.clearMessages();
  expect(await kit.ask("Look.")).toMatchObject({ status: "aborted" });
  expect(agent.usage()).toMatchObject({ calls: 1, reservedTokens: 0 });
});
