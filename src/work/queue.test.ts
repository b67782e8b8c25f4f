import { expect, test } from "vitest";
import type { QueueRun } from "./queue.ts";
import {
  createWorld,
  deferred,
  killAtEveryCommit,
  type Life,
  openLife,
  type World,
} from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const methods = (life: Life) => ({
  note: (payload: unknown) => life.effect(payload),
  later: async (payload: unknown) => {
    await Promise.resolve();
    life.effect(payload);
  },
  boom: (payload: unknown) => {
    life.effect(payload);
    throw new Error("boom");
  },
});
const rows = (world: World) => world.db.prepare("SELECT id, status FROM perdure_queue ORDER BY seq").all();

test("runs at once, one after the other, in the order of queueing", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({
    ...methods(one),
    slow: async (payload: string) => {
      one.effect(`${payload} began`);
      await gate.promise;
      one.effect(`${payload} ended`);
    },
  }));
  await life.queue.queue("slow", "a");
  await life.queue.queue("note", "b");
  await life.queue.queue("later", "c");
  await life.settle();
  expect(world.effects).toEqual(["a began"]);
  expect(life.queue.listQueue().map((item) => item.status)).toEqual(["running", "pending", "pending"]);
  expect(world.busy).toBe(true);
  gate.resolve();
  await life.settle();
  expect(world.effects).toEqual(["a began", "a ended", "b", "c"]);
  expect(life.queue.listQueue()).toEqual([]);
  expect(world.busy).toBe(false);
  expect(world.alarm).toBeNull();
});

test("the callback gets its item, a stable key and the number of the try", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    look: (payload: unknown, run: QueueRun) => {
      one.effect(run);
      if (run.attempt === 1) throw new Error("once more");
      expect(payload).toEqual({ n: 1 });
    },
  }));
  const id = await life.queue.queue("look", { n: 1 });
  await life.advance(MINUTE);
  const [first, second] = world.effects as QueueRun[];
  expect(first).toMatchObject({ id, callback: "look", payload: { n: 1 }, attempt: 1, createdAt: world.start / SECOND });
  expect(second).toMatchObject({ attempt: 2, occurrence: first?.occurrence });
});

test("nothing starts inside of the transaction that queues it, and nothing of one that is undone", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const { host } = life.context;
  host.tx(() => {
    life.queue.add("note", "kept");
    expect(world.effects).toEqual([]);
  });
  expect(() =>
    host.tx(() => {
      life.queue.add("note", "undone");
      throw new Error("undo");
    }),
  ).toThrow("undo");
  await life.settle();
  expect(world.effects).toEqual(["kept"]);
});

test("the same id replaces an item that waits, in its place", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({ ...methods(one), slow: () => gate.promise }));
  await life.queue.queue("slow");
  await life.queue.queue("note", "old", { id: "x" });
  await life.queue.queue("note", "between");
  await life.queue.queue("note", "new", { id: "x" });
  expect(life.queue.getQueue("x")?.payload).toBe("new");
  gate.resolve();
  await life.settle();
  expect(world.effects).toEqual(["new", "between"]);
});

test("the same id as an item that runs waits behind it, and supersedes its retries", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({
    work: async (payload: unknown) => {
      one.effect(payload);
      if (payload === "first") await gate.promise;
    },
  }));
  await life.queue.queue("work", "first", { id: "x" });
  await life.settle();
  await life.queue.queue("work", "second", { id: "x" });
  expect(rows(world)).toEqual([
    { id: "x", status: "running" },
    { id: "x", status: "pending" },
  ]);
  gate.reject(new Error("failed late"));
  await life.advance(MINUTE);
  expect(world.effects).toEqual(["first", "second"]);
  expect(rows(world)).toEqual([]);
});

test("dequeue removes one, all, or all of one method", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({ ...methods(one), slow: () => gate.promise }));
  const { queue } = life;
  await queue.queue("slow");
  await life.settle();
  const a = await queue.queue("note", "a");
  await queue.queue("note", "b");
  await queue.queue("later", "c");
  expect(await queue.dequeue(a)).toBe(true);
  expect(await queue.dequeue(a)).toBe(false);
  expect(await queue.dequeueAllByCallback("note")).toBe(1);
  expect(queue.listQueue().map((item) => item.callback)).toEqual(["slow", "later"]);
  expect(await queue.dequeueAll()).toBe(2);
  gate.resolve();
  await life.settle();
  expect(world.effects).toEqual([]);
  await queue.queue("note", "d");
  await life.settle();
  expect(world.effects).toEqual(["d"]);
});

test("finds items by a field of their payload", async () => {
  const life = openLife(createWorld(), (one) => ({ ...methods(one), slow: () => new Promise(() => undefined) }));
  const { queue } = life;
  await queue.queue("slow", { user: "ann", n: 1 });
  await queue.queue("note", { user: "bob", "odd \"key'": true });
  await queue.queue("note", "text");
  await queue.queue("note");
  const found = (key: string, value: string) => queue.getQueues(key, value).map((item) => item.callback);
  expect(found("user", "ann")).toEqual(["slow"]);
  expect(found("n", "1")).toEqual(["slow"]);
  expect(found("odd \"key'", "true")).toEqual(["note"]);
  expect(found("user", "nobody")).toEqual([]);
});

