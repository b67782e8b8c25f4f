import { createCollection } from "@tanstack/db";
import { PerdureError } from "perdure";
import { logCollectionOptions, rowsOf } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import type { AppliedChange, RowChange, RowWrite } from "perdure/collections/log";
import { describe, expect, test } from "vitest";
import { seedCount } from "../support/seed-count.ts";
import { backends } from "./backends.ts";
import { until } from "../support/until.ts";

const TABLES = ["a", "b"];
const KEYS = ["x", "y", "constructor", "ключ 🔑", "beat:x"];
const WRITES = 150;
const SEEDS = Array.from({ length: seedCount(30, 2) }, (_, n) => n + 1);

/** Numbers that come again for the same seed. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Outcome = "applied" | "refused" | "fenced" | "unknown";

/** What a reader has: rows, versions and order, and the versions of rows that are gone. */
const picture = (log: RowLog) =>
  TABLES.map((table) => ({
    rows: [...log.table(table).rows()].toSorted((a, b) => a.order - b.order).map((row) => ({ ...row, order: 0 })),
    versions: KEYS.map((key) => log.table(table).version(key)),
  }));

/** The same by the plainest means, from the writes that were applied and in their order. */
class Model {
  readonly rows = TABLES.map(() => new Map<string, { key: string; value: unknown; version: number; order: number }>());
  readonly versions = TABLES.map(() => new Map<string, number>());

  apply({ changes, when = [] }: RowWrite): void {
    for (const { table, key, version } of when) {
      if ((this.versions[TABLES.indexOf(table)]!.get(key) ?? 0) !== version)
        throw new Error("a condition did not hold");
    }
    for (const { table, key, operation, value } of changes) {
      const rows = this.rows[TABLES.indexOf(table)]!;
      const versions = this.versions[TABLES.indexOf(table)]!;
      const fits = operation === "upsert" || rows.has(key) === (operation !== "insert");
      if (!fits) throw new Error(`${operation} cannot have been applied`);
      const version = (versions.get(key) ?? 0) + 1;
      versions.set(key, version);
      // A map keeps the place of what is replaced, and gives a new one to what comes back.
      if (operation === "delete") rows.delete(key);
      else rows.set(key, { key, value, version, order: 0 });
    }
  }

  picture() {
    return TABLES.map((_, n) => ({
      rows: [...this.rows[n]!.values()],
      versions: KEYS.map((key) => this.versions[n]!.get(key) ?? 0),
    }));
  }
}

function randomWrite(log: RowLog, n: number, below: (n: number) => number): RowWrite & { readonly txid: string } {
  const pick = <T>(list: readonly T[]) => list[below(list.length)]!;
  const changes = Array.from({ length: 1 + below(3) }, (_, part): RowChange => {
    const [table, key] = [pick(TABLES), pick(KEYS)];
    const operation = pick(["insert", "update", "upsert", "upsert", "delete"] as const);
    return operation === "delete"
      ? { table, key, operation }
      : { table, key, operation, value: { n, part, "": [null] } };
  });
  const when = Array.from({ length: below(3) }, () => {
    const [table, key] = [pick(TABLES), pick(KEYS)];
    // Now and then of the past or the future.
    return { table, key, version: Math.max(0, log.table(table).version(key) + (below(6) === 0 ? below(3) - 1 : 0)) };
  });
  const producer = below(4) === 0 ? { producer: { id: "runner", epoch: Math.floor(n / 40) } } : {};
  return { txid: `w${n}`, changes, when, ...producer };
}

