import type { UIMessage } from "ai";
import { AIChatAgent, type Budgets } from "perdure";
import { subscribe } from "perdure/node";
import type { Script } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { eventually } from "../host/open-host.ts";
import { outputsSent } from "../think/harness.ts";
import { newGate, runsAre } from "./harness.ts";
import { expectBooked, openTree, type Tree, type TreeOptions, usage, USED } from "./spending.ts";

/** The tokens that are reserved for each call of a whole tree, in the order in which they are made. */
async function reservations(): Promise<number[]> {
  const tree = await openTree();
  await tree.ask("Tea?");
  return (await tree.agent())
    .listUsage()
    .map(({ reservedTokens }) => reservedTokens)
    .reverse();
}

/** A limit that has room for the first calls of a tree, as many as are given, and not for the next one. */
async function roomFor(calls: number): Promise<number> {
  return calls * USED + ((await reservations())[calls] ?? 0) - 1;
}

/** What the model of a layer was last given by its tool. */
function lastGiven(tree: Tree, layer: "Talk" | "Middle"): unknown {
  const model = tree.models[layer];
  const output = Object.values(outputsSent(model, model.calls.length - 1)).at(-1) as { value?: unknown } | undefined;
  return output?.value;
}

function failureIn(message: UIMessage | undefined): unknown {
  return message && toolParts(message).at(-1)?.output;
}

test("what a tree uses is on the books of every agent above, call by call", async () => {
  const tree = await openTree();
  const { requestId, status } = await tree.ask("Tea?");
  expect(status).toBe("completed");
  expect(tree.calls()).toBe(5);
  const [top, [middle]] = [await tree.agent(), tree.of("Middle")];
  expect(top.usage()).toMatchObject({ calls: 5, tokens: 5 * USED, input: 50, output: 100, reservedTokens: 0 });
  expect(top.usage({ turn: requestId })).toEqual(top.usage());
  expect(top.listUsage().map(({ purpose, model }) => `${purpose} ${model}`)).toEqual([
    "turn scripted/top",
    "agent-tool scripted/middle",
    "agent-tool scripted/leaf",
    "agent-tool scripted/middle",
    "turn scripted/top",
  ]);
  expect(top.listUsage({ purpose: "agent-tool" })).toHaveLength(3);
  expect(middle?.usage()).toMatchObject({ calls: 3, tokens: 3 * USED });
  expectBooked(tree);
  // The budget of a turn is new with every turn, for those below too.
  const next = await tree.ask("More tea?");
  expect(top.usage({ turn: next.requestId })).toMatchObject({ calls: 5, tokens: 5 * USED });
  expect(top.usage()).toMatchObject({ calls: 10, tokens: 10 * USED });
});

test.each<[keyof Budgets]>([["turn"], ["session"], ["agent"]])(
  "the %s budget of the first agent stops the last one before its call; everyone above reads why",
  async (scope) => {
    const maxTokens = await roomFor(2);
    const tree = await openTree({ budgets: { Talk: { [scope]: { maxTokens } } } });
    const reached: unknown[] = [];
    onTestFinished(subscribe("chat:budget:reached", ({ payload }) => void reached.push(payload)));
    const end = await tree.ask("Tea?");
    // The one in the middle cannot go on either, and the first one meets its own limit.
    expect(tree.models.Leaf.calls).toHaveLength(0);
    expect(tree.models.Middle.calls).toHaveLength(1);
    expect(tree.models.Talk.calls).toHaveLength(1);
    expect(end).toMatchObject({ status: "error" });
    expect(end.error).toContain(`budget of this ${scope}`);
    expect(reached).toMatchObject([
      { scope, limit: maxTokens, agent: 'Talk "one"' },
      { scope, limit: maxTokens, agent: 'Talk "one"' },
      { scope, limit: maxTokens },
    ]);
    const failure = { ok: false, status: "interrupted", reason: "budget-exceeded", retryable: true };
    const text = new RegExp(`The ${scope} budget of Talk "one".* does not allow another step \\(60 tokens of`);
    for (const agent of [tree.of("Middle")[0], await tree.agent()]) {
      expect(failureIn(agent?.messages.at(-1))).toMatchObject({ ...failure, error: expect.stringMatching(text) });
    }
    await runsAre(tree, "interrupted");
    expectBooked(tree);
    expect((await tree.agent()).usage()).toMatchObject({ calls: 2, tokens: 2 * USED });
  },
);

