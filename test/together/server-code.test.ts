import { Agent, callable } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { connect, eventually, openHost } from "../host/open-host.ts";
import { childClass, given, newGate, openTogether, runFrames, runsAre, storedRuns } from "./harness.ts";

test("the same id is the same run: joined while it runs, its result returned after", async () => {
  const gate = newGate();
  const { Researcher, model, lives } = childClass(async ({ userText }) => gate.opened.then(() => `About ${userText}.`));
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  const first = agent.runAgentTool<string>(Researcher, { input: "tea", runId: "one" });
  const second = agent.runAgentTool<string>(Researcher, { input: "coffee", runId: "one" });
  gate.open();
  const result = await first;
  expect(result).toEqual({
    runId: "one",
    agentType: "Researcher",
    status: "completed",
    summary: "About tea.",
    output: "About tea.",
  });
  expect(await second).toEqual(result);
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "one" })).toEqual(result);
  expect(model.calls).toHaveLength(1);
  expect(lives).toHaveLength(1);
  expect(await storedRuns(kit)).toMatchObject([{ runId: "one", status: "completed", output: '"About tea."' }]);
});

test("a run that failed stays failed under its id", async () => {
  const { Researcher, model } = childClass(() => ({ error: "No." }));
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  const first = await agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  expect(first.status).toBe("error");
  const calls = model.calls.length;
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "one" })).toEqual(first);
  expect(model.calls).toHaveLength(calls);
});

test("a run that nobody names is a new one each time, and is told of without a tool call", async () => {
  const { Researcher } = childClass(({ userText }) => `About ${userText}.`);
  const kit = await openTogether(Researcher, ["unused"]);
  const client = await kit.connect();
  const agent = await kit.agent();
  const results = [
    await agent.runAgentTool(Researcher, { input: { query: "tea" }, inputPreview: "tea, shortly", displayOrder: 7 }),
    await agent.runAgentTool(Researcher, { input: { query: "tea" }, display: { name: "R", icon: "i", tone: "dry" } }),
  ];
  expect(new Set(results.map(({ runId }) => runId)).size).toBe(2);
  await eventually(() => runFrames(client).filter(({ event }) => event.kind === "finished").length === 2, "both ends");
  const started = runFrames(client).filter(({ event }) => event.kind === "started");
  expect(started.map(({ event }) => event)).toEqual([
    { kind: "started", runId: results[0]?.runId, agentType: "Researcher", inputPreview: "tea, shortly", order: 7 },
    {
      kind: "started",
      runId: results[1]?.runId,
      agentType: "Researcher",
      inputPreview: { query: "tea" },
      order: 2,
      display: { name: "R", icon: "i", tone: "dry" },
    },
  ]);
  expect(started.every((frame) => !("parentToolCallId" in frame))).toBe(true);
});

test("a signal stops the run, before or while it works", async () => {
  const { Researcher, model } = childClass(() => ({ text: ["One "], hang: true }));
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  const stop = new AbortController();
  const run = agent.runAgentTool(Researcher, { input: "tea", runId: "one", signal: stop.signal });
  await eventually(() => model.calls.length === 1, "the child's call");
  stop.abort(new Error("Enough."));
  expect(await run).toMatchObject({ status: "aborted", error: "Enough." });
  expect(model.calls[0]?.status).toBe("aborted");
  const never = await agent.runAgentTool(Researcher, { input: "tea", runId: "two", signal: stop.signal });
  expect(never).toMatchObject({ status: "aborted", error: "Enough." });
  expect(model.calls).toHaveLength(1);
});

