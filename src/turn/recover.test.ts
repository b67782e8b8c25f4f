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
};

test.each<[string, Partial<PartialFacts>, ReturnType<typeof judgePartial>]>([
  ["there is more to do", {}, "open"],
  ["the last try", { attempt: 3 }, "open"],
  ["one try too many", { attempt: 4 }, "exhausted"],
  ["just in time", { ageMs: 1_000 }, "open"],
  ["too late", { ageMs: 1_001 }, "exhausted"],
  ["no tries were given", { maxAttempts: 0 }, "exhausted"],
  ["only the last commit was missing", { finished: true }, "completed"],
  ["it had finished, however often it was tried", { finished: true, attempt: 9, ageMs: 9_999 }, "completed"],
  ["somebody is asked", { waiting: true }, "completed"],
  ["somebody is asked, however old it is", { waiting: true, ageMs: 9_999 }, "completed"],
  ["it was stopped", { cancelled: true }, "aborted"],
  ["stop means stop, whatever else holds", { cancelled: true, finished: true, waiting: true, attempt: 9 }, "aborted"],
])("%s", (_, given, verdict) => {
  expect(judgePartial({ ...facts, ...given })).toBe(verdict);
});
