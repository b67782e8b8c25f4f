import { createCollection, createTransaction, eq, localOnlyCollectionOptions } from "@tanstack/db";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { logCollectionOptions, openLocalLog, rowsOf, writeMutations } from "../index.ts";
import { createPump } from "../worker/pump.ts";
import { watchQuery } from "./query.ts";

const Item = z.object({ id: z.string(), status: z.string().default("pending"), seq: z.number().optional() });

function items(log = openLocalLog()) {
  const collection = createCollection(
    logCollectionOptions({ log, name: "items", schema: Item, getKey: (row) => row.id, orderAs: "seq" }),
  );
  return { log, collection, rows: rowsOf(collection) };
}

test("a row is typed by its schema, filled by its defaults, and confirmed under a version", async () => {
  const { collection, rows } = items();
  expectTypeOf(rows.all()).toEqualTypeOf<z.infer<typeof Item>[]>();
  const transaction = collection.insert({ id: "a" });
  expect(rows.get("a")).toBeUndefined();
  await transaction.isPersisted.promise;
  expect(rows.get("a")).toEqual({ id: "a", status: "pending", seq: 1 });
  expect(collection.get("a")).toMatchObject({ status: "pending", $hasPendingWrites: false, seq: 1 });
  expect(rows.unchanged("a")).toEqual({ table: "items", key: "a", version: 1 });
});

test("of two that want the same version one gets it, and updates lose nothing", async () => {
  const { rows } = items();
  await rows.insert({ id: "a", status: "0" });
  const when = [rows.unchanged("a")!];
  const won = await Promise.all([1, 2].map((n) => rows.update("a", (row) => void (row.status = `${n}`), { when })));
  expect(won).toEqual([true, false]);
  await Promise.all(
    Array.from({ length: 10 }, () => rows.update("a", (row) => void (row.status = String(Number(row.status) + 1)))),
  );
  expect(rows.get("a")?.status).toBe("11");
});

test("updates under a name of their own go on after a refusal too", async () => {
  const { rows } = items();
  await rows.insert({ id: "a", status: "0" });
  const add = (row: { status: string }) => void (row.status = String(Number(row.status) + 1));
  await Promise.all([1, 2, 3].map((n) => rows.update("a", add, { txid: `add-${n}` })));
  expect(rows.get("a")?.status).toBe("3");
});

test("a refused write is rolled back, and says why", async () => {
  const { collection, rows } = items();
  await rows.insert({ id: "a", status: "x" });
  const other = rows.delete("a");
  const deleted = collection.delete("a");
  expect(await other).toBe(true);
  await expect(deleted.isPersisted.promise).rejects.toMatchObject({ code: "conflict" });
});

test("a transaction over two collections of a log is one write", async () => {
  const { log, collection } = items();
  const notes = createCollection(
    logCollectionOptions<{ id: string; text: string }>({ log, name: "notes", getKey: (row) => row.id }),
  );
  await notes.preload();
  const transaction = createTransaction({
    mutationFn: ({ transaction }) => writeMutations(log, transaction.mutations),
  });
  transaction.mutate(() => {
    collection.insert({ id: "a" });
    notes.insert({ id: "n", text: "hi" });
  });
  await transaction.isPersisted.promise;
  expect(log.position).toBe("1".padStart(16, "0"));
  expect(notes.get("n")?.text).toBe("hi");
});

test("a pump runs each row once, whatever leaves and comes back", async () => {
  const { collection, rows } = items();
  const ran: string[] = [];
  let wake = () => {};
  const watch = watchQuery(
    (q) => q.from({ i: collection }).where(({ i }) => eq(i.$hasPendingWrites, false)),
    () => wake(),
  );
  const pump = createPump({
    read: () => watch.each(),
    moves: () => watch.moves(),
    idOf: (row) => row.id,
    isGone: (id) => rows.get(id) === undefined,
    run: async (row) => {
      ran.push(row.id);
      return "done";
    },
    giveUp: () => {},
  });
  wake = () => pump.wake();
  await watch.ready;
  await collection.insert({ id: "a" }).isPersisted.promise;
  await pump.idle();
  await collection.update("a", (row) => void (row.status = "edited")).isPersisted.promise;
  await pump.idle();
  expect(ran).toEqual(["a"]);
  await pump.dispose();
  await watch.dispose();
});

test("an update that says no leaves the row as it was, on a log and elsewhere", async () => {
  const plain = createCollection(
    localOnlyCollectionOptions({ id: "plain", schema: Item, getKey: (row) => row.id, initialData: [] }),
  );
  for (const rows of [items().rows, rowsOf(plain)]) {
    await rows.insert({ id: "a", status: "pending" });
    expect(await rows.update("a", () => false)).toBe(false);
    // An arrow without a body says false when it sets false: nothing is lost in silence.
    const done = rows.update("a", (row) => {
      row.status = "half done";
      return false;
    });
    await expect(done).rejects.toMatchObject({ code: "bad_input" });
    expect(rows.get("a")?.status).toBe("pending");
  }
});

test("a row without a key, and one that is no JSON, are refused by name", async () => {
  const plain = createCollection(localOnlyCollectionOptions({ id: "keys", schema: Item, getKey: (row) => row.id }));
  for (const rows of [items().rows, rowsOf(plain)]) {
    const keyless = rows.insert({ status: "pending" } as never);
    await expect(keyless).rejects.toMatchObject({ code: "bad_input", message: expect.stringContaining("no key") });
  }
  const big = items().rows.insert({ id: "a", status: 1n } as never);
  await expect(big).rejects.toMatchObject({ code: "bad_input", message: expect.stringContaining('"a" of "items"') });
});

test("an update under a name that was refused once goes on where it was, also in a later life", async () => {
  const { log, rows } = items();
  await rows.insert({ id: "a", status: "0" });
  const seen: string[] = [];
  const raise = () =>
    rows.update(
      "a",
      (row) => {
        // Somebody else is quicker, once.
        if (seen.length === 0)
          void log.write({
            changes: [{ table: "items", key: "a", operation: "upsert", value: { id: "a", status: "7" } }],
          });
        seen.push(row.status);
        row.status += "!";
      },
      { txid: "raise" },
    );
  expect(await raise()).toBe(true);
  expect(await raise()).toBe(true);
  expect(seen.slice(0, 2)).toEqual(["0", "7"]);
  expect(rows.get("a")?.status).toBe("7!");
});
