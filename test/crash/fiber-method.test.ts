import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, MATRIX_MS, ofType, remote, untilIdle } from "./drive.ts";
import { openIn, stepsOf } from "./fiber-check.ts";
import type { FiberLeft } from "./fiber-check.ts";
import { withLives } from "./lives.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./fiber-program.ts", import.meta.url));
const WITHOUT_METHOD = { VERSION: "2" };

async function spawn(child: Program): Promise<void> {
  await remote(child, "Runner").call("spawn", "steps", "steps");
  await untilIdle(child);
}

/** The only fiber, once there is nothing left to do. */
async function look(child: Program): Promise<FiberLeft | undefined> {
  await untilIdle(child);
  const [fiber] = await remote(child, "Runner").call<readonly FiberLeft[]>("result");
  return fiber;
}

/** Three programs in a row; the one in the middle, without the method, dies and starts again. */
async function surviveWithout(killAt: number): Promise<void> {
  await withLives(program, async ({ live }) => {
    const first = await live(spawn, { killAt });
    expect(first.ending.signal).toBe("SIGKILL");
    const cut = await live(look, { env: WITHOUT_METHOD, killAt: 1 + (killAt % 3) });

    let parked: FiberLeft | undefined;
    const without = await live(async (child) => (parked = await look(child)), { env: WITHOUT_METHOD });
    expect(parked).toMatchObject({ status: "interrupted", error: expect.stringContaining('no method "steps"') });
    // Said by the life that noticed; a kill right after its commit leaves only the row to say it.
    expect(ofType(without.facts, "missing")).toHaveLength(openIn(without.facts).length);

    let carriedOn: FiberLeft | undefined;
    const last = await live(async (child) => (carriedOn = await look(child)));
    expect(carriedOn).toMatchObject({ status: "completed", result: "steps done", id: parked?.id });
    expect(carriedOn?.error).toBeUndefined();
    const told = ackedIn(first.facts).get("spawn");
    expect([undefined, carriedOn?.id]).toContain(told);
    const facts = [first, cut, without, last].flatMap((life) => life.facts);
    expect(stepsOf(facts, "steps")).toEqual([0, 1, 2]);
  });
}

test(
  "a fiber whose method is gone is kept, and taken up again when the method is back",
  { timeout: MATRIX_MS },
  async () => {
    const reference = await withLives(program, ({ live }) => live(spawn));
    expect(stepsOf(reference.facts, "steps")).toEqual([0, 1, 2]);
    // From the commit that stores the fiber, behind those of the index and of the start, up to the one before its end.
    for (let killAt = 3; killAt < reference.commits; killAt++) await surviveWithout(killAt);
  },
);
