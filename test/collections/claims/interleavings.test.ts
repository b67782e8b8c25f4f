import type { Claim, RowLog } from "perdure/collections";
import { manualClock } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { openWorker } from "./desk.ts";
import { until } from "../../support/until.ts";

/** Small, fast and good enough to make up interleavings that come again with their seed. */
function random(seed: number) {
  let state = seed * 2654435761 + 1;
  return (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const JOBS = ["a", "b", "c", "d"];
const STEPS = 40;
const LEASE_MS = 30_000;

/** One that does jobs, may stand still for as long as it likes, and may be started again under its name. */
function makeWorker(log: RowLog, prefix: string, owner: string) {
  const open = () => {
    const clock = manualClock();
    return { ...openWorker(log, { prefix, owner, clock, leaseMs: LEASE_MS, maxAttempts: 1_000 }), clock };
  };
  let now = open();
  const begun: Claim[] = [];
  return {
    frozen: false,
    /** Time passes for who is not frozen: a frozen one neither beats nor looks. */
    pass: (ms: number) => now.clock.advance(ms),
    restart: () => void (now = open()),
    begin: async (id: string) => {
      const worker = now;
      const got = await worker.claims.acquire(id).catch(() => undefined);
      if (got?.claim === undefined) return;
      const { claim } = got;
      if (worker.rows.get(id)?.status === "done") return void (await claim.giveBack());
      const when = [claim.condition()];
      const begin = (row: { status: string; by?: string; fence?: number }) =>
        void Object.assign(row, { status: "executing", by: owner, fence: claim.fence });
      if (await worker.rows.update(id, begin, { when })) begun.push(claim);
    },
    /** Ends the job that it has had for the longest, whether or not it is its own still. */
    end: async (well: boolean) => {
      const claim = begun.shift();
      if (claim === undefined) return;
      if (!well) return void (await claim.fail("no luck"));
      const done = (row: { status: string; by?: string; fence?: number }) =>
        void Object.assign(row, { status: "done", by: owner, fence: claim.fence });
      await now.rows.update(claim.id, done, { when: [claim.condition()] });
      await claim.release();
    },
  };
}

/** Reads the log on its own and says what should not have happened. */
function makeAudit(log: RowLog, prefix: string) {
  const wrong: string[] = [];
  const settled = new Set<string>();
  const claims = log.table(`${prefix}claims`);
  let writes = 0;
  log.table(`${prefix}jobs`).subscribe((changes) => {
    for (const { key, value, operation } of changes) {
      if (operation !== "update") continue;
      writes++;
      if (settled.has(key)) wrong.push(`${key} was settled, and ${JSON.stringify(value)} came behind`);
      if (value["status"] === "done") settled.add(key);
      const claim = claims.get(key);
      const holder = claim?.value["state"] === "held" ? claim.value["owner"] : undefined;
      if (holder !== value["by"] || claim?.version !== value["fence"]) {
        wrong.push(`${JSON.stringify(value)} was written while ${String(holder)} held it at ${claim?.version}`);
      }
    }
  });
  return { wrong, settled, writes: () => writes };
}

describe.each(backends)("claims in any order: $name", ({ name, start }) => {
  let place: TestPlace;
  let logs: RowLog[];
  beforeAll(async () => {
    place = await start();
    logs = await Promise.all([1, 2, 3, 4].map(() => place.open()));
  });
  afterAll(() => place.stop());

  const seeds = Array.from({ length: name === "local" ? 20 : 2 }, (_, n) => n + 1);
  test.each(seeds)(
    "three that stop, come back and start again: one holder at a time, no settled job again (%i)",
    async (seed) => {
      const draw = random(seed);
      const prefix = `p${seed}-`;
      const audit = makeAudit(logs[3]!, prefix);
      const workers = ["ann", "bob", "cid"].map((owner, at) => makeWorker(logs[at]!, prefix, owner));
      const { rows } = openWorker(logs[0]!, { prefix });
      await rows.insertAll(JOBS.map((id) => ({ id, status: "pending" })));
      const act = async (worker: (typeof workers)[number]) => {
        const what = draw(10);
        const id = JOBS[draw(JOBS.length)]!;
        if (what === 0) worker.frozen = !worker.frozen;
        if (worker.frozen) return;
        if (what === 1) worker.restart();
        else if (what < 5) await worker.begin(id);
        else if (what < 8) await worker.end(what !== 5);
        else await worker.pass(draw(LEASE_MS * 2));
      };
      for (let step = 0; step < STEPS; step++) await Promise.all(workers.map(act));
      // Whoever was frozen comes back with what it had, and then the rest is done.
      for (let round = 0; audit.settled.size < JOBS.length && round < 200; round++) {
        for (const worker of workers) {
          await worker.end(true);
          await worker.begin(JOBS[round % JOBS.length]!);
          await worker.pass(LEASE_MS / 2);
        }
      }
      await until(() => audit.settled.size === JOBS.length);
      expect(audit.wrong).toEqual([]);
      expect(audit.writes()).toBeGreaterThanOrEqual(2 * JOBS.length);
    },
  );
});
