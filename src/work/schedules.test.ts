import { expect, test } from "vitest";
import type { ScheduleRun } from "./schedules.ts";
import { createWorld, deferred, type Life, openLife } from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const badInput = expect.objectContaining({ code: "bad_input" });

const methods = (life: Life) => ({
  note: (payload: unknown) => life.effect(payload),
  seen: (payload: unknown) => life.effect(payload),
});

test("a delay, a date and a past date run once each, in the order in which they are due", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const delayed = await life.schedules.schedule(10, "note", "delayed");
  const dated = await life.schedules.schedule(new Date(world.now + 5 * SECOND), "note", { dated: true });
  await life.schedules.schedule(new Date(world.now - HOUR), "note", "past");
  expect(delayed).toMatchObject({ type: "delayed", delayInSeconds: 10, status: "pending", payload: "delayed" });
  expect(delayed.time).toBe((world.start + 10 * SECOND) / SECOND);
  expect(dated).toMatchObject({ type: "scheduled", payload: { dated: true } });
  await life.advance(9.999 * SECOND);
  expect(world.effects).toEqual(["past", { dated: true }]);
  await life.advance(1);
  await life.advance(HOUR);
  expect(world.effects).toEqual(["past", { dated: true }, "delayed"]);
  expect(life.schedules.listSchedules()).toEqual([]);
  expect(world.alarm).toBeNull();
  expect(world.busy).toBe(false);
});

test("cron runs in its time zone, from occurrence to occurrence", async () => {
  const world = createWorld(Date.parse("2025-03-29T00:00:00Z"));
  const life = openLife(world, (one) => ({ note: () => one.effect(new Date(world.now).toISOString()) }));
  const cron = await life.schedules.schedule("0 8 * * *", "note", undefined, { timeZone: "Europe/Berlin" });
  expect(cron).toMatchObject({ type: "cron", cron: "0 8 * * *", timeZone: "Europe/Berlin" });
  await life.advance(48 * HOUR);
  expect(world.effects).toEqual(["2025-03-29T07:00:00.000Z", "2025-03-30T06:00:00.000Z"]);
  expect(life.schedules.getScheduleById(cron.id)?.at).toBe(Date.parse("2025-03-31T06:00:00Z"));
});

test("an interval keeps its beat, and first runs after one interval", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({ note: () => one.effect((world.now - world.start) / SECOND) }));
  expect(await life.schedules.scheduleEvery(30, "note")).toMatchObject({ type: "interval", intervalSeconds: 30 });
  await life.advance(95 * SECOND);
  expect(world.effects).toEqual([30, 60, 90]);
});

test("what was missed is run once, not made up for", async () => {
  const world = createWorld();
  const record = (one: Life) => ({ note: (what: unknown) => one.effect([what, (world.now - world.start) / MINUTE]) });
  const life = openLife(world, record);
  await life.schedules.scheduleEvery(60, "note", "interval");
  await life.schedules.schedule("*/2 * * * *", "note", "cron");
  life.kill();
  world.now += 10.5 * MINUTE;
  const later = openLife(world, record);
  await later.settle();
  expect(world.effects).toEqual([
    ["interval", 10.5],
    ["cron", 10.5],
  ]);
  await later.advance(1.5 * MINUTE);
  expect(world.effects.slice(2)).toEqual([
    ["interval", 11],
    ["interval", 12],
    ["cron", 12],
  ]);
});

test("a recurring one never overlaps itself, and skips what it slept through", async () => {
  const world = createWorld();
  const gate = deferred();
  let runs = 0;
  const life = openLife(world, () => ({
    slow: () => {
      runs++;
      return gate.promise;
    },
  }));
  const { id } = await life.schedules.scheduleEvery(10, "slow");
  await life.advance(35 * SECOND);
  expect(runs).toBe(1);
  expect(life.schedules.getScheduleById(id)?.status).toBe("running");
  expect(world.busy).toBe(true);
  expect(life.schedules.next()).toBeNull();
  gate.resolve();
  await life.settle();
  expect(life.schedules.getScheduleById(id)).toMatchObject({ status: "pending", at: world.start + 40 * SECOND });
  await life.advance(5 * SECOND);
  expect(runs).toBe(2);
});

