import { crashMatrix, crashRun } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { seedCount } from "../support/seed-count.ts";
import { seeded } from "../support/seeded.ts";
import { check, CUT_CALLS, expectFileOnce, expectKilledIn, strays, telegramScenario } from "./crash-kit.ts";

test("a conversation at Telegram, by polling, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...telegramScenario(), check: check(true), slack: 20, concurrency: 4 });
  expect(matrix.reference.result.seen).toHaveLength(7);
  expectCovered(matrix, 30);
});

test.each([
  ["polling", {}],
  ["webhook", { WEBHOOK: "1" }],
])("by %s, killed three times in a row", { timeout: MATRIX_MS }, async (_way, way) => {
  const again = { again: [2, 3], points: every(11, 3), slack: 20, concurrency: 4 };
  const { killed } = await crashMatrix({ ...telegramScenario(way), check: check(true), ...again });
  expect(killed.length).toBeGreaterThan(1);
});

test(
  "each message delivered ten times, and the process killed at random meanwhile",
  { timeout: MATRIX_MS },
  async () => {
    const reference = await crashRun({ ...telegramScenario(), deaths: [] });
    for (let seed = 1; seed <= seedCount(10, 2); seed++) {
      const random = seeded(seed);
      const deaths = Array.from({ length: 4 }, () => ({ commit: 1 + random(25) }));
      const { died, result } = await crashRun({ ...telegramScenario({}, 10), deaths });
      const others = strays(result.seen, reference.result.seen);
      expect(others.length, `seed ${seed}`).toBeLessThanOrEqual(died.length);
      expect([result.inbound, result.turns, result.ran], `seed ${seed}`).toEqual([3, reference.result.turns, 1]);
    }
  },
);

test.each(CUT_CALLS)(
  "killed when Telegram has done %s and nobody has heard of it",
  { timeout: MATRIX_MS },
  async (KILL_IN) => {
    await expectKilledIn(KILL_IN, telegramScenario, {}, true);
  },
);

test("a conversation at Telegram, by webhook, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const open = telegramScenario({ WEBHOOK: "1" });
  const matrix = await crashMatrix({ ...open, check: check(true), slack: 20, concurrency: 4 });
  expect(matrix.reference.result.seen).toHaveLength(7);
  expectCovered(matrix, 30);
});

test(
  "an answer at Telegram that is stopped by its button, killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const open = telegramScenario({ STOP: "button" });
    const matrix = await crashMatrix({ ...open, check: check(true), slack: 20, concurrency: 4 });
    expect(matrix.reference.result.seen.at(-1)).toBe("Working.\n\n(stopped)");
    expectCovered(matrix, 30);
  },
);

test("pictures in and out at Telegram, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const open = telegramScenario({ ACTS: "files" });
  const matrix = await crashMatrix({ ...open, check: check(true, { inbound: 1, ran: 0 }), slack: 20, concurrency: 4 });
  expect(matrix.reference.result.seen).toEqual(["Here.", "file of 100", "file of 200", "file of 300"]);
  expect(matrix.reference.result.files).toBe(2);
  expectCovered(matrix, 10);
});

test("killed when Telegram has file 2 of 3 and nobody has heard of it", { timeout: MATRIX_MS }, async () => {
  await expectFileOnce(telegramScenario({ ACTS: "files", KILL_IN: "file:2" }), true);
});
