import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import type { Command } from "./drive.ts";
import { ackedIn, MATRIX_MS, ofType, remote, untilIdle } from "./drive.ts";
import type { Past } from "./lives.ts";
import { withLives } from "./lives.ts";
import { rowsOf } from "./work-check.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./work-program.ts", import.meta.url));
const ITEMS = ["planter", "sync", "async"];
/** The end of the item that waited, what it planted, and the host's note that the agent has left memory. */
const COMMITS_OF_STOP = 5;
const PLANTED = ["planted schedule", "planted item"];

/** Fills the queue behind an item that goes on only when the host stops. */
async function fillAndStop(child: Program): Promise<void> {
  const worker = remote(child, "Worker");
  await worker.call("setUp");
  for (const key of ITEMS) await worker.as(key).call("add", key, key);
  const stop: Command = { type: "stop" };
  await child.send(stop);
  await child.exited;
}

async function look(child: Program): Promise<WorkResult> {
  await untilIdle(child);
  return remote(child, "Worker").call<WorkResult>("result");
}

function check(first: Past, second: Past, result: WorkResult): void {
  expect(ofType([...first.facts, ...second.facts], "failed")).toEqual([]);
  for (const key of ITEMS) if (ackedIn(first.facts).has(key)) expect(rowsOf(result, key), key).toHaveLength(1);
  if (rowsOf(result, "planter").length > 0) {
    // Cut at its end, the planter runs again and plants again; what it planted takes effect once each.
    for (const key of PLANTED) expect(new Set(rowsOf(result, key)), key).toEqual(new Set([1]));
  }
  expect(rowsOf(result, "sync").every((rows) => rows === 1)).toBe(true);
}

function run(killAt?: number): Promise<{ first: Past; second: Past }> {
  return withLives(program, async ({ live }) => {
    const first = await live(fillAndStop, { killAt });
    let result: WorkResult = { state: { n: 0 }, runs: [] };
    const second = await live(async (child) => (result = await look(child)));
    check(first, second, result);
    return { first, second };
  });
}

test(
  "a host that stops in order, and one killed while it stops: what is left is done after the next start",
  { timeout: MATRIX_MS },
  async () => {
    const { first, second } = await run();
    expect(first.ending).toEqual({ code: 0, signal: null });
    expect(ofType(first.facts, "ran").map(({ key }) => key)).toEqual(["planter"]);
    expect(
      ofType(second.facts, "ran")
        .map(({ key }) => key)
        .sort(),
    ).toEqual(["async", "planted item", "planted schedule", "sync"]);
    // Before that, it is a queue like any other.
    const stopsAfter = first.commits - COMMITS_OF_STOP;
    for (let killAt = stopsAfter; killAt <= first.commits; killAt++) await run(killAt);
  },
);
