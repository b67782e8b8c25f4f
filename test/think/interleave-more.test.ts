import { expect, test } from "vitest";
import { firstFailure, seedsOf, TIMEOUT_MS } from "./interleave-suite.ts";

/* The other half of the runs of interleave.test.ts. */
test.each(seedsOf(1))(
  "runs %i to %i",
  async (first, last) => expect(await firstFailure(first, last)).toBe(""),
  TIMEOUT_MS,
);
