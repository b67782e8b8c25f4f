import { expect, test } from "vitest";
import { firstFailure, seedsOf, TIMEOUT_MS } from "./interleave-suite.ts";

/*
 * Whatever people, models, clients and the power do to a conversation, and in whichever order: every message is answered
 * once or there is a reason, no tool runs twice or unasked, every request is one that a provider takes, nothing is paid
 * for beyond the budget, and nothing is left behind. See interleave-oracle.ts for what is checked, interleave-actions.ts
 * for what happens.
 */
test.each(seedsOf(0))(
  "runs %i to %i",
  async (first, last) => expect(await firstFailure(first, last)).toBe(""),
  TIMEOUT_MS,
);
