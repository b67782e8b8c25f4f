import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, TRANSCRIPT, user } from "../chat/client.ts";
import { connect, type Driver, lookAt } from "../chat/crash-drive.ts";
import { allFacts, expectCovered, MATRIX_MS, ofType } from "../crash/drive.ts";
import {
  expectKept,
  heldEnv,
  program,
  release,
  resultIn,
  type ThinkCommand,
  type ThinkResult,
  watchOn,
} from "./crash-drive.ts";

const knows = (driver: Driver, id: string): boolean =>
  driver.frames.some(({ type, messages }) => type === TRANSCRIPT && messages?.some((one) => one.id === id) === true);

/** Says something more while a tool of the first turn runs, which then ends. */
async function steer(child: Program): Promise<void> {
  const watcher = await connect(child);
  const driver = await connect(child);
  driver.request("r1", [user("u1", "drive")]);
  await child.waitFor((fact) => fact.type === "ran" && fact.name === "wait");
  driver.request("r2", [user("u2", "turn left")]);
  await watcher.frame(({ type, messages }) => type === TRANSCRIPT && messages?.some(({ id }) => id === "u2") === true);
  await child.send({ type: "go on" } satisfies ThinkCommand);
  await Promise.all(["r1", "r2"].map((r) => watcher.frame(({ id, done }) => id === r && done === true)));
}

/** It was taken into the answer, once, and the call that read it is on the books. */
function expectTaken({ after, reference }: CrashOutcome<ThinkResult>): void {
  const { receipts, ledger } = after.result;
  expect(receipts).toMatchObject([{ turnId: "r1", step: reference.result.receipts[0]?.step }]);
  const read = ledger.find(({ id }) => id === receipts[0]?.callId);
  expect(read).toMatchObject({ turnId: "r1", step: receipts[0]?.step });
}

test(
  "a message that is taken in between two steps, killed after every commit: it is read once",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({
      program,
      env: { ...heldEnv, STEER: "1" },
      drive: steer,
      async resume(child, before) {
        const driver = await watchOn(child, before);
        // What was never accepted is sent again, while the first is under way.
        if (knows(driver, "u1") && !knows(driver, "u2")) {
          driver.request("r2", [user("u2", "turn left")]);
          await driver.flushed();
        }
        if (knows(driver, "u1")) await child.send({ type: "go on" } satisfies ThinkCommand);
        await release(child);
      },
      async finish(child) {
        const { messages } = await lookAt(child);
        if (messages.length === 0) await steer(child);
        return resultIn(child);
      },
      async check(outcome) {
        await expectKept(outcome);
        expectTaken(outcome);
      },
      slack: 6,
    });
    expectCovered(matrix, 10);
    const { messages, calls } = matrix.reference.result;
    expect(messages.map(({ id }) => id).slice(0, 2)).toEqual(["u1", "u2"]);
    expect(textIn(messages[2])).toBe("Going. Turning left.");
    expect(calls).toBe(2);
  },
);

test(
  "a submission with a key, killed after every commit and submitted again: one answer",
  { timeout: MATRIX_MS },
  async () => {
    const submit = async (child: Program): Promise<void> => {
      const command: ThinkCommand = { type: "submit", text: "note", key: "k1" };
      await child.waitFor("ready");
      await child.send(command);
      await child.waitFor("submitted");
    };
    const matrix = await crashMatrix<ThinkResult>({
      program,
      env: heldEnv,
      async drive(child) {
        const driver = await connect(child);
        await submit(child);
        await driver.frame(({ done }) => done === true);
      },
      async resume(child, before) {
        await watchOn(child, before);
        await submit(child);
        await release(child);
      },
      finish: resultIn,
      async check(outcome) {
        await expectKept(outcome);
        const told = ofType(allFacts(outcome), "submitted");
        expect(told.filter(({ accepted }) => accepted).length).toBeLessThanOrEqual(1);
        // The first one counts, also where nobody heard that it was accepted.
        const { submissions } = outcome.after.result;
        expect(submissions).toMatchObject([{ idempotencyKey: "k1", status: "completed" }]);
        for (const { submissionId } of told) expect(submissionId).toBe(submissions[0]?.submissionId);
      },
      slack: 4,
    });
    expectCovered(matrix, 8);
    const { messages } = matrix.reference.result;
    expect(messages.map((message) => textIn(message))).toEqual(["note", "Looking. Noted it."]);
  },
);
