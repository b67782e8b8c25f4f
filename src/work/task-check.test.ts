import { expect, test } from "vitest";
import { DEFAULT_RETRY } from "./retry.ts";
import { checkTasks } from "./tasks.ts";

const prompt = "Write the report.";
const daily = "every day at 09:00";
const check = (tasks: unknown, zone: unknown = "Europe/London") =>
  checkTasks(tasks, { timeZone: () => zone, retry: DEFAULT_RETRY });

test("zones: of the schedule, of the task, of the agent; an interval has none and asks for none", () => {
  const tasks = check({
    a: { schedule: `${daily} in Asia/Kolkata`, prompt },
    b: { schedule: daily, timezone: "America/New_York", prompt },
    c: { schedule: daily, prompt },
    d: { schedule: `${daily} in UTC`, timezone: "UTC", prompt },
  });
  expect([...tasks.values()].map(({ timeZone }) => timeZone)).toEqual([
    "Asia/Kolkata",
    "America/New_York",
    "Europe/London",
    "UTC",
  ]);
  const never = () => {
    throw new Error("asked");
  };
  const interval = { e: { schedule: "every 5 minutes", prompt } };
  expect(checkTasks(interval, { timeZone: never, retry: DEFAULT_RETRY }).get("e")?.timeZone).toBeNull();
});

test("what is declared is taken over; retries are filled in; `this` of a handler is its task", () => {
  const metadata = { workflow: "digest" };
  const task = {
    schedule: daily,
    metadata,
    retry: { maxAttempts: 5 },
    handler() {
      return this;
    },
  };
  const checked = check({ task }).get("task");
  expect(checked).toMatchObject({ id: "task", schedule: daily, metadata, retry: { ...DEFAULT_RETRY, maxAttempts: 5 } });
  expect(checked?.action.kind === "handler" && checked.action.call({} as never)).toBe(task);
  expect(check({}).size).toBe(0);
});

test.each([
  [undefined, "must return an object of tasks, not undefined"],
  [null, "not null"],
  [[], "not an array"],
  ["tasks", "not a string"],
  [{ t: undefined }, "must be an object with a schedule, not undefined"],
  [{ t: daily }, "not a string"],
  [{ "": { schedule: daily, prompt } }, "its id must be text of 1 to 256 characters"],
  [{ ["x".repeat(257)]: { schedule: daily, prompt } }, "its id"],
  [{ "\ud800": { schedule: daily, prompt } }, "its id"],
  [{ t: { prompt } }, "its schedule must be a string, not undefined"],
  [{ t: { schedule: 5, prompt } }, "not a number"],
  [{ t: { schedule: "every day at 9:00", prompt } }, 'the schedule "every day at 9:00" is not understood: "9:00"'],
  [{ t: { schedule: daily } }, "either a prompt or a handler, and has neither"],
  [{ t: { schedule: daily, prompt, handler() {} } }, "has both"],
  [{ t: { schedule: daily, prompt: "  " } }, "its prompt is empty"],
  [{ t: { schedule: daily, prompt: 5 } }, "its prompt must be a string or a function, not a number"],
  [{ t: { schedule: daily, handler: "run" } }, "its handler must be a function, not a string"],
  [{ t: { schedule: daily, prompt, timezone: "London" } }, '"London" is not a time zone'],
  [{ t: { schedule: daily, prompt, timezone: 5 } }, "a number is not a time zone"],
  [{ t: { schedule: `${daily} in Europe/Londn`, prompt } }, '"Europe/Londn" is not a time zone'],
  [{ t: { schedule: `${daily} in UTC`, timezone: "Europe/London", prompt } }, "Keep one of them"],
  [{ t: { schedule: "every hour", timezone: "Europe/London", prompt } }, "an interval has no time zone"],
  [{ t: { schedule: daily, timeZone: "Europe/London", prompt } }, 'it has no setting "timeZone". There are schedule,'],
  [{ t: { schedule: daily, prompt, retry: { maxAttempts: 0 } } }, "retry.maxAttempts must be"],
  [{ t: { schedule: daily, prompt, retry: 3 } }, "Retry options must be an object"],
  [{ t: { schedule: daily, prompt, metadata: "text" } }, "its metadata must be an object, not a string"],
  [{ t: { schedule: daily, prompt, metadata: { n: 1n } } }, "its metadata cannot be stored as JSON"],
  [Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`t${n}`, {}])), "The limit is 1000"],
])("%o is refused", (tasks, why) => {
  expect(() => check(tasks)).toThrow(
    expect.objectContaining({ code: "bad_config", message: expect.stringContaining(why) }),
  );
});

test("without any zone, or with a default that is none, it says where one can be set", () => {
  const tasks = { report: { schedule: daily, prompt } };
  expect(() => check(tasks, null)).toThrow(/"report": a time of day needs a time zone.*getDefaultTimezone\(\)/);
  expect(() => check(tasks, "Here")).toThrow('"report": "Here" (of getDefaultTimezone()) is not a time zone');
});

test("every error names the task and what is allowed", () => {
  expect(() => check({ fine: { schedule: daily, prompt }, report: { schedule: "daily", prompt } })).toThrow(
    /^Scheduled task "report": the schedule "daily" is not understood: it is none of the forms\. Allowed are "every <n> minutes".*Area\/City>"\.$/,
  );
});
