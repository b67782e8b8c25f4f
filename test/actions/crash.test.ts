import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crashMatrix, type CrashOutcome, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { allFacts, env, expectCovered, expectNoFailure, MATRIX_MS, ofType, thinned } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { ActionCommand, ActionLook } from "./crash-drive.ts";

interface Result extends Pick<ActionLook, "messages" | "actions" | "turns"> {
  /** What was done to the world, in the order in which it happened. */
  readonly did: readonly string[];
}

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

async function look(child: Program): Promise<ActionLook> {
  const id = ofType(child.facts, "look").length;
  await child.send({ type: "look", id } satisfies ActionCommand);
  return (await child.waitFor((fact) => fact.type === "look" && fact.id === id)) as ActionLook;
}

async function submit(child: Program, text: string): Promise<void> {
  await child.waitFor("ready");
  await child.send({ type: "submit", text } satisfies ActionCommand);
  await child.waitFor((fact) => fact.type === "submitted" && fact.text === text);
  await look(child);
}

async function drive(child: Program): Promise<void> {
  await submit(child, "first");
  await submit(child, "second");
}

/** What the model read of each call. */
function outputsOf({ messages }: Result): Record<string, unknown> {
  const parts = messages.flatMap((message) => toolParts(message));
  return Object.fromEntries(parts.map((part) => [part.toolCallId, part.output ?? part.errorText]));
}

function check(outcome: CrashOutcome<Result>): void {
  const { result } = outcome.after;
  expectNoFailure(outcome);
  expect(result.turns.map(({ status }) => status)).toEqual(["completed", "completed"]);
  const outputs = outputsOf(result);
  const unknown = { error: { name: "ActionPendingError", message: expect.stringContaining("not known") } };
  for (const [name, calls, done] of [
    ["charge i1", ["first-charge", "second-charge"], { charged: "i1" }],
    ["stamp i1", ["first-stamp"], "stamped"],
  ] as const) {
    const times = result.did.filter((line) => line === name).length;
    expect(times, `${name} was done`).toBeLessThanOrEqual(1);
    const key = name.startsWith("charge") ? "action:charge:i1" : undefined;
    const row = result.actions.find((one) => (key === undefined ? one.action === "stamp" : one.key === key));
    // It was begun once: whatever was cut off is told as unknown, and what was settled is told to everybody.
    expect(row?.attempts).toBe(1);
    for (const call of calls) expect(outputs[call], call).toEqual(row?.settledAt === null ? unknown : done);
    expect(times).toBeGreaterThanOrEqual(row?.settledAt === null ? 0 : 1);
  }
  // What a life had found settled stays so.
  for (const woken of ofType(allFacts(outcome), "woken")) {
    for (const { key } of woken.settled as readonly { key: string }[]) {
      expect(result.actions.find((row) => row.key === key)?.settledAt).not.toBeNull();
    }
  }
}

test(
  "actions, killed after every commit: nothing is done twice, and what is unknown is said",
  { timeout: MATRIX_MS },
  async () => {
    const report = await crashMatrix<Result>({
      ...{ program, env, drive, check, slack: 2, points: thinned(3) },
      async finish(child) {
        await drive(child);
        const { messages, actions, turns } = await look(child);
        const file = join(child.dir, "did");
        const did = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
        return { messages, actions, turns, did };
      },
    });
    expectCovered(report, 15, 3);
    expect(outputsOf(report.reference.result)).toEqual({
      "first-charge": { charged: "i1" },
      "first-stamp": "stamped",
      "second-charge": { charged: "i1" },
    });
    expect(report.reference.result.did.toSorted()).toEqual(["charge i1", "stamp i1"]);
  },
);
