// Scheduled tasks of a Think agent: prompts, handlers, retries, children.
import { getCurrentAgent, type ScheduledTaskContext, type ScheduledTasks, Think } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { manualClock } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openHost } from "../host/open-host.ts";
import { openThink } from "./harness.ts";
import { ALL, DAY, HOUR, MINUTE, openPlanner, START, type StoredTask } from "./tasks-planner.ts";

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
  expect(kit.takeErrors()).toEqual(['The prompt of the scheduled task "bad" must return a non-empty string.']);
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

test("an occurrence that ended the process too often is not started again; the next one is", async () => {
  let ran = 0;
  const { kit, clock } = await openPlanner({ poison: { schedule: "every hour", handler: () => void ran++ } });
  await kit.agent();
  await kit.rows("UPDATE perdure_task SET starts = 10");
  await clock.advance(HOUR);
  expect(ran).toBe(0);
  expect(kit.takeErrors()).toEqual(['The process ended 10 times while "poison" ran. It will not start again.']);
  await clock.advance(HOUR);
  expect(ran).toBe(1);
});

test("an occurrence that has its turn gets no other, also if the prompt has changed since", async () => {
  let text = "One";
  const { kit, clock } = await openPlanner({ ask: { schedule: "every hour", prompt: async () => text } });
  const agent = await kit.agent();
  await clock.advance(HOUR);
  await kit.stable();
  // As if the row had been restored from a copy.
  await kit.rows(`UPDATE perdure_task SET due = ${START + HOUR}, at = ${START + HOUR}`);
  text = "Two";
  await agent.reconcileScheduledTasks();
  await clock.advance(1);
  await kit.stable();
  expect(agent.messages.map(textIn)).toEqual(["One", "Done: One"]);
  expect((await kit.rows<StoredTask>(ALL)).map(({ due, error }) => [due, error])).toEqual([[START + 2 * HOUR, null]]);
});

test("a prompt that is too large fails like a throw", async () => {
  const { kit, clock } = await openPlanner({
    big: { schedule: "every hour", prompt: async () => "x".repeat(2_000_000), retry: { maxAttempts: 1 } },
  });
  await kit.agent();
  await clock.advance(HOUR + MINUTE);
  expect(kit.takeErrors()).toEqual([expect.stringContaining("is larger than")]);
  expect((await kit.rows<StoredTask>(ALL)).map(({ due }) => due)).toEqual([START + 2 * HOUR]);
});

test("handlers and prompts run as the agent, for nobody", async () => {
  const seen: unknown[] = [];
  const who = () => {
    const { agent, connection, request } = getCurrentAgent();
    seen.push(agent?.name, connection, request);
  };
  const { kit, clock } = await openPlanner({
    handler: { schedule: "every hour", handler: who },
    prompt: { schedule: "every hour", prompt: () => (who(), "Hi.") },
  });
  await kit.agent();
  await clock.advance(HOUR);
  await kit.stable();
  expect(seen).toEqual(["one", undefined, undefined, "one", undefined, undefined]);
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