test("with a higher budget the same conversation goes on, and the work is asked for again", async () => {
  const again: Script = ({ index }) =>
    index < 2 ? { toolCalls: [{ toolName: "below", input: { query: "tea" } }], usage } : { text: "Done.", usage };
  const tree = await openTree({
    scripts: { Talk: again },
    budgets: { Talk: { agent: { maxTokens: await roomFor(2) } } },
  });
  expect(await tree.ask("Tea?")).toMatchObject({ status: "error" });
  tree.budgets.Talk = { agent: { maxTokens: 10_000 } };
  expect(await (await tree.agent()).continueLastTurn()).toMatchObject({ status: "completed" });
  expect(lastGiven(tree, "Talk")).toBe("Done.");
  expect(tree.models.Leaf.calls).toHaveLength(1);
  await runsAre(tree, "interrupted", "completed");
  expectBooked(tree);
});

test("a soft limit above stops a child like a hard one; once a person has agreed above, it does not", async () => {
  const again: Script = ({ index }) =>
    index < 2 ? { toolCalls: [{ toolName: "below", input: { query: "tea" } }], usage } : { text: "Done.", usage };
  const tree = await openTree({
    scripts: { Talk: again },
    budgets: { Talk: { agent: { maxTokens: 10_000, soft: USED / 10_000 } } },
  });
  await tree.ask("Tea?");
  const top = await tree.agent();
  expect(tree.models.Middle.calls).toHaveLength(0);
  const { error } = (await runsAre(tree, "interrupted"))[0] ?? {};
  expect(error).toMatch(/The agent budget of Talk "one".* a person has to agree \(30 tokens of 30 tokens used\)/);
  // Nobody was asked below; the person who talks with the first agent is.
  expect(tree.of("Middle")[0]?.pendingApprovals()).toEqual([]);
  const [question] = top.pendingApprovals();
  expect(question).toMatchObject({ tool: "continue_over_budget" });
  top.answerApproval(question?.toolCallId ?? "", true);
  await eventually(() => tree.models.Talk.calls.length === 3, "the last step");
  await tree.stable();
  await runsAre(tree, "interrupted", "completed");
  expect(tree.models.Leaf.calls).toHaveLength(1);
  expectBooked(tree);
});

