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

/** Where in its work it is stopped, and what it says of itself when it wakes. */
const stops = [
  // It finds out by itself that its time is over, or is told; either way its work is nobody's any more.
  { at: "while it works", stopped: "executing", woken: ["lost", "worked"], env: {} },
  { at: "with its result in hand", stopped: "stopping", woken: ["written", "lost"], env: { STOP_AT_RESULT: "1" } },
] as const;

test.each(kinds.flatMap((kind) => stops.map((stop) => ({ kind, ...stop }))))(
  "$kind: a worker that is stopped $at, longer than its lease, is overtaken; what it brings then is refused",
  async ({ kind, stopped, woken, env: extra }) => {
    const place = await startPlace(kind);
    const dir = tempDir();
    const file = join(dir, "executions");
    const url = place.session("zombie");
    const given = { ...env, SESSION: url, EXECUTIONS: file, TOOL_MODE: "hold" };
    const tools = await bundleProgram(programs.tools);
    const worker = (owner: string, own: Record<string, string>) =>
      startProgram(tools, { dir, env: { ...given, OWNER: owner, LEASE_MS: String(LEASE_MS), ...own } });
    const mine = openSessionLog(url);
    const agent = startProgram(await bundleProgram(programs.agent), { dir, env: given });
    const first = worker("first", { WORK_MS: String(LEASE_MS / 2), ...extra });
    const second = new Set<Program>();
    try {
      await first.waitFor("ready");
      const answered = askAndAllow(mine.log);
      const { id } = await first.waitFor((fact) => fact.type === "executing" && fact.name === "lookUp");
      await first.waitFor(stopped);
      // With its result in hand it stops by itself.
      if (stopped === "executing") process.kill(first.pid ?? 0, "SIGSTOP");
      second.add(worker("second", {}));
      await answered;
      const call = rowsOf(agentCollections(mine.log).toolCalls);
      const settled = call.get(String(id));
      expect(settled).toMatchObject({ status: "completed", result: { meaning: "wet feet, says second" } });

      process.kill(first.pid ?? 0, "SIGCONT");
      for (const fact of woken) await first.waitFor(fact);
      expect(first.facts.filter(({ applied }) => applied === true)).toEqual([]);
      expect(first.facts).toContainEqual(expect.objectContaining({ type: "lost", id: `tool:${String(id)}` }));
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
