import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { every, MATRIX_MS } from "../crash/drive.ts";
import { expectKept, oneMessage, type ThinkResult } from "./crash-drive.ts";

test.for([
  ["work", [1], 5],
  ["work", [4, 2], 7],
  ["ask", [2], 4],
  ["ask", [4, 1], 6],
] as const)(
  "%s, killed again after the commits %o of its recovery",
  { timeout: MATRIX_MS },
  async ([text, again, step]) => {
    const scenario = { ...oneMessage(text), check: expectKept, slack: 6 };
    const matrix = await crashMatrix<ThinkResult>({ ...scenario, again, points: every(step, again.length) });
    expect(matrix.killed.length).toBeGreaterThan(1);
  },
);
