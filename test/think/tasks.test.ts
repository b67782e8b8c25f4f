// Scheduled tasks of a Think agent: prompts, handlers, retries, and what happens when the declaration changes.
import { type ScheduledTaskContext, type ScheduledTasks, Think } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { manualClock, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openHost } from "../host/open-host.ts";
import { openThink } from "./harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2025, 0, 1);

const echo = () => scriptedModel(({ userText }) => ({ text: `Done: ${userText}` }));

/** An agent whose tasks the test may change while it lives. */
async function openPlanner(tasks: ScheduledTasks, zone?: string) {
  const current = { tasks, zone, asked: 0 };
  const model = echo();
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getScheduledTasks() {
          current.asked++;
          return current.tasks;
        }
        override getDefaultTimezone() {
          return current.zone;
        }
      },
    { manual: true },
  );
  return { kit, current, model, clock: kit.clock };
}

interface StoredTask {
  readonly id: string;
  readonly due: number;
  readonly starts: number;
  readonly error: string | null;
}
const ALL = "SELECT task_id AS id, due, starts, error FROM perdure_task ORDER BY task_id";

test("a prompt is a turn of its own, once per occurrence", async () => {
  const { kit, clock, model } = await openPlanner({
    report: { schedule: "every day at 09:00 in UTC", prompt: "Report!", metadata: { for: "me" } },
  });
  const agent = await kit.agent();
  await clock.advance(9 * HOUR);
  await kit.stable();
  await clock.advance(DAY);
  await kit.stable();
  expect(agent.messages.map(textIn)).toEqual(["Report!", "Done: Report!", "Report!", "Done: Report!"]);
  expect(model.calls).toHaveLength(2);
  const [second, first] = agent.listSubmissions();
  expect(first).toMatchObject({
    idempotencyKey: "task:report:2025-01-01T09:00:00.000Z",
    status: "completed",
    metadata: { taskId: "report", scheduledFor: START + 9 * HOUR, timezone: "UTC", metadata: { for: "me" } },
  });
  expect(second).toMatchObject({ idempotencyKey: "task:report:2025-01-02T09:00:00.000Z" });
});

test("a prompt may be a function, asked at every occurrence; what it gives must be a text", async () => {
  let n = 0;
  const { kit, clock } = await openPlanner({
    soon: { schedule: "every hour", prompt: async () => `Number ${++n}` },
    plain: { schedule: "every 2 hours", prompt: () => "Plain" },
    bad: { schedule: "every 3 hours", prompt: () => " ", retry: { maxAttempts: 1 } },
  });
  const agent = await kit.agent();
  for (let hour = 0; hour < 3; hour++) {
    await clock.advance(HOUR);
    await kit.stable();
  }
  const asked = agent.messages.filter(({ role }) => role === "user").map(textIn);
  expect(asked.toSorted()).toEqual(["Number 1", "Number 2", "Number 3", "Plain"]);
  expect(kit.takeErrors()).toEqual(['The prompt of the scheduled task "bad" must return a text that is not empty.']);
});

test("a handler is told what it runs for", async () => {
  const seen: ScheduledTaskContext[] = [];
  const metadata = { workflow: "digest" };
  const note = (context: ScheduledTaskContext) => void seen.push(context);
  const { kit, clock } = await openPlanner(
    {
      digest: { schedule: "every day at 09:00", timezone: "America/New_York", metadata, handler: note },
      here: { schedule: "every weekday at 08:00", handler: note },
      beat: { schedule: "every 15 hours", handler: note },
    },
    "Asia/Kolkata",
  );
  await kit.agent();
  await clock.advance(15 * HOUR);
  expect(seen).toEqual([
    {
      taskId: "here",
      scheduledFor: START + 2.5 * HOUR,
      scheduledForDate: new Date(START + 2.5 * HOUR),
      occurrenceKey: "here:2025-01-01T02:30:00.000Z",
      idempotencyKey: "Talk/one:here:2025-01-01T02:30:00.000Z",
      schedule: "every weekday at 08:00",
      scheduleKind: "wall-clock",
      timezone: "Asia/Kolkata",
      metadata: undefined,
    },
    expect.objectContaining({
      taskId: "digest",
      scheduledFor: START + 14 * HOUR,
      timezone: "America/New_York",
      metadata,
    }),
    expect.objectContaining({ taskId: "beat", scheduleKind: "interval", timezone: undefined }),
  ]);
});

