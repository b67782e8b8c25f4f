import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import {
  childClass,
  connectChild,
  heardText,
  newGate,
  openTogether,
  passUntil,
  type RunFrame,
  runFrames,
  runsAre,
  storedRuns,
} from "./harness.ts";

/** Stored chunks and ends, by number, each once. */
function numbers(frames: readonly RunFrame[]): number[] {
  return frames.map(({ sequence }) => sequence);
}

test("clients that come at every moment of a run all hear all of it, in order and once", async () => {
  const steps = 12;
  const gates = Array.from({ length: steps }, newGate);
  const { Researcher } = childClass(
    ({ step }) =>
      step < steps ? { text: `word ${step}. `, toolCalls: [{ toolName: "wait", input: { step } }] } : "The end.",
    { wait: serverTool<{ step: number }>(async ({ step }) => gates[step]?.opened.then(() => "waited")) },
    (Base) => {
      return class extends Base {
        override maxSteps = steps + 1;
      };
    },
  );
  const kit = await openTogether(Researcher);
  const first = await kit.connect();
  first.request("r1", [user("u1")]);
  const clients = [first];
  for (const [step, gate] of gates.entries()) {
    await eventually(() => heardText(runFrames(first)).includes(`word ${step}. `), `word ${step}`);
    // Not awaited: the connection is made while the next words come.
    const coming = kit.connect();
    gate.open();
    clients.push(await coming);
  }
  await first.done("r1");
  const whole = runFrames(first);
  expect(numbers(whole)).toEqual(whole.map((_, i) => i));
  for (const [i, client] of clients.entries()) {
    await eventually(() => runFrames(client).at(-1)?.event.kind === "finished", `the end for client ${i}`);
    const frames = runFrames(client);
    expect(frames.map(({ event }) => event)).toEqual(whole.map(({ event }) => event));
    expect(numbers(frames)).toEqual(numbers(whole));
    // Once something is live, nothing is replayed any more.
    const live = frames.findIndex(({ replay }) => replay !== true);
    expect(frames.slice(live === -1 ? frames.length : live).every(({ replay }) => replay !== true)).toBe(true);
  }
});

test("of more than twenty runs the oldest are told of briefly", async () => {
  const { Researcher, lives } = childClass(({ userText }) => `About ${userText}.`);
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  for (let i = 0; i < 23; i++) await agent.runAgentTool(Researcher, { input: `${i}`, runId: `run-${i}` });
  const before = lives.length;
  const client = await kit.connect();
  const ends = () => runFrames(client).filter(({ event }) => event.kind === "finished");
  await eventually(() => ends().length === 23, "the ends of all runs");
  expect(ends().map(({ event }) => event.runId)).toEqual(Array.from({ length: 23 }, (_, i) => `run-${i}`));
  const of = (runId: string) => runFrames(client).filter(({ event }) => event.runId === runId);
  for (const old of ["run-0", "run-1", "run-2"]) {
    expect(of(old).map(({ event }) => event.kind)).toEqual(["started", "finished"]);
    expect(of(old)[1]?.event.summary).toMatch(/^About/);
  }
  expect(heardText(of("run-3"))).toBe("About 3.");
  expect(numbers(of("run-3"))).toEqual(of("run-3").map((_, i) => i));
  // The number of an end says how much was left out.
  expect(of("run-0")[1]?.sequence).toBe(of("run-3").length - 1);
  expect(lives).toHaveLength(before);
});

test("an old run that still works is told of in full", async () => {
  const gate = newGate();
  const { Researcher } = childClass(async ({ userText }) => {
    if (userText === "slow") await gate.opened;
    return `About ${userText}.`;
  });
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "slow", runId: "slow", detached: true });
  for (let i = 0; i < 21; i++) await agent.runAgentTool(Researcher, { input: `${i}`, runId: `run-${i}` });
  const client = await kit.connect();
  gate.open();
  const of = () => runFrames(client).filter(({ event }) => event.runId === "slow");
  await eventually(() => of().at(-1)?.event.kind === "finished", "the end of the slow one");
  expect(heardText(of())).toBe("About slow.");
  expect(numbers(of())).toEqual(of().map((_, i) => i));
});

