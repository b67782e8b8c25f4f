import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import {
  ackedIn,
  env,
  expectCovered,
  expectNoFailure,
  laterLives,
  MATRIX_MS,
  remote,
  thinned,
  untilIdle,
} from "./drive.ts";
import { withLives } from "./lives.ts";
import { rowsOf } from "./work-check.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./work-program.ts", import.meta.url));

interface Left extends WorkResult {
  readonly agents: readonly string[];
}

const NOTHING = { state: { n: 0 }, runs: [] };

function check(outcome: CrashOutcome<Left>): void {
  expectNoFailure(outcome);
  const told = ackedIn(outcome.before.facts);
  const { agents, state, runs } = outcome.after.result;
  if (agents.length > 0) {
    expect(told.has("destroy")).toBe(false);
    if (told.has("set")) expect(state.n).toBe(1);
    if (told.has("planLate")) expect(rowsOf({ state, runs }, "late")).toEqual([1]);
    return;
  }
  expect({ state, runs }).toEqual(NOTHING);
  // Nothing woke it before the test looked.
  for (const facts of laterLives(outcome)) {
    const types = facts.map(({ type }) => type);
    expect(types.indexOf("woken")).toBeGreaterThan(types.indexOf("idle"));
  }
}

const deletesItself: CrashMatrixOptions<Left> = {
  program,
  env,
  async drive(child) {
    const worker = remote(child, "Worker");
    await worker.call("setUp");
    await worker.call("set", 1);
    await worker.call("planLate", "late");
    await worker.call("destroy");
  },
  async finish(child) {
    const agents = await untilIdle(child);
    const { state, runs } = await remote(child, "Worker").call<WorkResult>("result");
    return { agents, state, runs };
  },
  check,
};

test("an agent that deletes itself is there as a whole, or gone for good", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...deletesItself, points: thinned(2) });
  expectCovered(matrix, 6, 2);
  expect(matrix.reference.result).toEqual({ agents: [], ...NOTHING });
});

test(
  "a delete that was cut between two files of the agent brings back none of its rows",
  { timeout: MATRIX_MS },
  async () => {
    await withLives(program, async ({ dir, live }) => {
      // Killed while it is open: its last rows are only in the log beside the database.
      await live(async (child) => {
        await remote(child, "Worker").call("setUp");
        await remote(child, "Worker").call("set", 1);
      });
      const index = new Database(join(dir, "host.db"));
      index.exec("DELETE FROM agent; INSERT INTO doomed (id) VALUES ('Worker/one')");
      index.close();
      const [file = "no file"] = globSync(join(dir, "agents", "Worker", "one.*.db"));
      rmSync(file);
      expect(globSync(`${file}-wal`)).toHaveLength(1);

      const { facts } = await live(async (child) => {
        await untilIdle(child);
        await remote(child, "Worker")
          .call("note", 1)
          .catch(() => undefined);
        await remote(child, "Worker").call("result");
      });
      expect(ackedIn(facts).get("result")).toMatchObject(NOTHING);
    });
  },
);