test("a handler that throws is tried again with the same key; given up, it is reported and the next one comes", async () => {
  const keys: string[] = [];
  const events: unknown[] = [];
  onTestFinished(subscribe("task:ran", ({ payload }) => events.push(payload)));
  onTestFinished(subscribe("task:failed", ({ payload }) => events.push(payload)));
  let broken = true;
  const { kit, clock } = await openPlanner({
    flaky: {
      schedule: "every hour",
      retry: { maxAttempts: 2 },
      handler: async ({ idempotencyKey }) => {
        keys.push(idempotencyKey);
        await Promise.resolve();
        if (broken) throw new Error("no luck");
      },
    },
  });
  await kit.agent();
  await clock.advance(HOUR + MINUTE);
  expect(keys).toEqual(Array(2).fill("Talk/one:flaky:2025-01-01T01:00:00.000Z"));
  expect(kit.takeErrors()).toEqual(["no luck"]);
  expect(await kit.rows<StoredTask>(ALL)).toEqual([
    { id: "flaky", due: START + 2 * HOUR, starts: 0, error: "no luck" },
  ]);
  const run = { taskId: "flaky", occurrenceKey: "flaky:2025-01-01T01:00:00.000Z", ok: false, error: "no luck" };
  expect(events).toEqual([
    { ...run, attempt: 1 },
    { ...run, attempt: 2 },
    { taskId: run.taskId, occurrenceKey: run.occurrenceKey, attempts: 2, error: "no luck" },
  ]);
  broken = false;
  await clock.advance(HOUR);
  expect(keys.slice(2)).toEqual(["Talk/one:flaky:2025-01-01T02:00:00.000Z"]);
  expect(await kit.rows<StoredTask>(ALL)).toEqual([{ id: "flaky", due: START + 3 * HOUR, starts: 0, error: null }]);
});

test("a handler that returns plainly is one transaction with its end; a throw undoes what it wrote", async () => {
  let tries = 0;
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override onStart(): void {
          this.sql`CREATE TABLE IF NOT EXISTS line (n INTEGER)`;
        }
        lines(): unknown[] {
          return this.sql`SELECT n FROM line`.map(({ n }) => n);
        }
        override getScheduledTasks(): ScheduledTasks {
          return {
            write: {
              schedule: "every hour",
              handler: () => {
                this.sql`INSERT INTO line VALUES (${++tries})`;
                if (tries === 1) throw new Error("undo");
              },
            },
          };
        }
      },
    { manual: true },
  );
  const agent = await kit.agent();
  await kit.clock.advance(HOUR + MINUTE);
  expect(agent.lines()).toEqual([2]);
});

test("a slow handler: the task does not overlap itself, and what it misses is not made up for", async () => {
  const waiting: PromiseWithResolvers<void>[] = [];
  const meant: number[] = [];
  const { kit, clock } = await openPlanner({
    slow: {
      schedule: "every hour",
      handler: ({ scheduledFor }) => {
        meant.push((scheduledFor - START) / HOUR);
        const wait = Promise.withResolvers<void>();
        waiting.push(wait);
        return wait.promise;
      },
    },
  });
  await kit.agent();
  await clock.advance(3.5 * HOUR);
  expect(meant).toEqual([1]);
  waiting[0]?.resolve();
  await clock.advance(HOUR);
  expect(meant).toEqual([1, 4]);
  waiting[1]?.resolve();
  await clock.advance(0);
});

test("a start leaves tasks as they are; a change arms anew; what is gone is removed; what is new is added", async () => {
  const prompt = "Hi.";
  const { kit, clock, current } = await openPlanner({
    kept: { schedule: "every 5 hours", prompt },
    changed: { schedule: "every day at 09:00 in UTC", prompt },
    gone: { schedule: "every hour", prompt },
  });
  await kit.agent();
  const due = async () => Object.fromEntries((await kit.rows<StoredTask>(ALL)).map((row) => [row.id, row.due - START]));
  expect(await due()).toEqual({ kept: 5 * HOUR, changed: 9 * HOUR, gone: HOUR });
  await clock.advance(30 * MINUTE);
  current.tasks = {
    kept: { schedule: "every 5 hours", prompt: "Another prompt is no other schedule." },
    changed: { schedule: "every day at 10:00 in UTC", prompt },
    added: { schedule: "every hour", prompt },
  };
  const expected = { kept: 5 * HOUR, changed: 10 * HOUR, added: 1.5 * HOUR };
  await kit.restart();
  expect(await due()).toEqual(expected);
  await kit.restart();
  expect(await due()).toEqual(expected);
  current.tasks = {};
  await kit.restart();
  expect(await due()).toEqual({});
  await clock.advance(DAY);
  expect(await kit.stored()).toEqual([]);
});

test("reconciling on demand, by either name", async () => {
  const prompt = "Hi.";
  const { kit, current } = await openPlanner({});
  const agent = await kit.agent();
  current.tasks = { a: { schedule: "every hour", prompt } };
  await agent.reconcileScheduledTasks();
  expect((await kit.rows<StoredTask>(ALL)).map(({ id }) => id)).toEqual(["a"]);
  current.tasks = { b: { schedule: "every hour", prompt } };
  await agent.internal_reconcileScheduledTasks();
  expect((await kit.rows<StoredTask>(ALL)).map(({ id }) => id)).toEqual(["b"]);
  // At once: the last one read is the one that holds.
  current.tasks = { c: { schedule: "every hour", prompt } };
  const first = agent.reconcileScheduledTasks();
  current.tasks = { d: { schedule: "every hour", prompt } };
  await Promise.all([first, agent.reconcileScheduledTasks()]);
  expect((await kit.rows<StoredTask>(ALL)).map(({ id }) => id)).toEqual(["d"]);
  expect(current.asked).toBe(5);
});