describe.each(backends)("many writers, by chance: $name", ({ name, start }) => {
  test.each(SEEDS)("all readers agree, and each write counts once or not at all (seed %i)", async (seed) => {
    const below = seeded(seed);
    const place = await start();
    try {
      const observer = await place.open();
      const seen: AppliedChange[][] = [];
      for (const table of TABLES) observer.table(table).subscribe((changes) => seen.push([...changes]));
      const logs = [await place.open(), await place.open()];
      const writes: (RowWrite & { readonly txid: string })[] = [];
      const outcomes: Promise<Outcome>[] = [];
      const send = (log: RowLog, write: RowWrite): Promise<Outcome> =>
        log.write(write).then(
          ({ applied }) => (applied ? "applied" : "refused"),
          (error: unknown) => {
            if (PerdureError.is(error) && error.code === "fenced") return "fenced";
            if (PerdureError.is(error) && error.code === "disconnected") return "unknown";
            throw error;
          },
        );
      for (let n = 0; n < WRITES; n++) {
        const at = below(logs.length);
        const log = logs[at]!;
        const write = randomWrite(log, n, below);
        writes.push(write);
        outcomes.push(send(log, write));
        // Again, from here or from elsewhere; without its producer, who may have to wait for its number.
        if (below(8) === 0 && write.producer === undefined) void send(logs[below(logs.length)]!, write);
        if (below(3) === 0) await outcomes.at(-1);
        if (name !== "local" && below(40) === 0) {
          await log.close();
          logs[at] = await place.open();
        }
      }
      const told = await Promise.all(outcomes);
      // Behind everything that is under way: each log has read what was before its own last write.
      const last = [...logs, observer];
      for (const log of last)
        await log.write({ changes: [{ table: "end", key: "k", operation: "upsert", value: {} }] });
      const late = await place.open();
      last.push(late);
      for (const log of last)
        await log.write({ changes: [{ table: "end", key: "k", operation: "upsert", value: {} }] });
      await late.write({ changes: [{ table: "end", key: "k", operation: "upsert", value: {} }] });

      const counts = new Map<string, number>();
      const order: string[] = [];
      for (const { txid } of seen.flat()) {
        if (txid === undefined) continue;
        if (!counts.has(txid)) order.push(txid);
        counts.set(txid, (counts.get(txid) ?? 0) + 1);
      }
      const wrong = told.filter((outcome, n) => {
        const { txid, changes } = writes[n]!;
        const count = counts.get(txid) ?? 0;
        if (outcome === "unknown") return count !== 0 && count !== changes.length;
        return count !== (outcome === "applied" ? changes.length : 0);
      });
      expect(wrong).toEqual([]);
      const model = new Model();
      for (const txid of order) model.apply(writes.find((write) => write.txid === txid)!);
      expect(told.filter((one) => one === "applied").length).toBeGreaterThan(20);
      for (const log of last) expect(picture(log)).toEqual(model.picture());
      const orders = (log: RowLog) =>
        TABLES.map((t) => [...log.table(t).rows()].map(({ key, order: o }) => [key, o]).toSorted());
      for (const log of last) expect(orders(log)).toEqual(orders(observer));
    } finally {
      await place.stop();
    }
  });

  test("keys and values of all kinds are the same for everybody, and what cannot be JSON changes nothing", async () => {
    const place = await start();
    try {
      const log = await place.open();
      const other = await place.open();
      const rows = rowsOf(open(log));
      const shown = open(other);
      await shown.preload();
      const odd = { date: new Date(0), nan: NaN, none: undefined, list: [undefined, 1], $x: 5, constructor: 1 };
      const stored = { date: "1970-01-01T00:00:00.000Z", nan: null, list: [null, 1], $x: 5, constructor: 1 };
      const keys = ["__proto__", "toString", "a b/c?d#e%25", "\u0000x", "x".repeat(500), "'\"`;--", "🔑"];
      for (const id of keys) {
        expect(await rows.insert({ id, ...odd })).toBe(true);
        expect(rows.get(id)).toEqual({ id, ...stored });
      }
      await until(() => keys.every((id) => shown.has(id)));
      expect(keys.map((id) => other.table("odd").get(id)?.value)).toEqual(keys.map((id) => ({ id, ...stored })));
      await expect(rows.insert({ id: "bad", big: 1n })).rejects.toMatchObject({ code: "bad_input" });
      const optimistic = shown.insert({ id: "bad", big: 1n });
      await expect(optimistic.isPersisted.promise).rejects.toMatchObject({ code: "bad_input" });
      expect([shown.has("bad"), log.table("odd").version("bad")]).toEqual([false, 0]);
    } finally {
      await place.stop();
    }
  });

  test("sixty updates of one row at once from three processes lose nothing", async () => {
    const place = await start();
    try {
      const all = await Promise.all([1, 2, 3].map(async () => open(await place.open())));
      await rowsOf(all[0]!).insert({ id: "k", n: 0 });
      await Promise.all(all.map((one) => until(() => one.has("k"))));
      const raise = (n: number) => rowsOf(all[n % 3]!).update("k", (row) => void (row.n = Number(row.n) + 1));
      expect(await Promise.all(Array.from({ length: 60 }, (_, n) => raise(n)))).not.toContain(false);
      await until(() => all.every((one) => one.get("k")?.n === 60));
    } finally {
      await place.stop();
    }
  });
});

const open = (log: RowLog) =>
  createCollection(
    logCollectionOptions<{ id: string; [field: string]: unknown }>({ log, name: "odd", getKey: (row) => row.id }),
  );
