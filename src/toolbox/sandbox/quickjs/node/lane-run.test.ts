import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test } from "vitest";
import { resolveLimits } from "../../limits.ts";
import type { ToLane } from "../message.ts";
import { type Lane, type LaneEvents, LanePool } from "../../lane-pool.ts";
import { runInLane, type LaneRunEnd } from "./lane-run.ts";

const current = new AsyncLocalStorage<string>();
const outside = AsyncLocalStorage.snapshot();
const seen = () => (current.getStore() === undefined ? [] : [current.getStore()]);

/** A lane that says what a test tells it to: what an engine could say that was taken over by its guest. */
async function withLane(say: (tell: (message: unknown) => void, task: ToLane & { run: number }) => void) {
  let killed = 0;
  const open = (events: LaneEvents): Lane<ToLane> => {
    queueMicrotask(() => events.message({ type: "ready" }));
    return {
      post: (message) => {
        if (message.type === "start") queueMicrotask(() => say((told) => events.message(told), message));
      },
      kill: async () => void (killed += 1),
      hold: () => undefined,
    };
  };
  const pool = new LanePool({ max: 1, warm: 0, idleMs: 10, runsPerLane: 10, open });
  const called: unknown[] = [];
  // Before whoever runs something in it: lanes are lent to one after the other.
  const lent = await outside(() => pool.acquire(undefined, undefined));
  const end: LaneRunEnd = await runInLane(pool, lent, {
    job: {
      type: "start",
      language: "js",
      code: "",
      input: "null",
      modules: {},
      keep: false,
      world: { tools: {}, files: null, network: false, env: null },
    },
    functions: { tools: { act: (args) => void called.push(args, ...seen()) } },
    limits: resolveLimits({ wallMs: 100, outputBytes: 100, toolCalls: 2, toolBytes: 50 }),
    used: { cpuMs: 0, toolCalls: 0, outputBytes: 0 },
    nextCall: 0,
    parked: new Map(),
    mayPark: true,
    signal: undefined,
    onLog: undefined,
  });
  return { end, killed, called };
}

const call = (run: number, number: number, more: object = {}) => ({
  type: "call",
  run,
  call: number,
  namespace: "tools",
  name: "act",
  args: "1",
  ...more,
});

test.each<[string, (run: number) => unknown]>([
  ["nothing", () => undefined],
  ["a text", () => "done"],
  ["an unknown type", (run) => ({ type: "format-disk", run })],
  ["no run", () => ({ type: "rest" })],
  ["a call out of turn", (run) => call(run, 7)],
  ["a call with a negative number", (run) => call(run, -1)],
  ["a call with a number that is a text", (run) => call(run, "0" as unknown as number)],
  ["a call whose arguments are no text", (run) => call(run, 0, { args: { evil: 1 } })],
  ["a call whose arguments are no JSON", (run) => call(run, 0, { args: "{" })],
  ["a call whose arguments are too large", (run) => call(run, 0, { args: JSON.stringify("x".repeat(99)) })],
  ["a call of a namespace that is no text", (run) => call(run, 0, { namespace: ["tools"] })],
  ["logs that are no list", (run) => ({ type: "logs", run, lines: {} })],
  ["a level that is none", (run) => ({ type: "logs", run, lines: [{ level: "root", text: "x" }] })],
  ["a line that is no text", (run) => ({ type: "logs", run, lines: [{ level: "log", text: {} }] })],
  ["more output than is allowed", (run) => ({ type: "logs", run, lines: [{ level: "log", text: "x".repeat(200) }] })],
  ["an outcome that is none", (run) => ({ type: "done", run, outcome: { status: "root" }, cpuMs: 0, memoryBytes: 0 })],
  [
    "a limit that is none",
    (run) => ({ type: "done", run, outcome: { status: "limit", limit: "sky", message: "" }, cpuMs: 0, memoryBytes: 0 }),
  ],
  [
    "a value that is no text",
    (run) => ({ type: "done", run, outcome: { status: "ok", value: {} }, cpuMs: 0, memoryBytes: 0 }),
  ],
  [
    "a value that is too large",
    (run) => ({
      type: "done",
      run,
      outcome: { status: "ok", value: JSON.stringify("x".repeat(200)) },
      cpuMs: 0,
      memoryBytes: 0,
    }),
  ],
  [
    "a time that is none",
    (run) => ({ type: "done", run, outcome: { status: "aborted" }, cpuMs: Number.NaN, memoryBytes: 0 }),
  ],
  [
    "a park without a parked call",
    (run) => ({ type: "done", run, outcome: { status: "suspended" }, cpuMs: 0, memoryBytes: 0 }),
  ],
  ["an image that is none", (run) => ({ type: "image", run, image: { bytes: "x", meta: "" } })],
])("a lane that says %s is ended, and the run has crashed", async (_name, message) => {
  const { end, killed, called } = await withLane((tell, task) => tell(message(task.run)));
  expect(end.outcome).toMatchObject({ status: "crashed" });
  expect(killed).toBe(1);
  expect(called).toEqual([]);
});

test("more calls than are allowed end the lane, whatever it says of its limits", async () => {
  const { end, called } = await withLane((tell, { run }) => [0, 1, 2].forEach((number) => tell(call(run, number))));
  expect(end.outcome).toMatchObject({ status: "crashed" });
  expect(called.length).toBeLessThanOrEqual(2);
});

test("the same call twice ends the lane", async () => {
  const { end } = await withLane((tell, { run }) => [0, 0].forEach((number) => tell(call(run, number))));
  expect(end.outcome).toMatchObject({ status: "crashed" });
});

test("what is said for another run is nobody's", async () => {
  const { end, called } = await withLane((tell, { run }) => {
    tell(call(run + 1, 0));
    tell({ type: "done", run: run + 1, outcome: { status: "ok", value: '"forged"' }, cpuMs: 0, memoryBytes: 0 });
    tell({ type: "done", run, outcome: { status: "ok", value: '"own"' }, cpuMs: 0, memoryBytes: 0 });
  });
  expect(end.outcome).toEqual({ status: "ok", value: '"own"' });
  expect(called).toEqual([]);
});

test("a function that is not there is an answer, not the end", async () => {
  const { end, called } = await withLane((tell, { run }) => {
    tell(call(run, 0, { name: "constructor" }));
    tell(call(run, 1, { namespace: "__proto__" }));
    tell({ type: "done", run, outcome: { status: "ok", value: "1" }, cpuMs: 0, memoryBytes: 0 });
  });
  expect(end.outcome).toEqual({ status: "ok", value: "1" });
  expect(called).toEqual([]);
});

test("a lane that begins again and again gets no more time", async () => {
  const { end, killed } = await withLane((tell, { run }) => {
    const again = setInterval(() => tell({ type: "begun", run }), 20);
    setTimeout(() => clearInterval(again), 600);
  });
  expect(end.outcome).toMatchObject({ status: "limit", limit: "wall" });
  expect(killed).toBe(1);
});

test("what the guest calls runs for whoever has it run, whoever had the lane made", async () => {
  const { called } = await current.run("turn B", () =>
    withLane((tell, { run }) => {
      // As a thread's listener does: in the context of who made the lane.
      outside(() => tell(call(run, 0)));
      setTimeout(() => outside(() => tell("the end")), 1);
    }),
  );
  expect(called).toEqual([1, "turn B"]);
});
