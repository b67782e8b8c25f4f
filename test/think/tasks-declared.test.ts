// Scheduled tasks of a Think agent: what happens when the declaration changes, or cannot work.
import { type ScheduledTaskContext, type ScheduledTasks, Think } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { manualClock } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openHost } from "../host/open-host.ts";
import { ALL, DAY, HOUR, MINUTE, openPlanner, START, type StoredTask } from "./tasks-planner.ts";

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
  tasks = () => undefined as never;
  await expect(agent.listInbox()).rejects.toThrow("must return an object of tasks");
  expect(errors).toEqual([badConfig('"a"'), badConfig("undefined")]);
  expect(host.listAgents()).toEqual([]);
  tasks = () => ({ a: { schedule: "every hour", prompt: "Hi." } });
  await agent.listInbox();
  expect(host.listAgents()).toEqual(["Planner/one"]);
});

test("a getScheduledTasks that throws does not keep the agent from starting: old tasks stay, and run once it is read", async () => {
  const told: unknown[] = [];
  onTestFinished(subscribe("task:unread", ({ payload }) => void told.push(payload)));
  const { kit, clock, current } = await openPlanner({ a: { schedule: "every hour", prompt: "Hi." } });
  await kit.agent();
  const before = await kit.rows<StoredTask>(ALL);
  const { tasks } = current;
  Object.defineProperty(current, "tasks", {
    configurable: true,
    get: () => {
      throw new Error("no database");
    },
  });
  await kit.restart();
  const agent = await kit.agent();
  expect(await kit.rows<StoredTask>(ALL)).toEqual(before);
  const error = "getScheduledTasks() threw, and the tasks were left as they are: no database";
  expect(kit.takeErrors()).toEqual([error]);
  expect(told).toEqual([{ error }]);
  await clock.advance(2 * HOUR);
  await expect.poll(() => told.length).toBeGreaterThan(1);
  expect(agent.messages).toEqual([]);
  await expect(agent.reconcileScheduledTasks()).rejects.toThrow("no database");
  Object.defineProperty(current, "tasks", { value: tasks });
  await clock.advance(MINUTE);
  await expect.poll(() => agent.messages.map(textIn)).toEqual(["Hi.", "Done: Hi."]);
  await kit.stable();
  expect(new Set(kit.takeErrors())).toEqual(new Set([error]));
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
