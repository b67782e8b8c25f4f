import { expect, test } from "vitest";
import type { FiberContext, FiberRecoveryContext } from "./fiber-view.ts";
import {
  createWorld,
  deferred,
  dieWithClosures,
  forever,
  type Life,
  type LifeOptions,
  type Methods,
  openLife,
  type World,
} from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const code = (value: string) => expect.objectContaining({ code: value });
const rows = (world: World) => world.db.prepare("SELECT id, status FROM perdure_fiber ORDER BY seq").all();
const eventTypes = (world: World) => world.events.map((event) => event.type);

function withHook(hook: (ctx: FiberRecoveryContext) => unknown): () => Methods {
  return () => ({ onFiberRecovered: hook });
}

test("a spawn fiber goes on by itself from its last checkpoint", async () => {
  const world = createWorld();
  const make = (life: Life) => ({
    count: async (to: number, ctx: FiberContext) => {
      for (let n = ((ctx.snapshot as number | null) ?? 0) + 1; n <= to; n++) {
        life.effect(n);
        ctx.stash(n);
        if (n === 2 && ctx.attempt === 1) await forever();
      }
      return "done";
    },
  });
  const life = openLife(world, make);
  const id = life.fibers.spawnFiber("count", 4);
  await life.settle();
  expect(world.busy).toBe(true);
  life.kill();
  const later = openLife(world, make);
  await later.settle();
  expect(world.effects).toEqual([1, 2, 3, 4]);
  expect(later.fibers.inspectFiber(id)).toMatchObject({ status: "completed", result: "done", attempt: 2 });
  expect(world.events.filter((event) => event.type === "fiber:recovered").map((event) => event.payload)).toEqual([
    { id, name: "count", attempt: 2 },
  ]);
});

test("closures are handed to the hook with what they left", async () => {
  const world = createWorld();
  const { run, start } = await dieWithClosures(world);
  const seen: FiberRecoveryContext[] = [];
  const later = openLife(
    world,
    withHook((ctx) => void seen.push(ctx)),
  );
  await later.settle();
  expect(seen).toEqual([
    {
      id: run,
      name: "run",
      status: "interrupted",
      kind: "run",
      idempotencyKey: undefined,
      metadata: null,
      snapshot: { at: "run" },
      createdAt: world.start,
      recoveryReason: "interrupted",
      attempt: 1,
    },
    expect.objectContaining({
      id: start,
      kind: "start",
      idempotencyKey: "k",
      metadata: { m: 1 },
      snapshot: { at: "start" },
    }),
  ]);
  // The run fiber is done with; the managed one is kept, for want of an answer.
  expect(rows(world)).toEqual([{ id: start, status: "interrupted" }]);
  expect(world.busy).toBe(false);
  expect(world.alarm).toBeNull();
  openLife(
    world,
    withHook((ctx) => void seen.push(ctx)),
  );
  expect(seen).toHaveLength(2);
});

test.each([
  [
    { status: "completed", snapshot: "s", metadata: { done: true } },
    { status: "completed", snapshot: "s", metadata: { done: true } },
  ],
  [
    { status: "error", error: new Error("lost") },
    { status: "error", error: "lost", snapshot: { at: "start" } },
  ],
  [
    { status: "aborted", reason: "why" },
    { status: "aborted", error: "why" },
  ],
  [
    { status: "interrupted", reason: "ask ann" },
    { status: "interrupted", error: "ask ann" },
  ],
])("a managed fiber ends as the hook says: %o", async (answer, expected) => {
  for (const hook of [() => answer, () => Promise.resolve(answer)]) {
    const world = createWorld();
    const { start } = await dieWithClosures(world);
    const later = openLife(world, withHook(hook));
    await later.settle();
    expect(later.fibers.inspectFiber(start)).toMatchObject(expected);
    expect(later.fibers.inspectFiber(start)?.settledAt).toBe(world.now);
  }
});

test("without a hook a managed fiber stays interrupted and a run fiber is forgotten", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  await openLife(world).settle();
  expect(rows(world)).toEqual([{ id: start, status: "interrupted" }]);
});

test("a hook that throws is called again, further and further apart, at most 5 minutes", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  const times: number[] = [];
  const hook = withHook((ctx) => {
    if (ctx.kind === "run") return undefined;
    times.push((world.now - world.start) / SECOND);
    throw new Error("not now");
  });
  const later = openLife(world, hook);
  await later.advance(HOUR);
  expect(times.slice(0, 10)).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511]);
  expect(times[10]).toBe(811);
  expect(later.fibers.inspectFiber(start)).toMatchObject({ status: "interrupted", error: "not now" });
  // Not yet final: it cannot be deleted.
  expect(await later.fibers.deleteFibers({ status: "interrupted" })).toBe(0);
  // The back-off is stored.
  const at = later.fibers.next();
  later.kill();
  expect(openLife(world, hook).fibers.next()).toBe(at);
});

test.each(["sync", "async"])("after its time a fiber whose hook throws is kept with the error (%s)", async (how) => {
  const world = createWorld();
  const { run, start } = await dieWithClosures(world);
  const hook = withHook(() => {
    if (how === "async") return Promise.reject(new Error("never works"));
    throw new Error("never works");
  });
  const later = openLife(world, hook);
  await later.advance(DAY - MINUTE);
  expect(later.fibers.next()).not.toBeNull();
  await later.advance(HOUR);
  expect(later.fibers.next()).toBeNull();
  for (const id of [run, start]) {
    expect(later.fibers.inspectFiber(id)).toMatchObject({ status: "interrupted", error: "never works" });
    expect(world.events).toContainEqual({
      type: "fiber:settled",
      payload: { id, name: expect.any(String), status: "interrupted", error: "never works" },
    });
  }
  expect(await later.fibers.deleteFibers({ status: "interrupted" })).toBe(2);
});