test("a slow callback holds up no other", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    stuck: () => new Promise(() => undefined),
    note: (what: unknown) => one.effect(what),
  }));
  await life.schedules.schedule(1, "stuck");
  await life.schedules.schedule(1, "note", "same time");
  await life.schedules.schedule(2, "note", "later");
  await life.advance(2 * SECOND);
  expect(world.effects).toEqual(["same time", "later"]);
  expect(life.schedules.active()).toBe(true);
});

test("cron and intervals are idempotent on callback, time, payload and zone", async () => {
  const life = openLife(createWorld(), methods);
  const { schedules } = life;
  const first = await schedules.schedule("0 9 * * 1", "note", { a: 1 });
  const same = await schedules.schedule("0  9 * * 1", "note", { a: 1 }, { timeZone: "UTC" });
  expect(same.id).toBe(first.id);
  const others = [
    await schedules.schedule("0 9 * * 2", "note", { a: 1 }),
    await schedules.schedule("0 9 * * 1", "note", { a: 2 }),
    await schedules.schedule("0 9 * * 1", "seen", { a: 1 }),
    await schedules.schedule("0 9 * * 1", "note", { a: 1 }, { timeZone: "Asia/Tokyo" }),
    await schedules.schedule("0 9 * * 1", "note", { a: 1 }, { idempotent: false }),
    await schedules.scheduleEvery(60, "note", { a: 1 }),
    await schedules.scheduleEvery(61, "note", { a: 1 }),
  ];
  expect(new Set([first.id, ...others.map((one) => one.id)]).size).toBe(8);
  expect((await schedules.scheduleEvery(60, "note", { a: 1 })).id).toBe(others[5]?.id);
});

test("one-shots are idempotent on request only, whatever their time", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    // Plans its successor while its own row is still there.
    poll: () => {
      one.effect("poll");
      one.schedules.add(60, "poll", undefined, { idempotent: true });
    },
  }));
  const first = await life.schedules.schedule(60, "poll", undefined, { idempotent: true });
  expect((await life.schedules.schedule(90, "poll", undefined, { idempotent: true })).id).toBe(first.id);
  await life.advance(3 * MINUTE);
  expect(world.effects).toEqual(["poll", "poll", "poll"]);
  expect(life.schedules.listSchedules()).toHaveLength(1);
  await life.schedules.schedule(60, "poll");
  expect(life.schedules.listSchedules()).toHaveLength(2);
});

test.each([
  ["a negative delay", -1],
  ["no number", Number.NaN],
  ["an endless delay", Number.POSITIVE_INFINITY],
  ["an invalid date", new Date("nonsense")],
  ["a bad expression", "every day"],
  ["a date that never comes", "0 0 31 2 *"],
  ["no time at all", null as never],
])("refuses %s and stores nothing", async (_name, when) => {
  const life = openLife(createWorld(), methods);
  await expect(life.schedules.schedule(when, "note")).rejects.toThrow(badInput);
  expect(life.schedules.listSchedules()).toEqual([]);
});

test("refuses bad intervals, zones, payloads, retries and methods, and stores nothing", async () => {
  const life = openLife(createWorld(), methods);
  const { schedules } = life;
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  await expect(schedules.scheduleEvery(0, "note")).rejects.toThrow(badInput);
  await expect(schedules.schedule("* * * * *", "note", 1, { timeZone: "Nowhere" })).rejects.toThrow(badInput);
  await expect(schedules.schedule(1, "note", 1, { timeZone: "UTC" })).rejects.toThrow(badInput);
  for (const payload of [loop, 1n, () => 1])
    await expect(schedules.schedule(1, "note", payload)).rejects.toThrow(badInput);
  await expect(schedules.schedule(1, "note", "x".repeat(2_000_000))).rejects.toThrow(
    expect.objectContaining({ code: "limit" }),
  );
  await expect(schedules.schedule(1, "note", 1, { retry: { maxAttempts: 0 } })).rejects.toThrow(
    expect.objectContaining({ code: "bad_config" }),
  );
  await expect(schedules.schedule(1, "nothing")).rejects.toThrow(expect.objectContaining({ code: "not_found" }));
  expect(schedules.listSchedules()).toEqual([]);
});

