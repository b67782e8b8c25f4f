// A Think agent on a clock that the test moves, whose tasks the test may change.
import type { ScheduledTasks } from "perdure";
import { scriptedModel } from "perdure/testing";
import { openThink } from "./harness.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** What the clock shows at first. */
export const START = Date.UTC(2025, 0, 1);

const echo = () => scriptedModel(({ userText }) => ({ text: `Done: ${userText}` }));

/** An agent whose tasks the test may change while it lives. */
export async function openPlanner(tasks: ScheduledTasks, zone?: string) {
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

export interface StoredTask {
  readonly id: string;
  readonly due: number;
  readonly starts: number;
  readonly error: string | null;
}
export const ALL = "SELECT task_id AS id, due, starts, error FROM perdure_task ORDER BY task_id";
