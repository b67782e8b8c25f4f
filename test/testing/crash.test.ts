import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CrashFailure, crashMatrix, crashRun, killPrograms, startProgram } from "perdure/testing";
import type { CrashOutcome, CrashScenario, Fact, Program } from "perdure/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

// What is tested here is that every point is reached.
process.env.PERDURE_CRASH_STEP = "1";

const program = new URL("./job-program.ts", import.meta.url);
const JOBS = 2;
/** Two commits of work and one of acceptance for each job. */
const COMMITS = JOBS * 3;

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "perdure-crash-test-"));
});
afterEach(async () => {
  rmSync(dir, { recursive: true, force: true });
  const left = await killPrograms();
  if (left > 0) throw new Error(`${left} programs were left behind`);
});

async function sendJobs(child: Program, done: ReadonlySet<unknown> = new Set()): Promise<void> {
  for (let id = 1; id <= JOBS; id++) {
    if (done.has(id)) continue;
    await child.send(id);
    await child.waitFor((fact) => fact.type === "accepted" && fact.id === id);
  }
}

const acceptedIds = (facts: readonly Fact[]) =>
  new Set(facts.filter((fact) => fact.type === "accepted").map((fact) => fact.id));

function scenario(fault = "none"): CrashScenario<unknown> & { dir: string } {
  return {
    program,
    dir,
    env: { FAULT: fault },
    drive: (child) => sendJobs(child),
    resume: (child, before) => sendJobs(child, acceptedIds(before.flatMap((life) => life.facts))),
    finish: async (child) => {
      await child.send("result");
      return (await child.waitFor("result")).jobs;
    },
  };
}

function sameResult({ after, reference }: CrashOutcome<unknown>): void {
  expect(after.result).toEqual(reference.result);
}

async function failureOf(work: Promise<unknown>): Promise<CrashFailure> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof CrashFailure) return error;
  throw new Error("expected a CrashFailure", { cause: error });
}

test("a durable program passes at every commit, and nothing is left on disk", async () => {
  const seen: number[] = [];
  const matrix = await crashMatrix({
    ...scenario(),
    check(outcome) {
      seen.push(outcome.n);
      expect(outcome.before.lives).toMatchObject([{ commits: outcome.n, ending: { signal: "SIGKILL" } }]);
      sameResult(outcome);
    },
  });
  expect(matrix.reference.commits).toBe(COMMITS);
  expect(matrix.killed).toEqual([1, 2, 3, 4, 5, 6]);
  expect(matrix.unreached).toEqual([]);
  expect(seen.sort((a, b) => a - b)).toEqual(matrix.killed);
  expect(readdirSync(dir)).toEqual([]);
});

test("facts of the first life are those that were told before the kill", async () => {
  const told: unknown[] = [];
  await crashMatrix({
    ...scenario(),
    points: () => [2],
    check: ({ before }) => void told.push(before.facts),
  });
  expect(told).toEqual([[{ type: "ready" }, { type: "accepted", id: 1 }]]);
});

test("several deaths in a row", async () => {
  const deaths: number[] = [];
  await crashMatrix({
    ...scenario(),
    again: [1, 1],
    points: () => [1, 3],
    check(outcome) {
      deaths.push(outcome.before.lives.length);
      sameResult(outcome);
    },
  });
  expect(deaths).toEqual([3, 3]);
});

test("a program that tells before it commits is caught, with the point and the facts in the message", async () => {
  const failure = await failureOf(crashMatrix({ ...scenario("told too early"), concurrency: 1, check: sameResult }));
  expect(failure.n).toBe(1);
  expect(failure.message).toContain("Killed after commit 1 of 6");
  expect(failure.message).toContain('{"type":"accepted","id":2}');
  expect(failure.message).toContain('it resulted in [{"id":1,"steps":2,"effects":1}]');
  expect(failure.cause).toMatchObject({ name: "AssertionError" });
  expect(readdirSync(failure.dir)).toContain("jobs.db");
});

