import { createCollection } from "@tanstack/db";
import { openAgentLog, perdureCollectionOptions, rowsOf } from "perdure/collections";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { connect, eventually, openHost, quiet, tempDir } from "../../host/open-host.ts";
import { followed, insert, keysOf, ownClient, publicClient, Room } from "./room.ts";

const agents = { Room };

beforeEach(() => {
  Room.heard = [];
  Room.starts = [];
  Room.loseReceipts = 0;
});

test("two clients, one of them the public one, see each other's rows, and server code sees and writes them too", async () => {
  const host = await openHost({ agents });
  const Note = z.object({ id: z.string(), text: z.string(), seq: z.number().optional() });
  const options = { name: "notes", schema: Note, getKey: (row: { id: string }) => row.id, orderAs: "seq" as const };
  const one = createCollection(perdureCollectionOptions({ agent: ownClient(host), ...options }));
  const other = createCollection(perdureCollectionOptions({ agent: publicClient(host), ...options }));
  await Promise.all([one.preload(), other.preload()]);
  await one.insert({ id: "a", text: "mine" }).isPersisted.promise;
  await eventually(() => other.get("a") !== undefined, "the row arrives");
  expect(await rowsOf(other).update("a", (row) => void (row.text += ", and yours"))).toBe(true);
  const stub = host.getAgentByName(Room, "default");
  await stub.note("b", "the server's");
  await eventually(() => one.has("b") && other.has("b"), "the agent's row arrives");
  const shown = one.toArray.map(({ id, text, seq }) => ({ id, text, seq }));
  expect(shown).toEqual([
    { id: "a", text: "mine, and yours", seq: 1 },
    { id: "b", text: "the server's", seq: 2 },
  ]);
  expect(await stub.notes()).toEqual([
    { id: "a", text: "mine, and yours" },
    { id: "b", text: "the server's" },
  ]);
  expect(Room.heard.map(({ changes, source }) => [source, ...changes.map((c) => `${c.operation} ${c.key}`)])).toEqual([
    ["client", "insert a"],
    ["client", "update a"],
    ["server", "insert b"],
  ]);
});

test("a connection that did not subscribe is told nothing, and one of another collection only of that", async () => {
  const host = await openHost({ agents });
  const bystander = await connect(host, "/agents/room/default");
  const log = await followed(ownClient(host), "notes");
  const other = await followed(ownClient(host), "other");
  const seen = bystander.frames.length;
  await log.write({ changes: [insert("notes", "a"), insert("other", "b")] });
  await eventually(() => keysOf(other, "other").length === 1, "the other hears of its part");
  expect(other.table("notes").size).toBe(0);
  await quiet();
  expect(bystander.frames.slice(seen)).toEqual([]);
});

test("rows, versions and remembered writes outlive the host", async () => {
  const dir = tempDir();
  const first = await openHost({ agents, dir });
  const before = await followed(ownClient(first), "notes");
  const write = { txid: "t1", changes: [insert("notes", "a", { n: 1 })] };
  await before.write(write);
  await before.write({ changes: [insert("notes", "gone")], producer: { id: "p", epoch: 3 } });
  await before.write({ changes: [{ table: "notes", key: "gone", operation: "delete" }] });
  const refused = { txid: "t2", changes: [insert("notes", "a")] };
  expect(await before.write(refused)).toMatchObject({ applied: false });
  await first.stop();

  const second = await openHost({ agents, dir });
  const log = await followed(ownClient(second), "notes");
  expect(keysOf(log, "notes")).toEqual(["a"]);
  expect(log.table("notes").version("gone")).toBe(2);
  expect(log.position).toBe("3".padStart(16, "0"));
  expect(await log.write(write)).toEqual({ applied: true, position: "1".padStart(16, "0") });
  await log.write({ changes: [{ table: "notes", key: "a", operation: "delete" }] });
  expect(await log.write(refused), "as it was judged, and not anew").toMatchObject({ applied: false });
  const late = log.write({ changes: [insert("notes", "b")], producer: { id: "p", epoch: 2 } });
  await expect(late).rejects.toMatchObject({ code: "fenced" });
});

test("a receipt that is lost with its connection comes with the next one, and the write counts once", async () => {
  const host = await openHost({ agents });
  const client = ownClient(host);
  const log = await followed(client, "notes");
  Room.loseReceipts = 1;
  const receipt = await log.write({ changes: [{ ...insert("notes", "a"), operation: "upsert" }] });
  expect(receipt).toMatchObject({ applied: true });
  expect(Room.loseReceipts, "the connection was lost").toBe(0);
  expect(log.table("notes").get("a")?.version).toBe(1);
});

