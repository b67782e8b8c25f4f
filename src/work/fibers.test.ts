import { expect, test } from "vitest";
import type { FiberContext } from "./fiber-view.ts";
import { createWorld, deferred, type Life, openLife, type World } from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const rows = (world: World) => world.db.prepare("SELECT id, status, snapshot FROM perdure_fiber ORDER BY seq").all();
const settledEvents = (world: World) => world.events.filter((event) => event.type === "fiber:settled");
const code = (value: string) => expect.objectContaining({ code: value });

test("runFiber: the row is there while it runs and goes when it returns or throws", async () => {
  const world = createWorld();
  const { fibers } = openLife(world);
  const value = await fibers.runFiber("job", async (ctx) => {
    expect(rows(world)).toMatchObject([{ id: ctx.id, status: "running", snapshot: null }]);
    expect(ctx).toMatchObject({ name: "job", snapshot: null, attempt: 1 });
    expect(world.busy).toBe(true);
    ctx.stash({ step: 1 });
    expect(rows(world)).toMatchObject([{ snapshot: '{"step":1}' }]);
    await Promise.resolve();
    return 7;
  });
  expect(value).toBe(7);
  expect(rows(world)).toEqual([]);
  expect(world.busy).toBe(false);
  const error = new Error("own error");
  await expect(fibers.runFiber("job", () => Promise.reject(error))).rejects.toBe(error);
  expect(rows(world)).toEqual([]);
  expect(settledEvents(world).map((event) => event.payload.status)).toEqual(["completed", "error"]);
});

test("runFiber in a transaction starts after it, and not at all if that is undone", async () => {
  const world = createWorld();
  const { fibers, context } = openLife(world);
  let ran = 0;
  const run = () => fibers.runFiber("job", () => ++ran);
  const kept = context.host.tx(() => {
    const promise = { promise: run() };
    expect(ran).toBe(0);
    return promise;
  });
  expect(await kept.promise).toBe(1);
  let undone: Promise<unknown> = Promise.resolve();
  expect(() =>
    context.host.tx(() => {
      undone = run();
      throw new Error("undo");
    }),
  ).toThrow("undo");
  await expect(undone).rejects.toThrow(code("bad_state"));
  expect(ran).toBe(1);
});

test("stash finds the fiber that it is called in, also with several at once, and refuses outside", async () => {
  const world = createWorld();
  const { fibers } = openLife(world);
  const gate = deferred();
  const job = (name: string) =>
    fibers.startFiber(name, async () => {
      await gate.promise;
      await Promise.resolve();
      fibers.stash(name);
    });
  await job("a");
  await job("b");
  gate.resolve();
  await openTurn();
  expect(fibers.listFibers().map((fiber) => [fiber.name, fiber.snapshot])).toEqual([
    ["b", "b"],
    ["a", "a"],
  ]);
  expect(() => fibers.stash(1)).toThrow(code("bad_state"));
});

test("the rest of the caller's context stays, and a callback has nothing of whoever queued it", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    note: () => one.effect(Object.keys(one.context.host.context.get() as object)),
  }));
  const { host } = life.context;
  const seen = await host.context.run({ user: "ann" }, () =>
    life.fibers.runFiber("job", () => {
      life.queue.add("note");
      return Object.keys(host.context.get() as object);
    }),
  );
  await life.settle();
  expect(seen).toEqual(["user", "fiber"]);
  expect(world.effects).toEqual([[]]);
});

test("stash is refused for what JSON cannot hold, and once the fiber has ended", async () => {
  const { fibers } = openLife(createWorld());
  const ctx = await fibers.runFiber("job", (one) => {
    expect(() => one.stash(1n)).toThrow(code("bad_input"));
    expect(() => one.stash("x".repeat(2_000_000))).toThrow(code("limit"));
    return one;
  });
  expect(() => ctx.stash(1)).toThrow(code("bad_state"));
});

test("spawnFiber returns its id at once, runs the method, stores its result and keeps the row", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    double: async (n: number, ctx: FiberContext) => {
      one.effect([n, ctx.attempt, ctx.snapshot]);
      await Promise.resolve();
      return n * 2;
    },
  }));
  const id = life.fibers.spawnFiber("double", 21, { metadata: { from: "test" }, idempotencyKey: "key" });
  expect(life.fibers.inspectFiber(id)).toMatchObject({ status: "pending", kind: "spawn", name: "double" });
  expect(life.fibers.spawnFiber("double", 99, { idempotencyKey: "key" })).toBe(id);
  await life.settle();
  expect(world.effects).toEqual([[21, 1, null]]);
  expect(life.fibers.inspectFiber(id)).toMatchObject({
    fiberId: id,
    status: "completed",
    result: 42,
    metadata: { from: "test" },
    idempotencyKey: "key",
    createdAt: world.start,
    startedAt: world.start,
    settledAt: world.start,
  });
  expect(world.alarm).toBeNull();
});

