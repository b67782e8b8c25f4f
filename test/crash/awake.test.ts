import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, Fact, Program } from "perdure/testing";
import { expect, test } from "vitest";
import {
  ackedIn,
  allFacts,
  env,
  expectCovered,
  expectNoFailure,
  MATRIX_MS,
  ofType,
  remote,
  untilIdle,
} from "./drive.ts";
import { withLives } from "./lives.ts";
import { ranIn, rowsOf } from "./work-check.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./work-program.ts", import.meta.url));

interface Left extends WorkResult {
  readonly open: readonly { readonly id: string }[];
}

/** A run that was told has the next commit for itself, so a process that died later died after it. */
function isDone(facts: readonly Fact[], key: string): boolean {
  return ranIn(facts).some((run) => run.key === key && (key === "late" || run.attempt > 1));
}

const leavesMemory: CrashMatrixOptions<Left> = {
  program,
  // Much shorter than the time to its schedule, and than most back-offs of its item.
  env: { ...env, IDLE_MS: "1000" },
  async drive(child) {
    const worker = remote(child, "Worker");
    await worker.call("setUp");
    await worker.call("planLate", "late");
    await worker.call("addSlow", "slow");
  },
  async finish(child, before) {
    const past = before.flatMap((life) => life.facts);
    const told = ackedIn([...past, ...child.facts]);
    for (const [call, key] of [
      ["planLate", "late"],
      ["addSlow", "slow"],
    ] as const) {
      if (told.has(call) && !isDone(past, key)) await child.waitFor((fact) => isDone([fact], key));
    }
    return remote(child, "Worker").call<Left>("result");
  },
  check(outcome) {
    expectNoFailure(outcome);
    const { result } = outcome.after;
    const told = ackedIn(outcome.before.facts);
    if (told.has("planLate")) expect(rowsOf(result, "late")).toEqual([1]);
    if (told.has("addSlow")) expect(rowsOf(result, "slow")).toEqual([1]);
    if (told.has("addSlow")) expect(result.open).toEqual([]);
    expect(ranIn(allFacts(outcome)).filter(({ key }) => key === "late").length).toBeLessThanOrEqual(1);
  },
  // A short back-off, or a slow machine, and it stays in memory: then there are fewer commits.
  slack: 6,
};

test(
  "an agent that left memory is woken when it is due, whichever commit of the index was the last",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix(leavesMemory);
    expect(ofType(matrix.reference.facts, "woken").length, "it left memory at least once").toBeGreaterThanOrEqual(2);
    expectCovered(matrix, 6);
  },
);

const ITEMS = ["sync", "async"];

async function fill(child: Program, name = "one"): Promise<void> {
  const worker = remote(child, "Worker", name);
  await worker.as(`${name} setUp`).call("setUp");
  for (const key of ["held", ...ITEMS]) await worker.as(`${name} ${key}`).call("add", key, key);
}

async function expectDone(child: Program, name = "one"): Promise<void> {
  const result = await remote(child, "Worker", name).as(`${name} result`).call<WorkResult>("result");
  expect(result.runs.map(({ key }) => key)).toEqual(["held", ...ITEMS]);
}

test(
  "an agent whose class is gone is kept, and carried on when the class is back",
  { timeout: MATRIX_MS },
  async () => {
    await withLives(program, async ({ live }) => {
      await live((child) => fill(child));
      const without = await live((child) => child.waitFor("failed"), { env: { WITHOUT_WORKER: "1" } });
      // It is tried again after a while: there may be more than one.
      for (const fact of ofType(without.facts, "failed"))
        expect(fact).toMatchObject({ agent: "Worker/one", error: expect.stringContaining('"Worker"') });
      await live(async (child) => {
        await untilIdle(child);
        await expectDone(child);
      });
    });
  },
);

test(
  "an agent that does not come up after the restart is tried again until it does",
  { timeout: MATRIX_MS },
  async () => {
    await withLives(program, async ({ live }) => {
      await live((child) => fill(child));
      const { facts } = await live(
        async (child) => {
          await untilIdle(child);
          await expectDone(child);
        },
        { env: { FAILING_STARTS: "2" } },
      );
      expect(ofType(facts, "failed").map(({ error }) => error)).toEqual(["not yet", "not yet"]);
    });
  },
);

test("more agents than fit in memory are all carried on after a restart", { timeout: MATRIX_MS }, async () => {
  const names = Array.from({ length: 40 }, (_, n) => `agent-${n}`);
  await withLives(program, async ({ live }) => {
    await live(async (child) => {
      for (const name of names) await fill(child, name);
    });
    await live(
      async (child) => {
        const isRun = (name: string) => (fact: Fact) =>
          fact.type === "settled" && fact.agent === `Worker/${name}` && fact.callback === "async";
        for (const name of names) await child.waitFor(isRun(name));
        // None was let go before it had done what it was woken for.
        expect(ofType(child.facts, "woken").length).toBeLessThan(names.length * 2);
        for (const name of names) await expectDone(child, name);
      },
      { env: { MAX_AGENTS: "8", IDLE_MS: "1000" } },
    );
  });
});
