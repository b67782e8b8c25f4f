import type { AgentToolLifecycleResult, AgentToolRunInfo, Think } from "perdure";
import type { DetachedAgentToolConfig } from "perdure/agent-tools";
import type { Script } from "perdure/testing";
import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, newGate, openTogether, passUntil, runFrames, storedRuns } from "./harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const onFinish = "researched" as never;

async function detached(script: Script, config: DetachedAgentToolConfig<Think> = {}) {
  const ended: [AgentToolRunInfo, AgentToolLifecycleResult][] = [];
  const child = childClass(script, {
    report: serverTool(async () => {
      await child.lives.at(-1)?.reportProgress({ message: "I am here." });
      return "reported";
    }),
  });
  const { Researcher, model } = child;
  const kit = await openTogether(Researcher, ["unused"], {
    manual: true,
    make: (Base) =>
      class extends Base {
        researched(run: AgentToolRunInfo, result: AgentToolLifecycleResult) {
          ended.push([run, result]);
        }
      },
  });
  const agent = await kit.agent();
  const client = await kit.connect();
  const begun = agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish, ...config } });
  await passUntil(kit.clock, () => model.calls.length > 0, "the child's call");
  await begun;
  return { ...child, kit, agent, client, ended };
}

test("a detached run has a day, unless it is told otherwise", async () => {
  const { kit, ended, model } = await detached(() => ({ hang: "before" }));
  await kit.clock.advance(24 * HOUR - MINUTE);
  expect(ended).toEqual([]);
  await kit.clock.advance(MINUTE);
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  expect(ended).toMatchObject([
    [
      { runId: "one", status: "interrupted" },
      { status: "interrupted", reason: "budget-exceeded", childStillRunning: false },
    ],
  ]);
  await passUntil(kit.clock, () => model.calls[0]?.status === "aborted", "the end of the child's call");
});

test("a time of its own, and what clients hear when it is up", async () => {
  const { kit, ended, model, client, lives } = await detached(() => ({ hang: "before" }), { maxBudgetMs: 5 * MINUTE });
  await kit.clock.advance(5 * MINUTE);
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  await passUntil(kit.clock, () => model.calls[0]?.status === "aborted", "the end of the child's call");
  await eventually(() => runFrames(client).at(-1)?.event.kind === "interrupted", "the end");
  const error = "The run took too long.";
  expect(runFrames(client).at(-1)).toMatchObject({
    event: { kind: "interrupted", reason: "budget-exceeded", childStillRunning: false, error },
  });
  // That the child was stopped for it is no news.
  await kit.clock.advance(HOUR);
  expect(ended).toHaveLength(1);
  expect(lives[0]?.inspectAgentToolRun("one")).toMatchObject({ status: "aborted" });
  expect(await storedRuns(kit)).toMatchObject([{ status: "interrupted", reason: "budget-exceeded", error }]);
});

test("no bound at all", async () => {
  const { kit, ended } = await detached(() => ({ hang: "before" }), { maxBudgetMs: 0, noProgressBudgetMs: 0 });
  await kit.clock.advance(1000 * HOUR);
  expect(ended).toEqual([]);
});

const reportsThenHangs: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "report", input: {} }] } : { hang: "before" };

test("a run that has reported something and then nothing for too long is given up", async () => {
  const { kit, ended, model } = await detached(reportsThenHangs, { noProgressBudgetMs: 10 * MINUTE });
  await passUntil(kit.clock, () => model.calls.length === 2, "the second call");
  await kit.clock.advance(9 * MINUTE);
  expect(ended).toEqual([]);
  await kit.clock.advance(MINUTE);
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  expect(ended).toMatchObject([[{ runId: "one" }, { status: "interrupted", reason: "no-progress" }]]);
  await passUntil(kit.clock, () => model.calls[1]?.status === "aborted", "the end of the child's call");
});

test("one that never reported anything is not expected to", async () => {
  const { kit, ended } = await detached(() => ({ hang: "before" }), { noProgressBudgetMs: MINUTE });
  await kit.clock.advance(HOUR);
  expect(ended).toEqual([]);
});

test("each report gives it more time", async () => {
  const gates = [newGate(), newGate()];
  const { kit, ended, model } = await detached(
    async ({ step }) => {
      if (step > 0) await gates[step - 1]?.opened;
      return step < 3 ? { toolCalls: [{ toolName: "report", input: {} }] } : { hang: "before" };
    },
    { noProgressBudgetMs: 10 * MINUTE },
  );
  for (const [i, gate] of gates.entries()) {
    await passUntil(kit.clock, () => model.calls.length === i + 2, "the next call");
    await kit.clock.advance(9 * MINUTE);
    gate.open();
  }
  await passUntil(kit.clock, () => model.calls.length === 4, "the last call");
  await kit.clock.advance(9 * MINUTE);
  expect(ended).toEqual([]);
  await kit.clock.advance(MINUTE);
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  expect(ended).toMatchObject([[{}, { reason: "no-progress" }]]);
});

test("silence is counted through a restart", async () => {
  const { kit, ended, model } = await detached(reportsThenHangs, { noProgressBudgetMs: 10 * MINUTE });
  await passUntil(kit.clock, () => model.calls.length === 2, "the second call");
  await kit.clock.advance(5 * MINUTE);
  await kit.restart();
  await passUntil(kit.clock, () => model.calls.length === 3, "the call of the next life");
  await kit.clock.advance(5 * MINUTE);
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  expect(ended).toMatchObject([[{}, { status: "interrupted", reason: "no-progress" }]]);
});

test("what was given up, is asked for again and completes: that is delivered too", async () => {
  const { kit, agent, ended, model, lives, Researcher, client } = await detached(({ index }) =>
    index < 6 ? { hang: "before" } : "Three.",
  );
  for (let life = 1; life <= 6; life++) {
    await passUntil(kit.clock, () => lives.length === life && model.calls.length >= life, `life ${life}`, 50);
    agent.abortSubAgent(Researcher, "one");
  }
  await passUntil(kit.clock, () => ended.length > 0, "the delivery");
  expect(ended).toMatchObject([[{}, { status: "interrupted", reason: "inspect-failed", childStillRunning: true }]]);
  const again = agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } });
  await passUntil(kit.clock, () => ended.length === 2, "the second delivery");
  expect(await again).toEqual({ runId: "one", agentType: "Researcher", status: "running" });
  expect(ended[1]?.[1]).toEqual({ status: "completed", summary: "Three." });
  expect(agent.listAgentToolRuns()).toMatchObject([{ status: "completed" }]);
  await eventually(() => runFrames(client).at(-1)?.event.kind === "finished", "the end");
  expect(runFrames(client).map(({ event }) => event.kind)).toContain("interrupted");
});