test("an item whose tries are used up stays as failed and lets the next pass", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const id = await life.queue.queue("boom", "bad", { retry: { maxAttempts: 2 } });
  await life.queue.queue("note", "next");
  await life.advance(MINUTE);
  expect(world.effects).toEqual(["bad", "bad", "next"]);
  expect(life.queue.getQueue(id)).toMatchObject({ status: "failed", error: "boom", payload: "bad" });
  expect(life.queue.listQueue()).toEqual([]);
  expect(life.queue.listQueue({ status: "failed" })).toHaveLength(1);
  expect(await life.queue.dequeueAll()).toBe(0);
  expect(await life.queue.dequeue(id)).toBe(true);
});

test("an item in its back-off holds up the rest, also in the next life", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const retry = { maxAttempts: 2, baseDelayMs: MINUTE, maxDelayMs: MINUTE };
  await life.queue.queue("boom", "bad", { retry });
  await life.queue.queue("note", "next");
  await life.settle();
  expect(world.effects).toEqual(["bad"]);
  const wait = world.alarm;
  life.kill();
  const later = openLife(world, methods);
  expect(later.queue.next()).toBe(wait);
  await later.advance(MINUTE);
  expect(world.effects).toEqual(["bad", "bad", "next"]);
});

test("removing an item in its back-off lets the next one start", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const id = await life.queue.queue("boom", "bad", { retry: { baseDelayMs: MINUTE, maxDelayMs: MINUTE } });
  await life.queue.queue("note", "next");
  await life.settle();
  await life.queue.dequeue(id);
  await life.settle();
  expect(world.effects).toEqual(["bad", "next"]);
});

test("a method that is gone after a deploy is a clear failure, not a lost row", async () => {
  const world = createWorld();
  const life = openLife(world, () => ({ slow: () => new Promise(() => undefined) }));
  const id = await life.queue.queue("slow");
  await life.settle();
  life.kill();
  const later = openLife(world, () => ({}));
  await later.advance(MINUTE);
  expect(later.queue.getQueue(id)).toMatchObject({ status: "failed", error: expect.stringContaining('"slow"') });
});

test("failed items are bounded", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  for (let i = 0; i < 1005; i++) life.queue.add("boom", i, { retry: { maxAttempts: 1 } });
  await life.settle();
  const failed = life.queue.listQueue({ status: "failed" });
  expect(failed).toHaveLength(1000);
  expect(failed[0]?.payload).toBe(5);
});

test("refuses bad methods, ids, payloads and retries, and stores nothing", async () => {
  const world = createWorld();
  const { queue } = openLife(world, methods);
  const refused = (code: string) => expect.objectContaining({ code });
  await expect(queue.queue("nothing")).rejects.toThrow(refused("not_found"));
  await expect(queue.queue("note", 1, { id: "" })).rejects.toThrow(refused("bad_input"));
  await expect(queue.queue("note", 1n)).rejects.toThrow(refused("bad_input"));
  await expect(queue.queue("note", 1, { retry: { baseDelayMs: 9, maxDelayMs: 1 } })).rejects.toThrow(
    refused("bad_config"),
  );
  expect(rows(world)).toEqual([]);
});

test("a long queue of plain callbacks drains", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  for (let i = 0; i < 500; i++) life.queue.add("note", i);
  await life.settle();
  expect(world.effects).toHaveLength(500);
});

test.each(["note", "later"])(
  "killed between any two commits, accepted items all run, in order (%s)",
  async (callback) => {
    await killAtEveryCommit({
      first: async (world, die) => {
        const life = openLife(world, methods);
        for (const item of ["a", "b", "c"]) life.queue.add(callback, item);
        die();
        await life.settle();
        return life;
      },
      later: (world) => openLife(world, methods).settle(),
      check: (world) => {
        // One item may have run twice: the one whose end was not stored. Never out of order.
        const once = world.effects.filter((effect, i) => effect !== world.effects[i - 1]);
        expect(once).toEqual(["a", "b", "c"]);
        expect(world.effects.length).toBeLessThanOrEqual(4);
        expect(rows(world)).toEqual([]);
      },
    });
  },
);

test("an item that kills the process is given up after ten times", async () => {
  const world = createWorld();
  let kills = 0;
  const deadly = (life: Life) => ({
    ...methods(life),
    deadly: () => {
      kills++;
      life.kill();
    },
  });
  let life = openLife(world, deadly);
  const id = await life.queue.queue("deadly");
  await life.queue.queue("note", "next").catch(() => undefined);
  for (let lives = 0; lives < 12; lives++) {
    await life.settle();
    life = openLife(world, deadly);
  }
  await life.settle();
  expect(kills).toBe(10);
  expect(life.queue.getQueue(id)).toMatchObject({ status: "failed", error: expect.stringContaining("10 times") });
});
