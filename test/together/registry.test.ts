import type { AgentToolLifecycleResult, AgentToolRunInfo } from "perdure";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { childClass, given, newGate, openTogether, passUntil, runFrames, runsAre } from "./harness.ts";

test("runs are listed, oldest first, and known by their ids", async () => {
  const { Researcher } = childClass(({ userText }) => (userText === "bad" ? { error: "No." } : `About ${userText}.`));
  const kit = await openTogether(Researcher, ["unused"], { manual: true });
  const agent = await kit.agent();
  expect(agent.listAgentToolRuns()).toEqual([]);
  expect(agent.hasAgentToolRun(Researcher, "one")).toBe(false);
  // Nothing is stored for that.
  await agent.cancelAgentTool("one");
  await agent.clearAgentToolRuns();
  const startedAt = kit.clock.now();
  const run = agent.runAgentTool(Researcher, {
    input: "tea",
    runId: "one",
    parentToolCallId: "c9",
    display: { name: "R" },
  });
  await passUntil(kit.clock, () => agent.listAgentToolRuns()[0]?.status === "completed", "the end of a run");
  await run;
  expect(agent.listAgentToolRuns()).toEqual([
    {
      runId: "one",
      agentType: "Researcher",
      status: "completed",
      parentToolCallId: "c9",
      inputPreview: "tea",
      display: { name: "R" },
      displayOrder: 1,
      startedAt,
      completedAt: expect.any(Number) as unknown,
    },
  ]);
  const bad = agent.runAgentTool(Researcher, { input: "bad", runId: "two" });
  await passUntil(kit.clock, () => agent.listAgentToolRuns()[1]?.status === "error", "the end of a run", 500);
  await bad;
  expect(agent.listAgentToolRuns().map(({ runId }) => runId)).toEqual(["one", "two"]);
  await kit.restart();
  expect((await kit.agent()).hasAgentToolRun("Researcher", "two")).toBe(true);
});

const HOUR = 3_600_000;

async function three() {
  const child = childClass(({ userText }) => {
    if (userText === "hangs") return { text: ["One "], hang: true };
    return userText === "fails" ? { error: new Error("No.") } : `About ${userText}.`;
  });
  const { Researcher, model } = child;
  const kit = await openTogether(Researcher, ["unused"], { manual: true });
  const agent = await kit.agent();
  const ends: Promise<unknown>[] = [];
  /** A time after each was begun. */
  const times: number[] = [];
  for (const [i, input] of ["tea", "fails", "hangs"].entries()) {
    const end = agent.runAgentTool(Researcher, { input, runId: input });
    // One that hangs ends with the host.
    end.catch(() => {});
    ends.push(end);
    const ended = () => agent.listAgentToolRuns()[i]?.status !== "running";
    const there = () => model.calls.some(({ userText }) => userText === "hangs") || (i < 2 && ended());
    await passUntil(kit.clock, there, `the run "${input}"`, 500);
    times.push(kit.clock.now());
    await kit.clock.advance(HOUR);
  }
  const ids = () => agent.listAgentToolRuns().map(({ runId }) => runId);
  const children = () => agent.listSubAgents().map(({ name }) => name);
  return { ...child, kit, agent, ends, ids, children, times };
}

test("runs are forgotten by their status, and their children deleted", async () => {
  const { agent, ids, children, model, kit, Researcher } = await three();
  await agent.clearAgentToolRuns({ status: ["completed"] });
  expect(ids()).toEqual(["fails", "hangs"]);
  expect(children()).toEqual(["fails", "hangs"]);
  await agent.clearAgentToolRuns({ status: ["aborted", "interrupted"] });
  expect(ids()).toEqual(["fails", "hangs"]);
  // The same id again is a new run.
  const again = agent.runAgentTool(Researcher, { input: "tea", runId: "tea" });
  await passUntil(kit.clock, () => agent.listAgentToolRuns().at(-1)?.status === "completed", "the end of a run");
  expect(await again).toMatchObject({ status: "completed" });
  expect(model.calls.filter(({ userText }) => userText === "tea")).toHaveLength(2);
});

