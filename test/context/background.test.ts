import { killPrograms, startProgram } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { env } from "../crash/drive.ts";
import type { Ending } from "./background-program.ts";

const program = await bundleProgram(new URL("./background-program.ts", import.meta.url));

afterEach(killPrograms);

test.each<Ending>(["stop", "replace", "delete"])(
  "%s while a summary is made in the background: the process goes on",
  async (ending) => {
    const child = startProgram(program, { dir: tempDir(), env });
    await child.waitFor("ready");
    await child.send(ending);
    expect(await child.waitFor("under way")).toMatchObject({ rows: [{ status: "started" }] });
    await child.waitFor("over");
    expect(child.facts.filter(({ type }) => type === "failed")).toEqual([]);
    expect(child.output).toBe("");
  },
);