test("a budget in the middle bounds what is below it, and nothing above", async () => {
  const reserved = await reservations();
  const tree = await openTree({ budgets: { Middle: { agent: { maxTokens: USED + (reserved[2] ?? 0) - 1 } } } });
  expect(await tree.ask("Tea?")).toMatchObject({ status: "completed" });
  expect(tree.models.Leaf.calls).toHaveLength(0);
  // Its own next call was too much as well: that is a pause of its own, and an error for who asked.
  expect(lastGiven(tree, "Talk")).toMatchObject({
    ok: false,
    status: "error",
    error: expect.stringContaining("budget of this agent"),
  });
  expect(failureIn(tree.of("Middle")[0]?.messages.at(-1))).toMatchObject({
    reason: "budget-exceeded",
    error: expect.stringMatching(/budget of Middle "run_/),
  });
  // What was agreed to above and refused in the middle left nothing above.
  expect((await tree.agent()).usage()).toMatchObject({ calls: 3, tokens: 3 * USED });
  expectBooked(tree);
});

test("a detached run counts for the session and the agent, not for the turn that began it", async () => {
  const tree = await openTree({ detached: { Talk: true }, budgets: { Talk: { turn: { maxTokens: 400 } } } });
  const { requestId } = await tree.ask("Tea?");
  await runsAre(tree, "completed");
  const top = await tree.agent();
  expect(top.usage({ turn: requestId })).toMatchObject({ calls: 2, tokens: 2 * USED });
  expect(top.usage()).toMatchObject({ calls: 5, tokens: 5 * USED });
  expect(top.listUsage({ purpose: "agent-tool" }).map(({ turnId }) => turnId)).toEqual([null, null, null]);
  expectBooked(tree);
});

test("a detached run further down, which outlives the run that began it, counts up to the first agent", async () => {
  const gate = newGate();
  const tree = await openTree({
    detached: { Middle: true },
    scripts: { Leaf: async () => (await gate.opened, { text: "Tea.", usage }) },
  });
  const { requestId } = await tree.ask("Tea?");
  await runsAre(tree, "completed");
  const top = await tree.agent();
  expect(top.usage().reservedTokens).toBeGreaterThan(0);
  gate.open();
  await eventually(() => top.usage().reservedTokens === 0, "the end of the last call");
  expect(top.usage()).toMatchObject({ calls: 5, tokens: 5 * USED });
  expect(top.usage({ turn: requestId })).toMatchObject({ calls: 4, tokens: 4 * USED });
  expectBooked(tree);
});

test("children that race for the last tokens never take more than there are", async () => {
  const CHILDREN = 6;
  const fan: Script = ({ step }) =>
    step > 0
      ? { text: "Done.", usage }
      : {
          toolCalls: Array.from({ length: CHILDREN }, (_, i) => ({ toolName: "below", input: { query: `${i}` } })),
          usage,
        };
  const tree = await openTree({ scripts: { Talk: fan, Middle: fan } });
  const top = await tree.agent();
  const MAX = 1_000;
  tree.budgets.Talk = { agent: { maxTokens: MAX } };
  let most = 0;
  onTestFinished(
    subscribe("agent_tool:ended", () => {
      const { tokens, reservedTokens } = top.usage();
      most = Math.max(most, tokens + reservedTokens);
    }),
  );
  await tree.ask("Tea?");
  expect(most).toBeLessThanOrEqual(MAX);
  expect(most).toBeGreaterThan(MAX / 2);
  expect(tree.models.Leaf.calls.length).toBeGreaterThan(0);
  expect(tree.models.Leaf.calls.length).toBeLessThan(CHILDREN * CHILDREN);
  expect(top.usage().tokens).toBe(tree.calls() * USED);
  expectBooked(tree);
});

/** A tree that waits in the call of the last agent. */
async function openWaiting(host: TreeOptions["host"] = {}) {
  const gate = newGate();
  const tree = await openTree({ host, scripts: { Leaf: async () => (await gate.opened, { text: "Tea.", usage }) } });
  await (await tree.agent()).submitMessages([{ id: "u1", role: "user", parts: [{ type: "text", text: "Tea?" }] }]);
  await eventually(() => tree.models.Leaf.calls.length === 1, "the last call");
  const { reservedTokens } = (await tree.agent()).usage();
  expect(reservedTokens).toBeGreaterThan(USED);
  return { tree, gate, reservedTokens };
}

test("an agent above that leaves memory in the middle of a call below still books what it used", async () => {
  const { tree, gate, reservedTokens } = await openWaiting();
  const before = await tree.agent();
  tree.renewTop();
  expect(await tree.agent()).not.toBe(before);
  expect((await tree.agent()).usage()).toMatchObject({ reservedTokens });
  gate.open();
  await tree.stable();
  expect(tree.models.Leaf.calls).toHaveLength(1);
  expect((await tree.agent()).usage()).toMatchObject({ calls: 5, tokens: 5 * USED });
  expectBooked(tree);
});

test("a call that was cut with the lives of all is charged in full, in every layer, and made again", async () => {
  const { tree, gate, reservedTokens } = await openWaiting();
  await tree.nextLife();
  gate.open();
  await tree.stable();
  expect(tree.models.Leaf.calls).toHaveLength(2);
  expect((await tree.agent()).usage()).toMatchObject({ calls: 6, tokens: 5 * USED + reservedTokens });
  expectBooked(tree);
});

test("a host that is stopped and started again in the middle of a call below books it once", async () => {
  const { tree, gate, reservedTokens } = await openWaiting();
  await tree.restart();
  gate.open();
  await eventually(() => tree.models.Talk.calls.length === 2, "the last step");
  await tree.stable();
  expect((await tree.agent()).usage()).toMatchObject({ calls: 6, tokens: 5 * USED + reservedTokens });
  expectBooked(tree);
});

test("a call that ends while the host stops is on all books, and the turn goes on at the next start", async () => {
  const { tree, gate } = await openWaiting({ graceMs: 300 });
  const restarted = tree.restart();
  gate.open();
  await restarted;
  await eventually(() => tree.models.Talk.calls.length === 2, "the last step");
  await tree.stable();
  // It was heard before the end: nobody pays for it twice.
  expect(tree.calls()).toBe(5);
  const { tokens, reservedTokens } = (await tree.agent()).usage();
  expect(tokens).toBeGreaterThanOrEqual(5 * USED);
  expect(reservedTokens).toBe(0);
});

test("a run that is stopped in the middle of a call is charged in full, the same in every layer", async () => {
  const tree = await openTree({ scripts: { Leaf: () => ({ text: "Te", hang: true }) } });
  const top = await tree.agent();
  const ends = tree.ask("Tea?");
  await eventually(() => tree.models.Leaf.calls.length === 1, "the last call");
  const { tokens, reservedTokens } = top.usage();
  top.cancelAllChats();
  expect(await ends).toMatchObject({ status: "aborted" });
  await runsAre(tree, "aborted");
  await eventually(() => top.usage().reservedTokens === 0, "the end of the call");
  expect(top.usage().tokens).toBe(tokens + reservedTokens);
  expect(top.listUsage()[0]).toMatchObject({ status: "cut", estimated: true });
  await eventually(() => tree.of("Leaf")[0]?.usage().tokens === reservedTokens, "the end of the call below");
  expectBooked(tree);
});

test("a call that failed costs nothing above, if the provider refused it", async () => {
  const tree = await openTree({
    scripts: {
      Leaf: () => {
        throw Object.assign(new Error("no"), { statusCode: 401 });
      },
    },
  });
  await tree.ask("Tea?");
  const [row] = (await tree.agent()).listUsage().filter(({ model }) => model === "scripted/leaf");
  const [own] = tree.of("Leaf")[0]?.listUsage() ?? [];
  expect(row).toMatchObject({ status: "error", tokens: own?.tokens, errorClass: own?.errorClass });
  expectBooked(tree);
});

test("asking twice for the same call books it once; what ended stays as it is", async () => {
  const tree = await openTree();
  await tree.ask("Tea?");
  const top = await tree.agent();
  const before = top.usage();
  const [run] = top.listAgentToolRuns();
  const runId = run?.runId ?? "";
  const call = { id: "call_x", step: 0, attempt: 1, model: "p/m", modelIndex: 0, estimate: { input: 5, output: 5 } };
  const reserve = () => top.bookAgentToolCall(runId, { kind: "reserve", call });
  expect(await reserve()).toEqual({ ok: true, limited: false });
  expect(await reserve()).toEqual({ ok: true, limited: false });
  expect(top.usage()).toMatchObject({ calls: before.calls + 1, reservedTokens: 10 });
  const result = { outcome: "ok", usage: { input: 1, output: 2, reasoning: 0, cacheRead: 0, cacheWrite: 0 } } as const;
  await top.bookAgentToolCall(runId, { kind: "settle", id: "call_x", result });
  await top.bookAgentToolCall(runId, { kind: "settle", id: "call_x", result });
  await top.bookAgentToolCall(runId, { kind: "release", id: "call_x" });
  expect(await reserve()).toMatchObject({ ok: true });
  expect(top.usage()).toMatchObject({ calls: before.calls + 1, tokens: before.tokens + 3, reservedTokens: 0 });
  await top.bookAgentToolCall(runId, { kind: "reserve", call: { ...call, id: "call_y" } });
  await top.bookAgentToolCall(runId, { kind: "release", id: "call_y" });
  expect(top.usage()).toMatchObject({ calls: before.calls + 1, tokens: before.tokens + 3, reservedTokens: 0 });
});

test("dollars are counted by each agent's own table, and by the child's where it has no price", async () => {
  const price = { input: 2, output: 10 };
  const tree = await openTree({
    prices: { Talk: { "scripted/top": price }, Middle: { "scripted/*": price }, Leaf: { "scripted/*": price } },
    budgets: { Talk: { agent: { maxCost: 1 } } },
  });
  expect(await tree.ask("Tea?")).toMatchObject({ status: "completed" });
  expect((await tree.agent()).usage()).toMatchObject({ calls: 5, unpriced: 0, cost: 0.0011 });
});

test("a budget in dollars refuses a call below of which nobody knows the price, and says so", async () => {
  const tree = await openTree({
    prices: { Talk: { "scripted/top": { input: 2, output: 10 } } },
    budgets: { Talk: { agent: { maxCost: 1 } } },
  });
  expect(await tree.ask("Tea?")).toMatchObject({ status: "completed" });
  expect(tree.models.Middle.calls).toHaveLength(0);
  expect(lastGiven(tree, "Talk")).toMatchObject({
    ok: false,
    error: expect.stringContaining("no price for scripted/middle"),
  });
  expectBooked(tree);
});

test("a child that is talked with directly is on nobody else's books", async () => {
  const tree = await openTree({ budgets: { Talk: { agent: { maxTokens: 1 } } } });
  const top = await tree.agent();
  const child = await top.subAgent(tree.Leaf, "free");
  expect(await child.runTurn({ input: "Tea?" })).toMatchObject({ status: "completed" });
  expect(tree.of("Leaf")[0]?.usage()).toMatchObject({ calls: 1 });
  expect(top.usage()).toMatchObject({ calls: 0 });
});

test("an agent in between that keeps no books passes on what it is told", async () => {
  const middle: TreeOptions["middle"] = (Leaf) =>
    class extends AIChatAgent {
      override async onChatMessage() {
        const { output, error } = await this.runAgentTool<string>(Leaf, { input: "tea" });
        return new Response(output ?? error ?? "");
      }
    };
  const tree = await openTree({ middle });
  const { requestId } = await tree.ask("Tea?");
  expect(lastGiven(tree, "Talk")).toBe("Tea.");
  const top = await tree.agent();
  expect(top.usage({ turn: requestId })).toMatchObject({ calls: 3, tokens: 3 * USED });
  expect(top.listUsage()[1]).toMatchObject({ purpose: "agent-tool", model: "scripted/leaf" });
  const maxTokens = USED + (top.listUsage()[1]?.reservedTokens ?? 0) - 1;
  const poor = await openTree({ middle, budgets: { Talk: { turn: { maxTokens } } } });
  await poor.ask("Tea?");
  expect(poor.models.Leaf.calls).toHaveLength(0);
  expect(failureIn((await poor.agent()).messages.at(-1))).toContain('The turn budget of Talk "one"');
  expect((await poor.agent()).usage()).toMatchObject({ calls: 1, reservedTokens: 0 });
});
