import { createCollection, createEffect, createLiveQueryCollection, createTransaction, eq } from "@tanstack/db";
import { durableStreamCollectionOptions, rowsOf, writeMutations } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startStreamServer } from "./stream-server.ts";
import { until } from "../../support/until.ts";
import type { StreamServer } from "./stream-server.ts";

interface Item {
  id: string;
  by: string;
}

let server: StreamServer;
beforeAll(async () => {
  server = await startStreamServer();
});
afterAll(() => server.stop());

const itemsOf = (log: RowLog) =>
  createCollection(durableStreamCollectionOptions<Item>({ log, name: "items", getKey: (row) => row.id }));

async function two() {
  const url = server.fresh();
  const [here, there] = [itemsOf(server.open(url)), itemsOf(server.open(url))];
  await Promise.all([here.preload(), there.preload()]);
  return { here, there };
}

test("trap: rows of others show while this process appends without a break", async () => {
  const { here, there } = await two();
  let going = true;
  let written = 0;
  const lanes = [0, 1].map(async (lane) => {
    for (let n = 0; going; n++) {
      await rowsOf(here).insert({ id: `here-${lane}-${n}`, by: "here" });
      written++;
    }
  });
  await until(() => written > 10);
  await rowsOf(there).insert({ id: "there", by: "there" });
  await until(() => here.get("there") !== undefined);
  const before = written;
  await until(() => written > before + 10);
  going = false;
  await Promise.all(lanes);
  expect(here.get("there")).toMatchObject({ by: "there", $hasPendingWrites: false });
});

test("trap: rows of others show while optimistic writes overlap without a break, and no row goes meanwhile", async () => {
  const { here, there } = await two();
  const live = createLiveQueryCollection({
    query: (q) =>
      q
        .from({ i: here })
        .orderBy(({ i }) => i.id)
        .select(({ i }) => ({ id: i.id, by: i.by })),
    startSync: true,
  });
  await live.preload();
  const seen = new Set<string>();
  const vanished: string[] = [];
  const look = () => {
    const now = new Set(live.toArray.map(({ id }) => id));
    for (const id of seen) if (!now.has(id)) vanished.push(id);
    for (const id of now) seen.add(id);
  };
  const subscription = live.subscribeChanges(look);
  const entered: string[] = [];
  const left: string[] = [];
  const effects = [true, false].map((confirmed) =>
    createEffect<Item>({
      query: (q) => {
        const items = q.from({ i: here });
        return confirmed ? items.where(({ i }) => eq(i.$hasPendingWrites, false)) : items;
      },
      onEnter: ({ value }) => void entered.push(`${value.id} ${String(confirmed)}`),
      onExit: ({ value }) => void left.push(`${value.id} ${String(confirmed)}`),
    }),
  );
  let going = true;
  let persisted = 0;
  // At each moment a write is being persisted: this one, from before the others to behind them.
  const gate = Promise.withResolvers<void>();
  const slow = createTransaction({
    mutationFn: async ({ transaction }) => {
      await gate.promise;
      await writeMutations(here.utils.log, transaction.mutations);
    },
  });
  slow.mutate(() => here.insert({ id: "slow", by: "here" }));
  const lanes = [0, 1].map(async (lane) => {
    for (let n = 0; going; n++) {
      await here.insert({ id: `here-${lane}-${n}`, by: "here" }).isPersisted.promise;
      persisted++;
      look();
    }
  });
  await until(() => persisted > 10);
  await rowsOf(there).insert({ id: "there", by: "there" });
  await until(() => {
    look();
    return live.toArray.some(({ id }) => id === "there");
  });
  await rowsOf(there).update("there", (row) => void (row.by = "changed"));
  await until(() => {
    look();
    return live.toArray.some(({ by }) => by === "changed");
  });
  going = false;
  await Promise.all(lanes);
  expect(slow.state).toBe("persisting");
  expect(here.get("slow")).toMatchObject({ $hasPendingWrites: true });
  gate.resolve();
  await slow.isPersisted.promise;
  look();
  expect(vanished).toEqual([]);
  expect(live.toArray.length).toBe(persisted + 2);
  for (const row of here.toArray) expect(row.$hasPendingWrites).toBe(false);
  expect(left).toEqual([]);
  expect(new Set(entered).size).toBe(entered.length);
  expect(entered.length).toBe(2 * (persisted + 2));
  await Promise.all(effects.map((effect) => effect.dispose()));
  subscription.unsubscribe();
});
