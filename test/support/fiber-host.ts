import { AsyncLocalStorage } from "node:async_hooks";
import Database from "better-sqlite3";
import type { AgentEvent } from "../../src/base/event.ts";
import type { SqlValue } from "../../src/port.ts";
import { fiberCauseSchema, fiberSchema } from "../../src/store/fiber.ts";
import { queueCauseSchema, queueSchema } from "../../src/store/queue.ts";
import { scheduleCauseSchema, scheduleSchema } from "../../src/store/schedule.ts";
import { Fibers } from "../../src/work/fibers.ts";
import { Queue } from "../../src/work/queue.ts";
import { DEFAULT_RETRY } from "../../src/work/retry.ts";
import { Schedules } from "../../src/work/schedules.ts";
import type { WorkContext } from "../../src/work/work.ts";

/*
 * For tests only: what outlives a process (a real SQLite database, the host's alarm and busy flag, time) is a
 * World; what dies with it is a Life. `world.dieAfter(n)` ends the life right after its n-th commit: from then on
 * each call of the host throws and nothing that the life does counts.
 */

type Method = (payload: never, info: never) => unknown;
export type Methods = Record<string, Method>;

export interface World {
  readonly db: Database.Database;
  readonly start: number;
  now: number;
  /** As a host keeps them: they outlive the process. */
  alarm: number | null;
  busy: boolean;
  /** What was done to the outside by lives that were alive. */
  readonly effects: unknown[];
  readonly events: { readonly type: AgentEvent["type"]; readonly payload: Record<string, unknown> }[];
  commitsLeft: number;
  /** Makes every write fail, as a full disk does. */
  full: boolean;
  timers: { readonly at: number; readonly work: () => void }[];
  dieAfter(commits: number): void;
}

export function createWorld(start = Date.UTC(2025, 0, 1)): World {
  const db = new Database(":memory:");
  const tables = [...scheduleSchema, ...queueSchema, ...fiberSchema];
  for (const statement of [...tables, ...scheduleCauseSchema, ...queueCauseSchema, ...fiberCauseSchema])
    db.exec(statement);
  return {
    db,
    start,
    now: start,
    alarm: null,
    busy: false,
    effects: [],
    events: [],
    commitsLeft: Number.POSITIVE_INFINITY,
    full: false,
    timers: [],
    dieAfter(commits) {
      this.commitsLeft = commits;
    },
  };
}

export interface Life {
  readonly context: WorkContext;
  readonly schedules: Schedules;
  readonly queue: Queue;
  readonly fibers: Fibers;
  readonly dead: boolean;
  stopping: boolean;
  /** Records something done to the outside, unless the process has died. */
  effect(value: unknown): void;
  kill(): void;
  /** Lets promises settle and alarms that are due come, until nothing moves. */
  settle(): Promise<void>;
  /** Moves time forward, stopping at each alarm and timer on the way. */
  advance(ms: number): Promise<void>;
}

export interface LifeOptions {
  readonly recoveryMaxAgeMs?: number;
  readonly retry?: Partial<WorkContext["retry"]>;
  /** Leave out what an agent does at its start. */
  readonly asleep?: boolean;
}

const MAX_MOVES = 100_000;

