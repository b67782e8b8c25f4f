import { createCollection } from "@tanstack/db";
import { openAgentLog, perdureCollectionOptions } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { expect, test } from "vitest";
import { eventually, openHost } from "../../host/open-host.ts";
import { followed, insert, keysOf, ownClient, publicClient, Room } from "./room.ts";

const agents = { Room };

/** One collection that nobody may read, and others. */
class Guarded extends Room {
  override getCollections() {
    return { secret: { readable: () => false }, "*": {} };
  }
}

test("all collections can be asked for while the question about one is under way", async () => {
  const host = await openHost({ agents });
  await host.getAgentByName(Room, "default").fill("other", 3);
  const client = ownClient(host);
  const log = openAgentLog({ agent: client, collections: ["notes"] });
  await new Promise<void>((resolve) => client.addEventListener("open", () => resolve()));
  openAgentLog({ agent: client, collections: "all" });
  await log.ready;
  expect(log.table("other").size).toBe(3);
});

test("of an agent made anew with rows for many pages nothing is missed later", async () => {
  const host = await openHost({ agents });
  const client = publicClient(host);
  const log = await followed(client, "notes");
  const stub = () => host.getAgentByName(Room, "default");
  for (let n = 0; n < 40; n++) await log.write({ changes: [insert("notes", `old${n}`)] });
  client.close();
  await stub().destroy();
  await stub().fill("notes", 1200);
  client.reconnect();
  await eventually(() => log.table("notes").size === 1200, "the new rows, and none of the old ones");
  client.close();
  for (let n = 0; n < 50; n++) await stub().note(`later${n}`, "");
  client.reconnect();
  await eventually(() => log.table("notes").get("later49") !== undefined, "the last row");
  expect(log.table("notes").size).toBe(1250);
});

test("a name that cannot be asked for fails alone", async () => {
  const host = await openHost({ agents });
  const log = openAgentLog({ agent: ownClient(host), collections: ["notes"] });
  for (const name of ["x".repeat(201), "\ud800"]) {
    await expect(log.table(name).ready).rejects.toMatchObject({ code: "bad_input" });
    await expect(log.write({ changes: [insert(name, "a")] })).rejects.toMatchObject({ code: "bad_input" });
  }
  await log.write({ changes: [insert("notes", "a")] });
  expect(keysOf(log, "notes")).toEqual(["a"]);
});

test("collections beyond the limit are refused one by one; who follows all has no limit", async () => {
  const host = await openHost({ agents });
  const names = Array.from({ length: 520 }, (_, n) => `t${n}`);
  const named = openAgentLog({ agent: ownClient(host), collections: names });
  const outcomes = await Promise.allSettled(names.map((name) => named.table(name).ready ?? named.ready));
  expect(outcomes.map(({ status }) => status === "fulfilled").lastIndexOf(true)).toBe(499);

  const client = publicClient(host);
  const log = openAgentLog({ agent: client, collections: "all" });
  for (let from = 0; from < 520; from += 260) {
    await log.write({ changes: names.slice(from, from + 260).map((name) => insert(name, "a")) });
  }
  client.close();
  await host.getAgentByName(Room, "default").fill("more", 1100);
  client.reconnect();
  await eventually(() => log.table("more").size === 1100, "what came meanwhile");
  await log.write({ changes: [insert("t519", "b")] });
  expect(log.table("t519").size).toBe(2);
});

test("a collection that may not be read does not keep its neighbour from being shown", async () => {
  const host = await openHost({ agents: { Guarded } });
  const agent = ownClient(host, { agent: "Guarded" });
  const [secret, notes] = ["secret", "notes"].map((name) =>
    createCollection(perdureCollectionOptions<{ id: string }>({ agent, name, getKey: (row) => row.id })),
  );
  await notes!.preload();
  await notes!.insert({ id: "a" }).isPersisted.promise;
  expect(notes!.has("a")).toBe(true);
  await expect(secret!.preload()).rejects.toBeDefined();
});

test("connections that are lost while pages come and rows change: nothing is missed, nothing comes twice", async () => {
  const host = await openHost({ agents });
  const stub = host.getAgentByName(Room, "default");
  await stub.fill("notes", 2500);
  const logs = (["all", ["notes"], ["notes"]] as const).map((collections) =>
    openAgentLog({ agent: ownClient(host), collections }),
  );
  const problems: string[] = [];
  for (const log of logs) {
    const seen = new Map<string, number>();
    log.table("notes").subscribe((changes) => {
      for (const { key, operation, version } of changes) {
        const fits =
          (operation === "insert") !== seen.has(key) && (operation === "delete" || version > (seen.get(key) ?? 0));
        if (!fits) problems.push(`${operation} of ${key} at ${version}`);
        if (operation === "delete") seen.delete(key);
        else seen.set(key, version);
      }
    });
  }
  const writes: Promise<unknown>[] = [];
  for (let n = 0; n < 150; n++) {
    const key = `k${String((n * 37) % 2500).padStart(6, "0")}`;
    const row = { table: "notes", key };
    const change =
      n % 4 === 0
        ? { ...row, operation: "delete" as const }
        : { ...insert("notes", key, { n }), operation: "upsert" as const };
    writes.push(logs[n % 3]!.write({ changes: [change] }));
    if (n % 25 === 1) await stub.shake();
    if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(writes);
  const late = await followed(ownClient(host), "notes");
  const picture = (log: RowLog) => JSON.stringify([...log.table("notes").rows()].toSorted((a, b) => a.order - b.order));
  for (const log of logs) await eventually(() => picture(log) === picture(late), "the same rows");
  expect(problems).toEqual([]);
});
