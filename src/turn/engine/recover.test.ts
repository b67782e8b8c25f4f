import { expect, test } from "vitest";
import { judgePartial, type PartialFacts } from "./recover.ts";

const facts: PartialFacts = {
  cancelled: false,
  finished: false,
  waiting: false,
  attempt: 1,
  ageMs: 0,
  maxAttempts: 3,
  maxAgeMs: 1_000,
  stuck: 0,
  stuckMs: 0,
  maxNoProgressAttempts: 2,
  noProgressTimeoutMs: 500,
};

test.each<[string, Partial<PartialFacts>, ReturnType<typeof judgePartial>]>([
  ["there is more to do", {}, "open"],
  ["the last try", { attempt: 3 }, "open"],
  ["one try too many", { attempt: 4 }, "max_attempts"],
  ["just in time", { ageMs: 1_000 }, "open"],
  ["too late", { ageMs: 1_001 }, "max_age"],
  ["no tries were given", { maxAttempts: 0 }, "max_attempts"],
  ["the last try that may bring nothing", { stuck: 2 }, "open"],
  ["one try too many that brought nothing", { stuck: 3 }, "max_no_progress_attempts"],
  ["nothing new, just in time", { stuckMs: 500 }, "open"],
  ["nothing new for too long", { stuckMs: 501 }, "no_progress_timeout"],
  ["only the last commit was missing", { finished: true }, "finished"],
  ["it had finished, however often it was tried", { finished: true, attempt: 9, ageMs: 9_999 }, "finished"],
  ["somebody is asked", { waiting: true }, "waiting"],
  ["somebody is asked, however old it is", { waiting: true, ageMs: 9_999 }, "waiting"],
  ["it was stopped", { cancelled: true }, "cancelled"],
  ["stop means stop, whatever else holds", { cancelled: true, finished: true, waiting: true, attempt: 9 }, "cancelled"],
])("%s", (_, given, verdict) => {
  expect(judgePartial({ ...facts, ...given })).toBe(verdict);
});
