import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, remote } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Result {
  readonly current: string;
  readonly sessions: readonly {
    readonly id: string;
    readonly name: string | null;
    readonly parent: string | null;
    readonly forkedAt: string | null;
    readonly history: readonly string[];
    readonly pins: readonly string[];
  }[];
}

async function drive(child: Program): Promise<void> {
  const agent = remote(child, "Talker");
  await agent.as("say").call("say", "q1", "main");
  await agent.as("fork").call("fork", "side", "q1");
  await agent.as("switch").call("switchTo", "side");
  await agent.as("say there").call("say", "q2", "side");
  await agent.as("switch back").call("switchTo", "main");
  await agent.as("branch").call("branch", "q3", "q1");
  await agent.as("back").call("back", "q1");
  await agent.as("drop").call("drop", "main");
}

const finish = async (child: Program): Promise<Result> => remote(child, "Talker").call<Result>("result");

/** All that anybody was told is there; and what is there is whole. */
function check(outcome: CrashOutcome<Result>): void {
  expectNoFailure(outcome);
  const told = ackedIn(outcome.before.facts);
  const { current, sessions } = outcome.after.result;
  const main = sessions.find(({ id }) => id === "main");
  const side = sessions.find(({ id }) => id === "side");
  if (told.has("drop")) expect(main).toBeUndefined();
  else if (main !== undefined) {
    expect(main.name).toBe("q1");
    const ends = told.has("branch")
      ? [["q1", "q3"]]
      : [
          ["q1", "re q1"],
          ["q1", "q3"],
        ];
    expect(ends).toContainEqual(main.history);
  }
  if (told.has("fork")) expect(side).toBeDefined();
  if (side !== undefined) {
    // The fork ended with the question. Whatever became of the session that it came from, it has that.
    expect(side).toMatchObject({ name: "q1", parent: "main", forkedAt: "q1", pins: ["q1"] });
    const ends = told.has("say there") ? [["q1", "q2", "re q2"]] : [["q1"], ["q1", "q2", "re q2"]];
    expect(ends).toContainEqual(side.history);
  }
  if (told.has("switch") && !told.has("say there")) expect(current).toBe("side");
  if (told.has("switch back") && !told.has("back")) expect(current).toBe("main");
  expect(["main", "side"]).toContain(current);
}

test(
  "sessions that are forked, switched, branched and deleted, killed after every commit",
  async () => {
    const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));
    const matrix = await crashMatrix({ program, env, drive, finish, check });
    expectCovered(matrix, 10);
    expect(matrix.reference.result).toEqual({
      current: "side",
      sessions: [
        {
          ...{ id: "side", name: "q1", parent: "main", forkedAt: "q1", pins: ["q1"] },
          history: ["q1", "q2", "re q2"],
        },
      ],
    });
  },
  MATRIX_MS,
);
