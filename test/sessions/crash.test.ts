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

type Listed = Result["sessions"][number];

/** What each session may be, given what anybody was told; undefined: it may not be there. */
function possible(told: ReadonlyMap<string, unknown>): Record<"main" | "side", (Partial<Listed> | undefined)[]> {
  const main = { name: "q1", parent: null };
  const answered = { ...main, history: ["q1", "re q1"] };
  const branched = { ...main, history: ["q1", "q3"] };
  // The fork ended with the question. Whatever became of the session that it came from, it has that.
  const side = { name: "q1", parent: "main", forkedAt: "q1", pins: ["q1"] };
  const forked = { ...side, history: ["q1"] };
  const asked = { ...side, history: ["q1", "q2", "re q2"] };
  const mains = told.has("branch") ? [branched] : [answered, branched];
  const sides = told.has("say there") ? [asked] : [forked, asked];
  return {
    main: told.has("drop") ? [undefined] : told.has("say") && !told.has("back") ? mains : [undefined, ...mains],
    side: told.has("fork") ? sides : [undefined, ...sides],
  };
}

function currents(told: ReadonlyMap<string, unknown>): readonly string[] {
  if (told.has("switch back") && !told.has("back")) return ["main"];
  return told.has("switch") && !told.has("say there") ? ["side"] : ["main", "side"];
}

/** All that anybody was told is there; and what is there is whole. */
function check(outcome: CrashOutcome<Result>): void {
  expectNoFailure(outcome);
  const told = ackedIn(outcome.before.facts);
  const { current, sessions } = outcome.after.result;
  expect(currents(told)).toContain(current);
  const { main, side } = possible(told);
  const [foundMain, foundSide] = ["main", "side"].map((id) => sessions.find((session) => session.id === id));
  expect(
    main.some((one) => matches(foundMain, one)),
    JSON.stringify(foundMain),
  ).toBe(true);
  expect(
    side.some((one) => matches(foundSide, one)),
    JSON.stringify(foundSide),
  ).toBe(true);
}

function matches(found: Listed | undefined, allowed: Partial<Listed> | undefined): boolean {
  if (found === undefined || allowed === undefined) return found === allowed;
  return JSON.stringify({ ...found, ...allowed }) === JSON.stringify(found);
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
