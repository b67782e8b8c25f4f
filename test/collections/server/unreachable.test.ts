import { createCollection } from "@tanstack/db";
import { Agent, type Connection, type ConnectionContext } from "perdure";
import type { ServedHost } from "perdure/node";
import { openAgentLog, perdureCollectionOptions, rowsOf } from "perdure/collections";
import { expect, test } from "vitest";
import { openHost } from "../../host/open-host.ts";
import { insert, ownClient, publicClient, Room } from "./room.ts";

const gone = { code: "disconnected", message: expect.stringContaining("no agent class of this name") as string };

test("an agent class that is not there: whoever reads or writes is told, at once and later", async () => {
  const host = await openHost({ agents: { Room } });
  const agent = ownClient(host, { agent: "Rom" });
  const log = openAgentLog({ agent, collections: ["notes"] });
  const early = log.write({ changes: [insert("notes", "a")] });
  await expect(early).rejects.toMatchObject(gone);
  await expect(log.ready).rejects.toMatchObject(gone);
  await expect(log.write({ changes: [insert("notes", "b")] })).rejects.toMatchObject(gone);
  await expect(log.table("others").ready).rejects.toMatchObject(gone);
  await expect(openAgentLog({ agent, collections: "all" }).ready).rejects.toMatchObject(gone);
  const notes = createCollection(
    perdureCollectionOptions<{ id: string }>({ agent, name: "more", getKey: (row) => row.id }),
  );
  await expect(notes.preload()).rejects.toMatchObject({ message: gone.message });
  await expect(rowsOf(notes).insert({ id: "c" })).rejects.toMatchObject(gone);
});

class Lobby extends Agent {
  static isClosed = true;
  override getCollections() {
    return { notes: {} };
  }
  override onConnect(connection: Connection, _context: ConnectionContext): void {
    if (Lobby.isClosed) connection.close(4403, "not today");
  }
}

const clients = {
  "our client": (host: ServedHost) => {
    const agent = ownClient(host);
    return { agent, again: () => agent.open() };
  },
  "the public client": (host: ServedHost) => {
    const agent = publicClient(host);
    return { agent, again: () => agent.reconnect() };
  },
};

test.each(Object.entries(clients))(
  "%s is turned away for good: it is told, and let in later it goes on",
  async (_, connect) => {
    Lobby.isClosed = true;
    const host = await openHost({ agents: { Room: Lobby } });
    const { agent, again } = connect(host);
    const log = openAgentLog({ agent });
    const early = log.table("notes");
    const refused = { code: "disconnected", message: expect.stringContaining("not today") as string };
    await expect(log.write({ changes: [insert("notes", "a")] })).rejects.toMatchObject(refused);
    await expect(early.ready).rejects.toMatchObject(refused);
    Lobby.isClosed = false;
    again();
    await expect.poll(() => agent.readyState).toBe(1);
    expect(await log.write({ changes: [insert("notes", "b")] })).toMatchObject({ applied: true });
    await early.ready;
    expect([...early.rows()].map(({ key }) => key)).toContain("b");
  },
);

test("what is no client is told from one at once", () => {
  const wrong = () => openAgentLog({ agent: "Room" as never });
  expect(wrong).toThrow(expect.objectContaining({ code: "bad_config" }));
});

test("a collection that one part of an app got wrong does not spoil the log that it shares", async () => {
  const host = await openHost({ agents: { Lobby } });
  Lobby.isClosed = false;
  const agent = ownClient(host, { agent: "Lobby" });
  const log = openAgentLog({ agent, collections: ["notes"] });
  await expect(log.table("typo").ready).rejects.toMatchObject({ code: "not_found" });
  await log.ready;
  expect(await log.write({ changes: [insert("notes", "a")] })).toMatchObject({ applied: true });
  await expect(openAgentLog({ agent, collections: ["typo"] }).ready).rejects.toMatchObject({ code: "not_found" });
});
