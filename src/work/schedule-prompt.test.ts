import { asSchema } from "ai";
import { expect, test } from "vitest";
import { getSchedulePrompt, scheduleSchema } from "./schedule-prompt.ts";

const accepts = async (when: unknown) =>
  (await asSchema(scheduleSchema).validate?.({ description: "call Anna", when }))?.success;

test.each([
  [{ type: "scheduled", date: "2030-01-31T14:00:00Z" }],
  [{ type: "delayed", delayInSeconds: 60 }],
  [{ type: "cron", cron: "0 9 * * 1" }],
  [{ type: "no-schedule" }],
])("scheduleSchema takes what schedule() can take: %j", async (when) => {
  expect(await accepts(when)).toBe(true);
});

test.each([
  [{ type: "scheduled", date: "tomorrow" }],
  [{ type: "delayed", delayInSeconds: -1 }],
  [{ type: "cron", cron: "every day" }],
  [{ type: "later" }],
  [undefined],
])("scheduleSchema refuses what means nothing: %j", async (when) => {
  expect(await accepts(when)).toBe(false);
});

test("getSchedulePrompt says what time it is, and every form of the schema", () => {
  const prompt = getSchedulePrompt({ date: new Date("2030-01-01T00:00:00Z") });
  for (const word of ["2030-01-01T00:00:00.000Z", "scheduled", "delayInSeconds", "cron", "no-schedule"]) {
    expect(prompt).toContain(word);
  }
});
