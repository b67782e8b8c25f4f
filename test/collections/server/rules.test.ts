import { Agent, callable } from "perdure";
import type { AppliedRowChange, Collections, Connection, ConnectionContext, RowChange } from "perdure";
import type { RowValue } from "perdure/collections/log";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { eventually, openHost } from "../../host/open-host.ts";
import { followed, insert, ownClient } from "./room.ts";

interface Item {
  readonly id: string;
  readonly count: number;
}

class Shop extends Agent {
  static {
    callable(this, "add");
  }
  static errors: unknown[] = [];
  static changes: (readonly AppliedRowChange[])[] = [];
  static asked: RowChange[][] = [];

  override getCollections(): Collections {
    return {
      items: {
        schema: z.object({ id: z.string(), count: z.number().default(0) }),
        getKey: (row: Item) => row.id,
        maxRowBytes: 200,
      },
      secrets: { readable: ({ uri }) => uri.includes("admin") },
      prices: {
        writable: ({ uri }, changes, producer) => {
          Shop.asked.push([...changes]);
          if (producer !== undefined && !uri.includes(producer.id)) throw new Error(`you are not ${producer.id}`);
          if (uri.includes("guest")) throw new Error("guests pay what is asked");
          return uri.includes("admin");
        },
      },
      slow: { schema: z.object({ id: z.string().refine(async () => true) }) },
      vague: { writable: (() => "yes") as unknown as () => boolean },
      later: { writable: (() => Promise.resolve(true)) as unknown as () => boolean },
    };
  }
  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return request.url.includes("readonly");
  }
  override onCollectionChange(changes: readonly AppliedRowChange[]): void {
    Shop.changes.push(changes);
    if (changes.some(({ key }) => key === "bomb")) throw new Error("boom");
  }
  override onError(error: unknown): void {
    Shop.errors.push(error);
  }

  add(id: string): void {
    this.collection<Item>("items").insert({ id, count: 1 });
  }
  /** All that server code can do with a collection. */
  work(): unknown {
    const items = this.collection<Item>("items");
    items.insert({ id: "a", count: 1 });
    items.upsert({ id: "b", count: 2 });
    items.upsert({ id: "b", count: 3 });
    const updated = [
      items.update("a", (draft) => Object.assign(draft, { count: 5 })),
      items.update("x", { id: "x", count: 0 }),
    ];
    const deleted = [items.delete("b"), items.delete("b")];
    const twice = codeOf(() => items.insert({ id: "a", count: 9 }));
    const when = [{ table: "items", key: "a", version: 1 }];
    const refused = items.write({ changes: [{ key: "a", operation: "delete" }], when });
    return { updated, deleted, twice, refused, list: items.entries(), size: items.size, version: items.version("b") };
  }
  undone(): unknown {
    const items = this.collection<Item>("items");
    const thrown = codeOf(() =>
      this.transaction(() => {
        items.insert({ id: "never", count: 1 });
        throw new Error("no");
      }),
    );
    return [thrown, items.size];
  }
  wrong(): unknown[] {
    return [
      codeOf(() => this.collection("nothing")),
      codeOf(() => this.collection<Item>("items").insert({ id: "a", count: "x" } as unknown as Item)),
      codeOf(() => this.collection("prices").insert({ price: 1 })),
      codeOf(() => this.writeRows({ changes: [] })),
      codeOf(() => this.collection("prices").insert({ id: "p", at: 1n })),
    ];
  }
  read(name: string): unknown[] {
    return this.collection(name).list();
  }
}

function codeOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

beforeEach(() => {
  Object.assign(Shop, { errors: [], changes: [], asked: [] });
});

async function shop(who = "anna") {
  const host = await openHost({ agents: { Shop } });
  const client = ownClient(host, { agent: "Shop", query: { who } });
  const log = await followed(client);
  const write = (...changes: Parameters<typeof log.write>[0]["changes"]) => log.write({ changes });
  return { host, client, log, write, stub: host.getAgentByName(Shop, "default") };
}

test("server code reads and writes synchronously, and is bound by the schema", async () => {
  const { stub } = await shop();
  expect(await stub.work()).toMatchObject({
    updated: [true, false],
    deleted: [true, false],
    twice: "conflict",
    refused: { applied: false, refused: 'the row "a" of "items" is at version 2, not 1', seq: 5 },
    list: [{ key: "a", value: { id: "a", count: 5 }, version: 2, order: 1 }],
    size: 1,
    version: 3,
  });
  expect(await stub.undone()).toEqual(["Error: no", 1]);
  expect(await stub.wrong()).toEqual(["not_found", "bad_input", "bad_input", "bad_input", "bad_input"]);
  expect(Shop.changes.flat().map(({ key, operation, version }) => `${operation} ${key} ${version}`)).toEqual([
    ...["insert a 1", "insert b 1", "update b 2", "update a 2", "delete b 3"],
  ]);
});

