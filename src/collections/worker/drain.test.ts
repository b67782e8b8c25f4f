import { expect, test } from "vitest";
import { PerdureError } from "../../base/error.ts";
import { openLocalLog } from "../log/local-log.ts";
import { checkpointsOf, producerOf, sameSource } from "./checkpoint.ts";
import { drainUntilIdle } from "./drain.ts";

/** Work that is a list. */
function pile(...items: string[]) {
  const done: string[] = [];
  return {
    items,
    done,
    hasPendingWork: async () => items.length > 0,
    runCycle: async () => {
      const item = items[0];
      if (item?.startsWith("bad") === true) throw new Error(item);
      if (item !== undefined) done.push(item);
      items.shift();
    },
  };
}

test("requirement: Runner lifecycle primitives: it works until nothing is left", async () => {
  const work = pile("a", "b", "c");
  expect(await drainUntilIdle(work)).toEqual({ completed: true, cycles: 3 });
  expect(work.done).toEqual(["a", "b", "c"]);
  expect(await drainUntilIdle(work)).toEqual({ completed: true, cycles: 0 });
});

test("invariant 9: completed only when nothing is pending at the end", async () => {
  expect(await drainUntilIdle({ ...pile("a", "b", "c"), maxIterations: 2 })).toEqual({ completed: false, cycles: 2 });
  expect(await drainUntilIdle({ ...pile("a", "b"), maxIterations: 2 })).toEqual({ completed: true, cycles: 2 });
  expect(await drainUntilIdle({ ...pile("a", "b"), maxDurationMs: 0 })).toEqual({ completed: false, cycles: 0 });
  const stop = new AbortController();
  const work = pile("a", "b");
  const stopping = { ...work, runCycle: async () => (stop.abort(), work.runCycle()), signal: stop.signal };
  expect(await drainUntilIdle(stopping)).toEqual({ completed: false, cycles: 1 });
  // Work that never gets less ends at the limit.
  const stuck = { hasPendingWork: async () => true, runCycle: async () => {} };
  expect(await drainUntilIdle(stuck)).toEqual({ completed: false, cycles: 50 });
});

test("a cycle that fails is tried again; one that always fails ends the drain", async () => {
  const work = pile("a");
  let failures = 2;
  const flaky = {
    ...work,
    retryDelayMs: 1,
    runCycle: async () => {
      if (failures-- > 0) throw new Error("busy");
      await work.runCycle();
    },
  };
  expect(await drainUntilIdle(flaky)).toEqual({ completed: true, cycles: 3 });
  await expect(drainUntilIdle({ ...pile("bad one"), maxFailures: 2, retryDelayMs: 1 })).rejects.toThrow("bad one");
  let calls = 0;
  const fenced = async () => {
    calls++;
    throw new PerdureError("fenced", "Gone.");
  };
  await expect(drainUntilIdle({ ...pile("a"), runCycle: fenced })).rejects.toMatchObject({ code: "fenced" });
  expect(calls).toBe(1);
});

test("a checkpoint is what was read before the look that found nothing", async () => {
  const work = pile("a", "b");
  let position = 0;
  const sent: string[] = [];
  const options = {
    ...work,
    // More arrives right behind the look.
    hasPendingWork: async () => {
      const pending = work.items.length > 0;
      position++;
      return pending;
    },
    buildCheckpoint: async () => [{ source: "s", cursor: String(position) }],
    lifecycle: { checkpoint: async (rows: { cursor: string }[]) => void sent.push(rows[0]!.cursor) },
  };
  await drainUntilIdle(options);
  expect(sent).toEqual(["2"]);
});

test("with exact checkpoints each cycle sends one; a drain that is cut short has sent what it consumed", async () => {
  const work = pile("a", "b", "c");
  const sent: string[] = [];
  let beats = 0;
  const outcome = await drainUntilIdle({
    ...work,
    maxIterations: 2,
    checkpointAt: "cycle",
    buildCheckpoint: async () => (work.done.length === 0 ? [] : [{ source: "s", cursor: String(work.done.length) }]),
    lifecycle: {
      checkpoint: async (rows) => void sent.push(...rows.map(({ cursor }) => cursor)),
      heartbeat: async () => {
        if (++beats === 1) throw new Error("no network");
      },
    },
  });
  expect(outcome).toEqual({ completed: false, cycles: 2 });
  expect(sent).toEqual(["1", "2"]);
  expect(beats).toBe(2);
});

test("the checkpoint of a log covers what was written here", async () => {
  const log = openLocalLog({ name: "queue" });
  const { position } = await log.write({ changes: [{ table: "t", key: "a", operation: "insert", value: {} }] });
  expect(await checkpointsOf(log)).toEqual([{ source: "queue", cursor: position }]);
});

test("a session's writer has the session's fence as its epoch", () => {
  expect(producerOf("agent", { fenceToken: "12" })).toEqual({ id: "agent", epoch: 12 });
  expect(() => producerOf("agent", {})).toThrow(PerdureError);
  expect(() => producerOf("agent", { fenceToken: "abc" })).toThrow("fence token");
});

test.each([
  ["chat/1", "http://x:1/v1/stream/chat/1", true],
  ["/chat/1/", "chat/1", true],
  ["chat/ä", "http://x/v1/stream/chat/%C3%A4", true],
  ["1", "http://x:1/v1/stream/chat/1", false],
  ["hat/1", "http://x:1/v1/stream/chat/1", false],
  ["chat/1", "chat/2", false],
])("%s is the source %s: %s", (path, source, same) => {
  expect(sameSource(path, source)).toBe(same);
});
