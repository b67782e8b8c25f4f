// Two processes on one database: each tree of agents is one's alone, and what the other still writes is refused before anybody sees it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, callable } from "perdure";
import { serve, type ServedHost } from "perdure/node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost, tempDir } from "../host/open-host.ts";
import { openPostgres, type Postgres } from "../support/postgres.ts";

let postgres: Postgres;
beforeAll(async () => {
  postgres = await openPostgres();
});
afterAll(() => postgres.stop());

const rung: string[] = [];

class Note extends Agent {
  static {
    callable(this, "write");
  }
  override onError(): void {}
  write(text: string): string[] {
    void this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
    void this.sql`INSERT INTO note (text) VALUES (${text})`;
    this.broadcast(JSON.stringify({ wrote: text }));
    return this.read();
  }
  read(): string[] {
    return this.sql<{ text: string }>`SELECT text FROM note`.map(({ text }) => text);
  }
  async later(seconds: number): Promise<void> {
    await this.schedule(seconds, "ring", this.name);
  }
  ring(name: string): void {
    rung.push(name);
  }
}

const agents = { Note };
const open = (url: string, more = {}) => openHost({ agents, cluster: { url, ttlMs: 600 }, log: false, ...more });

/** As if the process had been silent for too long. */
const silence = (url: string, { status }: ServedHost) =>
  postgres.query(url, "UPDATE perdure_node SET expires = now() - interval '1 hour' WHERE id = $1", [
    status().cluster?.node,
  ]);

test("a process that was taken for dead writes nothing more, and shows nothing of it", async () => {
  const url = await postgres.database();
  const patient = { cluster: { url, ttlMs: 5_000 } };
  const first = await open(url, patient);
  const client = await connect(first, "/agents/note/a");
  await client.call("write", "one");
  const second = await open(url, patient);
  await expect(second.getAgentByName(Note, "a").write("never")).rejects.toThrow("another node of the cluster");

  // Its own renewals bring it back to life: whoever is quicker has the tree.
  for (let taken = false; !taken;) {
    await silence(url, first);
    const read = second.getAgentByName(Note, "a").read();
    taken = await read.then(
      () => true,
      () => false,
    );
  }
  // Before the other one writes: afterwards the number of the row would be taken as well.
  await expect(client.call("write", "zombie")).rejects.toThrow("closed with 1012");
  expect(client.frames.filter(({ wrote }) => wrote === "zombie")).toEqual([]);
  expect(await second.getAgentByName(Note, "a").write("two")).toEqual(["one", "two"]);
  expect(await second.getAgentByName(Note, "a").read()).toEqual(["one", "two"]);
  await expect(first.getAgentByName(Note, "a").read()).rejects.toThrow("another node of the cluster");
});

test("one that stops gives its agents back at once, with what they wait for", async () => {
  const url = await postgres.database();
  const first = await open(url);
  await first.getAgentByName(Note, "a").write("one");
  await first.getAgentByName(Note, "b").later(1);
  await first.stop();
  const second = await open(url);
  await eventually(() => rung.includes("b"), "the schedule of the process that stopped");
  expect(await second.getAgentByName(Note, "a").write("two")).toEqual(["one", "two"]);
});

test("an agent that nothing needs is free for others, and so is its alarm", async () => {
  const url = await postgres.database();
  const first = await open(url, { idleMs: 50 });
  await first.getAgentByName(Note, "a").write("one");
  await eventually(() => first.status().cluster?.owned === 0, "it is given back");
  const second = await open(url);
  expect(await second.getAgentByName(Note, "a").write("two")).toEqual(["one", "two"]);
});

test("while the database is away health says so, and clients are sent away; afterwards all goes on", async () => {
  const url = await postgres.database();
  const host = await open(url);
  const client = await connect(host, "/agents/note/a");
  await client.call("write", "one");
  expect((await fetch(`${host.url}/health`)).status).toBe(200);
  await postgres.kill();
  const closed = await client.whenClosed();
  expect(closed.code).toBe(1012);
  const health = await fetch(`${host.url}/health`);
  expect([health.status, ((await health.json()) as { ok: boolean }).ok]).toEqual([503, false]);
  expect((await fetch(`${host.url}/agents/note/b`)).status).toBe(503);
  await postgres.start();
  await eventually(() => host.status().ok, "the host is well again");
  expect(await host.getAgentByName(Note, "a").write("two")).toEqual(["one", "two"]);
});

test("what was deleted stays deleted, also on another process", async () => {
  const url = await postgres.database();
  const first = await open(url);
  await first.getAgentByName(Note, "a").write("one");
  await first.getAgentByName(Note, "a").destroy();
  await first.stop();
  const second = await open(url);
  expect(await second.getAgentByName(Note, "a").write("two")).toEqual(["two"]);
});

test("what cannot work is said before anything is opened", async () => {
  const url = await postgres.database();
  const filled = tempDir();
  writeFileSync(join(filled, "host.db"), "");
  const start = (cluster: { url: string; ttlMs?: number }, more = {}) =>
    serve({ agents, cluster, port: 0, signals: false, log: false, ...more }).then((host) =>
      onTestFinished(() => host.stop()),
    );
  await expect(start({ url }, { dir: filled })).rejects.toThrow("holds other things");
  await expect(start({ url: "mysql://x" })).rejects.toThrow("PostgreSQL");
  await expect(start({ url: "postgres://127.0.0.1:1/none" })).rejects.toThrow("cannot be reached");
  await expect(start({ url, ttlMs: 1 })).rejects.toThrow("cluster.ttlMs");
  const dir = tempDir();
  await start({ url }, { dir });
  await expect(start({ url }, { dir })).rejects.toThrow("in use by another process");
  await postgres.query(url, "INSERT INTO perdure_schema VALUES (999)");
  await expect(start({ url })).rejects.toThrow("newer Perdure");
});
