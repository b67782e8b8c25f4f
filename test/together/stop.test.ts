import type { ToolSet } from "ai";
import { type AgentHost, agentTool, Think } from "perdure";
import { type ScriptedModel, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { user } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import {
  asksOnce,
  childClass,
  given,
  heardText,
  newGate,
  openTogether,
  passUntil,
  runFrames,
  runsAre,
  storedRuns,
} from "./harness.ts";

/** A child that has a child of its own do the work. */
function twoBelow(deepest: Parameters<typeof childClass>[0]) {
  const { Researcher: Reader, model: deep } = childClass(deepest);
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "read", input: { page: 1 }, toolCallId: "d1" }] } : "Read it.",
  );
  const lives: Think[] = [];
  class Researcher extends Think {
    override workspaceTools = false as const;
    constructor(host: AgentHost) {
      super(host);
      lives.push(this);
    }
    override getModel() {
      return model;
    }
    override getTools(): ToolSet {
      return { read: agentTool(Reader, { description: "Read.", inputSchema: z.object({ page: z.number() }) }) };
    }
  }
  return { Researcher, Reader, model, deep, lives };
}

function statuses(model: ScriptedModel): string[] {
  return model.calls.map(({ status }) => status);
}

test("three agents deep: the answer of the last one comes up to the first", async () => {
  const { Researcher, Reader } = twoBelow(["Page one says tea."]);
  const kit = await openTogether(Researcher, undefined, { children: { Reader } });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  expect(given(kit.model, 1)).toBe("Read it.");
  // The clients of the first hear of its own child only.
  expect(new Set(runFrames(client).map(({ parentToolCallId }) => parentToolCallId))).toEqual(new Set(["c1"]));
  expect(runFrames(client).some(({ event }) => event.body?.includes("Page one says tea."))).toBe(true);
});

test("stopping the first turn stops everything below it", async () => {
  const { Researcher, Reader, deep, lives } = twoBelow([{ text: ["Page "], hang: true }]);
  const kit = await openTogether(Researcher, undefined, { children: { Reader } });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => deep.calls.length === 1, "the last child's call");
  client.cancel("r1");
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  await eventually(() => deep.calls[0]?.status === "aborted", "the end of the last child's call");
  const [run] = await runsAre(kit, "aborted");
  await eventually(() => runFrames(client).at(-1)?.event.kind === "aborted", "the end of the run");
  await eventually(() => lives[0]?.listAgentToolRuns()[0]?.status === "aborted", "the end of the run below");
  const child = lives[0];
  expect(child?.inspectAgentToolRun(run?.runId ?? "")).toMatchObject({ status: "aborted" });
  await kit.stable();
  expect(kit.model.calls).toHaveLength(1);
});

test("a tree that was stopped and is started again can be cleared", async () => {
  const { Researcher, Reader, deep } = twoBelow([{ text: ["Page "], hang: true }]);
  const kit = await openTogether(Researcher, undefined, { children: { Reader } });
  const agent = await kit.agent();
  void agent.runAgentTool(Researcher, { input: "tea", runId: "one" }).catch(() => {});
  await eventually(() => deep.calls.length === 1, "the last child's call");
  // The stop is stored, and the lives of all end before anybody hears of it.
  void agent.cancelAgentTool("one").catch(() => {});
  await kit.restart();
  await runsAre(kit, "aborted");
  await quiet(300);
  await (await kit.agent()).clearAgentToolRuns();
  expect((await kit.agent()).listSubAgents()).toEqual([]);
});

test("of many runs that are stopped at once each ends, a child that fails to stop holds up none", async () => {
  const MANY = 40;
  let fails = true;
  const { Researcher, model } = childClass([{ text: ["Page "], hang: true }], {}, (Base) => {
    return class extends Base {
      override cancelAgentToolRun(runId: string, reason?: string): void {
        if (fails && runId === "run-0") throw new Error("Not now.");
        super.cancelAgentToolRun(runId, reason);
      }
    };
  });
  const kit = await openTogether(Researcher);
  const agent = await kit.agent();
  const ids = Array.from({ length: MANY }, (_, i) => `run-${i}`);
  await Promise.all(ids.map((runId) => agent.runAgentTool(Researcher, { input: "tea", runId, detached: true })));
  await eventually(() => model.calls.length === MANY, "the calls of all children");
  const told = await Promise.allSettled(ids.map((runId) => agent.cancelAgentTool(runId)));
  expect(told.filter(({ status }) => status === "rejected")).toHaveLength(1);
  await runsAre(kit, "running", ...ids.slice(1).map(() => "aborted"));
  expect(statuses(model).filter((status) => status === "running")).toHaveLength(1);
  // What is stored holds, whoever has heard of it.
  fails = false;
  await kit.restart();
  await runsAre(kit, ...ids.map(() => "aborted"));
  expect(model.calls).toHaveLength(MANY);
});

