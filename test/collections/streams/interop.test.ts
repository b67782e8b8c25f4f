import { createCollection } from "@tanstack/db";
import { createStateSchema, createStreamDB } from "@durable-streams/state/db";
import { durableStreamCollectionOptions, rowsOf } from "perdure/collections";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { append, rows, startStreamServer } from "./stream-server.ts";
import { until } from "../../support/until.ts";
import type { StreamServer } from "./stream-server.ts";

const Note = z.object({ id: z.string(), text: z.string() });

let server: StreamServer;
beforeAll(async () => {
  server = await startStreamServer();
});
afterAll(() => server.stop());

test("StreamDB reads our rows, and we read what it writes", async () => {
  const url = server.fresh();
  const log = server.open(url);
  const ours = createCollection(
    durableStreamCollectionOptions({ log, name: "note", schema: Note, getKey: (row) => row.id }),
  );
  await ours.insert({ id: "a", text: "optimistic" }).isPersisted.promise;
  await rowsOf(ours).insertAll([
    { id: "b", text: "together" },
    { id: "c", text: "together" },
  ]);
  const state = createStateSchema({ notes: { schema: Note, type: "note", primaryKey: "id" } });
  const db = createStreamDB({ streamOptions: { url, contentType: "application/json" }, state });
  await db.preload();
  const theirs = () => Object.fromEntries(db.collections.notes.toArray.map(({ id, text }) => [id, text]));
  expect(theirs()).toEqual({ a: "optimistic", b: "together", c: "together" });
  await rowsOf(ours).update("a", (row) => void (row.text = "changed"));
  await rowsOf(ours).delete("b");
  await until(() => db.collections.notes.size === 2 && theirs()["a"] === "changed");

  await db.stream.append(JSON.stringify(state.notes.insert({ value: { id: "d", text: "theirs" } })));
  await db.stream.append(JSON.stringify(state.notes.update({ key: "c", value: { id: "c", text: "theirs too" } })));
  await until(() => ours.get("d") !== undefined && ours.get("c")?.text === "theirs too");
  expect(ours.get("d")).toMatchObject({ text: "theirs" });
  db.close();
});

test("5,000 events are replayed into one commit", async () => {
  const url = server.fresh();
  const first = server.open(url);
  await first.ready;
  const event = (n: number) => ({
    type: "counter",
    key: `k${n % 500}`,
    value: { id: `k${n % 500}`, text: String(n) },
    headers: { operation: n < 500 ? "insert" : "update" },
  });
  for (let from = 0; from < 5000; from += 1000) {
    await append(url, ...Array.from({ length: 1000 }, (_, n) => event(from + n)));
  }
  await first.write({ changes: [{ table: "counter", key: "end", operation: "insert", value: {} }] });
  const log = server.open(url);
  const collection = createCollection(
    durableStreamCollectionOptions({ log, name: "counter", schema: Note, getKey: (row) => row.id }),
  );
  const commits: number[] = [];
  collection.subscribeChanges((changes) => commits.push(changes.length));
  await collection.preload();
  expect(commits.filter((changes) => changes > 0)).toEqual([501]);
  expect(collection.size).toBe(501);
  expect(collection.get("k499")?.text).toBe("4999");
  expect(log.table("counter").version("k0")).toBe(10);
  expect(rows(log, "counter")).toEqual(rows(first, "counter"));
});

test("collections that name the same URL have one log, and the last one closes it", async () => {
  const url = server.fresh();
  const named = (name: string) =>
    createCollection(durableStreamCollectionOptions<{ id: string }>({ url, name, getKey: (row) => row.id }));
  const [notes, tags] = [named("notes"), named("tags")];
  const { log } = notes.utils;
  expect(tags.utils.log).toBe(log);
  await notes.insert({ id: "a" }).isPersisted.promise;
  await notes.cleanup();
  await tags.insert({ id: "b" }).isPersisted.promise;
  await tags.cleanup();
  await expect(
    log.write({ changes: [{ table: "x", key: "c", operation: "upsert", value: {} }] }),
  ).rejects.toMatchObject({ code: "disconnected" });
  const again = named("notes");
  await again.preload();
  expect(again.utils.log).not.toBe(log);
  expect(again.get("a")).toBeDefined();
  await again.cleanup();
});

test("a collection on a stream that cannot be read says why", async () => {
  const log = server.open(server.fresh(), { create: false });
  const collection = createCollection(
    durableStreamCollectionOptions<{ id: string }>({ log, name: "t", getKey: (row) => row.id }),
  );
  await expect(collection.preload()).rejects.toThrow(/is not there/);
});