test("an effect that runs twice is caught", async () => {
  const failure = await failureOf(crashMatrix({ ...scenario("effect twice"), check: sameResult }));
  expect(failure.message).toContain('"effects":2');
});

test("accepted work that is not carried on is caught", async () => {
  const options = { ...scenario("forgets to go on"), concurrency: 1, check: sameResult };
  const failure = await failureOf(crashMatrix(options));
  expect(failure.n).toBe(2);
  expect(failure.message).toContain('"steps":1');
});

test("a life that does not come to its end is caught", async () => {
  const options = { ...scenario("hangs after a restart"), points: () => [4], timeoutMs: 5_000, check: sameResult };
  const failure = await failureOf(crashMatrix(options));
  expect(failure.cause).toMatchObject({ code: "timeout" });
});

test("a program that fails by itself is not taken for a killed one", async () => {
  await expect(crashMatrix({ ...scenario("exits"), check: sameResult })).rejects.toMatchObject({ code: "agent_gone" });
});

test("a commit that is never reached fails, unless there is slack", async () => {
  const options = { ...scenario(), points: () => [COMMITS + 1], check: sameResult };
  const failure = await failureOf(crashMatrix(options));
  expect(failure.message).toContain("never reached 7");
  expect(await crashMatrix({ ...options, slack: 1 })).toMatchObject({ killed: [], unreached: [COMMITS + 1] });
});

test("a program that counts no commit is refused, not passed", async () => {
  const still = scenario();
  const options = { ...still, drive: undefined, finish: (child: Program) => child.waitFor("ready"), check: sameResult };
  await expect(crashMatrix(options)).rejects.toMatchObject({ code: "bad_config" });
});

test("the driver can choose the moment", async () => {
  const run = await crashRun({
    ...scenario(),
    drive: async (child) => {
      await child.send(1);
      await child.waitFor("accepted");
      child.note({ type: "seen by the driver" });
    },
    deaths: [{ when: (child) => child.waitFor("seen by the driver") }, { commit: 1 }],
  });
  expect(run.died).toHaveLength(2);
  expect(run.died[0]?.facts.map((fact) => fact.type)).toEqual(["ready", "accepted", "seen by the driver"]);
  expect(run.result).toEqual([
    { id: 1, steps: 2, effects: 1 },
    { id: 2, steps: 2, effects: 1 },
  ]);
});

test("a failure of the driver while the program lives is the failure of the run", async () => {
  const options = { ...scenario(), deaths: [{ commit: 4 }], drive: () => Promise.reject(new Error("driver broke")) };
  await expect(crashRun(options)).rejects.toThrow("driver broke");
});

test("a single program: commands, facts, kill", async () => {
  await using child = startProgram(program, { dir });
  // Sent before the program can listen: it must not be lost.
  await child.send(4);
  expect(await child.waitFor("accepted")).toEqual({ type: "accepted", id: 4 });
  await child.send("result");
  await child.waitFor("result");
  const waiting = expect(child.waitFor("never")).rejects.toMatchObject({ code: "agent_gone" });
  expect(await child.kill()).toEqual({ code: null, signal: "SIGKILL" });
  await waiting;
  expect(child.commits).toBe(3);
  await expect(child.send(5)).rejects.toMatchObject({ code: "agent_gone" });
});

test("waiting in vain ends with what is known", async () => {
  await using child = startProgram(program, { dir });
  await child.waitFor("ready");
  await expect(child.waitFor("never", 1)).rejects.toMatchObject({
    code: "timeout",
    message: expect.stringContaining('{"type":"ready"}'),
  });
});

test("a program that cannot be loaded says why", async () => {
  await using child = startProgram(new URL("./no-such-program.ts", import.meta.url), { dir });
  expect(await child.exited).toEqual({ code: 1, signal: null });
  expect(child.output).toContain("no-such-program.ts");
});

test("programs die with the process that started them, however it dies", async () => {
  await using parent = startProgram(new URL("./parent-program.ts", import.meta.url), { dir });
  const { pid } = await parent.waitFor("started");
  await parent.kill();
  await expect.poll(() => isAlive(Number(pid))).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
