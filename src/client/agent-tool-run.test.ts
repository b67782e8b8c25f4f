import { expect, test } from "vitest";
import { readAgentToolFrame } from "./agent-tool-frame.ts";
import { groupRuns, nextRun, NO_RUNS, type RunFacts } from "./agent-tool-run.ts";
import type { AgentToolRunState } from "./agent-tool-types.ts";

const NOW = 1000;

/** A run after these events. */
function after(...events: object[]): RunFacts | undefined {
  let run: RunFacts | undefined;
  for (const event of events) run = step(run, event);
  return run;
}

function step(run: RunFacts | undefined, event: object, parentToolCallId?: string): RunFacts | undefined {
  const frame = { type: "agent-tool-event", parentToolCallId, sequence: 1, event: { runId: "r", ...event } };
  const heard = readAgentToolFrame(JSON.stringify(frame));
  if (heard === undefined) throw new Error(`not a frame: ${JSON.stringify(frame)}`);
  const before = JSON.stringify(run);
  const next = nextRun(run, heard, NOW);
  expect(JSON.stringify(run)).toBe(before);
  return next;
}

const started = { kind: "started", agentType: "Researcher", order: 2, inputPreview: { q: 1 }, display: { name: "R" } };
const running = {
  runId: "r",
  agentType: "Researcher",
  order: 2,
  inputPreview: { q: 1 },
  display: { name: "R" },
  status: "running",
  subAgent: { agent: "Researcher", name: "r" },
};
const chunk = (body: object) => ({ kind: "chunk", body: JSON.stringify(body) });
const progress = (data: object) => chunk({ type: "data-agent-progress", id: "p", transient: true, data });
const milestone = (data: object) => chunk({ type: "data-agent-milestone", data });
const interrupted = { kind: "interrupted", error: "silent", reason: "no-progress", childStillRunning: true };

test("started makes a run; nothing else does", () => {
  expect(after(started)).toEqual(running);
  expect(after({ kind: "started", agentType: "R" })).toEqual({
    runId: "r",
    agentType: "R",
    order: 0,
    status: "running",
    subAgent: { agent: "R", name: "r" },
  });
  expect(step(undefined, started, "call")).toEqual({ ...running, parentToolCallId: "call" });
  for (const event of [
    chunk({ type: "start" }),
    { kind: "finished" },
    { kind: "error" },
    { kind: "aborted" },
    interrupted,
  ])
    expect(after(event)).toBeUndefined();
});

test("each way to end", () => {
  expect(after(started, { kind: "finished", summary: "3 sources" })).toEqual({
    ...running,
    status: "completed",
    summary: "3 sources",
  });
  expect(after(started, { kind: "error", error: "boom" })).toEqual({ ...running, status: "error", error: "boom" });
  expect(after(started, { kind: "aborted", reason: "enough" })).toEqual({
    ...running,
    status: "aborted",
    error: "enough",
  });
  expect(after(started, { kind: "aborted" })).toEqual({ ...running, status: "aborted" });
  expect(after(started, interrupted)).toEqual({
    ...running,
    status: "interrupted",
    error: "silent",
    reason: "no-progress",
    childStillRunning: true,
  });
});

test("started again: news for a run under way, nothing for one that ended", () => {
  const before = after(started, progress({ fraction: 0.5 }), milestone({ name: "a", sequence: 0, at: 1 }));
  expect(step(before, { ...started, order: 5, display: undefined })).toEqual({
    ...before,
    order: 5,
    display: undefined,
  });
  for (const end of [{ kind: "finished" }, { kind: "error" }, { kind: "aborted" }, interrupted]) {
    const ended = after(started, end);
    expect(step(ended, { ...started, order: 5 })).toBe(ended);
  }
});

test("a run that was given up may still finish, and then nothing is left of that", () => {
  expect(after(started, interrupted, { kind: "finished", summary: "late" })).toEqual({
    ...running,
    status: "completed",
    summary: "late",
  });
  expect(
    after(started, interrupted, { ...interrupted, reason: "budget-exceeded", childStillRunning: undefined }),
  ).toEqual({
    ...running,
    status: "interrupted",
    error: "silent",
    reason: "budget-exceeded",
  });
});

