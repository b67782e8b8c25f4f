// Files go both ways through adapters, and the process is killed meanwhile.
import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, expectCovered, MATRIX_MS, ofType } from "../../crash/drive.ts";
import { expectFileOnce, strays } from "../crash-kit.ts";
import { scenario } from "./crash-kit.ts";
import type { NetworkName } from "./networks.ts";

/** GitHub's adapter neither tells of files nor takes any. */
const WITH_FILES = ["telegram", "slack", "discord"] satisfies NetworkName[];

test.each(WITH_FILES)(
  "a picture in and three out through the adapter for %s, killed after every commit",
  { timeout: MATRIX_MS },
  async (name) => {
    const matrix = await crashMatrix({
      ...{ ...scenario(name, { ACTS: "files" }), slack: 20, concurrency: 3 },
      check(outcome) {
        const { result } = outcome.after;
        const expected = outcome.reference.result;
        expect(ofType(allFacts(outcome), "failed")).toEqual([]);
        const others = strays(result.seen, expected.seen);
        // Only what was being made when the process died may be there twice, and the row says so.
        expect(others.length).toBeLessThanOrEqual(1);
        expect(result.deliveries).toMatchObject([{ state: "done" }]);
        if (others.length > 0) expect(Boolean(result.deliveries[0]?.maybeTwice)).toBe(true);
        expect([result.inbound, result.turns, result.files]).toEqual([1, expected.turns, expected.files]);
      },
    });
    const { seen, files, deliveries } = matrix.reference.result;
    expect(seen).toEqual(["Here.", "file of 100", "file of 200", "file of 300"]);
    expect(files).toBe(1);
    expect(Boolean(deliveries[0]?.maybeTwice)).toBe(false);
    expectCovered(matrix, 10);
  },
);

test.each(WITH_FILES)(
  "%s: killed when the network has file 2 of 3 and nobody has heard of it",
  { timeout: MATRIX_MS },
  async (name) => {
    await expectFileOnce(scenario(name, { ACTS: "files", KILL_IN: "file:2" }), true);
  },
);
