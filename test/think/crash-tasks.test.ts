import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, CrashScenario, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, env, every, expectCovered, MATRIX_MS, ofType } from "../crash/drive.ts";
import type { TaskCommand, TaskLook } from "./crash-tasks-program.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const NEXT_DAY = (24 * 60 + 1) * 60_000;
const OCCURRENCE = "2024-02-29T00:01:00.000Z";
const keyOf = (task: string) => `Planner/one:${task}:${OCCURRENCE}`;

const send = (child: Program, command: TaskCommand) => child.send(command);

async function wakeAndGo(child: Program): Promise<void> {
  await send(child, { type: "wake" });
  await child.waitFor(({ type }) => type === "armed");
  await send(child, { type: "go" });
}

const program = await bundleProgram(new URL("./crash-tasks-program.ts", import.meta.url));

function scenario(tasks: "prompts" | "handlers"): CrashScenario<TaskLook> {
  return {
    program,
    env: { ...env, TASKS: tasks },
    drive: wakeAndGo,
    resume: wakeAndGo,
    async finish(child) {
      const id = ofType(child.facts, "look").length;
      await send(child, { type: "look", id });
      return (await child.waitFor((fact) => fact.type === "look" && fact.id === id)) as TaskLook;
    },
  };
}

/** Every occurrence was the one that was meant, and the next one is armed. */
function expectArmed({ tasks }: TaskLook, errors: Record<string, string> = {}): void {
  for (const task of tasks) {
    expect(task).toEqual({ id: task.id, due: NEXT_DAY, starts: 0, error: errors[task.id] ?? null });
  }
}

function checkPrompts(outcome: CrashOutcome<TaskLook>): void {
  const { result } = outcome.after;
  const kills = outcome.before.lives.length;
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  expectArmed(result);
  // Each prompt is one turn, and has one answer.
  expect(result.texts.toSorted()).toEqual(["Asked", "Done with Asked", "Done with Plain", "Plain"]);
  expect(result.texts.indexOf("Done with Plain")).toBeGreaterThan(result.texts.indexOf("Plain"));
  expect(result.keys.toSorted()).toEqual(["asked", "plain"].map((task) => `task:${task}:${OCCURRENCE}`));
  expect(result.calls).toBeLessThanOrEqual(outcome.reference.result.calls + kills);
}

const countOf = (list: readonly string[], one: string) => list.filter((other) => other === one).length;

function checkHandlers(outcome: CrashOutcome<TaskLook>): void {
  const { result } = outcome.after;
  const kills = outcome.before.lives.length;
  const facts = allFacts(outcome);
  // What is given up is told to `onError`, once, or not at all if the process died with it.
  for (const { error } of ofType(facts, "failed")) expect(error).toBe("Error: never");
  for (const type of ["failed", "given up"]) expect(ofType(facts, type).length).toBeLessThanOrEqual(1);
  expectArmed(result, { doomed: "never" });
  for (const { task, key } of ofType(facts, "ran")) expect(key).toBe(keyOf(String(task)));
  const rows = (task: string) => countOf(result.lines, `${task} ${keyOf(task)}`);
  // What returns plainly takes effect once, with its end; what threw was undone.
  expect(rows("sync")).toBe(1);
  expect(rows("flaky")).toBe(1);
  expect(rows("doomed")).toBe(0);
  // What awaits runs at least once, and again only if it was cut.
  expect(rows("async")).toBeGreaterThanOrEqual(1);
  expect(rows("async")).toBeLessThanOrEqual(1 + kills);
  expect(result.lines).toHaveLength(2 + rows("async"));
  expect(countOf(result.tries, keyOf("async"))).toBeLessThanOrEqual(1 + kills);
  expect(countOf(result.tries, keyOf("flaky"))).toBeGreaterThanOrEqual(2);
  expect(result.tries.every((key) => key === keyOf("async") || key === keyOf("flaky"))).toBe(true);
}

test("scheduled prompts, killed after every commit: one turn each", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("prompts"), check: checkPrompts, slack: 6 });
  expectCovered(matrix, 10);
});

test("scheduled handlers, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("handlers"), check: checkHandlers, slack: 2 });
  expectCovered(matrix, 10);
});

test.for([
  ["prompts", [1], 4],
  ["handlers", [2, 1], 3],
] as const)(
  "%s, killed again after the commits %o of later lives",
  { timeout: MATRIX_MS },
  async ([tasks, again, step]) => {
    const check = tasks === "prompts" ? checkPrompts : checkHandlers;
    const { killed } = await crashMatrix({ ...scenario(tasks), check, again, points: every(step, 1), slack: 6 });
    expect(killed.length).toBeGreaterThan(1);
  },
);
