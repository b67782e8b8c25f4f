// An address that somebody only looked at leaves nothing behind.
import { readdirSync } from "node:fs";
import Database from "better-sqlite3";
import { join } from "node:path";
import { Agent, AIChatAgent, callable, Think } from "perdure";
import { memoryStorage, type ServedHost, subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHost, tempDir } from "./open-host.ts";
import { askRaw } from "./raw-request.ts";

class Plain extends Agent {
  static override readonly subAgents = ["Plain", "Chat", "Deep"];
  static {
    callable(this, "keep");
  }
  override initialState = { lines: [] };
  keep(): void {
    this.setState({ lines: [] });
  }
}
class Chat extends AIChatAgent {
  static override readonly subAgents = Plain.subAgents;
  override onChatMessage() {
    return Promise.resolve(undefined);
  }
}
class Deep extends Think {
  static override readonly subAgents = Plain.subAgents;
  override getModel() {
    return scriptedModel([]);
  }
}
/** As many apps do it: every name that is woken has a table. */
class Eager extends Agent {
  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
  }
}

const agents = { Plain, Chat, Deep };
const NAME = "0".repeat(64);
const READS = ["", "/get-messages", "/chat", "/chat/stream", "/chat/inbox", "/inbox", "/stream", "/sessions", "/mcp"];
READS.push(`/files/${NAME}`, "/workspace", "/callback?code=1", "/anything/else");
const PLACES = ["/agents/plain/none", "/agents/chat/none", "/agents/deep/none"];
for (const place of [...PLACES]) PLACES.push(`${place}/sub/plain/a`, `${place}/sub/chat/a/sub/deep/b`);

/** Every file of an agent. */
function stored(dir: string): unknown {
  const files = (
    readdirSync(dir, { recursive: true, withFileTypes: true }) as {
      parentPath: string;
      name: string;
      isFile(): boolean;
    }[]
  )
    .filter((entry) => entry.isFile() && !/^host\.|\/spare$/.test(entry.name) && !entry.parentPath.endsWith("spare"))
    .map(({ parentPath, name }) => join(parentPath, name));
  return files;
}

/** How many rows the host has of agents. */
function rows(dir: string): unknown[] {
  const db = new Database(join(dir, "host.db"), { readonly: true });
  const counts = ["agent", "doomed", "lost"].map((table) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
  db.close();
  return counts;
}

/** Reads everything that can be read, at names that do not exist. */
async function readAll(host: ServedHost): Promise<void> {
  for (const place of PLACES) {
    for (const read of READS) {
      for (const method of ["GET", "HEAD", "OPTIONS"]) {
        const response = await fetch(host.url + place + read, { method, signal: AbortSignal.timeout(5_000) });
        await response.body?.cancel();
        expect(response.status, `${method} ${place}${read}`).toBeLessThan(500);
      }
    }
  }
}

/** Connects and leaves, after having asked what clients ask by themselves. */
async function lookAround(host: ServedHost): Promise<void> {
  for (const place of PLACES) {
    const client = await connect(host, `${place}?_pk=me`);
    client.send(JSON.stringify({ type: "cf_agent_stream_resume_request" }));
    client.send(JSON.stringify({ type: "perdure_history", id: "h" }));
    client.send("{}");
    client.send("nothing");
    client.ws.close();
    await client.whenClosed();
  }
}

test("who reads, connects and leaves stores no file and no row, at roots and below parents that do not exist", async () => {
  const dir = tempDir();
  const host = await openHost({ agents, dir, idleMs: 20 });
  const empty = stored(dir);
  await readAll(host);
  await lookAround(host);
  expect(host.listAgents()).toEqual([]);
  expect(stored(dir)).toEqual(empty);
  await host.stop();
  expect(rows(dir)).toEqual([0, 0, 0]);
});

test("nor does it stay in memory", async () => {
  const storage = memoryStorage();
  const opened = new Set<string>();
  const { open } = storage;
  const host = await openHost({ agents, storage, idleMs: 20 });
  storage.open = (id, listener) => {
    opened.add(id);
    return open(id, listener);
  };
  await readAll(host);
  await lookAround(host);
  await expect.poll(() => host.status()).toMatchObject({ live: 0, kept: 0, connections: 0 });
  expect(opened.size).toBeGreaterThan(10);
});

test("what stores something after that is there as ever", async () => {
  const host = await openHost({ agents, idleMs: 20 });
  await lookAround(host);
  const client = await connect(host, "/agents/plain/none/sub/plain/a");
  await client.call("keep");
  expect(host.listAgents()).toEqual(["Plain/none", "Plain/none/Plain/a"]);
});

test("a page of another site makes nothing by what it loads unseen, whatever the agent does when it wakes", async () => {
  const refused: unknown[] = [];
  onTestFinished(subscribe("origin:refused", ({ id }) => refused.push(id)));
  const host = await openHost({ agents: { Eager } });
  const load = (name: string, ...headers: string[]) =>
    askRaw(host.port, `/agents/eager/${name}`, { headers: [`Host: 127.0.0.1:${host.port}`, ...headers] });
  const unseen = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"];
  const picture = await load("a", ...unseen);
  expect(picture.status).toBe(403);
  expect(picture.text).toContain("may not wake an agent that is not there");
  expect(
    (await load("b", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe")).status,
  ).toBe(403);
  const page = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"];
  expect((await load("c", ...page, "Origin: https://evil.example")).status).toBe(403);
  expect(host.listAgents()).toEqual([]);
  expect(refused).toEqual(["Eager/a", "Eager/b", "Eager/c"]);

  // Who goes there sees it, pages of this machine are at home, and what is there may be shown.
  expect(
    (await load("a", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")).status,
  ).toBe(404);
  expect((await load("b", ...page, "Origin: http://localhost:5173")).status).toBe(404);
  expect((await load("c", "Sec-Fetch-Site: same-origin")).status).toBe(404);
  expect(host.listAgents()).toEqual(["Eager/a", "Eager/b", "Eager/c"]);
  expect((await load("a", ...unseen)).status).toBe(404);
});

test("an app that says so lets pages of other sites wake agents", async () => {
  for (const open of [{ cors: true }, { origins: "any" as const }]) {
    const host = await openHost({ agents: { Eager }, storage: memoryStorage(), ...open });
    const headers = [`Host: 127.0.0.1:${host.port}`, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: image"];
    expect((await askRaw(host.port, "/agents/eager/a", { headers })).status).toBe(404);
  }
});
