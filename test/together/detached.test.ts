import { Agent, type AgentHost, type AgentToolLifecycleResult, type AgentToolRunInfo, type Think } from "perdure";
import { memoryStorage } from "perdure/node";
import type { Script } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { eventually, openHost, quiet } from "../host/open-host.ts";
import type { ThinkBase } from "../think/harness.ts";
import { asksOnce, childClass, given, newGate, openTogether, runFrames, runsAre, storedRuns } from "./harness.ts";

type Ended = [run: AgentToolRunInfo, result: AgentToolLifecycleResult];

/** A parent that notes what it is told of its detached runs. */
function noting(ended: Ended[], researched: (...end: Ended) => unknown = () => {}) {
  return (Base: ThinkBase) =>
    class extends Base {
      researched(...end: Ended) {
        ended.push(end);
        return researched(...end);
      }
    };
}

const onFinish = "researched" as never;

test("a detached run returns at once; its end is delivered to a method, once", async () => {
  const gate = newGate();
  const ended: Ended[] = [];
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended) });
  const agent = await kit.agent();
  const started = await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } });
  expect(started).toEqual({ runId: "one", agentType: "Researcher", status: "running" });
  expect(ended).toEqual([]);
  gate.open();
  await eventually(() => ended.length > 0, "the delivery");
  await quiet();
  expect(ended).toEqual([
    [
      expect.objectContaining({ runId: "one", agentType: "Researcher", status: "completed" }),
      { status: "completed", summary: "Three." },
    ],
  ]);
  // Asking again says how it ended, and delivers nothing again.
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } })).toMatchObject({
    status: "completed",
  });
  await quiet();
  expect(ended).toHaveLength(1);
});

test("a child that refuses the work: a detached run says so at once, and it is delivered", async () => {
  const ended: Ended[] = [];
  const { Researcher } = childClass(["unused"], {}, (Base) => {
    return class extends Base {
      override formatAgentToolInput(): string {
        throw new Error("No.");
      }
    };
  });
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended) });
  const agent = await kit.agent();
  const started = await agent.runAgentTool(Researcher, { input: "tea", detached: { onFinish } });
  expect(started).toMatchObject({ status: "error", error: "No." });
  await eventually(() => ended.length === 1, "the delivery");
  expect(ended[0]?.[1]).toEqual({ status: "error", error: "No." });
});

test("a delivery that throws is tried again; a hook that only watches does not hold it up", async () => {
  const ended: Ended[] = [];
  let watched = 0;
  const { Researcher } = childClass(["Three."]);
  const kit = await openTogether(Researcher, ["unused"], {
    make: (Base) =>
      class extends noting(ended, () => {
        if (ended.length === 1) throw new Error("Not now.");
      })(Base) {
        override onAgentToolFinish() {
          watched++;
          throw new Error("I only watch.");
        }
      },
  });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", detached: { onFinish } });
  await eventually(() => ended.length === 2, "the second delivery");
  expect(watched).toBeGreaterThan(0);
  await quiet();
  expect(ended).toHaveLength(2);
  expect(new Set(kit.takeErrors())).toContain("I only watch.");
});

test("configurations that cannot work are refused", async () => {
  const { Researcher } = childClass(["unused"]);
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  const nobody = agent.runAgentTool(Researcher, { input: "x", detached: { onFinish: "nobody" as never } });
  await expect(nobody).rejects.toMatchObject({ code: "bad_config" });
  expect(agent.listAgentToolRuns()).toEqual([]);
  const desks: Agent[] = [];
  class Desk extends Agent {
    constructor(host: AgentHost) {
      super(host);
      desks.push(this);
    }
    hello() {}
  }
  const host = await openHost({ agents: { Desk, Researcher }, storage: memoryStorage() });
  await host.getAgentByName(Desk, "one").hello();
  for (const detached of [{ notify: true }, { onMilestones: ["x"] }]) {
    await expect(desks[0]?.runAgentTool(Researcher, { input: "x", detached })).rejects.toMatchObject({
      code: "bad_config",
    });
  }
});

