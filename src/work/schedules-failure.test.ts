import { expect, test } from "vitest";
import type { ScheduleRun } from "./schedules.ts";
import { createWorld, deferred, killAtEveryCommit, type Life, openLife } from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const methods = (life: Life) => ({
  note: (payload: unknown) => life.effect(payload),
  boom: () => {
    throw new Error("boom");
  },
});

test("what is undone with the caller's transaction leaves the alarm and the taking over as they were", async () => {
  const world = createWorld();
  const undo = (life: Life, work: () => void) =>
    expect(() =>
      life.context.host.tx(() => {
        work();
        throw new Error("undo");
      }),
    ).toThrow("undo");
  const life = openLife(world, (one) => ({ ...methods(one), stuck: () => new Promise(() => undefined) }));
  const { id } = await life.schedules.schedule(60, "note", "kept");
  undo(life, () => life.schedules.remove(id));
  expect(world.alarm).toBe(world.start + MINUTE);
  undo(life, () => life.schedules.add(1, "note", "undone"));
  expect(world.alarm).toBe(world.start + MINUTE);
  await life.schedules.schedule(60, "stuck");
  await life.advance(MINUTE);
  expect(world.effects).toEqual(["kept"]);
  life.kill();
  // The first thing that the next life does with schedules is undone.
  const stuck = (one: Life) => ({ ...methods(one), stuck: () => one.effect("again") });
  const later = openLife(world, stuck, { asleep: true });
  undo(later, () => later.schedules.add(1, "note"));
  later.schedules.runDue();
  expect(world.effects).toEqual(["kept", "again"]);
});

test("a throw undoes the writes of a plain callback, and is tried again under the same occurrence", async () => {
  const world = createWorld();
  world.db.exec("CREATE TABLE made (n INTEGER)");
  let tries = 0;
  const life = openLife(world, (one) => ({
    make: (_: unknown, run: ScheduleRun) => {
      one.context.host.sql("INSERT INTO made VALUES (1)");
      one.schedules.add(1, "after");
      one.effect([run.occurrence, run.attempt]);
      if (++tries < 3) throw new Error("not yet");
    },
    after: () => one.effect("after"),
  }));
  const { id } = await life.schedules.schedule(1, "make");
  await life.advance(MINUTE);
  const occurrence = `${id}:${world.start + SECOND}`;
  expect(world.effects).toEqual([[occurrence, 1], [occurrence, 2], [occurrence, 3], "after"]);
  expect(world.db.prepare("SELECT count(*) AS n FROM made").get()).toEqual({ n: 1 });
  expect(world.events.filter((event) => event.type === "schedule:ran").map((event) => event.payload.ok)).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

test("the back-off is stored: a new life waits for the rest of it", async () => {
  const world = createWorld();
  const retry = { maxAttempts: 2, baseDelayMs: HOUR, maxDelayMs: HOUR };
  const life = openLife(world, methods);
  const { id } = await life.schedules.schedule(0, "boom", undefined, { retry });
  await life.settle();
  const waiting = life.schedules.getScheduleById(id);
  expect(waiting).toMatchObject({ status: "pending", error: "boom", retry });
  life.kill();
  const later = openLife(world, methods);
  expect(later.schedules.next()).toBe(waiting?.at);
  await later.advance(HOUR);
  expect(later.schedules.getScheduleById(id)?.status).toBe("failed");
});

test("a one-shot whose tries are used up stays as failed, and can be cleared", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const { id } = await life.schedules.schedule(1, "boom");
  await life.advance(MINUTE);
  expect(life.schedules.listSchedules({ status: "failed" })).toMatchObject([{ id, error: "boom", status: "failed" }]);
  expect(life.schedules.next()).toBeNull();
  expect(await life.schedules.cancelSchedule(id)).toBe(true);
});

test("a recurring one whose occurrence fails says so and goes on with the next", async () => {
  const world = createWorld();
  let broken = true;
  const life = openLife(world, (one) => ({
    tick: () => {
      if (broken) throw new Error("broken");
      one.effect("tick");
    },
  }));
  const { id } = await life.schedules.scheduleEvery(60, "tick");
  await life.advance(90 * SECOND);
  expect(life.schedules.getScheduleById(id)).toMatchObject({
    status: "pending",
    error: "broken",
    time: (world.start + 2 * MINUTE) / SECOND,
  });
  broken = false;
  await life.advance(MINUTE);
  expect(world.effects).toEqual(["tick"]);
  expect(life.schedules.getScheduleById(id)?.error).toBeUndefined();
});

test("a method that is gone after a deploy is a clear failure, not a lost row", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const { id } = await life.schedules.schedule(60, "note");
  life.kill();
  const later = openLife(world, () => ({}));
  await later.advance(2 * MINUTE);
  expect(later.schedules.getScheduleById(id)).toMatchObject({
    status: "failed",
    error: expect.stringContaining('"note"'),
  });
});

test("failed rows are bounded, and the newest stay", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const retry = { maxAttempts: 1 };
  const oldest = life.schedules.add(0, "boom", "oldest", { retry });
  await life.settle();
  world.now += SECOND;
  // Made first, fails last.
  const last = life.schedules.add(10, "boom", "last", { retry });
  for (let i = 0; i < 1000; i++) life.schedules.add(0, "boom", i, { retry });
  await life.advance(MINUTE);
  const failed = life.schedules.listSchedules({ status: "failed" });
  expect(failed).toHaveLength(1000);
  expect(failed.some((one) => one.id === oldest.id)).toBe(false);
  expect(failed.some((one) => one.id === last.id)).toBe(true);
});

