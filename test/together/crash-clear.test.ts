import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { ofType, thinned } from "../crash/drive.ts";
import { type Lives, withLives } from "../crash/lives.ts";
import { have, inTurns, lookAt, program, TREE_MS } from "./crash-drive.ts";
import type { TreeCommand, TreeLook } from "./crash-types.ts";

/** More than any of these takes. */
const NEVER = 1_000;

const asked = (layer: string) => (child: Program) =>
  child.waitFor((fact) => fact.type === "asked" && fact.layer === layer);
const done = (child: Program) => lookAt(child);

/** What is there when it begins, and what is done to it. */
interface Case {
  readonly name: string;
  readonly task: string;
  reach(child: Program): Promise<unknown>;
  readonly command: TreeCommand;
  /** What must be true once the command has come to its end. */
  expectDone(found: TreeLook): void;
}

function expectCleared({ agents }: TreeLook): void {
  expect(agents.map(({ layer }) => layer)).toEqual(["Talk"]);
  expect(agents[0]).toMatchObject({ runs: [], children: [], queued: 0 });
}

/** Stopped, on both sides, all the way down; nothing is forgotten. */
function expectCancelled({ agents }: TreeLook): void {
  expect(agents.map(({ layer }) => layer)).toEqual(["Talk", "Helper", "Digger"]);
  for (const { runs, asked: given, turns, layer } of agents) {
    expect([...runs, ...given].filter(({ status }) => status !== "aborted")).toEqual([]);
    if (layer !== "Talk") expect(turns.map(({ status }) => status)).toEqual(["aborted"]);
  }
  expect(agents[0]?.runs[0]?.error).toBe("Not needed any more.");
}

const cancel: TreeCommand = { type: "cancel", runId: "run-1" };
const clear: TreeCommand = { type: "clear" };

const CASES: readonly Case[] = [
  { name: "stopping a run", task: "hang below", reach: asked("Digger"), command: cancel, expectDone: expectCancelled },
  {
    name: "clearing a run that works",
    task: "hang below",
    reach: asked("Digger"),
    command: clear,
    expectDone: expectCleared,
  },
  { name: "clearing a run that has ended", task: "dig", reach: done, command: clear, expectDone: expectCleared },
];

/** Kills so many commits after the command, and has it done again. @returns how many commits it takes. */
async function killWithin({ live }: Lives, given: Case, commits: number): Promise<number> {
  const options = { mayDie: true, env: { KILL_AFTER: String(commits), SLOW_STOP: "1" } };
  let since = -1;
  const first = await live(async (child) => {
    await have(child, { type: "begin", task: given.task, runId: "run-1" });
    await given.reach(child);
    await have(child, given.command);
    since = (await lookAt(child)).since;
  }, options);
  const later = await live(async (child) => {
    const settled = ofType(first.facts, "did").some(({ command }) => command === given.command.type);
    // What its caller was told of needs no second call.
    if (!settled) {
      await expectWhole(child, given);
      await have(child, given.command);
    }
    given.expectDone(await lookAt(child));
  }, options);
  expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
  // Its first commit stops what runs, for good.
  expect(ofType(later.facts, "asked")).toEqual([]);
  return since;
}

/** Cut in the middle: what was stopped stays so, and what is there of children is on the list of their parent. */
async function expectWhole(child: Program, { command, task }: Case): Promise<void> {
  if (command.type === "clear" && task !== "dig") return;
  const { agents } = await lookAt(child);
  const [talk, ...below] = agents;
  if (below.length > 0) expect(talk?.children).toEqual(["Helper/run-1"]);
  if (below.length > 0) expect(talk?.runs).toHaveLength(1);
}

test.for(CASES.map((given) => [given.name, given] as const))(
  "%s, killed after every commit, and done again",
  { timeout: TREE_MS },
  async ([, given]) => {
    const commits = await withLives(program, (lives) => killWithin(lives, given, NEVER));
    expect(commits).toBeGreaterThan(2);
    await inTurns(thinned(4)(commits), async (n) => {
      try {
        await withLives(program, (lives) => killWithin(lives, given, n));
      } catch (error) {
        throw new Error(`Killed after commit ${n} of ${commits}.`, { cause: error });
      }
    });
  },
);
