import { join } from "node:path";
import { agentCollections, rowsOf } from "perdure/collections";
import { startProgram } from "perdure/testing";
import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, MATRIX_MS } from "../../crash/drive.ts";
import { quiet, tempDir } from "../../host/open-host.ts";
import { bundleProgram } from "../../support/bundle-program.ts";
import { askAndAllow, programs, readExecutions } from "./drive-session.ts";
import { openSessionLog } from "./open-log.ts";
import { kinds, startPlace } from "./place.ts";

/** Long enough for heartbeats on a busy machine, short enough to wait for. */
const LEASE_MS = 1_000;

test.each(kinds)(
  "%s: a worker that was stopped longer than its lease is overtaken, and what it brings then is refused",
  async (kind) => {
    const place = await startPlace(kind);
    const dir = tempDir();
    const file = join(dir, "executions");
    const url = place.session("zombie");
    const given = { ...env, SESSION: url, EXECUTIONS: file, TOOL_MODE: "hold" };
    const tools = await bundleProgram(programs.tools);
    const worker = (owner: string, workMs: number) =>
      startProgram(tools, {
        dir,
        env: { ...given, OWNER: owner, LEASE_MS: String(LEASE_MS), WORK_MS: String(workMs) },
      });
    const mine = openSessionLog(url);
    const agent = startProgram(await bundleProgram(programs.agent), { dir, env: given });
    const first = worker("first", LEASE_MS / 2);
    const second = new Set<Program>();
    try {
      await first.waitFor("ready");
      const answered = askAndAllow(mine.log);
      const { id } = await first.waitFor((fact) => fact.type === "executing" && fact.name === "lookUp");
      process.kill(first.pid ?? 0, "SIGSTOP");
      second.add(worker("second", 0));
      await answered;
      const call = rowsOf(agentCollections(mine.log).toolCalls);
      const settled = call.get(String(id));
      expect(settled).toMatchObject({ status: "completed", result: { meaning: "wet feet, says second" } });

      process.kill(first.pid ?? 0, "SIGCONT");
      // It finds out by itself that its time is over, or is told; either way its work is nobody's any more.
      await first.waitFor((fact) => fact.type === "lost" && fact.id === `tool:${String(id)}`);
      await first.waitFor("worked");
      await quiet();
      expect(call.get(String(id))).toEqual(settled);
      const owners = readExecutions(file).filter((one) => one.name === "lookUp");
      expect(owners.map(({ owner }) => owner)).toEqual(["first", "second"]);
    } finally {
      await Promise.all([first, agent, ...second].map((program) => program.kill()));
      await mine.close();
      await place.stop();
    }
  },
  MATRIX_MS,
);
