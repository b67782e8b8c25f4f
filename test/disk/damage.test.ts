import { cpSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { createHost, type Host, type HostOptions, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { until } from "../support/until.ts";
import { Everything } from "./everything.ts";

const GARBAGE = '{"gar\u0001bage';

interface Opened extends Host {
  readonly said: string[];
}

function open(dir: string): Opened {
  const said: string[] = [];
  const log: HostOptions["log"] = ({ stage, error }) => void said.push(`${stage}: ${String(error)}`);
  const host = createHost({ agents: { Everything }, dir, log, graceMs: 100, idleMs: 1e9 });
  onTestFinished(() => host.stop());
  return { ...host, said };
}

/** A directory with one agent that has rows in as many tables as an agent can have, at rest. */
async function filled(): Promise<string> {
  const dir = tempDir();
  const host = open(dir);
  await host.getAgentByName(Everything, "one").fill();
  await host.stop();
  return dir;
}

interface Column {
  readonly table: string;
  readonly column: string;
  /** Rows to damage. */
  readonly where: string;
}

/** Columns of text in tables with rows, but those that rows are found by. */
function columnsOf(db: Database.Database): Column[] {
  const listed = db.prepare<[], { name: string; sql: string }>(
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name GLOB 'perdure_*' AND name NOT GLOB 'perdure_search*'",
  );
  return listed.all().flatMap(({ name: table, sql }) => {
    if (db.prepare(`SELECT 1 FROM ${table}`).get() === undefined) return [];
    const where = sql.includes("WITHOUT ROWID") ? `rowid_of = 0` : `rowid = (SELECT max(rowid) FROM ${table})`;
    const columns = db.pragma(`table_info(${table})`) as { name: string; type: string; pk: number }[];
    const texts = columns.filter(({ type, pk }) => type === "TEXT" && pk === 0);
    const key = columns.find(({ pk }) => pk > 0)?.name ?? "";
    if (where !== "rowid_of = 0") return texts.map(({ name }) => ({ table, column: name, where }));
    const keys = db
      .prepare<[], string>(`SELECT quote(${table === "perdure_row" ? "key" : key}) FROM ${table}`)
      .pluck()
      .all();
    return texts.flatMap(({ name }) =>
      keys.map((one) => ({ table, column: name, where: `${table === "perdure_row" ? "key" : key} = ${one}` })),
    );
  });
}

/** @returns how many rows the table has; undefined when its own checks do not let the damage in */
function damage(db: Database.Database, { table, column, where }: Column): number | undefined {
  try {
    db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(GARBAGE);
    return countOf(db, table);
  } catch {
    return undefined;
  }
}
const countOf = (db: Database.Database, table: string) =>
  db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;

test("whatever column of one row is damaged, the agent starts, all else works, and nothing is deleted in silence", async () => {
  const dir = await filled();
  const columns = withDatabase(databaseFile(dir, "one"), columnsOf);
  expect(new Set(columns.map(({ table }) => table)).size).toBeGreaterThan(14);
  const faults: string[] = [];
  for (const one of columns) {
    const copy = join(tempDir(), "data");
    cpSync(dir, copy, { recursive: true });
    const file = databaseFile(copy, "one");
    const before = withDatabase(file, (db) => damage(db, one));
    if (before === undefined) continue;
    const fault = (what: string) => void faults.push(`${one.table}.${one.column} (${one.where}) ${what}`);
    const host = open(copy);
    const agent = host.getAgentByName(Everything, "one");
    const looked = await agent.look();
    for (const [what, error] of Object.entries(looked)) if (error !== null) fault(`${what}: ${error}`);
    await agent.plan("after").catch((error: unknown) => fault(`plan: ${String(error)}`));
    const late = new Promise<string>((resolve) => setTimeout(() => resolve("it hangs"), 10_000).unref());
    const status = await Promise.race([agent.say("after").catch(String), late]);
    if (status !== "completed") fault(`say: ${status}`);
    await until(async () => (await agent.ran()).includes("after"), `work after ${one.table}.${one.column}`);
    await host.stop();
    const after = withDatabase(file, (db) => countOf(db, one.table));
    if (after < before && host.said.length === 0) fault(`${before - after} rows went in silence`);
  }
  expect(faults).toEqual([]);
}, 600_000);

test("a state and a configuration that cannot be read are said so, and kept aside when others take their place", async () => {
  const dir = await filled();
  const file = databaseFile(dir, "one");
  const broken = '{"n": 7, "name": "Ann';
  withDatabase(file, (db) => {
    db.prepare("UPDATE perdure_state SET value = ?").run(broken);
    db.prepare("UPDATE perdure_config SET value = ?").run(broken);
  });
  const events: string[] = [];
  const stop = subscribe("row:damaged", ({ payload }) => void events.push(payload.what));
  onTestFinished(stop);
  const host = open(dir);
  const agent = host.getAgentByName(Everything, "one");
  expect(await agent.both()).toEqual({ state: { n: 0 }, config: undefined });
  expect(await agent.both()).toEqual({ state: { n: 0 }, config: undefined });
  expect(events).toEqual(["the state", "the configuration"]);
  expect(host.said.filter((line) => line.includes("is damaged"))).toHaveLength(2);
  await agent.replaceBoth();
  expect(await agent.both()).toEqual({ state: { n: 9 }, config: { color: "red" } });
  await host.stop();
  const kept = withDatabase(file, (db) =>
    db.prepare("SELECT substr(key, 1, 12) AS key, value FROM perdure_cell WHERE key GLOB 'aside:*' ORDER BY key").all(),
  );
  expect(kept).toEqual([
    { key: "aside:config", value: broken },
    { key: "aside:state:", value: broken },
  ]);
});

test("a state that is set before it was ever read keeps what could not be read, too", async () => {
  const dir = await filled();
  const file = databaseFile(dir, "one");
  withDatabase(file, (db) => db.prepare("UPDATE perdure_state SET value = ?").run(GARBAGE));
  const host = open(dir);
  await host.getAgentByName(Everything, "one").replaceBoth();
  await host.stop();
  const kept = withDatabase(file, (db) =>
    db.prepare("SELECT value FROM perdure_cell WHERE key GLOB 'aside:state:*'").pluck().all(),
  );
  expect(kept).toEqual([GARBAGE]);
});

test.each([
  ["pins", "summary", GARBAGE],
  ["words", "summary", GARBAGE],
  ["files", "summary", "7"],
  ["calls", "prune", GARBAGE],
  ["calls", "prune", '[7, ["a"], {}]'],
])(
  "a compaction whose %s cannot be read (%s, %j) is said so, and turns go on with the rest of it",
  async (column, kind, value) => {
    const dir = await filled();
    const file = databaseFile(dir, "one");
    withDatabase(file, (db) => {
      db.prepare(
        `INSERT INTO perdure_compaction (id, session, at, kind, status, trigger, tokens_before, created_at)
       SELECT 'cmp-prune', 'main', max(seq), 'prune', 'done', 'after', 9, 0 FROM perdure_message WHERE session = 'main'`,
      ).run();
      db.prepare(`UPDATE perdure_compaction SET ${column} = ? WHERE kind = ?`).run(value, kind);
    });
    const events: string[] = [];
    onTestFinished(subscribe("row:damaged", ({ payload }) => void events.push(payload.what)));
    const host = open(dir);
    const agent = host.getAgentByName(Everything, "one");
    expect(Object.entries(await agent.look()).filter(([, error]) => error !== null)).toEqual([]);
    expect(await agent.say("after")).toBe("completed");
    const damaged = value.startsWith("[") ? [] : [`the ${column}`];
    expect(events.map((what) => what.split(" of compaction")[0])).toEqual(damaged);
    await host.stop();
    expect(
      withDatabase(file, (db) =>
        db.prepare(`SELECT ${column} FROM perdure_compaction WHERE kind = ?`).pluck().get(kind),
      ),
    ).toBe(value);
  },
);

test("a memory block that cannot be read is said so, ends no turn, and is kept aside until its session is erased", async () => {
  const dir = await filled();
  const file = databaseFile(dir, "one");
  withDatabase(file, (db) =>
    db.prepare("UPDATE perdure_cell SET value = ? WHERE key = 'block:main:memory'").run(GARBAGE),
  );
  const events: string[] = [];
  const stops = [
    subscribe("row:damaged", ({ payload }) => void events.push(`damaged ${payload.what}`)),
    subscribe("row:set_aside", ({ payload }) => void events.push(`aside ${payload.what}`)),
  ];
  onTestFinished(() => stops.forEach((stop) => stop()));
  const host = open(dir);
  const agent = host.getAgentByName(Everything, "one");
  expect(await agent.say("after")).toBe("completed");
  await agent.remember("likes coffee");
  expect(await agent.say("again")).toBe("completed");
  expect(events).toEqual(["damaged the text of block:main:memory", "aside the text of block:main:memory"]);
  const aside = () =>
    withDatabase(file, (db) =>
      db.prepare("SELECT value FROM perdure_cell WHERE key GLOB 'aside:block:main:memory:*'").pluck().all(),
    );
  await host.stop();
  expect(aside()).toEqual([GARBAGE]);
  const next = open(dir);
  await next.getAgentByName(Everything, "one").eraseMain();
  await next.stop();
  expect(aside()).toEqual([]);
});

test("turns whose messages and tools cannot be read hold up no others", async () => {
  const dir = tempDir();
  const host = open(dir);
  const agent = host.getAgentByName(Everything, "one");
  await agent.fill();
  // The first hangs until the host stops, the other waits behind it.
  await agent.sayForEver("hang");
  await agent.sayLater("behind");
  await host.stop();
  const file = databaseFile(dir, "one");
  const damaged = withDatabase(file, (db) => {
    db.prepare("DELETE FROM ran").run();
    const isOpen = "status IN ('held', 'accepted', 'running')";
    return db.prepare(`UPDATE perdure_turn SET message_ids = ?, client_tools = ? WHERE ${isOpen}`).run(GARBAGE, GARBAGE)
      .changes;
  });
  expect(damaged).toBeGreaterThan(1);
  const events: string[] = [];
  onTestFinished(subscribe("row:damaged", ({ payload }) => void events.push(payload.what)));
  const next = open(dir);
  const again = next.getAgentByName(Everything, "one");
  expect(await again.say("after")).toBe("completed");
  expect(events).toContainEqual(expect.stringContaining("the messages of the turn"));
  expect(events).toContainEqual(expect.stringContaining("the tools of the client of the turn"));
});