test("progress: the last word counts, and only what it says", () => {
  expect(after(started, progress({ fraction: 0.5, message: "half", phase: "scan", data: { n: 1 } }))?.progress).toEqual(
    {
      fraction: 0.5,
      message: "half",
      phase: "scan",
      data: { n: 1 },
      at: NOW,
    },
  );
  expect(
    after(started, progress({ fraction: 0.5 }), progress({ fraction: "x", message: 1, phase: "b" }))?.progress,
  ).toEqual({ phase: "b", at: NOW });
  expect(after(started, chunk({ type: "data-agent-progress", id: "p" }))?.progress).toBeUndefined();
});

test("milestones: in their order, each once, and as progress unless that is newer", () => {
  const late = milestone({ name: "late", sequence: 2, at: 30, fraction: 0.9, data: "d" });
  const early = milestone({ name: "early", sequence: 1, at: 20, phase: "p" });
  const run = after(started, late, early, milestone({ name: "again", sequence: 2, at: 40 }));
  expect(run?.milestones).toEqual([
    { name: "early", sequence: 1, at: 20 },
    { name: "late", sequence: 2, at: 30, data: "d" },
  ]);
  expect(run?.progress).toEqual({ fraction: 0.9, milestone: "late", at: 30 });
  expect(after(started, early, late)?.progress).toEqual({ fraction: 0.9, milestone: "late", at: 30 });
  expect(after(started, progress({ fraction: 0.1 }), late)?.progress).toEqual({ fraction: 0.1, at: NOW });
  // Without its number and time it is the first, now.
  expect(after(started, milestone({ name: "bare" }))?.milestones).toEqual([{ name: "bare", sequence: 0, at: NOW }]);
  const before = after(started);
  expect(step(before, milestone({ sequence: 1 }))).toBe(before);
});

test("a chunk of the answer says nothing of the run itself", () => {
  const before = after(started);
  expect(step(before, chunk({ type: "text-delta", id: "t", delta: "x" }))).toBe(before);
});

function run(runId: string, order: number, parentToolCallId?: string): AgentToolRunState {
  const subAgent = { agent: "R", name: runId };
  return { runId, agentType: "R", order, status: "running", parts: [], subAgent, parentToolCallId };
}

test("runs are grouped by their call, by order and then by id", () => {
  const runs = [run("b", 1, "x"), run("a", 1, "x"), run("c", 0, "x"), run("d", 0, "y"), run("f", 1), run("e", 1, "")];
  const [b, a, c, d, f, e] = runs;
  expect(groupRuns(runs, NO_RUNS)).toEqual({
    runsById: { a, b, c, d, e, f },
    runsByToolCallId: { x: [c, a, b], y: [d] },
    unboundRuns: [e, f],
  });
});

test("lists that stay the same are the same", () => {
  const [a, b, c] = [run("a", 0, "x"), run("b", 0, "y"), run("c", 0)] as const;
  const before = groupRuns([a, b, c], NO_RUNS);
  const next = groupRuns([a, { ...b, status: "completed" }, c], before);
  expect(next.runsByToolCallId.x).toBe(before.runsByToolCallId.x);
  expect(next.unboundRuns).toBe(before.unboundRuns);
  expect(next.runsByToolCallId.y).not.toBe(before.runsByToolCallId.y);
  expect(groupRuns([a], next).runsByToolCallId).toEqual({ x: [a] });
});

test("ids that are names of every object are ids", () => {
  const state = groupRuns([run("__proto__", 0, "toString"), run("constructor", 0, "__proto__")], NO_RUNS);
  expect(Object.keys(state.runsById)).toEqual(["__proto__", "constructor"]);
  expect(Object.keys(state.runsByToolCallId)).toEqual(["toString", "__proto__"]);
});
