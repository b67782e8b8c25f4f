import { AgentClient } from "perdure/client";
import { openAgentLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import type { RowWrite } from "perdure/collections/log";
import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, thinned } from "../../crash/drive.ts";
import { bundleProgram } from "../../support/bundle-program.ts";

const job = (key: string, status: string) => ({ table: "jobs", key, value: { status } });
const line = (key: string) => ({ table: "log", key, value: {}, operation: "insert" as const });

/** Each of them changes a version, so that one that counts twice shows. The fifth and the sixth are refused. */
const WRITES: readonly RowWrite[] = [
  { changes: [{ ...job("a", "new"), operation: "insert" }] },
  {
    changes: [{ ...job("a", "claimed"), operation: "upsert" }, line("1")],
    when: [{ table: "jobs", key: "a", version: 1 }],
  },
  { changes: [{ ...job("b", "new"), operation: "upsert" }], producer: { id: "runner", epoch: 1 } },
  { changes: [{ table: "jobs", key: "b", operation: "delete" }, line("2")] },
  { changes: [{ ...job("a", "stolen"), operation: "update" }], when: [{ table: "jobs", key: "a", version: 1 }] },
  { changes: [line("1")] },
  {
    changes: [
      { ...job("b", "again"), operation: "insert" },
      { ...job("b", "done"), operation: "update" },
    ],
  },
  { changes: [{ ...job("a", "done"), operation: "update" }], producer: { id: "runner", epoch: 2 } },
].map((write, n) => ({ ...(write as RowWrite), txid: `t${n}` }));

const EXPECTED = [true, true, true, true, false, false, true, true];
/** Versions after the first so many writes. */
const VERSIONS = [
  { a: 0, b: 0, one: 0, two: 0 },
  { a: 1, b: 0, one: 0, two: 0 },
  { a: 2, b: 0, one: 1, two: 0 },
  { a: 2, b: 1, one: 1, two: 0 },
  { a: 2, b: 2, one: 1, two: 1 },
  { a: 2, b: 2, one: 1, two: 1 },
  { a: 2, b: 2, one: 1, two: 1 },
  { a: 2, b: 4, one: 1, two: 1 },
  { a: 3, b: 4, one: 1, two: 1 },
];

interface Result {
  /** As the next life finds it. */
  readonly found: (typeof VERSIONS)[number];
  /** What all writes come to when they are sent again. */
  readonly outcomes: boolean[];
  readonly versions: (typeof VERSIONS)[number];
  readonly position: string;
}

async function open(child: Program): Promise<RowLog> {
  const { port } = await child.waitFor("listening");
  const client = new AgentClient({ agent: "Keeper", name: "one", host: `127.0.0.1:${String(port)}` });
  const log = openAgentLog({ agent: client, collections: ["jobs", "log"] });
  void child.exited.then(async () => {
    await log.close();
    client.close();
  });
  await log.ready;
  return log;
}

function versionsOf(log: RowLog): (typeof VERSIONS)[number] {
  const [jobs, lines] = [log.table("jobs"), log.table("log")];
  return { a: jobs.version("a"), b: jobs.version("b"), one: lines.version("1"), two: lines.version("2") };
}

function check(outcome: CrashOutcome<Result>): void {
  expectNoFailure(outcome);
  const told = ackedIn(outcome.before.facts);
  const { found, outcomes, versions, position } = outcome.after.result;
  // The write under way has happened, or it has not.
  expect([VERSIONS[told.size], VERSIONS[told.size + 1]]).toContainEqual(found);
  for (const [id, applied] of told) expect(applied, id).toBe(EXPECTED[Number(id.slice(1))]);
  expect(outcomes).toEqual(EXPECTED);
  expect(versions).toEqual(VERSIONS.at(-1));
  expect(Number(position)).toBe(EXPECTED.filter(Boolean).length);
}

test(
  "clients write rows, killed after every commit: what was acknowledged is there, and what is sent again counts once",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<Result>({
      points: thinned(3),
      program: await bundleProgram(new URL("./crash-program.ts", import.meta.url)),
      env,
      async drive(child) {
        const log = await open(child);
        for (const write of WRITES) {
          const { applied } = await log.write(write);
          child.note({ type: "acked", id: write.txid, value: applied });
        }
      },
      async finish(child) {
        const log = await open(child);
        const found = versionsOf(log);
        const outcomes: boolean[] = [];
        for (const write of WRITES) outcomes.push((await log.write(write)).applied);
        const { position } = log;
        return { found, outcomes, versions: versionsOf(log), position };
      },
      check,
    });
    expectCovered(matrix, WRITES.length, 3);
    expect(matrix.reference.result.found).toEqual(VERSIONS.at(-1));
  },
);
