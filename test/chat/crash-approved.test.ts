// Somebody says yes to a call and goes on at once, and the host is killed at every commit of it: the call runs once, or is
// told as not run. It is never left as approved, and never forgotten.
import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { env, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { TRANSCRIPT, UPDATED, user } from "./client.ts";
import { connect, type Driver, logOf, lookAt, type Result, resultOf, seenIn } from "./crash-drive.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));
const NEXT = user("u2", "and now?");

type Goes = (driver: Driver) => void;
const GOES_ON: readonly (readonly [what: string, goesOn: Goes])[] = [
  ["a message is sent", (driver) => driver.request("r2", [NEXT])],
  ["messages are pushed", (driver) => driver.send({ type: TRANSCRIPT, messages: [NEXT] })],
];

const finish = async (child: Program): Promise<Result> => resultOf(await lookAt(child), child.dir);

/** The call that asks, as it is in the end. */
function sent({ after: { result } }: Pick<CrashOutcome<Result>, "after">) {
  return result.messages.flatMap((message) => toolParts(message)).find(({ type }) => type === "tool-send");
}

test.each(GOES_ON)("behind a yes %s, killed after every commit", { timeout: MATRIX_MS }, async (_, goesOn) => {
  const matrix = await crashMatrix<Result>({
    program,
    env,
    async drive(child) {
      const driver = await connect(child);
      driver.request("r1", [user("u1", "send")]);
      await driver.frame(({ id, done }) => id === "r1" && done === true);
      const [toolCallId = ""] = driver.frames.flatMap(
        ({ body }) => /"toolCallId":"([^"]+)"/.exec(body ?? "")?.[1] ?? [],
      );
      driver.send({ type: "cf_agent_tool_approval", toolCallId, approved: true, autoContinue: true });
      goesOn(driver);
      await driver.frame(({ type }) => type === UPDATED);
      child.note({ type: "approved" });
      await lookAt(child);
    },
    finish,
    check(outcome) {
      const facts = [...outcome.before.facts, ...outcome.after.facts];
      expect(facts.filter(({ type }) => type === "failed")).toEqual([]);
      for (const request of new Set(seenIn(facts).map((seen) => seen.request))) logOf(facts, request);
      const ids = outcome.after.result.messages.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const part = sent(outcome);
      const wasTold = outcome.before.facts.some(({ type }) => type === "approved");
      const runs = outcome.after.result.ran.length;
      expect(runs).toBeLessThanOrEqual(1);
      if (wasTold) expect(["output-available", "output-error"]).toContain(part?.state);
      expect(part?.state).not.toBe("approval-responded");
      if (part?.state === "output-available") expect(runs).toBe(1);
    },
    slack: 8,
  });
  expectCovered(matrix, 8);
  expect(sent({ after: matrix.reference })?.state).toBe("output-available");
  expect(matrix.reference.result.ran.map(({ name }) => name)).toEqual(["send"]);
  expect(matrix.reference.result.messages.some(({ id }) => id === "u2")).toBe(true);
});