test("forgetting the conversation stops what was asked for in it", async () => {
  const { Researcher, model } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => heardText(runFrames(client)) === "One ", "the child's words");
  client.clear();
  await eventually(() => model.calls[0]?.status === "aborted", "the end of the child's call");
  await runsAre(kit, "aborted");
  expect(await kit.stored()).toEqual([]);
});

test("the tool's time is up: the child is stopped, and the model reads why", async () => {
  const { Researcher, model } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher, undefined, { manual: true, tool: { timeoutMs: 60_000 } });
  const turn = kit.ask("Research tea.");
  await passUntil(kit.clock, () => model.calls.length === 1, "the child's call");
  await kit.clock.advance(60_000);
  await passUntil(kit.clock, () => kit.model.calls.length === 2, "the parent's next call");
  await turn;
  expect(given(kit.model, 1)).toContain("60000 ms");
  expect(statuses(model)).toEqual(["aborted"]);
  expect(await storedRuns(kit)).toMatchObject([
    { status: "aborted", error: expect.stringContaining("60000 ms") as unknown },
  ]);
});

test("time that a child takes is no stall of the parent", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, undefined, {
    manual: true,
    make: (Base) =>
      class extends Base {
        override chatStreamStallTimeoutMs = 1000;
      },
  });
  const turn = kit.ask("Research tea.");
  await passUntil(kit.clock, () => model.calls.length === 1, "the child's call");
  await kit.clock.advance(10_000);
  expect(statuses(model)).toEqual(["running"]);
  gate.open();
  await passUntil(kit.clock, () => kit.model.calls.length === 2, "the parent's next call");
  expect(await turn).toMatchObject({ status: "completed" });
  expect(model.calls).toHaveLength(1);
  expect(given(kit.model, 1)).toBe("Three.");
});

test("a parent whose life ends in the middle, and its child's with it, comes back to the same run", async () => {
  const gate = newGate();
  const { Researcher, model, lives } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, asksOnce);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 1, "the child's call");
  const [before] = await runsAre(kit, "running");
  await kit.nextLife();
  await eventually(() => model.calls.length === 2, "the child's next call");
  await kit.nextLife();
  gate.open();
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(given(kit.model, 1)).toBe("Three.");
  expect(lives.at(-1)?.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(await storedRuns(kit)).toMatchObject([{ runId: before?.runId, status: "completed" }]);
  expect(kit.model.calls).toHaveLength(2);
});

test("a turn that is stopped while its parent is away is stopped below, too", async () => {
  const { Researcher, model } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher, asksOnce);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 1, "the child's call");
  const agent = await kit.agent();
  // The stop is stored, and the life ends before anybody hears of it.
  agent.abortRequest("r1");
  await kit.nextLife();
  await eventually(() => model.calls[0]?.status === "aborted", "the end of the child's call");
  await runsAre(kit, "aborted");
  expect(model.calls).toHaveLength(1);
});

test("a tool that does not pass its signal on: what it had done ends with the turn all the same", async () => {
  const { Researcher, model } = childClass(() => ({ text: ["One "], hang: true }));
  const kit = await openTogether(
    Researcher,
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "both", input: {}, toolCallId: "c1" }] } : "Done."),
    {
      make: (Base) =>
        class extends Base {
          override getTools(): ToolSet {
            return {
              both: serverTool(() =>
                Promise.all(["a", "b"].map((input) => this.runAgentTool(Researcher, { input, runId: input }))),
              ),
            };
          }
        },
    },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 2, "both calls");
  // Somebody else waits for one of them.
  const other = (await kit.agent()).runAgentTool(Researcher, { input: "b", runId: "b" });
  client.cancel("r1");
  await client.done("r1");
  await runsAre(kit, "aborted", "running");
  await (await kit.agent()).cancelAgentTool("b");
  expect(await other).toMatchObject({ status: "aborted" });
});

test("a stop while the child makes what it brings, and never gets done with it", async () => {
  const { Researcher, lives } = childClass(["Three."], {}, (Base) => {
    return class extends Base {
      override getAgentToolOutput() {
        return new Promise<never>(() => {});
      }
    };
  });
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => lives[0]?.messages.length === 2, "the child's answer");
  client.cancel("r1");
  await client.done("r1");
  const [run] = await runsAre(kit, "aborted");
  expect(lives[0]?.inspectAgentToolRun(run?.runId ?? "")).toMatchObject({ status: "aborted" });
});

test("a stop while the child runs a tool of its own", async () => {
  const gate = newGate();
  let stopped = false;
  const { Researcher, model } = childClass(
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "wait", input: {} }] } : "unused"),
    {
      wait: serverTool(async (_, { abortSignal }) => {
        abortSignal?.addEventListener("abort", () => (stopped = true));
        gate.open();
        return new Promise<never>(() => {});
      }),
    },
  );
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await gate.opened;
  client.cancel("r1");
  await client.done("r1");
  await runsAre(kit, "aborted");
  expect(stopped).toBe(true);
  expect(model.calls).toHaveLength(1);
});
