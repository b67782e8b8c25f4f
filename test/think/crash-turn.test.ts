import { crashMatrix, type CrashOutcome, crashRun, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { INTERRUPTED_TEXT } from "../../src/message/repair.ts";
import { toolParts } from "../../src/message/types.ts";
import { textIn } from "../chat/client.ts";
import { allFacts, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { ask, expectKept, expectSums, oneMessage, resultIn, type ThinkResult } from "./crash-drive.ts";

test(
  "three steps with tools side by side, killed after every commit: nothing settled is done again",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({ ...oneMessage("work"), check: expectKept, slack: 6 });
    expectCovered(matrix, 16);
    const { result } = matrix.reference;
    expect(textIn(result.messages[1])).toBe("Let me see. One more. All done.");
    expect(result.ran.map(({ name }) => name)).toEqual(["once", "read", "slow", "read"]);
    expect(result.calls).toBe(3);
  },
);

test(
  "calls that have no ids, or the same in every response, killed after every commit: each has one of its own, and keeps it",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({ ...oneMessage("same ids"), check: expectKept, slack: 6 });
    expectCovered(matrix, 16);
    const { messages, ran } = matrix.reference.result;
    const ids = messages.flatMap((message) => toolParts(message).map(({ toolCallId }) => toolCallId));
    expect(ids).toEqual(["call", "call-2", "call_0", "call_0-2", "call-3"]);
    expect(ran.map(({ call }) => call).sort()).toEqual([...ids].sort());
  },
);

test(
  "results that a hook judges, killed after every commit: no tool runs again, and nobody ever sees what was withheld",
  { timeout: MATRIX_MS },
  async () => {
    const check = async (outcome: CrashOutcome<ThinkResult>) => {
      await expectKept(outcome);
      const facts = allFacts(outcome);
      expect(
        facts.filter(({ type }) => type !== "look").some((fact) => JSON.stringify(fact).includes("once result")),
      ).toBe(false);
      // The hook is asked again about what it had not settled, and about nothing else.
      const judgements = facts.filter(({ type }) => type === "judged").map(({ call }) => String(call));
      for (const { call } of outcome.after.result.ran) {
        expect(judgements.filter((one) => one === call).length).toBeLessThanOrEqual(1 + outcome.before.lives.length);
      }
    };
    const matrix = await crashMatrix<ThinkResult>({ ...oneMessage("work", { JUDGE: "1" }), check, slack: 8 });
    expectCovered(matrix, 16);
    const [once, ...others] = matrix.reference.result.messages.flatMap((message) => toolParts(message));
    expect(once).toMatchObject({ type: "tool-once", output: "withheld" });
    expect(others.map(({ output }) => output)).toEqual(["read result", "slow result", "read result"]);
  },
);

test(
  "an approval that is asked for, given, used and gone on from, killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({ ...oneMessage("ask"), check: expectKept, slack: 6 });
    expectCovered(matrix, 10);
    const { result } = matrix.reference;
    expect(textIn(result.messages[1])).toBe("May I? It is sent.");
    expect(result.ran.map(({ name }) => name)).toEqual(["send"]);
    expect(result.calls).toBe(2);
  },
);

test(
  "tools that are cut while they run: one may not run again, the other does, under its key",
  { timeout: MATRIX_MS },
  async () => {
    const runs = (child: Program, name: string) => child.waitFor((fact) => fact.type === "ran" && fact.name === name);
    const run = await crashRun<ThinkResult>({
      ...oneMessage("cut", { HOLD: "0" }),
      drive: (child) => ask(child, "cut"),
      finish: resultIn,
      deaths: [
        { when: (child) => Promise.all([runs(child, "burn"), runs(child, "fetch")]) },
        { when: (child) => runs(child, "fetch") },
      ],
    });
    expect(run.died).toHaveLength(2);
    const { messages, ran, calls, turns } = run.result;
    expect(messages.flatMap((message) => toolParts(message))).toMatchObject([
      { type: "tool-burn", state: "output-error", errorText: INTERRUPTED_TEXT },
      { type: "tool-fetch", state: "output-available", output: "fetch result" },
    ]);
    expect(textIn(messages[1])).toBe("Both. One failed.");
    expect(ran.map(({ name }) => name).sort()).toEqual(["burn", "fetch", "fetch", "fetch"]);
    const keys = ran.filter(({ name }) => name === "fetch").map(({ key }) => key);
    expect(new Set(keys)).toEqual(new Set([`${messages[1]?.id}:${ran.find(({ name }) => name === "fetch")?.call}`]));
    // No model call was cut: the tools were.
    expect(calls).toBe(2);
    expectSums(run.result);
    expect(turns).toMatchObject([{ status: "completed", attempts: 3 }]);
  },
);
