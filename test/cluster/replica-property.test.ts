// What is sent of a database, put together again, is that database: byte for byte, whatever SQL was run.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PerdureError } from "perdure";
import { expect, test } from "vitest";
import { memoryBlobs } from "../../src/host/node/disk-blobs.ts";
import { AgentDatabase } from "../../src/host/node/database.ts";
import { HandlePool } from "../../src/host/node/handle-pool.ts";
import { openEmpty, templateBytes } from "../../src/host/node/open-sqlite.ts";
import type { StoredAgent } from "../../src/host/node/cluster/engine.ts";
import { ReplicaFile } from "../../src/host/node/cluster/replica-file.ts";
import { type Random, seeded } from "../support/seeded.ts";

const RUNS = 6;
const STEPS = 120;
/** Says how a file is read, which SQLite leaves out of what it serialises. */
const MODE_BYTES = [18, 19];

/** From 0 up to, and without, 1. */
const share = (chance: Random) => chance(2 ** 20) / 2 ** 20;

/** Where deltas go in this test. */
class Sink {
  base: { seq: number; parts: Uint8Array[] } | undefined;
  deltas: { seq: number; pages: Uint8Array }[] = [];
  folds = 0;

  append(seq: number, pages: Buffer): Promise<void> {
    const last = this.deltas.at(-1)?.seq ?? this.base?.seq ?? 0;
    if (seq !== last + 1) throw new PerdureError("bad_state", `After ${last} came ${seq}.`);
    this.deltas.push({ seq, pages });
    return Promise.resolve();
  }

  async fold(seq: number, parts: AsyncIterable<Uint8Array>): Promise<void> {
    const all: Uint8Array[] = [];
    for await (const part of parts) all.push(part);
    this.base = { seq, parts: all };
    this.deltas = this.deltas.filter((delta) => delta.seq > seq);
    this.folds++;
  }

  get stored(): StoredAgent | undefined {
    const seq = this.deltas.at(-1)?.seq ?? this.base?.seq;
    if (seq === undefined) return undefined;
    const base = this.base?.parts ?? { template: templateBytes() };
    return { seq, base, deltas: this.deltas.map(({ pages }) => pages) };
  }
}

class World {
  readonly dir = mkdtempSync(join(tmpdir(), "perdure-replica-"));
  readonly sink = new Sink();
  #lives = 0;
  file!: ReplicaFile;
  pool!: HandlePool;
  db!: AgentDatabase;

  constructor() {
    this.open();
  }

  open(): void {
    const bounds = { maxBytes: 2 ** 26, foldBytes: 20_000 };
    this.file = new ReplicaFile(join(this.dir, `${++this.#lives}.db`), this.sink, templateBytes(), bounds);
    this.file.load(this.sink.stored);
    this.pool = new HandlePool(2, openEmpty());
    this.db = new AgentDatabase("C/a", this.file, this.pool, memoryBlobs(), {
      refusal: () => undefined,
      mark: () => 0,
      rolledBack() {},
      committed() {},
      firstWrite() {},
      sync: (rows) => rows(),
    });
  }

  /** Everything that was committed is in the sink, so what is made of it is what SQLite has. */
  async check(): Promise<void> {
    await this.db.durable();
    const live = Buffer.from(this.pool.handle(this.file, true).db.serialize());
    const other = new ReplicaFile(join(this.dir, "other.db"), this.sink, templateBytes(), { maxBytes: 2 ** 26 });
    other.load(this.sink.stored);
    const pool = new HandlePool(1, openEmpty());
    const made = Buffer.from(pool.handle(other, true).db.serialize());
    pool.closeAll();
    for (const at of MODE_BYTES) made[at] = live[at] = 0;
    if (!made.equals(live))
      throw new Error(`What was sent makes ${made.length} other bytes than the ${live.length} there are.`);
  }

  /** The process dies here, after what it was told is kept. */
  async restart(): Promise<void> {
    await this.db.release();
    this.pool.closeAll();
    this.open();
    const found = this.pool.handle(this.file, true).db.pragma("integrity_check", { simple: true });
    if (found !== "ok") throw new Error(`SQLite says of what was loaded: ${String(found)}`);
  }
}

function write(db: AgentDatabase, chance: Random): void {
  const pick = share(chance);
  if (pick < 0.5) {
    const blob = new Uint8Array(Math.floor(share(chance) ** 4 * 60_000)).fill(Math.floor(share(chance) * 256));
    db.sql("INSERT INTO t (a, b) VALUES (?, ?)", "x".repeat(Math.floor(share(chance) * 3000)), blob);
  } else if (pick < 0.7) db.sql("UPDATE t SET a = ? WHERE id % 7 = ?", String(share(chance)).repeat(20), chance(7));
  else if (pick < 0.85) db.sql("DELETE FROM t WHERE id % 5 = ?", chance(5));
  else if (pick < 0.95) db.sql("INSERT INTO f VALUES (?)", `word${chance(99)} `.repeat(50));
  else db.sql(`CREATE TABLE IF NOT EXISTS n${chance(20)} (x)`);
}

function tryMany(db: AgentDatabase, chance: Random, depth = 0): void {
  try {
    db.tx(
      () => {
        for (let i = 0; i < 1 + chance(30); i++) {
          if (depth < 3 && share(chance) < 0.05) tryMany(db, chance, depth + 1);
          else write(db, chance);
        }
        if (share(chance) < 0.4) throw new RangeError("undo");
      },
      share(chance) < 0.5 ? "commit" : "sync",
    );
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
  }
}

async function step(world: World, chance: Random): Promise<void> {
  const pick = share(chance);
  if (pick < 0.45) write(world.db, chance);
  else if (pick < 0.65) tryMany(world.db, chance);
  // So small a cache that frames of an open transaction go into the log.
  else if (pick < 0.7) world.pool.handle(world.file, true).db.pragma("cache_size = 5");
  // The pool may, between any two calls.
  else if (pick < 0.78) world.pool.close(world.file);
  else if (pick < 0.8) await world.db.scrub();
  else if (pick < 0.83) await world.file.fold();
  else if (pick < 0.85) await new Promise((resolve) => setTimeout(resolve, 25));
  else {
    await world.check();
    if (share(chance) < 0.2) await world.restart();
  }
}

test.for(Array.from({ length: RUNS }, (_, seed) => seed))("random statements, by the seed %i", async (seed) => {
  const chance = seeded(seed);
  const world = new World();
  world.db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB)");
  world.db.sql("CREATE VIRTUAL TABLE f USING fts5(body)");
  for (let i = 0; i < STEPS; i++) await step(world, chance);
  await world.check();
  await world.restart();
  await world.check();
  expect(world.sink.folds).toBeGreaterThan(0);
});

test("a file whose rows are somebody else's sends nothing more, and says so to whoever waits", async () => {
  const world = new World();
  world.db.sql("CREATE TABLE t (a TEXT)");
  await world.db.durable();
  const before = world.sink.deltas.length;
  world.file.die(new PerdureError("fenced", "taken"));
  world.db.sql("INSERT INTO t VALUES ('lost')");
  await expect(world.db.durable()).rejects.toThrow("taken");
  await expect(world.db.release()).rejects.toThrow("taken");
  expect(world.sink.deltas.length).toBe(before);
});