test("a tool whose work is detached: the model gets a receipt, and the result in a turn of its own", async () => {
  const gate = newGate();
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three sources."));
  const script: Script = ({ step, turn, userText }) => {
    if (turn > 0) return `Heard: ${userText}`;
    return step === 0 ? { toolCalls: [{ toolName: "research", input: { query: "tea" }, toolCallId: "c1" }] } : "Begun.";
  };
  const kit = await openTogether(Researcher, script, { tool: { detached: true, displayName: "The researcher" } });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  const [run] = await storedRuns(kit);
  expect(given(kit.model, 1)).toEqual({
    runId: run?.runId,
    status: "running",
    note: expect.any(String) as unknown,
  });
  expect(kit.model.calls).toHaveLength(2);
  gate.open();
  await eventually(() => kit.model.calls.length === 3, "the turn of its own");
  await kit.stable();
  const stored = await kit.stored();
  expect(stored.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(textIn(stored[2])).toContain("The researcher");
  expect(textIn(stored[2])).toContain("Three sources.");
  expect(stored[2]?.metadata).toMatchObject({ agentToolRunId: run?.runId });
  expect(textIn(stored[3])).toMatch(/^Heard: /);
});

test("stopping the turn that began it does not stop a detached run", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(async () => gate.opened.then(() => "Three."));
  const script: Script = (call) =>
    call.turn === 0 && call.step === 1 ? { text: ["Well "], hang: true } : script1(call);
  const script1 = asksOnce as Extract<Script, (...args: never[]) => unknown>;
  const kit = await openTogether(Researcher, script, { tool: { detached: {} } });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "Well ");
  client.cancel("r1");
  await client.done("r1");
  client.clear();
  await client.flushed();
  expect(model.calls[0]?.status).toBe("running");
  gate.open();
  await runsAre(kit, "completed");
  await kit.stable();
  // Nobody asked to be told.
  expect(await kit.stored()).toEqual([]);
});

test("what is said of a completion is the class's own words, or nothing; its source is passed on", async () => {
  const { Researcher } = childClass(({ userText }) => `About ${userText}.`);
  const kit = await openTogether(Researcher, ({ userText }) => `Heard: ${userText}`, {
    make: (Base) =>
      class extends Base {
        override formatDetachedCompletion(run: AgentToolRunInfo, { summary }: AgentToolLifecycleResult) {
          return run.runId === "quiet" ? "" : `${run.notifySource}: ${summary}`;
        }
      },
  });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "quiet", detached: { notify: true } });
  await runsAre(kit, "completed");
  await agent.runAgentTool(Researcher, { input: "tea", runId: "loud", detached: { notify: { source: "cron" } } });
  await eventually(() => kit.model.calls.length === 1, "the turn of its own");
  await kit.stable();
  const stored = await kit.stored();
  expect(stored.map((message) => textIn(message))).toEqual(["cron: About tea.", "Heard: cron: About tea."]);
  expect(stored[0]?.metadata).toEqual({ agentToolRunId: "loud", source: "cron" });
});

test("a method or the model is told, not both", async () => {
  const ended: Ended[] = [];
  const { Researcher } = childClass(["Three."]);
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended) });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", detached: { onFinish, notify: true } });
  await eventually(() => ended.length === 1, "the delivery");
  await quiet();
  expect(kit.model.calls).toHaveLength(0);
});

test("a detached run is stopped by its id, and that is delivered", async () => {
  const ended: Ended[] = [];
  const { Researcher, model } = childClass(() => ({ hang: true }));
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended) });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } });
  await eventually(() => model.calls.length === 1, "the child's call");
  await agent.cancelAgentTool("one", "Not needed.");
  await eventually(() => ended.length === 1, "the delivery");
  expect(ended[0]?.[1]).toEqual({ status: "aborted", error: "Not needed." });
});

test("both sides go through a restart: the end is delivered by the next life, once", async () => {
  const gate = newGate();
  const ended: Ended[] = [];
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended) });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } });
  await kit.restart();
  gate.open();
  await eventually(() => ended.length === 1, "the delivery");
  await kit.restart();
  await kit.agent();
  await quiet();
  expect(ended).toHaveLength(1);
  expect(await storedRuns(kit)).toMatchObject([{ status: "completed" }]);
});

test("an agent that follows a run is not put to sleep", async () => {
  const gate = newGate();
  const ended: Ended[] = [];
  const { Researcher, lives } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, ["unused"], { make: noting(ended), host: { idleMs: 1 } });
  const agent: Think = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: { onFinish } });
  await quiet(300);
  gate.open();
  await eventually(() => ended.length === 1, "the delivery");
  expect(lives).toHaveLength(1);
});

test("too many runs: a detached one says so at once", async () => {
  const { Researcher } = childClass(() => ({ hang: true }));
  const kit = await openTogether(Researcher, ["unused"], {
    make: (Base) =>
      class extends Base {
        override maxConcurrentAgentTools = 1;
      },
  });
  const client = await kit.connect();
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "one", detached: true });
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "two", detached: true })).toEqual({
    runId: "two",
    agentType: "Researcher",
    status: "error",
    error: "maxConcurrentAgentTools (1) exceeded",
  });
  await eventually(() => runFrames(client).some(({ event }) => event.kind === "error"), "the error");
  await agent.cancelAgentTool("one");
  await runsAre(kit, "aborted", "error");
});
