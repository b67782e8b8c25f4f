import type { Fact } from "perdure/testing";
import { expect, test } from "vitest";
import { MATRIX_MS, ofType, remote, untilIdle } from "./drive.ts";
import { withLives } from "./lives.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./work-program.ts", import.meta.url));
/** More lives than any of this may take. */
const MOST_LIVES = 20;

/** Runs the program until a life comes to its end. */
async function outlive(begin: string, key: string) {
  return withLives(program, async ({ live }) => {
    const facts: Fact[] = [];
    for (let life = 0; life < MOST_LIVES; life++) {
      let result: { item: unknown; keys: string[] } | undefined;
      const past = await live(
        async (child) => {
          const worker = remote(child, "Worker");
          if (life === 0) {
            await worker.call("setUp");
            await worker.as("behind").call("plan", "delayed", "sync", "behind");
            await worker.call(begin, key);
          }
          await untilIdle(child);
          const item = await worker.call("item", key);
          const { runs } = await worker.call<WorkResult>("result");
          result = { item, keys: runs.map(({ key }) => key) };
        },
        { mayDie: true },
      );
      facts.push(...past.facts);
      if (result !== undefined) return { ...result, facts, lives: life + 1 };
    }
    throw new Error(`it still kills the process after ${MOST_LIVES} lives`);
  });
}

test.for([
  ["addPoison", "asyncPoison", "failed"],
  ["spawnPoison", "fiber", "error"],
] as const)(
  "%s %s: what ends the process whenever it runs is given up, and the rest goes on",
  { timeout: MATRIX_MS },
  async ([begin, key, status]) => {
    const { item, keys, facts, lives } = await outlive(begin, key);
    expect(item).toMatchObject({
      status,
      error: expect.stringMatching(/The process ended 1[01] times while "\w+" ran/),
    });
    expect(keys).toEqual(["behind"]);
    const attempts = ofType(facts, "poisoned").map(({ attempt }) => attempt);
    expect(attempts).toEqual(Array.from({ length: lives - 1 }, (_, n) => n + 1));
  },
);
