import { createCollection, createEffect, eq, queryOnce } from "@tanstack/db";
import { logCollectionOptions, openLocalLog, rowsOf } from "perdure/collections";
import { expect, test } from "vitest";
import { watchQuery } from "../../src/collections/log/query.ts";
import { until } from "../support/until.ts";

interface Call {
  id: string;
  status: string;
}

function calls() {
  const log = openLocalLog();
  const options = logCollectionOptions<Call>({ log, name: "calls", getKey: (row) => row.id });
  return { log, collection: createCollection(options) };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test("trap: an effect with `on` and `handler` is never called; what is watched here is told of each change", async () => {
  const { collection } = calls();
  await collection.preload();
  let told = 0;
  let woken = 0;
  const old = { query: (q: never) => (q as { from(o: object): object }).from({ c: collection }), on: "enter" };
  const effect = createEffect({ ...old, handler: () => told++ } as never);
  const watch = watchQuery(
    (q) => q.from({ c: collection }),
    () => woken++,
  );
  await watch.ready;
  const before = woken;
  await collection.insert({ id: "a", status: "pending" }).isPersisted.promise;
  await until(() => woken > before);
  await settled();
  expect(told).toBe(0);
  await effect.dispose();
  await watch.dispose();
});

test("trap: `$synced` is what `$hasPendingWrites` is not, and says nothing of the backend", async () => {
  const { collection } = calls();
  const transaction = collection.insert({ id: "a", status: "pending" });
  const seen = () => {
    const { $synced, $hasPendingWrites } = collection.get("a")!;
    return { $synced, $hasPendingWrites };
  };
  expect(seen()).toEqual({ $synced: false, $hasPendingWrites: true });
  await transaction.isPersisted.promise;
  expect(seen()).toEqual({ $synced: true, $hasPendingWrites: false });
});

test("trap: a row is durable when its write was awaited, not when `insert` has returned", async () => {
  const { log, collection } = calls();
  collection.insert({ id: "a", status: "pending" });
  expect(log.table("calls").get("a")).toBeUndefined();
  expect(await rowsOf(collection).insert({ id: "b", status: "pending" })).toBe(true);
  expect(log.table("calls").get("b")?.version).toBe(1);
});

test("trap: a replay is one commit, so nobody sees a finished call as pending", async () => {
  const { log, collection } = calls();
  await rowsOf(collection).insert({ id: "a", status: "pending" });
  await rowsOf(collection).update("a", (row) => void (row.status = "completed"));
  const late = createCollection(logCollectionOptions<Call>({ log, name: "calls", getKey: (row) => row.id }));
  const seen: string[] = [];
  const watch = watchQuery(
    (q) => q.from({ c: late }).where(({ c }) => eq(c.status, "pending")),
    () => seen.push(...watch.rows().map((row) => row.id)),
  );
  await watch.ready;
  expect(await queryOnce((q) => q.from({ c: late }))).toMatchObject([{ id: "a", status: "completed" }]);
  expect(seen).toEqual([]);
  await watch.dispose();
});

test("trap: TanStack DB's own fields are never stored", async () => {
  const { log, collection } = calls();
  await rowsOf(collection).insert({ id: "a", status: "pending" });
  const shown = collection.get("a")!;
  expect(shown).toHaveProperty("$collectionId");
  await rowsOf(collection).insert({ ...shown, id: "b" });
  expect(log.table("calls").get("b")?.value).toEqual({ id: "b", status: "pending" });
});
