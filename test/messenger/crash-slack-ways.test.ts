// As in crash-slack.test.ts, by the other ways in which Slack tells of things.
import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { check, type CUT_CALLS, expectKilledIn, slackScenario } from "./crash-kit.ts";

const WEBHOOK = { WEBHOOK: "1" };

test(
  "a conversation at Slack, by webhook, killed after every commit: each message once",
  { timeout: MATRIX_MS },
  async () => {
    const open = slackScenario(WEBHOOK);
    const matrix = await crashMatrix({ ...open, check: check(false), slack: 20, concurrency: 4 });
    expect(matrix.reference.result.seen).toHaveLength(7);
    expectCovered(matrix, 30);
  },
);

test("by webhook, killed three times in a row", { timeout: MATRIX_MS }, async () => {
  const again = { again: [2, 3], points: every(11, 3), slack: 20, concurrency: 4 };
  const { killed } = await crashMatrix({ ...slackScenario(WEBHOOK), check: check(false), ...again });
  expect(killed.length).toBeGreaterThan(1);
});

test.each(["create:1", "edit:1"] satisfies (typeof CUT_CALLS)[number][])(
  "by webhook, killed when Slack has done %s and nobody has heard of it: found, changed, there once",
  { timeout: MATRIX_MS },
  async (KILL_IN) => {
    await expectKilledIn(KILL_IN, slackScenario, WEBHOOK, false);
  },
);

test.each([
  ["socket mode", {}],
  ["webhook", WEBHOOK],
])(
  "an answer at Slack that is stopped by its button, by %s, killed after every commit",
  { timeout: MATRIX_MS },
  async (_way, way) => {
    const open = slackScenario({ ...way, STOP: "button" });
    const matrix = await crashMatrix({ ...open, check: check(false), slack: 20, concurrency: 4 });
    expect(matrix.reference.result.seen.at(-1)).toBe("Working.\n\n(stopped)");
    expectCovered(matrix, 30);
  },
);

test("pictures in and out at Slack, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const open = slackScenario({ ACTS: "files" });
  const matrix = await crashMatrix({ ...open, check: check(true, { inbound: 1, ran: 0 }), slack: 20, concurrency: 4 });
  expect(matrix.reference.result.seen).toEqual(["Here.", "file of 100", "file of 200", "file of 300"]);
  expect(matrix.reference.result.files).toBe(2);
  expectCovered(matrix, 10);
});