test("a maximum age of 0 never gives up", async () => {
  const world = createWorld();
  await dieWithClosures(world);
  const options: LifeOptions = { recoveryMaxAgeMs: 0 };
  const later = openLife(
    world,
    withHook(() => Promise.reject(new Error("no"))),
    options,
  );
  await later.advance(2 * DAY);
  expect(later.fibers.next()).not.toBeNull();
});

test("an answer that makes no sense counts as a throw", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  const answers: unknown[] = [
    { status: "running" },
    "done",
    { status: "completed", snapshot: 1n },
    { status: "completed" },
  ];
  const later = openLife(
    world,
    withHook((ctx) => (ctx.kind === "run" ? undefined : answers.shift())),
  );
  await later.advance(MINUTE);
  expect(answers).toEqual([]);
  expect(later.fibers.inspectFiber(start)?.status).toBe("completed");
});

test("a cancelled fiber is never recovered, even if the process dies before its function has seen it", async () => {
  const world = createWorld();
  let ran = 0;
  const make = (): Methods => ({
    work: () => {
      ran++;
      return forever();
    },
    onFiberRecovered: () => {
      throw new Error("must not be called");
    },
  });
  const life = openLife(world, make);
  const spawned = life.fibers.spawnFiber("work");
  const { fiberId } = await life.fibers.startFiber("job", forever);
  let run = "";
  void life.fibers.runFiber("run", (ctx) => {
    run = ctx.id;
    return forever();
  });
  await life.settle();
  for (const id of [spawned, fiberId, run]) expect(await life.fibers.cancelFiber(id, "stop")).toBe(true);
  life.kill();
  const later = openLife(world, make);
  await later.advance(HOUR);
  expect(ran).toBe(1);
  expect(rows(world)).toEqual([
    { id: spawned, status: "aborted" },
    { id: fiberId, status: "aborted" },
  ]);
});

test("a fiber that is cancelled while it is interrupted is left alone by its hook's answer", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  const gate = deferred<{ status: "completed" }>();
  const later = openLife(
    world,
    withHook(() => gate.promise),
  );
  await later.settle();
  expect(later.fibers.listFibers({ status: "interrupted" })).toHaveLength(2);
  expect(await later.fibers.cancelFiber(start)).toBe(true);
  gate.resolve({ status: "completed" });
  await later.settle();
  expect(later.fibers.inspectFiber(start)?.status).toBe("aborted");
  expect(world.events.filter((event) => event.type === "fiber:settled" && event.payload.id === start)).toHaveLength(1);
});

test("resolveFiber ends an interrupted fiber, and only such a one", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  const later = openLife(world);
  await later.settle();
  const { fibers } = later;
  await expect(fibers.resolveFiber(start, { status: "completed", snapshot: 1n })).rejects.toThrow(code("bad_input"));
  expect(await fibers.resolveFiber(start, { status: "completed", snapshot: "by hand" })).toBe(true);
  expect(fibers.inspectFiber(start)).toMatchObject({ status: "completed", snapshot: "by hand" });
  expect(await fibers.resolveFiber(start, { status: "error" })).toBe(false);
  expect(await fibers.resolveFiber("none", { status: "error" })).toBe(false);
  const { fiberId } = await fibers.startFiber("job", forever);
  expect(await fibers.resolveFiber(fiberId, { status: "completed" })).toBe(false);
});

test("who waits for a fiber by key in a later life hears of its recovery", async () => {
  const world = createWorld();
  await dieWithClosures(world);
  const gate = deferred();
  const later = openLife(
    world,
    withHook(() => gate.promise.then(() => ({ status: "completed" }))),
  );
  const waiting = later.fibers.startFiber("start", forever, { idempotencyKey: "k", waitForCompletion: true });
  await later.settle();
  gate.resolve();
  expect(await waiting).toMatchObject({ accepted: false, status: "completed" });
});

test("a spawn fiber whose method is gone is kept, reported, and taken up when it is back", async () => {
  const world = createWorld();
  const life = openLife(world, () => ({
    old: (_: unknown, ctx: FiberContext) => {
      ctx.stash("half");
      return forever();
    },
  }));
  const id = life.fibers.spawnFiber("old", "payload");
  await life.settle();
  life.kill();
  const without = openLife(world);
  await without.settle();
  expect(without.fibers.inspectFiber(id)).toMatchObject({
    status: "interrupted",
    error: expect.stringContaining('"old"'),
  });
  expect(eventTypes(world)).toContain("fiber:method_missing");
  expect(world.alarm).toBeNull();
  without.kill();
  await openLife(world).settle();
  const again = openLife(world, (one) => ({
    old: (payload: unknown, ctx: FiberContext) => {
      one.effect([payload, ctx.snapshot]);
      return "done";
    },
  }));
  await again.settle();
  expect(world.effects).toEqual([["payload", "half"]]);
  const inspection = again.fibers.inspectFiber(id);
  expect(inspection).toMatchObject({ status: "completed", result: "done" });
  expect(inspection?.error).toBeUndefined();
});

test("what a new life starts is not mistaken for what the old one left", async () => {
  const world = createWorld();
  const { start } = await dieWithClosures(world);
  const recovered: string[] = [];
  const later = openLife(
    world,
    withHook((ctx) => void recovered.push(ctx.id)),
  );
  const { fiberId } = await later.fibers.startFiber("new", forever);
  later.fibers.recover();
  await later.settle();
  expect(recovered).toContain(start);
  expect(recovered).not.toContain(fiberId);
  expect(later.fibers.inspectFiber(fiberId)?.status).toBe("running");
});
