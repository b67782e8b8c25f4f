import { killPrograms, startProgram } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { bundleProgram } from "../support/bundle-program.ts";
import { tempDir } from "./open-host.ts";

const file = await bundleProgram(new URL("./alive-program.ts", import.meta.url));

afterEach(killPrograms);

async function run(mode: string, dir = tempDir()) {
  const program = startProgram(file, { dir, env: { MODE: mode } });
  const { code } = await program.exited;
  return { code, output: program.output.trim() };
}

test.each([
  ["a turn that waits for its next try", "retry", "completed"],
  ["a fiber that runs", "fiber", "fiber ended"],
  ["a schedule that is due in a moment", "due", "rang"],
  ["a schedule of an agent that has left memory", "evicted", "rang"],
  ["a schedule that has run, and nothing else: it ends", "idle", "rang"],
  ["a host that was stopped, whatever it has to do: it ends", "stopped", "stopped"],
])("a script with only createHost() runs as long as it must: %s", async (_, mode, output) => {
  expect(await run(mode)).toEqual({ code: 0, output });
});
