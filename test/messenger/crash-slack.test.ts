import { crashMatrix, crashRun } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { seedCount } from "../support/seed-count.ts";
import { seeded } from "../support/seeded.ts";
import { check, CUT_CALLS, expectFileOnce, expectKilledIn, slackScenario, strays } from "./crash-kit.ts";

test(
  "a conversation at Slack, by socket mode, killed after every commit: each message once",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({ ...slackScenario(), check: check(false), slack: 20, concurrency: 4 });
    expect(matrix.reference.result.seen).toHaveLength(7);
    expectCovered(matrix, 30);
  },
);

test("killed three times in a row", { timeout: MATRIX_MS }, async () => {
  const again = { again: [2, 3], points: every(11, 3), slack: 20, concurrency: 4 };
  const { killed } = await crashMatrix({ ...slackScenario(), check: check(false), ...again });
  expect(killed.length).toBeGreaterThan(1);
});

test(
  "each message delivered ten times, and the process killed at random meanwhile",
  { timeout: MATRIX_MS },
  async () => {
    const reference = await crashRun({ ...slackScenario(), deaths: [] });
    for (let seed = 1; seed <= seedCount(10, 2); seed++) {
      const random = seeded(seed);
      const deaths = Array.from({ length: 4 }, () => ({ commit: 1 + random(25) }));
      const { result } = await crashRun({ ...slackScenario({}, 10), deaths });
      expect(strays(result.seen, reference.result.seen), `seed ${seed}`).toEqual([]);
      expect([result.inbound, result.turns, result.ran], `seed ${seed}`).toEqual([3, reference.result.turns, 1]);
    }
  },
);

test.each(CUT_CALLS)(
  "killed when Slack has done %s and nobody has heard of it: found, changed, there once",
  { timeout: MATRIX_MS },
  async (KILL_IN) => {
    await expectKilledIn(KILL_IN, slackScenario, {}, false);
  },
);

test("killed when Slack has file 2 of 3 and nobody has heard of it", { timeout: MATRIX_MS }, async () => {
  await expectFileOnce(slackScenario({ ACTS: "files", KILL_IN: "file:2" }), true);
});