test("spawnFiber tries again with its last checkpoint, then ends as error", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    work: (_: unknown, ctx: FiberContext) => {
      one.effect([ctx.attempt, ctx.snapshot]);
      ctx.stash(ctx.attempt);
      throw new Error(`failed ${ctx.attempt}`);
    },
  }));
  const id = life.fibers.spawnFiber("work");
  const impatient = life.fibers.spawnFiber("work", undefined, { maxRetries: 0 });
  await life.advance(MINUTE);
  expect(world.effects).toEqual([
    [1, null],
    [1, null],
    [2, 1],
    [3, 2],
    [4, 3],
  ]);
  expect(life.fibers.inspectFiber(id)).toMatchObject({ status: "error", error: "failed 4", snapshot: 4 });
  expect(life.fibers.inspectFiber(impatient)).toMatchObject({ status: "error", error: "failed 1" });
});

test("a result that cannot be stored does not make the work run again", async () => {
  const world = createWorld();
  const life = openLife(world, (one) => ({
    work: () => {
      one.effect("ran");
      return 1n;
    },
  }));
  const id = life.fibers.spawnFiber("work");
  await life.advance(MINUTE);
  expect(world.effects).toEqual(["ran"]);
  expect(life.fibers.inspectFiber(id)).toMatchObject({ status: "completed", error: expect.stringContaining("JSON") });
});

test("startFiber accepts once per key and per id", async () => {
  const world = createWorld();
  const life = openLife(world);
  const gate = deferred();
  const first = await life.fibers.startFiber("job", () => gate.promise, {
    idempotencyKey: "k",
    fiberId: "f",
    metadata: { a: 1 },
  });
  expect(first).toMatchObject({ accepted: true, fiberId: "f", idempotencyKey: "k", metadata: { a: 1 }, kind: "start" });
  const never = () => life.effect("never");
  expect(await life.fibers.startFiber("job", never, { idempotencyKey: "k" })).toMatchObject({
    accepted: false,
    fiberId: "f",
  });
  expect(await life.fibers.startFiber("job", never, { fiberId: "f" })).toMatchObject({ accepted: false, fiberId: "f" });
  expect(life.fibers.inspectFiberByKey("k")?.status).toBe("running");
  gate.resolve();
  await life.settle();
  expect(life.fibers.inspectFiberByKey("k")?.status).toBe("completed");
  expect(await life.fibers.startFiber("job", never, { idempotencyKey: "k" })).toMatchObject({
    accepted: false,
    status: "completed",
  });
  expect(world.effects).toEqual([]);
});

test("waitForCompletion waits for the end, also of one that another call started", async () => {
  const life = openLife(createWorld());
  const gate = deferred();
  const wait = { idempotencyKey: "k", waitForCompletion: true };
  const first = life.fibers.startFiber("job", () => gate.promise, wait);
  const second = life.fibers.startFiber("job", () => undefined, wait);
  await life.settle();
  gate.reject(new Error("broke"));
  expect(await first).toMatchObject({ accepted: true, status: "error", error: "broke" });
  expect(await second).toMatchObject({ accepted: false, status: "error" });
  expect(await life.fibers.startFiber("job", () => undefined, wait)).toMatchObject({ status: "error" });
});

test("lists by status, name and number, newest first", async () => {
  const life = openLife(createWorld(), () => ({ work: () => undefined }));
  const a = life.fibers.spawnFiber("work");
  await life.settle();
  const { fiberId: b } = await life.fibers.startFiber("job", () => new Promise(() => undefined));
  const { fiberId: c } = await life.fibers.startFiber("job", () => Promise.reject(new Error("no")));
  await life.settle();
  const ids = (options: Parameters<typeof life.fibers.listFibers>[0]) =>
    life.fibers.listFibers(options).map((fiber) => fiber.fiberId);
  expect(ids({})).toEqual([c, b, a]);
  expect(ids({ status: "completed" })).toEqual([a]);
  expect(ids({ status: ["running", "error"] })).toEqual([c, b]);
  expect(ids({ name: "job", limit: 1 })).toEqual([c]);
});