test("runs are forgotten by their age", async () => {
  const { agent, ids, times } = await three();
  const [first = 0, second = 0, third = 0] = times;
  await agent.clearAgentToolRuns({ olderThan: first });
  expect(ids()).toEqual(["fails", "hangs"]);
  await agent.clearAgentToolRuns({ olderThan: third + HOUR, status: ["completed"] });
  expect(ids()).toEqual(["fails", "hangs"]);
  await agent.clearAgentToolRuns({ olderThan: second });
  expect(ids()).toEqual(["hangs"]);
});

test("all runs are forgotten; those that work are stopped first", async () => {
  const { agent, ids, children, model, ends, kit } = await three();
  const client = await kit.connect();
  let cleared = false;
  const clearing = agent.clearAgentToolRuns().then(() => (cleared = true));
  await passUntil(kit.clock, () => cleared, "the end of clearing");
  await clearing;
  expect(ids()).toEqual([]);
  expect(children()).toEqual([]);
  expect(model.calls.find(({ userText }) => userText === "hangs")?.status).toBe("aborted");
  expect(await ends[2]).toMatchObject({ status: "aborted", error: "The run was cleared." });
  await eventually(() => runFrames(client).some(({ event }) => event.kind === "aborted"), "the end for clients");
  const late = await kit.connect();
  await quiet();
  expect(runFrames(late)).toEqual([]);
  await agent.clearAgentToolRuns();
});

test("hooks watch the runs of an agent, however they ended; what they throw changes nothing", async () => {
  const seen: [string, AgentToolRunInfo, AgentToolLifecycleResult?][] = [];
  let loud = false;
  const { Researcher } = childClass(({ userText }) =>
    userText.includes("bad") ? { error: new Error("No.") } : "Three.",
  );
  const kit = await openTogether(
    Researcher,
    ({ step }) =>
      step === 0 ? { toolCalls: [{ toolName: "research", input: { query: "tea" }, toolCallId: "c1" }] } : "Done.",
    {
      make: (Base) =>
        class extends Base {
          override onAgentToolStart(run: AgentToolRunInfo) {
            seen.push(["start", run]);
            if (loud) throw new Error("start");
          }
          override async onAgentToolFinish(run: AgentToolRunInfo, result: AgentToolLifecycleResult) {
            seen.push(["finish", run, result]);
            if (loud) throw new Error("finish");
          }
        },
    },
  );
  const agent = await kit.agent();
  await kit.ask("Research tea.");
  expect(seen).toMatchObject([
    ["start", { agentType: "Researcher", status: "running", parentToolCallId: "c1", inputPreview: { query: "tea" } }],
    ["finish", { status: "completed" }, { status: "completed", summary: "Three." }],
  ]);
  seen.length = 0;
  loud = true;
  expect(await agent.runAgentTool(Researcher, { input: "tea" })).toMatchObject({ status: "completed" });
  await eventually(() => seen.length === 2, "both hooks");
  await quiet();
  expect(kit.takeErrors()).toEqual(["start", "finish"]);
});

test("a turn that waits for a run that is cleared goes on with that", async () => {
  const { Researcher } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await runsAre(kit, "running");
  await eventually(() => runFrames(client).length > 2, "the child's words");
  await (await kit.agent()).clearAgentToolRuns();
  await client.done("r1");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "aborted", error: "The run was cleared." });
});

test("a run that is cleared before its child has accepted it", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(["unused"], {}, (Base) => {
    return class extends Base {
      override async onStart() {
        await gate.opened;
      }
    };
  });
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  const run = agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  await runsAre(kit, "running");
  const clearing = agent.clearAgentToolRuns();
  gate.open();
  await clearing;
  expect(await run).toMatchObject({ status: "aborted" });
  expect(agent.listAgentToolRuns()).toEqual([]);
  expect(agent.listSubAgents()).toEqual([]);
  expect(model.calls.length).toBeLessThanOrEqual(1);
});
