import { DurableStreamTestServer } from "@durable-streams/server";
import { openStreamLog } from "perdure/collections";
import type { Claim, RowLog } from "perdure/collections";
import { killPrograms, startProgram } from "perdure/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { env } from "../../crash/drive.ts";
import { openWorker } from "./desk.ts";

/** Long enough for a process on a busy machine to beat in, short enough to wait for. */
const LEASE_MS = 1_500;

const server = new DurableStreamTestServer({ port: 0 });
const logs: RowLog[] = [];
let origin = "";
beforeAll(async () => {
  origin = await server.start();
});
afterEach(() => killPrograms());
afterAll(async () => {
  await Promise.all(logs.map((log) => log.close()));
  await server.stop();
});

/** A worker in another process that has the job, and one here that stands by for it. */
async function workAndStandBy(name: string) {
  const url = `${origin}/v1/stream/${name}`;
  const log = openStreamLog({ url, onError: () => {} });
  logs.push(log);
  const here = openWorker(log, { owner: "here", leaseMs: LEASE_MS });
  await here.rows.insert({ id: "job", status: "pending" });
  const program = startProgram(new URL("./worker-program.ts", import.meta.url), {
    dir: name,
    env: { ...env, URL: url, OWNER: "there", LEASE_MS: String(LEASE_MS) },
  });
  expect(await program.waitFor("taken")).toMatchObject({ attempt: 1 });
  const gained = new Promise<Claim>((resolve) => here.claims.hold("job", { onGained: resolve }));
  return { here, program, gained };
}

test("a process that is killed loses its claims to one that stands by", async () => {
  const { here, program, gained } = await workAndStandBy("killed");
  expect(here.claims.inspect("job")).toMatchObject({ state: "held", owner: "there" });
  await program.kill();
  const claim = await gained;
  expect(await here.rows.update("job", (row) => void (row.status = "done"), { when: [claim.condition()] })).toBe(true);
  await here.claims.dispose();
});

test("a process that stood still and wakes up behind a takeover is refused, and stops", async () => {
  const { here, program, gained } = await workAndStandBy("stopped");
  const pid = program.pid ?? Number.NaN;
  process.kill(pid, "SIGSTOP");
  const claim = await gained;
  await here.rows.update("job", (row) => void (row.status = "done here"), { when: [claim.condition()] });
  process.kill(pid, "SIGCONT");
  await program.send("finish");
  expect(await program.waitFor("finished")).toMatchObject({ counted: false, released: false });
  await program.waitFor("aborted");
  expect(here.rows.get("job")?.status).toBe("done here");
  await here.claims.dispose();
});
