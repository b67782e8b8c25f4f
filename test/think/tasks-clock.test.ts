// Scheduled tasks of a real agent on a clock that the test moves: changes of the clocks, late hosts, wrong clocks.
import { type AgentHost, type ScheduledTaskContext, type ScheduledTasks, Think } from "perdure";
import { memoryStorage } from "perdure/node";
import { type ManualClock, manualClock } from "perdure/testing";
import type { TaskSchedule } from "perdure/work";
import { expect, test } from "vitest";
import { openHost } from "../host/open-host.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Run {
  /** The time that was meant, and the time that it was, both as clocks in UTC show them. */
  readonly meant: string;
  readonly was: string;
}

const shown = (at: number) => new Date(at).toISOString().slice(0, 16);

/** An agent with these tasks, on a clock that shows `from`. */
function world(tasks: Readonly<Record<string, TaskSchedule>>, from: string) {
  const clock: ManualClock = manualClock(Date.parse(from));
  const storage = memoryStorage();
  const runs: Run[] = [];
  const keys: string[] = [];
  const lives = { count: 0 };
  const note = ({ scheduledFor, idempotencyKey }: ScheduledTaskContext) => {
    runs.push({ meant: shown(scheduledFor), was: shown(clock.now()) });
    keys.push(idempotencyKey);
  };
  class Planner extends Think {
    override onStart(): void {
      lives.count++;
    }
    override getScheduledTasks(): ScheduledTasks {
      const entries = Object.entries(tasks).map(([id, schedule]) => [id, { schedule, handler: note }] as const);
      return Object.fromEntries(entries);
    }
  }
  // An agent with nothing to do leaves memory: each occurrence has to wake it.
  const open = () => openHost({ agents: { Planner }, storage, clock, idleMs: MINUTE });
  return {
    clock,
    runs,
    keys,
    lives,
    open,
    async start() {
      const host = await open();
      await host.getAgentByName(Planner, "one").reconcileScheduledTasks();
      return host;
    },
  };
}

test.for([
  [
    "America/New_York",
    "every day at 02:30",
    "2025-03-08T00:00Z",
    ["2025-03-08T07:30", "2025-03-09T07:00", "2025-03-10T06:30"],
  ],
  [
    "America/New_York",
    "every day at 01:30",
    "2025-11-01T00:00Z",
    ["2025-11-01T05:30", "2025-11-02T05:30", "2025-11-03T06:30"],
  ],
  ["Europe/London", "every week on sunday at 01:30", "2025-03-30T00:00Z", ["2025-03-30T01:00"]],
  [
    "Europe/London",
    "every week on sunday,monday at 01:30",
    "2025-10-25T12:00Z",
    ["2025-10-26T00:30", "2025-10-27T01:30"],
  ],
  [
    "Australia/Lord_Howe",
    "every day at 02:15",
    "2025-10-04T00:00Z",
    ["2025-10-04T15:30", "2025-10-05T15:15", "2025-10-06T15:15"],
  ],
  [
    "Australia/Lord_Howe",
    "every day at 01:45",
    "2025-04-05T00:00Z",
    ["2025-04-05T14:45", "2025-04-06T15:15", "2025-04-07T15:15"],
  ],
  ["Asia/Kolkata", "every weekday at 09:00", "2024-02-29T00:00Z", ["2024-02-29T03:30", "2024-03-01T03:30"]],
  [
    "America/Sao_Paulo",
    "every day at 00:30",
    "2018-11-03T06:00Z",
    ["2018-11-04T03:00", "2018-11-05T02:30", "2018-11-06T02:30"],
  ],
  [
    "America/Nuuk",
    "every day at 23:30",
    "2025-03-29T12:00Z",
    ["2025-03-30T01:00", "2025-03-31T00:30", "2025-04-01T00:30"],
  ],
  [
    "Pacific/Apia",
    "every day at 09:00",
    "2011-12-29T12:00Z",
    ["2011-12-29T19:00", "2011-12-30T19:00", "2011-12-31T19:00"],
  ],
  ["UTC", "every day at 12:00", "2024-02-28T13:00Z", ["2024-02-29T12:00", "2024-03-01T12:00", "2024-03-02T12:00"]],
] as const)("%s: %s from %s on", async ([zone, schedule, from, expected]) => {
  const { clock, runs, keys, lives, start } = world({ task: `${schedule} in ${zone}` }, from);
  await start();
  await clock.advance(3 * DAY);
  // Each in its minute, and none twice.
  expect(runs).toEqual(expected.map((at) => ({ meant: at, was: at })));
  expect(new Set(keys).size).toBe(expected.length);
  expect(lives.count, "one for each occurrence, and the first").toBe(1 + expected.length);
});