test("after a lost connection only what has changed is sent, and writes that were made meanwhile go out in order", async () => {
  const host = await openHost({ agents });
  const stub = host.getAgentByName(Room, "default");
  await stub.fill("notes", 50);
  const client = publicClient(host);
  const pages: number[] = [];
  client.addEventListener("message", ({ data }: MessageEvent) => {
    const frame = JSON.parse(String(data)) as { type: string; rows?: unknown[] };
    if (frame.type === "perdure_rows_page") pages.push(frame.rows?.length ?? 0);
  });
  const log = await followed(client, "notes");
  const lost = new Promise((resolve) => client.addEventListener("close", resolve, { once: true }));
  await stub.shake();
  await lost;
  await stub.note("k000007", "changed");
  const writes = ["x", "y", "z"].map((id) => log.write({ changes: [insert("notes", id)] }));
  expect((await Promise.all(writes)).map(({ applied }) => applied)).toEqual([true, true, true]);
  expect(log.table("notes").get("k000007")?.value).toEqual({ id: "k000007", text: "changed" });
  expect(keysOf(log, "notes").slice(50)).toEqual(["x", "y", "z"]);
  expect(pages[0]).toBe(50);
  expect(pages.slice(1).reduce((sum, rows) => sum + rows, 0)).toBeLessThanOrEqual(4);
});

test("an agent that leaves memory goes on telling its followers, and nobody wakes for it", async () => {
  const host = await openHost({ agents, idleMs: 20 });
  const reader = await followed(ownClient(host), "notes");
  const writer = await followed(publicClient(host), "notes");
  for (const id of ["a", "b"]) {
    await eventually(() => host.status().live === 0, "the agent leaves memory");
    await writer.write({ changes: [insert("notes", id)] });
    await eventually(() => reader.table("notes").size === writer.table("notes").size, "the reader hears of it");
  }
  expect(keysOf(reader, "notes")).toEqual(["a", "b"]);
  await eventually(() => host.status().live === 0, "the agent leaves memory");
  const lives = Room.starts.length;
  await quiet();
  expect(Room.starts.length).toBe(lives);
  expect(host.status().live).toBe(0);
});

test("20,000 rows come in pages and are shown at once, while somebody writes", async () => {
  const host = await openHost({ agents });
  const stub = host.getAgentByName(Room, "default");
  await stub.fill("notes", 20_000);
  const client = ownClient(host);
  const pages: number[] = [];
  client.addEventListener("message", ({ data }) => {
    if (String(data).startsWith('{"type":"perdure_rows_page"')) {
      pages.push((JSON.parse(String(data)) as { rows: unknown[] }).rows.length);
      // Between the pages: a row that was sent already, and one that is still to come.
      if (pages.length === 2) void stub.note("k000001", "early");
      if (pages.length === 3) void stub.note("k019999", "late");
    }
  });
  const log = openAgentLog({ agent: client, collections: ["notes"] });
  const sizes = new Set<number>();
  log.table("notes").subscribe(() => sizes.add(log.table("notes").size));
  await log.ready;
  expect(log.table("notes").size).toBe(20_000);
  expect([...sizes]).toEqual([20_000]);
  expect(pages.length).toBeGreaterThan(10);
  expect(Math.max(...pages)).toBeLessThanOrEqual(1000);
  await eventually(() => textOf("k000001") === "early" && textOf("k019999") === "late", "both changes arrive");
  function textOf(key: string): unknown {
    return log.table("notes").get(key)?.value.text;
  }
});

test("of an agent that was deleted and made anew, followers forget the old rows", async () => {
  const host = await openHost({ agents });
  const log = await followed(ownClient(host), "notes");
  await log.write({ changes: [insert("notes", "old"), insert("notes", "older")] });
  const resets: boolean[] = [];
  log.table("notes").subscribe((_changes, reset) => resets.push(reset));
  const { position } = log;
  await host.getAgentByName(Room, "default").destroy();
  await log.write({ changes: [insert("notes", "new")] });
  await eventually(() => keysOf(log, "notes").join() === "new", "only the new row is there");
  expect(resets[0]).toBe(true);
  expect(log.position >= position).toBe(true);
});

test("a log that is closed lets go: its writes fail, its connection is told no more and can be used on", async () => {
  const host = await openHost({ agents });
  const client = ownClient(host);
  const log = await followed(client, "notes");
  expect(openAgentLog({ agent: client })).toBe(log);
  const stub = host.getAgentByName(Room, "default");
  expect(await stub.isFollowed()).toBe(1);
  await log.close();
  await expect(log.write({ changes: [insert("notes", "a")] })).rejects.toMatchObject({ code: "disconnected" });
  await expect(log.table("others").ready).rejects.toMatchObject({ code: "disconnected" });
  await client.call("fill", ["notes", 1]);
  expect(await stub.isFollowed()).toBe(0);
  const again = await followed(client, "notes");
  expect(again).not.toBe(log);
  expect(again.table("notes").size).toBe(1);
});
