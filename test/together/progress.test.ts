import type { AgentToolRunInfo, Think } from "perdure";
import type { AgentToolProgress, AgentToolProgressSnapshot } from "perdure/agent-tools";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, newGate, openTogether, passUntil, type RunFrame, runFrames, storedRuns } from "./harness.ts";

interface Chunk {
  readonly type: string;
  readonly id?: string;
  readonly data?: { readonly message?: string; readonly name?: string; readonly sequence?: number };
}

function chunksOf(frames: readonly RunFrame[], type: string): (Chunk & { readonly number: number })[] {
  return frames
    .filter(({ event }) => event.kind === "chunk")
    .map(({ event, sequence }) => ({ ...(JSON.parse(event.body ?? "{}") as Chunk), number: sequence }))
    .filter((chunk) => chunk.type === type);
}

/** A child in a tool that the test works from inside. */
async function working(manual = true) {
  const gate = newGate();
  const seen: [string, AgentToolProgressSnapshot][] = [];
  const child = childClass(
    ({ step }) => (step === 0 ? { text: "Well. ", toolCalls: [{ toolName: "work", input: {} }] } : "Three."),
    { work: serverTool(async () => gate.opened.then(() => "worked")) },
  );
  const kit = await openTogether(child.Researcher, undefined, {
    manual,
    make: (Base) =>
      class extends Base {
        override onProgress({ runId }: AgentToolRunInfo, progress: AgentToolProgressSnapshot) {
          seen.push([runId, progress]);
        }
      },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await passUntil(
    kit.clock,
    () => runFrames(client).some(({ event }) => event.body?.includes("tool-input-available")),
    "the child's tool call",
  );
  const worker = child.lives[0] as Think;
  const report = (progress: AgentToolProgress, options?: { persist?: boolean }) =>
    worker.reportProgress(progress, options);
  const heard = () => chunksOf(runFrames(client), "data-agent-progress").map(({ data }) => data?.message);
  const finish = async () => {
    gate.open();
    await passUntil(kit.clock, () => client.of("r1").some(({ done }) => done === true), "the end");
  };
  const [run] = await storedRuns(kit);
  return { ...child, kit, client, worker, report, heard, finish, seen, runId: run?.runId ?? "" };
}

test("progress is shown at once, then at most every 200 ms, the last of them; the end of it always", async () => {
  const { kit, report, heard, finish, seen, runId, client } = await working();
  await report({ message: "1", fraction: 0.1 });
  await kit.clock.advance(50);
  await report({ message: "2", fraction: 0.2, phase: "scan", data: { n: 2 } });
  await report({ message: "3" });
  await kit.clock.advance(100);
  expect(heard()).toEqual(["1"]);
  await kit.clock.advance(100);
  await eventually(() => heard().length === 2, "the second report");
  expect(heard()).toEqual(["1", "3"]);
  await report({ message: "4" });
  await report({ message: "5", fraction: 1 });
  await kit.clock.advance(20);
  await eventually(() => heard().length === 3, "the end of it");
  expect(heard()).toEqual(["1", "3", "5"]);
  await kit.clock.advance(1000);
  expect(heard()).toEqual(["1", "3", "5"]);
  expect(seen).toEqual([
    [runId, { message: "1", fraction: 0.1, at: expect.any(Number) as unknown }],
    [runId, { message: "3", at: expect.any(Number) as unknown }],
    [runId, { message: "5", fraction: 1, at: expect.any(Number) as unknown }],
  ]);
  await finish();
  // It takes no number, each has an id of its own, and nobody is told of it again.
  const ids = chunksOf(runFrames(client), "data-agent-progress").map(({ id }) => id);
  expect(new Set(ids).size).toBe(3);
  const stored = runFrames(client).filter(({ event }) => !event.body?.includes("data-agent-progress"));
  expect(stored.map(({ sequence }) => sequence)).toEqual(stored.map((_, i) => i));
  const late = await kit.connect();
  await passUntil(kit.clock, () => runFrames(late).at(-1)?.event.kind === "finished", "the replay");
  expect(chunksOf(runFrames(late), "data-agent-progress")).toEqual([]);
});

test("the last report is kept with the run, its data only on request", async () => {
  const { kit, report, worker, finish, runId } = await working();
  await report({ message: "1", data: { n: 1 } });
  await kit.clock.advance(300);
  expect(worker.inspectAgentToolRun(runId)?.progress).toEqual({ message: "1", at: expect.any(Number) as unknown });
  await report({ message: "2", data: { n: 2 } }, { persist: true });
  await kit.clock.advance(300);
  expect(worker.inspectAgentToolRun(runId)?.progress).toMatchObject({ message: "2", data: { n: 2 } });
  await finish();
  expect(worker.inspectAgentToolRun(runId)?.progress).toMatchObject({ message: "2" });
});

test("milestones are stored, numbered, never held back, and told to everyone who comes", async () => {
  const { kit, client, report, worker, finish, seen, runId } = await working();
  await report({ milestone: "begun" });
  await report({ milestone: "half", fraction: 0.5, message: "Half of it.", phase: "b", data: { pages: 3 } });
  await report({ milestone: "half" });
  await kit.clock.advance(20);
  await eventually(() => chunksOf(runFrames(client), "data-agent-milestone").length === 3, "the milestones");
  const at = kit.clock.now() - 20;
  const half = { name: "half", sequence: 1, at, fraction: 0.5, message: "Half of it.", phase: "b", data: { pages: 3 } };
  const expected = [{ name: "begun", sequence: 0, at }, half, { name: "half", sequence: 2, at }];
  expect(chunksOf(runFrames(client), "data-agent-milestone").map(({ data }) => data)).toEqual(expected);
  expect(seen.map(([, { milestone }]) => milestone)).toEqual(["begun", "half", "half"]);
  expect(seen[1]?.[1]).toEqual({
    milestone: "half",
    at,
    fraction: 0.5,
    message: "Half of it.",
    phase: "b",
    data: { pages: 3 },
  });
  expect(worker.inspectAgentToolRun(runId)).toMatchObject({ milestones: expected, progress: { milestone: "half" } });
  const during = await kit.connect();
  await passUntil(kit.clock, () => chunksOf(runFrames(during), "data-agent-milestone").length === 3, "the replay");
  await finish();
  const late = await kit.connect();
  await passUntil(kit.clock, () => runFrames(late).at(-1)?.event.kind === "finished", "the replay");
  expect(chunksOf(runFrames(late), "data-agent-milestone").map(({ data }) => data)).toEqual(expected);
  // They use up no number.
  const numbered = runFrames(late).filter(({ event }) => !event.body?.includes("data-agent-milestone"));
  expect(numbered.map(({ sequence }) => sequence)).toEqual(numbered.map((_, i) => i));
});

test("milestones that were told are not told again when the child comes back", async () => {
  const { kit, client, report, seen, Researcher, runId, lives } = await working();
  await report({ milestone: "begun" });
  await kit.clock.advance(20);
  (await kit.agent()).abortSubAgent(Researcher, runId);
  await passUntil(kit.clock, () => lives.length === 2, "the next life");
  await kit.clock.advance(1000);
  expect(seen).toHaveLength(1);
  expect(chunksOf(runFrames(client), "data-agent-milestone")).toHaveLength(1);
});

test("reports that make no sense are refused; outside of a run they do nothing", async () => {
  const { kit, report, worker, finish, runId, client } = await working();
  for (const fraction of [-0.1, 1.1, Number.NaN, "0.5" as unknown as number]) {
    await expect(report({ fraction })).rejects.toMatchObject({ code: "bad_input" });
  }
  await expect(report({ milestone: "" })).rejects.toMatchObject({ code: "bad_input" });
  await expect(report({ milestone: "x", data: 1n })).rejects.toMatchObject({ code: "bad_input" });
  await expect(report({ data: () => {} })).rejects.toMatchObject({ code: "bad_input" });
  await finish();
  await report({ message: "late", milestone: "late" });
  await (await kit.agent()).reportProgress({ message: "I am no child." });
  await kit.clock.advance(1000);
  expect(worker.inspectAgentToolRun(runId)?.milestones).toEqual([]);
  expect(chunksOf(runFrames(client), "data-agent-progress")).toEqual([]);
});

test("a report that was held back does not reach a turn of somebody else", async () => {
  const { kit, report, worker, finish, client } = await working();
  await report({ message: "1" });
  await report({ message: "held" });
  await finish();
  const seen: string[] = [];
  const other = worker.chat("Hello.", { onEvent: (json) => void seen.push(json), onDone: () => {} });
  await passUntil(kit.clock, () => seen.some((json) => json.includes('"finish"')), "the other turn");
  await other;
  await kit.clock.advance(1000);
  expect(seen.join()).not.toContain("held");
  expect(chunksOf(runFrames(client), "data-agent-progress").map(({ data }) => data?.message)).toEqual(["1"]);
});
