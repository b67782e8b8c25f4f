// Checked by the compiler (`npm run check`), never run.
import { defineScheduledTasks, Think } from "perdure";
import type { ScheduledTaskContext, ScheduledTasks, ThinkScheduledTasks } from "perdure";
import type {
  IntervalSchedule,
  ScheduledTask,
  TaskSchedule,
  ThinkScheduledTaskContext,
  WallClockSchedule,
} from "perdure/work";
import { expectTypeOf } from "vitest";

/** Both names mean the same. */
expectTypeOf<ThinkScheduledTasks>().toEqualTypeOf<ScheduledTasks>();
expectTypeOf<ThinkScheduledTaskContext>().toEqualTypeOf<ScheduledTaskContext>();

export const good: TaskSchedule[] = [
  "every minute",
  "every hour",
  "every 1 minute",
  "every 5 minutes",
  "every 1 hour",
  "every 12 hours",
  "every day at 00:00",
  "every day at 23:59",
  "every weekday at 09:05",
  "every week on monday at 09:00",
  "every week on monday,wednesday at 09:00",
  "every week on monday,wednesday,friday at 09:00",
  "every week on monday,tuesday,wednesday,thursday,friday,saturday,sunday at 09:00",
  "every day at 09:00 in Europe/London",
  "every day at 09:00 in UTC",
  "every weekday at 19:30 in America/Argentina/Buenos_Aires",
  "every week on sunday,saturday at 09:00 in Asia/Kolkata",
  "every week on sunday,saturday,monday at 09:00 in Asia/Kolkata",
];

// @ts-expect-error no such form
export const daily: TaskSchedule = "daily";
// @ts-expect-error no such unit
export const seconds: TaskSchedule = "every 5 seconds";
// @ts-expect-error not a number
export const few: TaskSchedule = "every few minutes";
// @ts-expect-error an interval has no zone
export const intervalZone: TaskSchedule = "every 5 minutes in Europe/London";
// @ts-expect-error an hour has two digits
export const shortHour: TaskSchedule = "every day at 9:00";
// @ts-expect-error no such hour
export const lateHour: TaskSchedule = "every day at 24:00";
// @ts-expect-error no such minute
export const lateMinute: TaskSchedule = "every weekday at 09:60";
// @ts-expect-error a minute has two digits
export const shortMinute: TaskSchedule = "every week on monday at 09:5";
// @ts-expect-error no such hour
export const pairHour: TaskSchedule = "every week on monday,tuesday at 25:00";
// @ts-expect-error no time
export const noTime: TaskSchedule = "every day";
// @ts-expect-error no days
export const noDays: TaskSchedule = "every week at 09:00";
// @ts-expect-error not the name of a day
export const shortDay: TaskSchedule = "every week on mon at 09:00";
// @ts-expect-error not the name of a day
export const secondDay: TaskSchedule = "every week on monday,tues at 09:00";
// @ts-expect-error not the name of a day
export const thirdDay: TaskSchedule = "every week on monday,tuesday,wed at 09:00";
// @ts-expect-error no spaces between
export const spaces: TaskSchedule = "every week on monday, tuesday at 09:00";
// @ts-expect-error the time is wrong in a zone, too
export const zoneTime: TaskSchedule = "every day at 9am in Europe/London";

/** Built from values. */
export function built(minutes: number, hour: "08" | "09"): [IntervalSchedule, WallClockSchedule] {
  return [`every ${minutes} minutes`, `every day at ${hour}:30`];
}

// @ts-expect-error it must do something
export const nothing: ScheduledTask = { schedule: "every hour" };
// @ts-expect-error it cannot do both
export const both: ScheduledTask = { schedule: "every hour", prompt: "Hi.", handler: () => {} };
// @ts-expect-error no such setting
export const misspelt: ScheduledTask = { schedule: "every hour", prompt: "Hi.", timeZone: "Europe/London" };
// @ts-expect-error a handler is a function
export const notCalled: ScheduledTask = { schedule: "every hour", handler: "run" };

/** The return type checks the literals, and handlers know what they are given. */
export class Annotated extends Think {
  override getDefaultTimezone() {
    return "Europe/London";
  }
  override getScheduledTasks(): ThinkScheduledTasks {
    return {
      report: { schedule: "every week on monday at 09:00", prompt: "Report." },
      asked: { schedule: "every hour", prompt: async () => "Report." },
      digest: {
        schedule: "every day at 09:00",
        timezone: "America/New_York",
        metadata: { workflow: "digest" },
        retry: { maxAttempts: 3 },
        handler: async (context) => {
          expectTypeOf(context).toEqualTypeOf<ScheduledTaskContext>();
          expectTypeOf(context.scheduledFor).toBeNumber();
          expectTypeOf(context.scheduledForDate).toEqualTypeOf<Date>();
          expectTypeOf(context.scheduleKind).toEqualTypeOf<"interval" | "wall-clock">();
          expectTypeOf(context.timezone).toEqualTypeOf<string | undefined>();
          expectTypeOf(context.metadata).toEqualTypeOf<Readonly<Record<string, unknown>> | undefined>();
          return this.name;
        },
      },
    };
  }
}

/** Without a return type, the function checks them. */
export class Defined extends Think {
  override getScheduledTasks() {
    return defineScheduledTasks({
      report: { schedule: "every weekday at 09:00 in Europe/London", prompt: "Report." },
      digest: { schedule: "every 2 hours", handler: ({ idempotencyKey }) => void idempotencyKey.length },
    });
  }
}

/** From elsewhere. */
export class Stored extends Think {
  override async getScheduledTasks(): Promise<ScheduledTasks> {
    return this.getConfig<{ tasks: ScheduledTasks }>()?.tasks ?? {};
  }
}

// @ts-expect-error checked there as well
defineScheduledTasks({ report: { schedule: "every day at 9:00", prompt: "Report." } });
// @ts-expect-error it must do something
defineScheduledTasks({ report: { schedule: "every day at 09:00" } });

/** What the compiler lets pass because a union of all would be too large; the agent's start refuses them. */
export const refusedLater: TaskSchedule[] = [
  "every 0 minutes",
  "every 1.5 hours",
  "every day at 09:00 in London",
  "every week on monday,tuesday,wednesday,thurs at 09:00",
  "every week on monday,tuesday,wednesday at 29:00",
];

export async function reconcile(agent: Annotated): Promise<void> {
  expectTypeOf(await agent.reconcileScheduledTasks()).toBeVoid();
  expectTypeOf(await agent.internal_reconcileScheduledTasks()).toBeVoid();
}