test("a run is stopped by its id, for good, and one that has ended stays as it is", async () => {
  const { Researcher, model } = childClass(({ index }) => (index === 0 ? { hang: true } : "Three."));
  const kit = await openTogether(Researcher, ["unused"]);
  const client = await kit.connect();
  const agent = await kit.agent();
  const run = agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  await eventually(() => model.calls.length === 1, "the child's call");
  await agent.cancelAgentTool("one", "Not needed.");
  expect(await run).toMatchObject({ status: "aborted", error: "Not needed." });
  await eventually(() => runFrames(client).at(-1)?.event.kind === "aborted", "the end");
  expect(runFrames(client).at(-1)?.event).toMatchObject({ kind: "aborted", reason: "Not needed." });
  await agent.cancelAgentTool("one", "Again.");
  await agent.cancelAgentTool("nobody");
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "one" })).toMatchObject({ status: "aborted" });
  const done = await agent.runAgentTool(Researcher, { input: "tea", runId: "two" });
  await agent.cancelAgentTool("two");
  expect(await agent.runAgentTool(Researcher, { input: "tea", runId: "two" })).toEqual(done);
});

test("an agent without a conversation has work done from a method that clients call", async () => {
  const { Researcher } = childClass(({ userText }) => `About ${userText}.`);
  class Desk extends Agent {
    static {
      callable(this, "research");
    }
    async research(query: string) {
      const { status, output } = await this.runAgentTool<string>(Researcher, { input: query });
      return { status, output, runs: this.listAgentToolRuns().length };
    }
  }
  const host = await openHost({ agents: { Desk, Researcher }, storage: memoryStorage() });
  const client = await connect(host, "/agents/desk/one");
  expect(await client.call("research", "tea")).toEqual({ status: "completed", output: "About tea.", runs: 1 });
  expect(client.frames.filter(({ type }) => type === "agent-tool-event").length).toBeGreaterThan(2);
});

test("the tool calls of one step are done side by side, each by a child of its own", async () => {
  let running = 0;
  const gate = newGate();
  const { Researcher, model } = childClass(async ({ userText }) => {
    if (++running === 3) gate.open();
    await gate.opened;
    return `About ${userText}.`;
  });
  const input = { query: "tea" };
  const kit = await openTogether(Researcher, ({ step }) => {
    if (step > 0) return "Done.";
    const calls = [input, input, { query: "coffee" }];
    return { toolCalls: calls.map((one, i) => ({ toolName: "research", input: one, toolCallId: `c${i}` })) };
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  // Two calls that ask for the same are two runs.
  const runs = await storedRuns(kit);
  expect(runs.map(({ toolCallId, status }) => [toolCallId, status])).toEqual([
    ["c0", "completed"],
    ["c1", "completed"],
    ["c2", "completed"],
  ]);
  expect(new Set(runs.map(({ runId }) => runId)).size).toBe(3);
  expect(model.calls).toHaveLength(3);
  for (const { toolCallId } of runs) {
    const frames = runFrames(client).filter(({ parentToolCallId }) => parentToolCallId === toolCallId);
    expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  }
  expect(given(kit.model, 1, "c2")).toContain("coffee");
});

test("the same turn again, in another conversation, has other runs", async () => {
  const { Researcher } = childClass(() => "Three.");
  const kit = await openTogether(Researcher, ({ step, turn }) =>
    step === 0 ? { toolCalls: [{ toolName: "research", input: { query: `${turn}` }, toolCallId: "same" }] } : "Done.",
  );
  await kit.ask("One.");
  await kit.ask("Two.");
  const runs = await runsAre(kit, "completed", "completed");
  expect(new Set(runs.map(({ runId }) => runId)).size).toBe(2);
});

test("bad requests are refused before anything is stored", async () => {
  const { Researcher } = childClass(["unused"]);
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  await expect(agent.runAgentTool(Researcher, { input: { n: 1n } })).rejects.toMatchObject({ code: "bad_input" });
  await expect(agent.runAgentTool(Researcher, { input: "x", inputPreview: 1n })).rejects.toMatchObject({
    code: "bad_input",
  });
  await expect(agent.runAgentTool(Researcher, { input: "x", runId: "" })).rejects.toMatchObject({ code: "bad_input" });
  expect(agent.listAgentToolRuns()).toEqual([]);
  expect(agent.listSubAgents()).toEqual([]);
});
