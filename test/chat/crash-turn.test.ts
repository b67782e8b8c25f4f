import { crashMatrix, crashRun } from "perdure/testing";
import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { textIn, user } from "./client.ts";
import {
  connect,
  expectKept,
  expectSameLog,
  lookAt,
  replayed,
  type Result,
  resultOf,
  seenIn,
  untilAnswered,
} from "./crash-drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));
const TEXT = "I will look it up. Found it. You are near. It is sent. Done.";

/** Asks, and answers whatever is asked, on one socket. */
async function ask(child: Program): Promise<void> {
  const driver = await connect(child);
  driver.request("r1", [user("u1", "all")]);
  await driver.frame(({ id, done }) => id === "r1" && done === true);
  await untilAnswered(child, async () => driver);
}

async function finish(child: Program): Promise<Result> {
  let look = await lookAt(child);
  // What was never accepted, nobody was told of: then the client sends it again.
  if (look.messages.length === 0) await ask(child);
  look = await untilAnswered(child);
  return resultOf(look, child.dir);
}

test(
  "a turn with text, a tool here, a tool of the client and an approval, killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<Result>({
      program,
      env: { ...env, HOLD: "1" },
      drive: ask,
      async resume(child, before) {
        expectSameLog(await replayed(child), before);
        await child.send({ type: "release" });
      },
      finish,
      check(outcome) {
        expectKept(outcome);
        const { messages } = outcome.after.result;
        expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
        expect(textIn(messages[1])).toBe(TEXT);
      },
      slack: 12,
    });
    expectCovered(matrix, 16);
    const { result } = matrix.reference;
    expect(textIn(result.messages[1])).toBe(TEXT);
    expect(result.ran.map(({ name }) => name)).toEqual(["look", "send"]);
    expect(result.calls).toBe(4);
  },
);

test.each([1, 7, 13, 20])(
  "killed from outside the moment a client has seen chunk %i: it is still there",
  { timeout: MATRIX_MS },
  async (nth) => {
    const run = await crashRun<Result>({
      program,
      env,
      drive: ask,
      finish,
      deaths: [{ when: (child) => child.waitFor(() => seenIn(child.facts).length >= nth) }],
    });
    expect(run.died).toHaveLength(1);
    const before = { facts: run.died.flatMap((life) => life.facts), lives: run.died };
    const reference = { facts: [], commits: 0, result: run.result };
    expectKept({ n: 0, before, after: { ...run.last, result: run.result }, reference });
    expect(run.result.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(textIn(run.result.messages[1])).toBe(TEXT);
  },
);
