import { crashMatrix, type CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { INTERRUPTED_TEXT } from "../../src/message/repair.ts";
import { toolParts } from "../../src/message/types.ts";
import { textIn } from "../chat/client.ts";
import { allFacts, expectCovered, expectNoFailure, MATRIX_MS, thinned } from "../crash/drive.ts";
import { oneMessage, type StoredCall, type ThinkResult } from "./crash-drive.ts";

/** Whether a life found the call waiting for a person, or for its turn after a yes. */
function wasParked(outcome: CrashOutcome<ThinkResult>): boolean {
  return allFacts(outcome).some(
    ({ type, calls }) =>
      type === "woken" &&
      (calls as readonly StoredCall[]).some(({ status }) => status === "asked" || status === "approved"),
  );
}

function check(outcome: CrashOutcome<ThinkResult>): void {
  expectNoFailure(outcome);
  const { messages, ran, toolCalls } = outcome.after.result;
  const keys = ran.map(({ key }) => key);
  expect(new Set(keys).size, "each tool once").toBe(keys.length);
  expect(toolCalls.map(({ status }) => status)).toEqual(["settled"]);
  const [part] = toolParts(messages[1] ?? { id: "", role: "assistant", parts: [] });
  // Cut while the code ran: nobody knows what it had done. Never while it waited.
  const isCut = allFacts(outcome).some(({ type, calls }) => type === "woken" && isStarted(calls));
  if (isCut && part?.errorText === INTERRUPTED_TEXT) return;
  expect(part).toMatchObject({
    state: "output-available",
    output: { result: ["once result", "send result", "once result"] },
  });
  expect(ran.map(({ name }) => name)).toEqual(["once", "send", "once"]);
}

function isStarted(calls: unknown): boolean {
  return (calls as readonly StoredCall[]).some(({ status }) => status === "started");
}

test(
  "code that waits for a person in the middle, killed after every commit: it goes on where it stood, each tool once",
  { timeout: MATRIX_MS },
  async () => {
    const outcomes: CrashOutcome<ThinkResult>[] = [];
    const matrix = await crashMatrix<ThinkResult>({
      ...oneMessage("compute"),
      check: (outcome) => {
        outcomes.push(outcome);
        check(outcome);
      },
      points: thinned(1),
      slack: 6,
    });
    expectCovered(matrix, 10, 1);
    expect(textIn(matrix.reference.result.messages[1])).toBe("Computing. It is done.");
    expect(outcomes.some(wasParked), "killed while it was parked").toBe(true);
  },
);