test("a reconcile that fails says so and changes nothing", async () => {
  const good: ScheduledTasks = { a: { schedule: "every hour", prompt: "Hi." } };
  const { kit, current } = await openPlanner(good);
  const agent = await kit.agent();
  const before = await kit.rows<StoredTask>(ALL);
  current.tasks = {
    a: { schedule: "every 2 hours", prompt: "Hi." },
    b: { schedule: "every day at 09:00", prompt: "Hi." },
  };
  await expect(agent.reconcileScheduledTasks()).rejects.toThrow('Scheduled task "b": a time of day needs a time zone');
  expect(await kit.rows<StoredTask>(ALL)).toEqual(before);
  await agent.waitUntilStable();
});

test("tasks that cannot work fail the start, store nothing and say why", async () => {
  const errors: unknown[] = [];
  let tasks: () => ScheduledTasks = () => ({ a: { schedule: "every day at 9" as "every hour", prompt: "Hi." } });
  class Planner extends Think {
    override getScheduledTasks() {
      return tasks();
    }
    override onError(error: unknown): void {
      errors.push(error);
    }
  }
  const host = await openHost({ agents: { Planner }, storage: memoryStorage() });
  const agent = host.getAgentByName(Planner, "one");
  const badConfig = (message: string) =>
    expect.objectContaining({ code: "bad_config", message: expect.stringContaining(message) });
  await expect(agent.listInbox()).rejects.toThrow(
    'Scheduled task "a": the schedule "every day at 9" is not understood',
  );
  tasks = () => {
    throw new Error("no database");
  };
  await expect(agent.listInbox()).rejects.toThrow("getScheduledTasks() threw");
  tasks = () => undefined as never;
  await expect(agent.listInbox()).rejects.toThrow("must return an object of tasks");
  expect(errors).toEqual([badConfig('"a"'), badConfig("no database"), badConfig("undefined")]);
  expect(host.listAgents()).toEqual([]);
  tasks = () => ({ a: { schedule: "every hour", prompt: "Hi." } });
  await agent.listInbox();
  expect(host.listAgents()).toEqual(["Planner/one"]);
});

test("tasks may be read from elsewhere, and declared as a field", async () => {
  class Planner extends Think {
    override getScheduledTasks = async (): Promise<ScheduledTasks> => {
      await new Promise((resolve) => setImmediate(resolve));
      return { a: { schedule: "every hour", handler: () => void (ran = true) } };
    };
  }
  let ran = false;
  const clock = manualClock();
  const host = await openHost({ agents: { Planner }, storage: memoryStorage(), clock });
  await host.getAgentByName(Planner, "one").listInbox();
  await clock.advance(HOUR);
  expect(ran).toBe(true);
});

test("a task that is removed, or changed, while it runs", async () => {
  const waiting = Promise.withResolvers<void>();
  const ran: string[] = [];
  const handler = async ({ occurrenceKey }: ScheduledTaskContext) => {
    ran.push(occurrenceKey.slice(0, -8));
    if (ran.length <= 2) await waiting.promise;
  };
  const { kit, clock, current } = await openPlanner({
    removed: { schedule: "every hour", handler },
    changed: { schedule: "every hour", handler },
  });
  const agent = await kit.agent();
  await clock.advance(HOUR);
  current.tasks = { changed: { schedule: "every 30 minutes", handler } };
  await clock.advance(10 * MINUTE);
  await agent.reconcileScheduledTasks();
  await clock.advance(HOUR);
  expect(ran).toEqual(["changed:2025-01-01T01:00", "removed:2025-01-01T01:00"]);
  waiting.resolve();
  await clock.advance(HOUR);
  // Counted from 01:10, when it changed.
  expect(ran.slice(2)).toEqual(["changed:2025-01-01T02:40", "changed:2025-01-01T03:10"]);
  expect((await kit.rows<StoredTask>(ALL)).map(({ id }) => id)).toEqual(["changed"]);
});

test("a child has tasks of its own, and nobody has to wake it", async () => {
  const ran: string[] = [];
  class Child extends Think {
    override getScheduledTasks(): ScheduledTasks {
      return { tick: { schedule: "every hour", handler: ({ idempotencyKey }) => void ran.push(idempotencyKey) } };
    }
  }
  class Parent extends Think {
    async grow(): Promise<void> {
      await (await this.subAgent(Child, "kid")).listInbox();
    }
  }
  const clock = manualClock();
  const storage = memoryStorage();
  const open = () => openHost({ agents: { Parent, Child }, storage, clock, idleMs: MINUTE });
  const host = await open();
  await host.getAgentByName(Parent, "one").grow();
  await clock.advance(2 * HOUR);
  await host.stop();
  await open();
  await clock.advance(HOUR);
  expect(ran).toEqual([1, 2, 3].map((hour) => `Parent/one/Child/kid:tick:2025-01-01T0${hour}:00:00.000Z`));
});