test("a row that the schema refuses is told with its reason; what the schema makes of a row is stored", async () => {
  const { log, write, stub } = await shop();
  const bad = write(insert("items", "a", { count: "many" }));
  await expect(bad).rejects.toMatchObject({ code: "bad_input", message: expect.stringMatching(/"a".*count: /) });
  await expect(write(insert("items", "a", { id: "other" }))).rejects.toMatchObject({ code: "bad_input" });
  await expect(write(insert("items", "x".repeat(300)))).rejects.toMatchObject({ code: "too_large" });
  expect(await stub.read("items")).toEqual([]);
  await write(insert("items", "a", { unknown: true }));
  expect(log.table("items").get("a")?.value).toEqual({ id: "a", count: 0 });
  expect(Shop.errors).toEqual([]);
});

test("a collection that is not declared can neither be read nor written, and the error says what to do", async () => {
  const { log, write } = await shop();
  const error = { code: "not_found", message: expect.stringContaining("Declare it") };
  await expect(log.table("nothing").ready).rejects.toMatchObject(error);
  await expect(write(insert("nothing", "a"))).rejects.toMatchObject(error);
  // The others are there all the same.
  expect(await write(insert("items", "a"))).toMatchObject({ applied: true });
});

test("who may not read a collection is told nothing of it, not even by a condition", async () => {
  const { log, client, write, host } = await shop();
  await expect(log.table("secrets").ready).rejects.toMatchObject({ code: "not_allowed" });
  const probe = log.write({
    changes: [insert("items", "a")],
    when: [{ table: "secrets", key: "s", version: 7 }],
  });
  await expect(probe).rejects.toMatchObject({ code: "not_allowed" });
  const told: string[] = [];
  client.addEventListener("message", ({ data }) => told.push(String(data)));
  const admin = await followed(ownClient(host, { agent: "Shop", query: { who: "admin" } }), "secrets");
  await admin.write({ changes: [insert("secrets", "s", { word: "sesame" })] });
  expect(admin.table("secrets").size).toBe(1);
  await write(insert("items", "b"));
  expect(told.join()).not.toContain("sesame");
});

test("writable is asked with the changes, and refuses the whole write", async () => {
  const { write, stub, log } = await shop();
  const refused = write(insert("items", "a"), insert("prices", "p", { price: 1 }));
  await expect(refused).rejects.toMatchObject({ code: "not_allowed" });
  expect(Shop.asked).toEqual([[{ ...insert("prices", "p", { price: 1 }) }]]);
  expect(await stub.read("items")).toEqual([]);
  const guest = await shop("guest");
  const paid = guest.write(insert("prices", "p"));
  await expect(paid).rejects.toMatchObject({ code: "not_allowed", message: "guests pay what is asked" });
  const { write: allowed } = await shop("admin");
  expect(await allowed(insert("prices", "p"))).toMatchObject({ applied: true });
  expect(Shop.errors).toEqual([]);
  expect(log.table("prices").size).toBe(0);
});

test("writable is told who the writer says that it is: nobody shuts out another's producer", async () => {
  const { host, log: own } = await shop("admin-ada");
  const thief = await followed(ownClient(host, { agent: "Shop", query: { who: "admin-bob" } }), "prices");
  const price = (key: string, epoch: number) => ({
    changes: [insert("prices", key)],
    producer: { id: "ada", epoch },
  });
  expect(await own.write(price("a", 1))).toMatchObject({ applied: true });
  const stolen = thief.write(price("b", 2));
  await expect(stolen).rejects.toMatchObject({ code: "not_allowed", message: "you are not ada" });
  expect(await own.write(price("c", 1))).toMatchObject({ applied: true });
});

test("a rule that answers with a promise refuses everything, and the app hears of it", async () => {
  const { write } = await shop();
  for (const name of ["slow", "later"]) {
    await expect(write(insert(name, "a"))).rejects.toMatchObject({ code: "bad_config" });
  }
  expect(Shop.errors).toMatchObject([{ code: "bad_config" }, { code: "bad_config" }]);
});

test("a rule that says neither true nor false refuses, and the app hears of it", async () => {
  const { write } = await shop();
  await expect(write(insert("vague", "a"))).rejects.toMatchObject({ code: "bad_config" });
  expect(Shop.errors).toMatchObject([{ code: "bad_config" }]);
});

test("a read-only connection follows but does not write, by itself or by a method", async () => {
  const { host, stub } = await shop();
  const reader = ownClient(host, { agent: "Shop", query: { readonly: "1" } });
  const log = await followed(reader, "items");
  await expect(log.write({ changes: [insert("items", "a")] })).rejects.toMatchObject({ code: "read_only" });
  await expect(reader.call("add", ["a"])).rejects.toThrow("Connection is readonly");
  await stub.add("b");
  await eventually(() => log.table("items").size === 1, "the reader is told");
  expect(await stub.read("items")).toEqual([{ id: "b", count: 1 }] satisfies RowValue[]);
});

test("what onCollectionChange throws goes to onError, and the write stands", async () => {
  const { write, stub } = await shop();
  expect(await write(insert("items", "bomb"))).toMatchObject({ applied: true });
  await eventually(() => Shop.errors.length > 0, "the error is told");
  expect(Shop.errors).toMatchObject([{ message: "boom" }]);
  expect(await stub.read("items")).toHaveLength(1);
});
