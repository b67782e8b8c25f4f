import { killPrograms, startProgram } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { env } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { tempDir } from "./open-host.ts";
import type { Ending, Scene } from "./owned-program.ts";

const program = await bundleProgram(new URL("./owned-program.ts", import.meta.url));

afterEach(killPrograms);

const ENDINGS: readonly Ending[] = ["stop", "replace", "delete"];
/** At how many places of the work each ending comes. */
const POINTS = 10;

test("whatever agents do when their life ends, no promise is left without an owner", { timeout: 600_000 }, async () => {
  const child = startProgram(program, { dir: tempDir(), env });
  await child.waitFor("ready");
  const play = async (scene: Scene) => {
    await child.send(scene);
    const played = await child.waitFor((fact) => fact.type === "played" && fact.scene === JSON.stringify(scene));
    return played as { type: string; commits: number; failed: readonly unknown[] };
  };
  const { commits: whole, failed } = await play({ ending: "stop", after: null, sandbox: true });
  expect(failed).toEqual([expect.stringContaining('The MCP server "nobody" could not be used')]);
  expect(whole).toBeGreaterThan(50);
  for (const [i, ending] of ENDINGS.entries()) {
    for (let point = 0; point < POINTS; point++) {
      const after = Math.ceil(((point + (i + 1) / (ENDINGS.length + 1)) * whole) / POINTS);
      await play({ ending, after, sandbox: point === POINTS - 2 });
    }
  }
  expect(child.facts.filter(({ type }) => type === "unowned")).toEqual([]);
});
