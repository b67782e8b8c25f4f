import { expect, test } from "vitest";
import type { FiberContext } from "./fiber-view.ts";
import { createWorld, deferred, openLife, type World } from "../../test/support/fiber-host.ts";

const MINUTE = 60 * 1000;
const settledEvents = (world: World) => world.events.filter((event) => event.type === "fiber:settled");
const code = (value: string) => expect.objectContaining({ code: value });

test("cancel: the stored fact first, then the signal; what the function does later changes nothing", async () => {
  const world = createWorld();
  const life = openLife(world);
  const gate = deferred();
  const seen: unknown[] = [];
  const { fiberId } = await life.fibers.startFiber(
    "job",
    async (ctx) => {
      ctx.signal.addEventListener("abort", () => {
        seen.push(
          life.fibers.inspectFiber(ctx.id)?.status,
          (ctx.signal.reason as Error).name,
          (ctx.signal.reason as Error).message,
        );
      });
      await gate.promise;
      expect(() => ctx.stash("late")).toThrow(code("bad_state"));
      return "late";
    },
    { idempotencyKey: "k" },
  );
  await life.settle();
  expect(await life.fibers.cancelFiberByKey("k", "enough")).toBe(true);
  expect(seen).toEqual(["aborted", "AbortError", "enough"]);
  expect(await life.fibers.cancelFiber(fiberId)).toBe(false);
  expect(await life.fibers.cancelFiberByKey("other")).toBe(false);
  expect(world.busy).toBe(true);
  gate.resolve();
  await life.settle();
  expect(life.fibers.inspectFiber(fiberId)).toMatchObject({ status: "aborted", error: "enough" });
  expect(life.fibers.inspectFiber(fiberId)?.result).toBeUndefined();
  expect(world.busy).toBe(false);
  expect(settledEvents(world)).toHaveLength(1);
});

test("a cancel that is undone with the caller's transaction tells nobody", async () => {
  const world = createWorld();
  const life = openLife(world);
  let aborted = false;
  const { fiberId } = await life.fibers.startFiber("job", (ctx) => {
    ctx.signal.addEventListener("abort", () => {
      aborted = true;
    });
    return new Promise(() => undefined);
  });
  await life.settle();
  expect(() =>
    life.context.host.tx(() => {
      void life.fibers.cancelFiber(fiberId);
      throw new Error("undo");
    }),
  ).toThrow("undo");
  expect(aborted).toBe(false);
  expect(settledEvents(world)).toEqual([]);
  expect(life.fibers.inspectFiber(fiberId)?.status).toBe("running");
  await life.fibers.cancelFiber(fiberId);
  expect(aborted).toBe(true);
});

test("cancel of a spawn fiber that waits or runs ends its retries", async () => {
  const world = createWorld();
  const life = openLife(
    world,
    (one) => ({
      work: (_: unknown, ctx: FiberContext) => {
        one.effect("ran");
        return new Promise((_resolve, reject) => {
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
        });
      },
      fail: () => {
        throw new Error("no");
      },
    }),
    { retry: { baseDelayMs: MINUTE, maxDelayMs: MINUTE } },
  );
  const before = life.fibers.spawnFiber("work");
  expect(await life.fibers.cancelFiber(before)).toBe(true);
  const during = life.fibers.spawnFiber("work");
  const backingOff = life.fibers.spawnFiber("fail");
  await life.settle();
  expect(await life.fibers.cancelFiber(during)).toBe(true);
  expect(await life.fibers.cancelFiber(backingOff)).toBe(true);
  await life.advance(10 * MINUTE);
  expect(world.effects).toEqual(["ran"]);
  expect(life.fibers.listFibers({ status: "aborted" })).toHaveLength(3);
});
