import { expect, test } from "vitest";
import type { FiberContext, FiberRecoveryContext } from "./fiber-view.ts";
import {
  createWorld,
  dieWithClosures,
  forever,
  killAtEveryCommit,
  type Life,
  type Methods,
  openLife,
} from "../../test/support/fiber-host.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

function withHook(hook: (ctx: FiberRecoveryContext) => unknown): () => Methods {
  return () => ({ onFiberRecovered: hook });
}

test("a hook that returns plainly takes effect exactly once, killed between any two commits", async () => {
  await killAtEveryCommit({
    create: () => {
      const world = createWorld();
      world.db.exec("CREATE TABLE made (name TEXT)");
      return world;
    },
    first: async (world, die) => {
      await dieWithClosures(world);
      const life = openLife(world, hook);
      die();
      await life.settle();
      return life;
    },
    later: (world) => openLife(world, hook).advance(HOUR),
    check: (world) => {
      expect(world.db.prepare("SELECT name FROM made ORDER BY name").all()).toEqual([
        { name: "run" },
        { name: "start" },
      ]);
    },
  });
  function hook(life: Life): Methods {
    return {
      onFiberRecovered: (ctx: FiberRecoveryContext) => {
        life.context.host.sql("INSERT INTO made VALUES (?)", ctx.name);
        return { status: "completed" };
      },
    };
  }
});

test("a hook that kills the process is given up after ten times, and the rows stay", async () => {
  const world = createWorld();
  const { run, start } = await dieWithClosures(world);
  let kills = 0;
  const deadly = (life: Life) => ({
    onFiberRecovered: () => {
      kills++;
      life.kill();
      return forever();
    },
  });
  for (let lives = 0; lives < 25; lives++) await openLife(world, deadly).settle();
  expect(kills).toBe(20);
  const life = openLife(world, deadly);
  for (const id of [run, start]) {
    expect(life.fibers.inspectFiber(id)).toMatchObject({
      status: "interrupted",
      error: expect.stringContaining("10 times"),
    });
  }
});

test("a method that kills the process is given up after ten times", async () => {
  const world = createWorld();
  let kills = 0;
  const deadly = (life: Life) => ({
    deadly: (_: unknown, ctx: FiberContext) => {
      ctx.stash(++kills);
      life.kill();
      return forever();
    },
  });
  let life = openLife(world, deadly);
  const id = life.fibers.spawnFiber("deadly");
  for (let lives = 0; lives < 15; lives++) {
    await life.settle();
    life = openLife(world, deadly);
  }
  expect(kills).toBe(10);
  expect(life.fibers.inspectFiber(id)).toMatchObject({
    status: "error",
    snapshot: 10,
    error: expect.stringContaining("10 times"),
  });
});

test("killed between any two commits, an accepted spawn fiber ends completed, once", async () => {
  const make = (life: Life) => ({
    work: async (_: unknown, ctx: FiberContext) => {
      for (let step = (ctx.snapshot as number | null) ?? 0; step < 3; step++) {
        life.effect(step);
        await Promise.resolve();
        ctx.stash(step + 1);
      }
      if (ctx.attempt === 1) throw new Error("once more");
      return "done";
    },
  });
  await killAtEveryCommit({
    first: async (world, die) => {
      const life = openLife(world, make);
      life.fibers.spawnFiber("work");
      die();
      await life.advance(MINUTE);
      return life;
    },
    later: (world) => openLife(world, make).advance(MINUTE),
    check: (world) => {
      const life = openLife(world, make);
      expect(life.fibers.listFibers()).toMatchObject([{ status: "completed", result: "done", snapshot: 3 }]);
      // A step whose checkpoint was not stored may run twice, but never out of order.
      expect(world.effects.filter((effect, i) => effect !== world.effects[i - 1])).toEqual([0, 1, 2]);
      expect(world.events.filter((event) => event.type === "fiber:settled").length).toBeLessThanOrEqual(1);
    },
  });
});

test("killed between any two commits, a managed fiber ends completed or is handed to the hook", async () => {
  const hook = withHook(() => ({ status: "error", error: "cut" }));
  await killAtEveryCommit({
    first: async (world, die) => {
      const life = openLife(world);
      die();
      void life.fibers
        .startFiber("job", async (ctx) => {
          ctx.stash(1);
          await Promise.resolve();
        })
        .then(
          () => life.effect("accepted"),
          () => undefined,
        );
      await life.settle();
      return life;
    },
    later: (world) => openLife(world, hook).settle(),
    check: (world, commits) => {
      const life = openLife(world, hook);
      const statuses = life.fibers.listFibers().map((fiber) => fiber.status);
      if (commits === 1 && !world.effects.includes("accepted")) return;
      expect(statuses).toHaveLength(1);
      expect(["completed", "error"]).toContain(statuses[0]);
    },
  });
});