/** Starts a life on the world, as a host that finds it busy or with an alarm does. */
export function openLife(world: World, methods: (life: Life) => Methods = () => ({}), options: LifeOptions = {}): Life {
  const storage = new AsyncLocalStorage<unknown>();
  let dead = false;
  let depth = 0;
  let listeners: { readonly depth: number; readonly ended: (committed: boolean) => void }[] = [];
  const endTx = (to: number, isCommitted: boolean) => {
    const told = listeners.filter((listener) => listener.depth > to);
    listeners = listeners.filter((listener) => listener.depth <= to);
    for (const listener of told) listener.ended(isCommitted);
  };
  world.commitsLeft = Number.POSITIVE_INFINITY;
  world.timers = [];

  const check = () => {
    if (dead) throw new Error("the process has died");
  };
  const committed = () => {
    world.commitsLeft--;
    if (world.commitsLeft > 0) return;
    dead = true;
    throw new Error("the process died");
  };
  const refuse = () => {
    if (world.full) throw new Error("database or disk is full");
  };

  const context: WorkContext = {
    cause: () => null,
    carry: () => ({}),
    host: {
      id: "Agent/one",
      sql: <T>(query: string, ...args: SqlValue[]): T[] => {
        check();
        const statement = world.db.prepare(query);
        if (!statement.readonly) refuse();
        const rows = statement.reader ? statement.all(...args) : (statement.run(...args), []);
        if (!statement.readonly && depth === 0) committed();
        return rows as T[];
      },
      tx: (work) => {
        check();
        const name = `s${depth}`;
        world.db.exec(depth === 0 ? "BEGIN" : `SAVEPOINT ${name}`);
        depth++;
        let value: ReturnType<typeof work>;
        try {
          value = work();
          if (value instanceof Promise) throw new Error("a transaction must not return a promise");
        } catch (error) {
          depth--;
          world.db.exec(depth === 0 ? "ROLLBACK" : `ROLLBACK TO ${name}; RELEASE ${name}`);
          endTx(depth, false);
          throw error;
        }
        depth--;
        world.db.exec(depth === 0 ? "COMMIT" : `RELEASE ${name}`);
        if (depth > 0) return value;
        committed();
        endTx(0, true);
        return value;
      },
      afterTx: (ended) => {
        if (depth === 0) ended(true);
        else listeners.push({ depth, ended });
      },
      durable: () => (dead ? new Promise(() => undefined) : Promise.resolve()),
      breathe: () => (dead ? new Promise(() => undefined) : Promise.resolve()),
      clock: {
        now: () => world.now,
        after: (ms, work) => {
          const timer = { at: world.now + ms, work: () => void (dead || work()) };
          world.timers.push(timer);
          return () => void (world.timers = world.timers.filter((other) => other !== timer));
        },
      },
      report: () => {},
      emit: (type, payload) => void (dead || world.events.push({ type, payload: payload as Record<string, unknown> })),
      keepAwake: (work) => work,
      context: { run: (value, work) => storage.run(value, work), get: () => storage.getStore() },
    },
    method: (name) => {
      const method = table[name];
      return method === undefined ? undefined : (...args) => method(...(args as [never, never]));
    },
    changed: () => {
      if (dead) return;
      const works = [life.schedules, life.queue, life.fibers];
      const times = works.map((work) => work.next()).filter((at) => at !== null);
      world.alarm = times.length === 0 ? null : Math.min(...times);
      world.busy = works.some((work) => work.active());
    },
    retry: { ...DEFAULT_RETRY, ...options.retry },
    stopped: () => dead || life.stopping,
  };

  const runDue = () => {
    world.alarm = null;
    for (const work of [life.schedules, life.queue, life.fibers]) work.runDue();
    context.changed();
  };
  const life: Life = {
    context,
    schedules: new Schedules(context),
    queue: new Queue(context),
    fibers: new Fibers(context, options),
    get dead() {
      return dead;
    },
    stopping: false,
    effect: (value) => void (dead || world.effects.push(value)),
    kill: () => {
      dead = true;
    },
    settle: async () => {
      for (let moves = 0; moves < MAX_MOVES; moves++) {
        await turn();
        if (dead || world.alarm === null || world.alarm > world.now) return;
        runDue();
      }
      throw new Error("the alarm comes for ever");
    },
    advance: async (ms) => {
      const target = world.now + ms;
      await life.settle();
      while (!dead) {
        const times = [...world.timers.map((timer) => timer.at), world.alarm ?? target].filter((at) => at <= target);
        const next = Math.min(target, ...times);
        world.now = Math.max(world.now, next);
        const due = world.timers.filter((timer) => timer.at <= world.now);
        world.timers = world.timers.filter((timer) => timer.at > world.now);
        for (const timer of due) timer.work();
        await life.settle();
        if (next === target && due.length === 0) return;
      }
    },
  };
  const table = methods(life);
  if (options.asleep === true) return life;
  // What the agent does at its start.
  try {
    life.fibers.recover();
    runDue();
  } catch (error) {
    if (!dead) throw error;
  }
  return life;
}

/** A turn of the event loop, in which promises of any depth settle. */
export function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** A promise to be settled by hand. */
export function deferred<T = void>(): PromiseWithResolvers<T> {
  return Promise.withResolvers<T>();
}

/** A promise that never settles. */
export function forever(): Promise<never> {
  return new Promise<never>(() => undefined);
}

/** A life that dies while a fiber of each closure kind runs. @returns their ids */
export async function dieWithClosures(world: World): Promise<{ run: string; start: string }> {
  const life = openLife(world);
  let run = "";
  void life.fibers.runFiber("run", (ctx) => {
    run = ctx.id;
    ctx.stash({ at: "run" });
    return forever();
  });
  const { fiberId: start } = await life.fibers.startFiber(
    "start",
    (ctx) => {
      ctx.stash({ at: "start" });
      return forever();
    },
    { idempotencyKey: "k", metadata: { m: 1 } },
  );
  await life.settle();
  if (!world.busy) throw new Error("nobody would wake the agent up again");
  life.kill();
  return { run, start };
}

/**
 * Plays `first` and ends the process after its n-th commit, for each n until it gets through; after each death
 * `later` opens lives until the world wants none. Then `check` looks. A death that nobody would wake up from,
 * though rows wait, is an error.
 */
export async function killAtEveryCommit(play: {
  readonly create?: () => World;
  readonly first: (world: World, die: () => void) => Promise<Life>;
  readonly later: (world: World) => Promise<void>;
  readonly check: (world: World, commits: number) => void;
}): Promise<number> {
  for (let commits = 1; commits < 200; commits++) {
    const world = (play.create ?? createWorld)();
    const life = await play.first(world, () => world.dieAfter(commits));
    const survived = !life.dead;
    life.kill();
    for (let lives = 0; (world.busy || world.alarm !== null) && lives < 20; lives++) {
      world.now = Math.max(world.now, world.alarm ?? world.now);
      await play.later(world);
    }
    play.check(world, commits);
    if (survived) return commits;
  }
  throw new Error("it commits for ever");
}