test("lists by id, type, callback, status and time", async () => {
  const world = createWorld();
  const { schedules } = openLife(world, methods);
  const a = await schedules.schedule(10, "note");
  const b = await schedules.schedule("0 0 * * *", "seen");
  const c = await schedules.scheduleEvery(20, "note");
  const ids = (criteria: Parameters<typeof schedules.listSchedules>[0]) =>
    schedules.listSchedules(criteria).map((one) => one.id);
  expect(ids({})).toEqual([a.id, c.id, b.id]);
  expect(ids({ id: b.id })).toEqual([b.id]);
  expect(ids({ type: "cron" })).toEqual([b.id]);
  expect(ids({ callback: "note" })).toEqual([a.id, c.id]);
  expect(ids({ status: "failed" })).toEqual([]);
  expect(ids({ timeRange: { start: new Date(world.now + 11 * SECOND), end: new Date(world.now + MINUTE) } })).toEqual([
    c.id,
  ]);
  expect(ids({ limit: 1 })).toEqual([a.id]);
});

test("cancel removes it; while it runs, the run finishes and nothing is armed again", async () => {
  const world = createWorld();
  const gate = deferred();
  const life = openLife(world, (one) => ({
    slow: async () => {
      await gate.promise;
      one.effect("finished");
    },
    suicide: (_: unknown, run: ScheduleRun) => {
      one.effect("suicide");
      one.schedules.remove(run.id);
    },
  }));
  const waiting = await life.schedules.schedule(5, "slow");
  expect(await life.schedules.cancelSchedule(waiting.id)).toBe(true);
  expect(await life.schedules.cancelSchedule(waiting.id)).toBe(false);
  const running = await life.schedules.scheduleEvery(10, "slow");
  await life.schedules.scheduleEvery(10, "suicide");
  await life.advance(10 * SECOND);
  expect(await life.schedules.cancelSchedule(running.id)).toBe(true);
  gate.resolve();
  await life.advance(HOUR);
  expect(world.effects).toEqual(["suicide", "finished"]);
  expect(life.schedules.listSchedules()).toEqual([]);
  expect(world.events.filter((event) => event.type === "schedule:cancelled")).toHaveLength(3);
});

test("warns once when rows of one callback pile up", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  for (let i = 0; i < 49; i++) life.schedules.add(60, "note", i);
  const warnings = () => world.events.filter((event) => event.type === "schedule:duplicate_warning");
  expect(warnings()).toEqual([]);
  for (let i = 0; i < 10; i++) life.schedules.add(60, "note", i);
  expect(warnings().map((event) => event.payload)).toEqual([{ callback: "note", count: 50 }]);
});

test("ten thousand schedules: nothing reads all of them to find the next one", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  for (let i = 0; i < 10_000; i++) life.schedules.add(60 + i, "note", i);
  await life.advance(62 * SECOND);
  expect(world.effects).toEqual([0, 1, 2]);
  for (const query of [
    "SELECT at FROM perdure_schedule WHERE status = 'pending' ORDER BY at, seq LIMIT 1",
    "SELECT seq FROM perdure_schedule WHERE status = 'pending' AND at <= 1 ORDER BY at, seq LIMIT 1",
    "SELECT seq FROM perdure_schedule WHERE status = 'running' LIMIT 1",
  ]) {
    const plan = JSON.stringify(world.db.prepare(`EXPLAIN QUERY PLAN ${query}`).all());
    expect(plan).toContain("USING COVERING INDEX");
    expect(plan).not.toContain("TEMP B-TREE");
  }
});

test("many that are due at once all run, in order", async () => {
  const world = createWorld();
  const life = openLife(world, methods);
  const expected = Array.from({ length: 350 }, (_, i) => i);
  for (const i of expected) life.schedules.add(1, "note", i);
  await life.advance(SECOND);
  expect(world.effects).toEqual(expected);
});

test("no more than a thousand run at one time; the rest waits without waking the agent", async () => {
  const world = createWorld();
  const gates: PromiseWithResolvers<void>[] = [];
  const life = openLife(world, () => ({
    slow: () => {
      const gate = deferred();
      gates.push(gate);
      return gate.promise;
    },
  }));
  for (let i = 0; i < 1003; i++) life.schedules.add(1, "slow", i);
  await life.advance(SECOND);
  expect(gates).toHaveLength(1000);
  expect(life.schedules.next()).toBeNull();
  gates[0]?.resolve();
  gates[1]?.resolve();
  await life.settle();
  expect(gates).toHaveLength(1002);
});
