import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { textIn, user } from "../chat/client.ts";
import { connect, type Driver } from "../chat/crash-drive.ts";
import { ofType, thinned } from "../crash/drive.ts";
import { type Lives, withLives } from "../crash/lives.ts";
import { seedCount } from "../support/seed-count.ts";
import { expectSums } from "../think/crash-drive.ts";
import { random } from "../think/interleave-random.ts";
import { ask, inTurns, lookAt, program, TREE_MS } from "./crash-drive.ts";
import type { Layer, TreeLook } from "./crash-types.ts";

/** What is under way when somebody stops the turn at the top. */
interface Moment {
  readonly text: string;
  /** The layer that works, all above it waiting. */
  readonly layer: Layer;
  /** What shows that it does. */
  reach(child: Program, driver: Driver): Promise<unknown>;
  /** How the runs end, from the top. */
  readonly ends: readonly string[];
  /** Killed after every one of so many commits where runs are to be quick. */
  readonly step: number;
}

const asked =
  (layer: Layer, step = 0) =>
  (child: Program) =>
    child.waitFor((fact) => fact.type === "asked" && fact.layer === layer && fact.step === step);

const MOMENTS: readonly Moment[] = [
  {
    text: "hang here",
    layer: "Talk",
    reach: (_, driver) => driver.frame(({ body }) => body?.includes('"let me"') === true),
    ends: [],
    step: 7,
  },
  { text: "hang below", layer: "Helper", reach: asked("Helper"), ends: ["aborted"], step: 7 },
  { text: "hang at the end", layer: "Digger", reach: asked("Digger"), ends: ["aborted", "aborted"], step: 7 },
  { text: "get stuck", layer: "Digger", reach: (child) => child.waitFor("ran"), ends: ["aborted", "aborted"], step: 7 },
  { text: "hang after", layer: "Talk", reach: asked("Talk", 1), ends: ["completed"], step: 7 },
];

/** More than follow any stop. */
const NEVER = 1_000;

/** Stops it, is killed so many commits later, and looks how the next life finds it. @returns how many came after. */
async function stopAndKill({ live }: Lives, moment: Moment, commitsLater: number): Promise<number> {
  const options = { mayDie: true, env: { KILL_AFTER: String(commitsLater), SLOW_STOP: "1" } };
  let after = -1;
  const first = await live(async (child) => {
    const driver = await ask(child, moment.text);
    await moment.reach(child, driver);
    driver.send({ type: "cf_agent_chat_request_cancel", id: "r1" });
    await driver.frame(({ id, done }) => id === "r1" && done === true);
    after = (await lookAt(child)).since;
  }, options);
  const later = await live(async (child) => {
    const found = await lookAt(child);
    expect([...ofType(child.facts, "asked"), ...ofType(child.facts, "ran")], "after the stop").toEqual([]);
    expectStopped(found, moment);
    const calls = Object.values(found.calls).reduce((sum, n) => sum + n, 0);
    expect(calls).toBe(ofType(first.facts, "asked").length);
    await expectOfUse(child);
  }, options);
  expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
  return after;
}

function expectStopped({ agents }: TreeLook, { ends }: Moment): void {
  expect(agents[0]?.turns).toMatchObject([{ status: "aborted" }]);
  expect(agents.flatMap(({ runs }) => runs.map(({ status }) => status))).toEqual(ends);
  // A child that was never begun has the stop as well, or nothing at all.
  for (const { asked: runs, turns, messages, layer } of agents.slice(1)) {
    const end = layer === "Helper" ? ends[0] : ends[1];
    expect(runs.map(({ status }) => status)).toEqual([end]);
    expect(turns.filter(({ status }) => status !== end)).toEqual([]);
    expect(messages.flatMap((message) => toolParts(message)).filter((part) => !isTerminal(part))).toEqual([]);
  }
  for (const agent of agents) {
    expectSums(agent as unknown as Parameters<typeof expectSums>[0]);
    expect(agent.toolCalls.filter(({ status }) => status !== "settled")).toEqual([]);
  }
}

/** The next message is answered, and wakes nothing of what was stopped. */
async function expectOfUse(child: Program): Promise<void> {
  const before = await lookAt(child);
  const driver = await connect(child);
  driver.request("after", [user("u9", "hello")]);
  await driver.frame(({ id, done }) => id === "after" && done === true);
  const { agents, calls } = await lookAt(child);
  expect(textIn(agents[0]?.messages.at(-1))).toBe("Hello.");
  expect(calls).toEqual({ ...before.calls, Talk: before.calls.Talk + 1 });
}

test.for(MOMENTS.map((moment) => [moment.text, moment.layer, moment] as const))(
  'stopped in "%s" while %s works, and killed at the commits from there: no model is called any more',
  { timeout: TREE_MS },
  async ([, , moment]) => {
    const commits = await withLives(program, (lives) => stopAndKill(lives, moment, NEVER));
    expect(commits).toBeGreaterThan(0);
    // At once, too: before anything but the stop itself is stored.
    await inTurns([0, ...thinned(moment.step)(commits)], async (n) => {
      try {
        await withLives(program, (lives) => stopAndKill(lives, moment, n));
      } catch (error) {
        throw new Error(`Killed ${n} of ${commits} commits after the stop.`, { cause: error });
      }
    });
  },
);

const SEED = 3;
const STOPS = seedCount(10, 5);

/** Stopped after some commit of a whole run, and killed a few commits later. @returns whether the stop came in time. */
async function stopAnywhere({ live }: Lives, stopAt: number, killAfter: number): Promise<boolean> {
  const options = { mayDie: true, env: { STOP_AT: String(stopAt), KILL_AFTER: String(killAfter), SLOW_STOP: "1" } };
  const first = await live(async (child) => {
    await ask(child, "dig");
    await child.waitFor("asked");
    await lookAt(child);
  }, options);
  let stopped = false;
  const later = await live(async (child) => {
    const { agents } = await lookAt(child);
    const turn = agents[0]?.turns[0];
    stopped = turn?.status === "aborted";
    const worked = [...ofType(child.facts, "asked"), ...ofType(child.facts, "ran")];
    expect(turn?.cancelled === 1 ? worked : [], "after the stop").toEqual([]);
    for (const agent of agents) {
      expectSums(agent as unknown as Parameters<typeof expectSums>[0]);
      expect(agent.toolCalls.filter(({ status }) => status !== "settled")).toEqual([]);
      for (const { runId, status } of agent.runs) {
        expect(["aborted", "completed"]).toContain(status);
        const below = agents.find(({ id }) => id.endsWith(runId));
        expect(below?.asked).toMatchObject([{ runId, status }]);
        expect(below?.turns.filter((one) => one.status !== status)).toEqual([]);
      }
    }
    await expectOfUse(child);
  }, options);
  expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
  return stopped;
}

test(`stopped after ${STOPS} commits that chance chose, and killed soon after`, { timeout: TREE_MS }, async () => {
  const { int } = random(SEED);
  const stops = Array.from({ length: STOPS }, () => [5 + int(50), int(7)] as const);
  const ends: boolean[] = [];
  await inTurns(stops, async ([stopAt, killAfter]) => {
    try {
      ends.push(await withLives(program, (lives) => stopAnywhere(lives, stopAt, killAfter)));
    } catch (error) {
      throw new Error(`Stopped after commit ${stopAt}, killed ${killAfter} commits later.`, { cause: error });
    }
  });
  expect(ends.filter((stopped) => stopped).length).toBeGreaterThan(STOPS / 2);
});
