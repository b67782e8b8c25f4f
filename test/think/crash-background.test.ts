// Tools in the background, with a kill after every commit: each end is told once, and none is lost.
import { crashMatrix, type CrashOutcome, type CrashScenario, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { isBackgroundReceipt } from "../../src/tool/receipt.ts";
import { textIn } from "../chat/client.ts";
import { allFacts, env, every, expectCovered, expectNoFailure, isWhole, MATRIX_MS } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { BackgroundLook } from "./crash-background-program.ts";

const program = await bundleProgram(new URL("./crash-background-program.ts", import.meta.url));
const TOOLS = ["never", "safe", "slow", "stepped"];
const DONE = "is done. Its output:\n\ndone";

/** Told again in every life, as a queue would: it is said once all the same. */
const scenario: CrashScenario<BackgroundLook> = {
  program,
  env,
  async finish(child: Program) {
    await child.send({ type: "tell" });
    return (await child.waitFor(({ type }) => type === "look")) as BackgroundLook;
  },
};

/** The name of the tool whose end a message tells, and how it ended. */
function endIn(text: string): { tool: string; how: string } | undefined {
  const found = /^The call call-\w+ of "(\w+)", which went on in the background, (.*)$/s.exec(text);
  return found === null ? undefined : { tool: found[1] ?? "", how: found[2] ?? "" };
}

function check(outcome: CrashOutcome<BackgroundLook>): void {
  expectNoFailure(outcome);
  const { messages, ran, calls, steps, turns } = outcome.after.result;
  const ends = messages.filter(({ role }) => role === "user").flatMap((message) => endIn(textIn(message)) ?? []);
  const parts = messages.flatMap((message) => toolParts(message));
  const receipts = parts.filter(({ output }) => isBackgroundReceipt(output));
  // Each call has a receipt and one message, or its result in its own place.
  expect(ends.map(({ tool }) => tool).toSorted()).toEqual(receipts.map(({ type }) => type.slice(5)).toSorted());
  expect(parts.map(({ type }) => type.slice(5)).toSorted()).toEqual(TOOLS);
  // Cut while it ran, or was about to: nobody knows, so it does not run again. One that has begun a step does.
  const mayBeCut = ["never", "stepped"];
  const cut = ends.filter(({ how }) => how.startsWith("was cut off"));
  expect(cut.filter(({ tool }) => !mayBeCut.includes(tool))).toEqual([]);
  const isCut = (tool: string) => cut.some((end) => end.tool === tool);
  for (const { how } of ends.filter(({ tool }) => !isCut(tool))) expect(how).toBe(DONE);
  for (const part of parts.filter((one) => !receipts.includes(one)))
    expect(part).toMatchObject({ type: "tool-slow", output: "done" });
  const runsOf = (tool: string) => ran.filter((line) => line.startsWith(`${tool} `));
  expect(runsOf("never").length, "runs of what may not run again").toBeLessThanOrEqual(1);
  for (const tool of TOOLS.filter((one) => !isCut(one))) expect(runsOf(tool), `runs of ${tool}`).not.toEqual([]);
  for (const tool of TOOLS) {
    expect(new Set(runsOf(tool)).size, `keys of ${tool}`).toBeLessThanOrEqual(1);
  }
  expect(calls.filter(({ status }) => status !== "settled")).toEqual([]);
  expect(steps).toBe(0);
  expect(new Set(turns)).toEqual(new Set(["completed"]));
  // Every message has its answer, and nothing was said twice.
  expect(messages).toHaveLength(2 * turns.length);
  expect(turns).toHaveLength(1 + ends.length);
}

test.for([
  ["", {}],
  [", each result judged", { JUDGE: "1" }],
] as const)("each end is told once, killed after every commit%s", { timeout: MATRIX_MS }, async ([, more]) => {
  const outcomes: CrashOutcome<BackgroundLook>[] = [];
  const matrix = await crashMatrix<BackgroundLook>({
    ...{ ...scenario, env: { ...env, ...more }, slack: 14 },
    check: (outcome) => {
      outcomes.push(outcome);
      check(outcome);
    },
  });
  expectCovered(matrix, 20);
  if (!isWhole) return;
  const wasOpen = ({ type, calls }: { type: string; calls?: unknown }) =>
    type === "woken" && (calls as BackgroundLook["calls"]).some(({ status }) => status === "background");
  expect(
    outcomes.some((outcome) => allFacts(outcome).some(wasOpen)),
    "killed while calls went on",
  ).toBe(true);
});

test("killed again after the second commit of later lives", { timeout: MATRIX_MS }, async () => {
  const { killed } = await crashMatrix({ ...scenario, check, again: [2, 3], points: every(4, 1), slack: 14 });
  expect(killed.length).toBeGreaterThan(1);
});