test("deletes settled fibers only, by status, time and number", async () => {
  const world = createWorld();
  const life = openLife(world, () => ({ work: () => undefined }));
  await life.fibers.startFiber("open", () => new Promise(() => undefined));
  for (let i = 0; i < 3; i++) {
    life.fibers.spawnFiber("work");
    await life.advance(SECOND);
  }
  await expect(life.fibers.deleteFibers({ status: "running" })).rejects.toThrow(code("bad_input"));
  expect(await life.fibers.deleteFibers({ status: "error" })).toBe(0);
  expect(await life.fibers.deleteFibers({ limit: 1 })).toBe(1);
  expect(await life.fibers.deleteFibers({ settledBefore: new Date(world.start + 2 * SECOND) })).toBe(1);
  expect(await life.fibers.deleteFibers()).toBe(1);
  expect(life.fibers.listFibers().map((fiber) => fiber.name)).toEqual(["open"]);
});

test("refuses bad names, keys, payloads, metadata and options, and stores nothing", async () => {
  const world = createWorld();
  const { fibers } = openLife(world, () => ({ work: () => undefined }));
  const nothing = () => undefined;
  expect(() => fibers.spawnFiber("none")).toThrow(code("not_found"));
  expect(() => fibers.spawnFiber("work", 1n)).toThrow(code("bad_input"));
  expect(() => fibers.spawnFiber("work", 1, { maxRetries: -1 })).toThrow(code("bad_config"));
  expect(() => fibers.spawnFiber("work", 1, { metadata: [] as never })).toThrow(code("bad_input"));
  expect(() => fibers.spawnFiber("work", 1, { idempotencyKey: "" })).toThrow(code("bad_input"));
  await expect(fibers.runFiber("", nothing)).rejects.toThrow(code("bad_input"));
  await expect(fibers.startFiber("job", nothing, { fiberId: "" })).rejects.toThrow(code("bad_input"));
  await expect(fibers.resolveFiber("none", undefined as never)).rejects.toThrow(code("bad_input"));
  await expect(fibers.resolveFiber("none", { status: "running" } as never)).rejects.toThrow(code("bad_input"));
  expect(() => openLife(world, undefined, { recoveryMaxAgeMs: -1 })).toThrow(code("bad_config"));
  expect(rows(world)).toEqual([]);
});

test("while the host stops, functions are refused and methods are stored for the next life", async () => {
  const world = createWorld();
  const make = (one: Life) => ({ work: () => one.effect("ran") });
  const life = openLife(world, make);
  life.stopping = true;
  await expect(life.fibers.runFiber("job", () => undefined)).rejects.toThrow(code("host_stopped"));
  await expect(life.fibers.startFiber("job", () => undefined)).rejects.toThrow(code("host_stopped"));
  life.fibers.spawnFiber("work");
  await openTurn();
  expect(world.effects).toEqual([]);
  expect(world.alarm).toBe(world.now);
  life.kill();
  await openLife(world, make).settle();
  expect(world.effects).toEqual(["ran"]);
});

test("a halt aborts signals, refuses stash, writes nothing and frees those who wait", async () => {
  const world = createWorld();
  const life = openLife(world);
  const gate = deferred();
  let ctx: FiberContext | undefined;
  const waiting = life.fibers.startFiber(
    "job",
    async (one) => {
      ctx = one;
      await gate.promise;
    },
    { waitForCompletion: true },
  );
  const run = life.fibers.runFiber(
    "run",
    (one) =>
      new Promise((resolve) => {
        one.signal.addEventListener("abort", () => resolve(one.signal.reason));
      }),
  );
  await life.settle();
  life.fibers.halt("destroyed");
  await expect(waiting).rejects.toThrow(code("agent_gone"));
  expect(await run).toBe("destroyed");
  expect(() => ctx?.stash(1)).toThrow(code("agent_gone"));
  gate.resolve();
  await openTurn();
  expect(rows(world)).toMatchObject([{ status: "running" }, { status: "running" }]);
  expect(life.fibers.active()).toBe(false);
});

test("a full disk delays the end of a fiber and does not lose it", async () => {
  const world = createWorld();
  const life = openLife(world);
  const gate = deferred();
  const done = life.fibers.startFiber("job", () => gate.promise, { waitForCompletion: true });
  await life.settle();
  world.full = true;
  gate.resolve();
  await life.advance(3 * SECOND);
  expect(life.fibers.active()).toBe(true);
  world.full = false;
  await life.advance(3 * SECOND);
  expect(await done).toMatchObject({ status: "completed" });
});

function openTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