test("an interval keeps its beat over eviction and restarts", async () => {
  const { clock, runs, start, open } = world({ beat: "every 7 hours" }, "2025-03-29T10:05Z");
  const host = await start();
  await clock.advance(8 * HOUR);
  await host.stop();
  await clock.advance(HOUR);
  await open();
  await clock.advance(15 * HOUR);
  expect(runs.map(({ was }) => was)).toEqual(["2025-03-29T17:05", "2025-03-30T00:05", "2025-03-30T07:05"]);
});

test("a host that was down for days runs what was meant once, late, and then what comes next", async () => {
  const { clock, runs, start, open } = world(
    { daily: "every day at 09:00 in Europe/London", beat: "every 10 hours" },
    "2025-03-28T08:00Z",
  );
  const host = await start();
  await host.stop();
  await clock.advance(2.5 * DAY);
  expect(runs).toEqual([]);
  // Nobody uses the agent: its alarm wakes it.
  await open();
  await clock.advance(0);
  expect(runs).toEqual([
    { meant: "2025-03-28T09:00", was: "2025-03-30T20:00" },
    { meant: "2025-03-28T18:00", was: "2025-03-30T20:00" },
  ]);
  await clock.advance(13 * HOUR);
  expect(runs.slice(2)).toEqual([
    { meant: "2025-03-31T06:00", was: "2025-03-31T06:00" },
    { meant: "2025-03-31T08:00", was: "2025-03-31T08:00" },
  ]);
});

test("a clock that is put back: nothing runs twice, and nothing is lost", async () => {
  const tasks = { daily: "every day at 09:00 in UTC", beat: "every 30 minutes" } as const;
  const { clock, runs, keys, start, open } = world(tasks, "2025-06-01T08:00Z");
  let host = await start();
  await clock.advance(90 * MINUTE);
  const before = ["2025-06-01T08:30", "2025-06-01T09:00", "2025-06-01T09:00", "2025-06-01T09:30"];
  expect(runs.map(({ meant }) => meant)).toEqual(before);
  await clock.set(Date.parse("2025-06-01T08:30Z"));
  await host.stop();
  host = await open();
  // The beat waits for its next time; the day's occurrence is over.
  await clock.advance(89 * MINUTE);
  expect(runs).toHaveLength(4);
  await clock.advance(MINUTE);
  expect(runs.slice(4)).toEqual([{ meant: "2025-06-01T10:00", was: "2025-06-01T10:00" }]);
  await clock.set(Date.parse("2025-06-01T09:45Z"));
  await clock.advance(DAY);
  expect(new Set(keys).size).toBe(keys.length);
  const daily = keys.filter((key) => key.includes("daily"));
  expect(daily).toEqual(["Planner/one:daily:2025-06-01T09:00:00.000Z", "Planner/one:daily:2025-06-02T09:00:00.000Z"]);
  // From 08:30 to 09:30 of the next day, each half hour once.
  expect(keys).toHaveLength(2 + 51);
  await host.stop();
});

/** The same host, noting statements. */
function noting(host: AgentHost, seen: string[]): AgentHost {
  return new Proxy(host, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        if (key === "sql") seen.push(String(args[0]));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

test("an agent without tasks has no rows of them, and pays one look per life", async () => {
  const seen: string[] = [];
  class Plain extends Think {
    constructor(host: AgentHost) {
      super(noting(host, seen));
    }
  }
  const looks = () => seen.filter((query) => query.includes("perdure_task")).length;
  const storage = memoryStorage();
  const host = await openHost({ agents: { Plain }, storage });
  const agent = host.getAgentByName(Plain, "one");
  await agent.listInbox();
  // A blank one has none to look for.
  expect(looks()).toBe(0);
  await agent.configure({});
  await host.stop();
  const again = await openHost({ agents: { Plain }, storage });
  const woken = again.getAgentByName(Plain, "one");
  for (let n = 0; n < 5; n++) await woken.schedule(1000 + n, "listInbox");
  expect(looks()).toBe(1);
  expect(seen.length).toBeGreaterThan(20);
});
