// Work with a due time: schedules, tasks, the queue, fibers.
export type { RetryCallOptions } from "../work/retry.ts";
export type { ScheduleCriteria, ScheduleRun } from "../work/schedules.ts";
export type {
  IntervalSchedule,
  IntervalSchedule as ThinkIntervalSchedule,
  ScheduledTask,
  ScheduledTask as ThinkScheduledTask,
  ScheduledTaskContext as ThinkScheduledTaskContext,
  TaskSchedule,
  TaskSchedule as ThinkScheduledTaskSchedule,
  WallClockSchedule,
  WallClockSchedule as ThinkWallClockSchedule,
} from "../work/task-types.ts";
export { getSchedulePrompt, type ParsedSchedule, scheduleSchema } from "../work/schedule-prompt.ts";
export type { QueueRun } from "../work/queue.ts";
export type { FiberInspection, FiberStatus, StartFiberResult } from "../work/fiber-view.ts";
export type { DeleteFibersOptions, ListFibersOptions, SpawnFiberOptions, StartFiberOptions } from "../work/fibers.ts";
