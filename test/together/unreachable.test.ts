import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import {
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

test("a child that does not start fails its run", async () => {
  const { Researcher, errors } = childClass(["unused"], {}, (Base) => {
    return class extends Base {
      override onStart() {
        throw new Error("No desk.");
      }
    };
  });
  const kit = await openTogether(Researcher);
  await kit.ask("Research tea.");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "error", retryable: false });
  expect(JSON.stringify(given(kit.model, 1))).toContain("No desk.");
  expect(errors).toContain("No desk.");
  expect(await storedRuns(kit)).toMatchObject([{ status: "error" }]);
  kit.takeErrors();
});

test("a child that is ended while it works goes on, and the parent with it: clients see no gap and nothing twice", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(async ({ index }) => {
    if (index > 0) await gate.opened;
    return index === 0 ? { text: ["One ", "two "], hang: true } : { text: ["three"] };
  });
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  const [run] = await runsAre(kit, "running");
  await eventually(() => heardText(runFrames(client)) === "One two ", "the child's words");
  (await kit.agent()).abortSubAgent(Researcher, run?.runId ?? "", "Out.");
  await eventually(() => model.calls.length === 2, "the second call");
  gate.open();
  await client.done("r1");
  expect(given(kit.model, 1)).toBe("One two three");
  const frames = runFrames(client);
  expect(heardText(frames)).toBe("One two three");
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  expect(model.calls.map(({ status }) => status)).toEqual(["aborted", "finished"]);
});

test("a child that is ended again and again is given up; asking for the run again follows it on", async () => {
  let broken = true;
  const { Researcher, lives, model } = childClass(() => (broken ? { hang: "before" } : "Three."));
  const kit = await openTogether(Researcher, ["unused"], { manual: true });
  const agent = await kit.agent();
  const run = agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  for (let life = 1; life <= 6; life++) {
    await passUntil(kit.clock, () => lives.length === life && model.calls.length >= life, `life ${life}`, 50);
    agent.abortSubAgent(Researcher, "one");
  }
  await kit.clock.advance(1000);
  expect(await run).toEqual({
    runId: "one",
    agentType: "Researcher",
    status: "interrupted",
    error: expect.stringContaining("could not be reached") as unknown,
    reason: "inspect-failed",
    childStillRunning: true,
  });
  expect(agent.listAgentToolRuns()).toMatchObject([{ runId: "one", status: "interrupted" }]);
  broken = false;
  const again = agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  await passUntil(kit.clock, () => agent.listAgentToolRuns()[0]?.status === "completed", "the end of the run");
  expect(await again).toMatchObject({ status: "completed", output: "Three." });
  expect(await storedRuns(kit)).toMatchObject([{ status: "completed", error: null, reason: null, childRunning: null }]);
});

test("what the model reads of a child that was given up: another try makes sense", async () => {
  const { Researcher, lives, model } = childClass(() => ({ hang: "before" }));
  const kit = await openTogether(Researcher, undefined, { manual: true });
  const agent = await kit.agent();
  const turn = kit.ask("Research tea.");
  for (let life = 1; life <= 6; life++) {
    await passUntil(kit.clock, () => lives.length === life && model.calls.length >= life, `life ${life}`, 50);
    agent.abortSubAgent(Researcher, agent.listAgentToolRuns()[0]?.runId ?? "");
  }
  await passUntil(kit.clock, () => kit.model.calls.length === 2, "the parent's next call");
  await turn;
  expect(given(kit.model, 1)).toEqual({
    ok: false,
    status: "interrupted",
    error: expect.stringContaining("could not be reached") as unknown,
    retryable: true,
    reason: "inspect-failed",
    childStillRunning: true,
  });
});

test("a child that is deleted while it works is not made anew: its run is stopped", async () => {
  const { Researcher, lives } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  const [run] = await runsAre(kit, "running");
  await eventually(() => heardText(runFrames(client)) === "One ", "the child's words");
  const agent = await kit.agent();
  await agent.deleteSubAgent(Researcher, run?.runId ?? "");
  await client.done("r1");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "aborted", error: "The child was deleted." });
  expect(lives).toHaveLength(1);
  expect(agent.listSubAgents()).toEqual([]);
  const numbers = runFrames(client).map(({ sequence }) => sequence);
  expect(numbers).toEqual(numbers.map((_, i) => i));
  // It is still told of to who comes, without what it said.
  const late = await kit.connect();
  await eventually(() => runFrames(late).length === 2, "the replay of a run");
  expect(runFrames(late).map(({ event }) => event.kind)).toEqual(["started", "aborted"]);
  expect(lives).toHaveLength(1);
});

test("a parent that is destroyed takes its children and their work with it", async () => {
  const { Researcher, model } = childClass([{ text: ["One "], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => heardText(runFrames(client)) === "One ", "the child's words");
  await (await kit.agent()).destroy();
  await eventually(() => model.calls[0]?.status === "aborted", "the end of the child's call");
  expect((await kit.agent()).listAgentToolRuns()).toEqual([]);
  expect((await kit.agent()).listSubAgents()).toEqual([]);
  expect(model.calls).toHaveLength(1);
  kit.takeErrors();
});

test("a parent that does not come up at first does not cost the child its run", async () => {
  let broken = 0;
  const gate = newGate();
  const { Researcher, model } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, undefined, {
    make: (Base) =>
      class extends Base {
        override onStart() {
          if (broken-- > 0) throw new Error("Not yet.");
        }
      },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 1, "the child's call");
  broken = 2;
  await kit.restart();
  await eventually(() => model.calls.length === 2, "the child's next call");
  gate.open();
  await eventually(() => kit.model.calls.length === 2, "the parent's next call");
  expect(given(kit.model, 1)).toBe("Three.");
  expect(new Set(kit.takeErrors())).toEqual(new Set(["Not yet.", "wake: Not yet."]));
});
