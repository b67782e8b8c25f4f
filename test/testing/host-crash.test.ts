import { crashMatrix, killPrograms } from "perdure/testing";
import type { Fact, Program } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { bundleProgram } from "../support/bundle-program.ts";

// What is tested here is that every point is reached.
process.env.PERDURE_CRASH_STEP = "1";

afterEach(async () => {
  const left = await killPrograms();
  if (left > 0) throw new Error(`${left} programs were left behind`);
});

const IDS = [1, 2, 3];
const acceptedIds = (facts: readonly Fact[]) => facts.filter(({ type }) => type === "accepted").map(({ id }) => id);

async function send(child: Program, ids: readonly number[]): Promise<void> {
  for (const id of ids) {
    await child.send(id);
    await child.waitFor((fact) => fact.type === "accepted" && fact.id === id);
  }
}

test("a host on disk, killed after every commit: what was accepted is there, and done with nobody asking", async () => {
  const matrix = await crashMatrix({
    program: await bundleProgram(new URL("./host-program.ts", import.meta.url)),
    drive: (child) => send(child, IDS),
    // Clients send again only what they were not told of.
    resume(child, before) {
      const told = acceptedIds(before.flatMap((life) => life.facts));
      return send(
        child,
        IDS.filter((id) => !told.includes(id)),
      );
    },
    finish: async (child) => (await child.waitFor("finished")).items,
    check: ({ after, reference }) => expect(after.result).toEqual(reference.result),
  });
  expect(matrix.reference.result).toEqual(IDS.map((id) => ({ id, done: 1 })));
  expect(matrix.killed).toHaveLength(matrix.reference.commits);
  expect(matrix.killed.length).toBeGreaterThanOrEqual(IDS.length * 2);
});