test("starts nothing while the host stops; the next life does", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  await life.schedules.schedule(1, "note", "later");
  life.stopping = true;
  world.now += SECOND;
  life.schedules.runDue();
  expect(world.effects).toEqual([]);
  expect(world.alarm).toBe(world.start + SECOND);
  await openLife(world, methods).settle();
  expect(world.effects).toEqual(["later"]);
});

test("while the host stops, the end of a run is stored and the agent is no longer busy", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, () => ({ slow: () => gate.promise }));
  await life.schedules.schedule(1, "slow");
  await life.advance(SECOND);
  expect(world.busy).toBe(true);
  life.stopping = true;
  gate.resolve();
  await life.settle();
  expect(world.busy).toBe(false);
  expect(life.schedules.listSchedules()).toEqual([]);
});

test("a run of an earlier life that was never halted cannot settle the run of a later one", async () => {
  const world = createWorld();
  const [old, young] = [deferred(), deferred()];
  const zombie = openLife(world, () => ({ slow: () => old.promise }));
  const { id } = await zombie.schedules.schedule(1, "slow");
  await zombie.advance(SECOND);
  const life = openLife(world, () => ({ slow: () => young.promise }));
  await life.settle();
  old.resolve();
  await life.settle();
  expect(life.schedules.getScheduleById(id)?.status).toBe("running");
  young.resolve();
  await life.settle();
  expect(life.schedules.getScheduleById(id)).toBeUndefined();
});

test("after a halt nothing is written", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, () => ({ slow: () => gate.promise }));
  const { id } = await life.schedules.schedule(1, "slow");
  await life.advance(SECOND);
  life.schedules.halt("destroyed");
  gate.resolve();
  await life.settle();
  expect(life.schedules.getScheduleById(id)?.status).toBe("running");
  expect(life.schedules.active()).toBe(false);
});

test("a full disk delays the end of a run, and does not lose it or spin", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({
    slow: async () => {
      await gate.promise;
      one.effect("slow");
    },
    note: (what: unknown) => one.effect(what),
  }));
  await life.schedules.schedule(1, "slow");
  await life.schedules.schedule(2, "note", "note");
  await life.advance(SECOND);
  world.full = true;
  gate.resolve();
  await life.advance(5 * SECOND);
  expect(world.events.some((event) => event.type === "agent:failed")).toBe(true);
  expect(world.effects).toEqual(["slow"]);
  world.full = false;
  await life.advance(5 * SECOND);
  expect(world.effects).toEqual(["slow", "note"]);
  expect(life.schedules.listSchedules()).toEqual([]);
});

test("killed between any two commits, a plain callback takes effect exactly once", async () => {
  const create = () => {
    const world = createWorld();
    world.db.exec("CREATE TABLE made (n INTEGER)");
    return world;
  };
  const make = (life: Life) => ({ make: () => void life.context.host.sql("INSERT INTO made VALUES (1)") });
  const commits = await killAtEveryCommit({
    create,
    first: async (world, die) => {
      const life = openLife(world, make);
      die();
      void life.schedules.schedule(1, "make").then(
        () => life.effect("accepted"),
        () => undefined,
      );
      await life.advance(2 * SECOND);
      return life;
    },
    later: (world) => openLife(world, make).advance(SECOND),
    check: (world) => {
      const { n } = world.db.prepare("SELECT count(*) AS n FROM made").get() as { n: number };
      // Not acknowledged: it may or may not be there. Acknowledged: once.
      const allowed = world.effects.includes("accepted") ? [1] : [0, 1];
      expect(allowed).toContain(n);
    },
  });
  expect(commits).toBe(4);
});

test("killed between any two commits, a callback with a promise runs at least once, under one occurrence", async () => {
  const make = (life: Life) => ({
    work: async (_: unknown, run: ScheduleRun) => {
      life.effect(["began", run.occurrence]);
      await Promise.resolve();
      life.effect(["ended", run.occurrence]);
    },
  });
  await killAtEveryCommit({
    first: async (world, die) => {
      const life = openLife(world, make);
      await life.schedules.schedule(10, "work");
      die();
      await life.advance(10 * SECOND);
      return life;
    },
    later: (world) => openLife(world, make).settle(),
    check: (world) => {
      const id = (world.effects[0] as [string, string] | undefined)?.[1];
      expect(world.effects).toContainEqual(["ended", id]);
      expect(new Set(world.effects.map((effect) => (effect as [string, string])[1])).size).toBe(1);
      expect(world.db.prepare("SELECT * FROM perdure_schedule").all()).toEqual([]);
    },
  });
});

test("a callback that kills the process is given up after ten times", async () => {
  const world = createWorld();
  let kills = 0;
  const deadly = (life: Life) => ({
    deadly: () => {
      kills++;
      life.kill();
      return new Promise(() => undefined);
    },
    note: (what: unknown) => life.effect(what),
  });
  let life = openLife(world, deadly);
  const { id } = await life.schedules.schedule(1, "deadly");
  await life.schedules.schedule(2, "note", "still runs");
  for (let lives = 0; lives < 30; lives++) {
    await life.advance(SECOND);
    expect(world.busy || world.alarm !== null || kills === 10).toBe(true);
    life = openLife(world, deadly);
  }
  await life.advance(MINUTE);
  expect(kills).toBe(10);
  expect(life.schedules.getScheduleById(id)).toMatchObject({
    status: "failed",
    error: expect.stringContaining("10 times"),
  });
  expect(world.effects).toEqual(["still runs"]);
});
