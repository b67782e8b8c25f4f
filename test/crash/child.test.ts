import { globSync } from "node:fs";
import { basename } from "node:path";
import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome, Program } from "perdure/testing";
import { expect, test, vi } from "vitest";
import {
  ackedIn,
  allFacts,
  env,
  every,
  expectCovered,
  expectNoFailure,
  laterLives,
  MATRIX_MS,
  ofType,
  remote,
  untilIdle,
} from "./drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Kid {
  readonly n: number;
  readonly fibers: readonly (readonly [id: string, status: string])[];
  readonly grand: Readonly<Record<string, number>>;
}

interface Result {
  readonly kids: Readonly<Record<string, Kid>>;
  /** All agents that the host has rows of. */
  readonly agents: readonly string[];
}

const WAIT = { timeout: 10_000, interval: 5 };

/** So long that it has not run when its agent is deleted, unless the machine is very slow. */
const LATE_SECONDS = 20;

async function drive(child: Program): Promise<void> {
  const family = remote(child, "Family");
  await family.as("make a").call("make", "a", 1);
  await family.as("make b").call("make", "b", 2);
  await family.as("grow").call("tell", "a", "grow", "g", 5);
  await family.as("spawn").call("tell", "a", "spawn");
  await family.as("plan").call("tell", "b", "plan", 1);
  await family.as("plan late").call("tell", "a", "plan", LATE_SECONDS);
  await family.as("drop a").call("drop", "a");
  await family.as("make c").call("make", "c", 3);
  await family.as("destroy c").call("tell", "c", "destroy");
  await family.as("make a again").call("make", "a", 7);
}

const scenario: Omit<CrashMatrixOptions<Result>, "again" | "points"> = {
  program: await bundleProgram(new URL("./child-program.ts", import.meta.url)),
  env,
  drive,
  async finish(child) {
    await untilIdle(child);
    const { kids, agents } = await remote(child, "Family").call<Result>("result");
    const listed = Object.entries(kids).flatMap(([name, { grand }]) => [name, ...Object.keys(grand)]);
    // Files of deleted agents go in the background, after a restart too.
    await vi.waitFor(() => expect(filesOf(child.dir).filter((name) => !listed.includes(name))).toEqual([]), WAIT);
    return { kids, agents };
  },
  check,
};

function filesOf(dir: string): string[] {
  // Their names begin with the name of the agent; the rest is a hash.
  return globSync("agents/{Kid,Grand}/*.db", { cwd: dir }).flatMap((file) => basename(file).split(".")[0] ?? []);
}

function check(outcome: CrashOutcome<Result>): void {
  const told = ackedIn(outcome.before.facts);
  expectNoFailure(outcome);
  const { kids, agents } = outcome.after.result;
  // The host knows no agent that no parent lists.
  const listed = Object.entries(kids).flatMap(([kid, { grand }]) => [
    `Family/one/Kid/${kid}`,
    ...Object.keys(grand).map((name) => `Family/one/Kid/${kid}/Grand/${name}`),
  ]);
  expect(["Family/one", ...listed]).toEqual(expect.arrayContaining([...agents]));
  checkFirstA(outcome, told.has("drop a"));
  if (told.has("make b")) expect(kids["b"]?.n).toBe(2);
  if (told.has("plan")) expect(ofType(allFacts(outcome), "due").filter(({ kid }) => kid === "b")).toHaveLength(1);
  if (told.has("make a again")) expect(kids["a"]?.n).toBe(7);
  if (told.has("destroy c")) expect(kids["c"]).toBeUndefined();
  else if (told.has("make c")) expect([undefined, 3]).toContain(kids["c"]?.n);
}

/** The first life of the kid that is deleted in the middle, with a grandchild, a fiber and a schedule. */
function checkFirstA(outcome: CrashOutcome<Result>, isDropped: boolean): void {
  const told = ackedIn(outcome.before.facts);
  const a = outcome.after.result.kids["a"];
  if (isDropped) {
    // If it is there, it was made anew: nothing of the old one came with it.
    expect([undefined, 0, 7]).toContain(a?.n);
    expect([a?.fibers ?? [], a?.grand ?? {}]).toEqual([[], {}]);
    const later = laterLives(outcome).flat();
    expect(later.filter(({ type, kid }) => (type === "due" || type === "worked") && kid === "a")).toEqual([]);
    return;
  }
  // A delete under way has happened as a whole, or not at all. All that was told before it is there then.
  if (a === undefined && told.has("plan late")) return;
  if (told.has("make a")) expect(a?.n).toBe(1);
  if (told.has("grow")) expect(a?.grand).toEqual({ g: 5 });
  if (told.has("spawn")) {
    expect(a?.fibers).toEqual([[told.get("spawn"), "completed"]]);
    expect(ofType(allFacts(outcome), "worked")).toHaveLength(1);
  }
  if (told.has("plan late")) expect(ofType(allFacts(outcome), "due").filter(({ kid }) => kid === "a")).toHaveLength(1);
}

test("children and grandchildren, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix(scenario);
  expectCovered(matrix, 25);
  expect(matrix.reference.result).toEqual({
    kids: { a: { n: 7, fibers: [], grand: {} }, b: { n: 2, fibers: [], grand: {} } },
    agents: ["Family/one", "Family/one/Kid/a", "Family/one/Kid/b"],
  });
});

test.for([1, 2])("children, killed again after commit %i of the next life", { timeout: MATRIX_MS }, async (commit) => {
  // The second half is where they are deleted.
  const points = (commits: number) => every(2, commit)(commits).filter((n) => n > commits / 2);
  const { killed } = await crashMatrix({ ...scenario, again: [commit], points });
  expect(killed).not.toEqual([]);
});
