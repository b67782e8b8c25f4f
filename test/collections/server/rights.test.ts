// Rights to read that are taken away from somebody who follows, or who is away.
import { Agent, type Collections } from "perdure";
import { subscribe } from "perdure/node";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost } from "../../host/open-host.ts";
import { followed, ownClient } from "./room.ts";

class Vault extends Agent {
  static readers = new Set<string>();
  static bug = false;
  static errors: unknown[] = [];

  override getCollections(): Collections {
    return {
      open: {},
      secrets: {
        readable: ({ uri }) => {
          if (Vault.bug) throw new TypeError("cannot read the password hunter2 of undefined");
          return Vault.readers.has(new URL(uri).searchParams.get("who") ?? "");
        },
      },
      keyed: { getKey: () => (undefined as unknown as { key: { secret: string } }).key.secret },
    };
  }
  override onError(error: unknown): void {
    Vault.errors.push(error);
  }
  /** Closes all connections; they come back. */
  shake(): void {
    for (const connection of this.getConnections()) connection.close(1012, "again, please");
  }
  put(table: string, id: string): void {
    this.collection(table).upsert({ id });
  }
}

beforeEach(() => {
  Vault.readers = new Set(["ada", "bob"]);
  Vault.bug = false;
  Vault.errors = [];
});

const ask = (id: string, since: object) => JSON.stringify({ type: "perdure_rows_subscribe", id, since });

test.each([{ secrets: 0 }, { secrets: 0, open: 0 }])(
  "a follower whose rights are taken away is told so with the next change, and nothing of that change: %j",
  async (since) => {
    const lost: unknown[] = [];
    onTestFinished(subscribe("collection:lost", ({ payload }) => lost.push(payload)));
    const host = await openHost({ agents: { Vault }, log: false });
    const stub = host.getAgentByName(Vault, "a");
    const ada = await connect(host, "/agents/vault/a?who=ada&_pk=ada");
    const bob = await connect(host, "/agents/vault/a?who=bob&_pk=bob");
    for (const client of [ada, bob]) {
      client.send(ask("q", since));
      await client.frame(({ id }) => id === "q");
    }
    await stub.put("secrets", "first");
    await ada.frame(({ type }) => type === "perdure_rows_changed");
    Vault.readers.delete("ada");
    await stub.put("secrets", "second");
    await stub.put("secrets", "third");
    expect(await ada.frame(({ type }) => type === "perdure_rows_error")).toMatchObject({
      ...{ collection: "secrets", error: { code: "not_allowed" } },
    });
    await bob.frame((frame) => JSON.stringify(frame).includes("third"));
    const told = JSON.stringify(ada.frames);
    expect([told.includes("first"), told.includes("second"), told.includes("third")]).toEqual([true, false, false]);
    expect(ada.frames.filter(({ type }) => type === "perdure_rows_error")).toHaveLength(1);
    expect(lost).toEqual([{ connectionId: "ada", collection: "secrets", code: "not_allowed" }]);
    // The other collection goes on.
    await stub.put("open", "fourth");
    if ("open" in since) await ada.frame((frame) => JSON.stringify(frame).includes("fourth"));
  },
);

test("a client of ours that was away while its rights were taken away forgets the rows when it is back", async () => {
  const host = await openHost({ agents: { Vault }, log: false });
  const stub = host.getAgentByName(Vault, "default");
  await stub.put("secrets", "first");
  const client = ownClient(host, { agent: "Vault", query: { who: "ada" } });
  const log = await followed(client, "secrets");
  const table = log.table("secrets");
  expect(table.size).toBe(1);
  Vault.readers.delete("ada");
  await stub.put("open", "nothing that it follows");
  await stub.shake();
  await eventually(() => table.size === 0, "the rows are gone");
  await expect(log.table("secrets").ready).rejects.toMatchObject({ code: "not_allowed" });
});

test("a client of ours that follows forgets the rows as soon as it is told", async () => {
  const host = await openHost({ agents: { Vault }, log: false });
  const stub = host.getAgentByName(Vault, "default");
  await stub.put("secrets", "first");
  const log = await followed(ownClient(host, { agent: "Vault", query: { who: "ada" } }), "secrets");
  Vault.readers.delete("ada");
  await stub.put("secrets", "second");
  await eventually(() => log.table("secrets").size === 0, "the rows are gone");
});

test("what a mistake in a rule throws is for the app: the client reads that it failed", async () => {
  const host = await openHost({ agents: { Vault }, log: false });
  const client = await connect(host, "/agents/vault/a?who=ada");
  Vault.bug = true;
  client.send(ask("q", { secrets: 0 }));
  const page = await client.frame(({ id }) => id === "q");
  expect(page.refused).toEqual({
    secrets: {
      code: "bad_config",
      message: 'readable() of the collection "secrets" failed. The agent\'s log says why.',
    },
  });
  const changes = [{ table: "keyed", key: "k", operation: "insert", value: { id: "k" } }];
  client.send(JSON.stringify({ type: "perdure_rows_write", txid: "t", changes }));
  expect(await client.frame(({ txid }) => txid === "t")).toMatchObject({
    error: { code: "call_failed", message: "This failed on the agent's side. Its log says why." },
  });
  expect(JSON.stringify(client.frames)).not.toMatch(/hunter2|undefined/);
  await eventually(() => Vault.errors.length === 2, "the app has heard of both");
  expect(String((Vault.errors[0] as Error).cause)).toContain("hunter2");
  expect(String(Vault.errors[1])).toContain("undefined");
});