test("a child that does not say what it stored keeps nobody waiting for long", async () => {
  let stuck = false;
  const { Researcher } = childClass(
    ({ userText }) => `About ${userText}.`,
    {},
    (Base) => {
      return class extends Base {
        override inspectAgentToolRun(runId: string) {
          const found = super.inspectAgentToolRun(runId);
          return stuck && runId === "one" ? (new Promise<never>(() => {}) as never) : found;
        }
      };
    },
  );
  const kit = await openTogether(Researcher, ["unused"], { manual: true });
  const agent = await kit.agent();
  for (const runId of ["one", "two"]) {
    const run = agent.runAgentTool(Researcher, { input: runId, runId });
    await passUntil(kit.clock, () => agent.listAgentToolRuns().at(-1)?.status === "completed", "the end of a run");
    await run;
  }
  stuck = true;
  const client = await kit.connect();
  await kit.clock.advance(4_900);
  await quiet();
  expect(runFrames(client)).toEqual([]);
  await kit.clock.advance(200);
  await eventually(() => runFrames(client).at(-1)?.event.runId === "two", "the second run");
  const of = (runId: string) => runFrames(client).filter(({ event }) => event.runId === runId);
  expect(of("one").map(({ event }) => event.kind)).toEqual(["started", "finished"]);
  expect(heardText(of("two"))).toBe("About two.");
});

test("a child that cannot be asked: its run is told of without what it said", async () => {
  let broken = false;
  const { Researcher } = childClass(["Three."], {}, (Base) => {
    return class extends Base {
      override inspectAgentToolRun(runId: string) {
        if (broken) throw new Error("My shelf fell over.");
        return super.inspectAgentToolRun(runId);
      }
    };
  });
  const kit = await openTogether(Researcher, ["unused"]);
  await (await kit.agent()).runAgentTool(Researcher, { input: "tea" });
  broken = true;
  const client = await kit.connect();
  await eventually(() => runFrames(client).length === 2, "the run");
  expect(runFrames(client).map(({ event }) => event.kind)).toEqual(["started", "finished"]);
  expect(kit.takeErrors().join()).toContain("My shelf fell over.");
});

test("only the ends: words are not told, but have their numbers; milestones and progress are", async () => {
  const child = childClass(
    ({ step }) => (step === 0 ? { text: "Well. ", toolCalls: [{ toolName: "report", input: {} }] } : "Three."),
    {
      report: serverTool(async () => {
        await child.lives[0]?.reportProgress({ message: "half" });
        await child.lives[0]?.reportProgress({ milestone: "found" });
        return "reported";
      }),
    },
  );
  const kit = await openTogether(child.Researcher, ["unused"]);
  const client = await kit.connect();
  const agent = await kit.agent();
  await agent.runAgentTool(child.Researcher, { input: "tea", runId: "one", eventDelivery: "terminal" });
  await eventually(() => runFrames(client).at(-1)?.event.kind === "finished", "the end");
  const kinds = (frames: readonly RunFrame[]) =>
    frames.map(({ event }) => event.body?.match(/"type":"([^"]+)"/)?.[1] ?? event.kind);
  expect(kinds(runFrames(client)).toSorted()).toEqual(
    ["started", "data-agent-progress", "data-agent-milestone", "finished"].toSorted(),
  );
  const [run] = await storedRuns(kit);
  expect(run?.chunks).toBeGreaterThan(5);
  expect(runFrames(client).at(-1)?.sequence).toBe((run?.chunks ?? 0) + 1);
  const late = await kit.connect();
  await eventually(() => runFrames(late).at(-1)?.event.kind === "finished", "the replay");
  expect(kinds(runFrames(late))).toEqual(["started", "data-agent-milestone", "finished"]);
  expect(runFrames(late).at(-1)?.sequence).toBe((run?.chunks ?? 0) + 1);
});

test("clients of the child hear its turn, not the frames of the parent", async () => {
  const gate = newGate();
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  const [run] = await runsAre(kit, "running");
  const child = await connectChild(kit, run?.runId ?? "");
  gate.open();
  const end = await child.frame(({ done }) => done === true);
  expect(end).toMatchObject({ outcome: "completed" });
  await client.done("r1");
  expect(runFrames(child)).toEqual([]);
});
