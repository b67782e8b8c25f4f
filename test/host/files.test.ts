import { mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Agent, type AgentEnv, callable, PerdureError } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { agentFiles, databaseFile, hashOf, withDatabase } from "./agent-files.ts";
import { connect, openHost, tempDir } from "./open-host.ts";

/** The tables of an agent, with hardly a row in them. */
const SMALL_FILE_BYTES = 64 * 1024;

class Notes extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "list");
    callable(this, "count");
  }
  override initialState = { count: 0 };
  override onError(): void {}

  list(): string[] {
    return this.hasTable() ? this.sql<{ text: string }>`SELECT text FROM note ORDER BY id`.map(({ text }) => text) : [];
  }
  count(): number {
    return this.state.count;
  }
  add(text: string): number {
    return this.transaction(() => {
      this.sql`CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT)`;
      this.sql`INSERT INTO note (text) VALUES (${text})`;
      this.setState({ count: this.state.count + 1 });
      return this.state.count;
    });
  }
  private hasTable(): boolean {
    return this.sql`SELECT 1 FROM sqlite_master WHERE name = ${"note"}`.length > 0;
  }
}

/** Two agents with one note each, and the host stopped again. */
async function twoAgents(dir: string): Promise<{ good: string; bad: string }> {
  const host = await openHost({ agents: { Notes }, dir });
  await host.getAgentByName(Notes, "good").add("kept");
  await host.getAgentByName(Notes, "bad").add("first");
  for (let i = 0; i < 50; i++) await host.getAgentByName(Notes, "bad").add("x".repeat(1000));
  await host.stop();
  return { good: databaseFile(dir, "good"), bad: databaseFile(dir, "bad") };
}

/** Uses the bad one in every way, checks that the good one does not notice, and returns what the bad one was told. */
async function refusals(dir: string): Promise<unknown[]> {
  const host = await openHost({ agents: { Notes }, dir });
  const bad = host.getAgentByName(Notes, "bad");
  const codeOf = (error: unknown) => (PerdureError.is(error) ? error.code : error);
  const told: unknown[] = [await bad.list().catch(codeOf), await bad.add("more").catch(codeOf)];
  const response = await host.fetch(new Request("http://host/agents/notes/bad"));
  expect(response.status).toBe(500);
  told.push(((await response.json()) as { error: { code: string } }).error.code);
  const client = await connect(host, "/agents/notes/bad", { greeted: false });
  const closed = await client.whenClosed();
  expect(closed.code).toBe(1011);
  told.push(closed.reason);
  const good = host.getAgentByName(Notes, "good");
  expect(await good.list()).toEqual(["kept"]);
  expect(await good.add("more")).toBe(2);
  await host.stop();
  return told;
}

const four = (code: string) => Array(4).fill(code);

test("connecting, reading state, calling a reading method and being woken make no file; the first write does", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Notes }, dir, idleMs: 20 });
  const client = await connect(host, "/agents/notes/a");
  expect(client.states()).toEqual([{ count: 0 }]);
  expect(await client.call("list")).toEqual([]);
  expect(await client.call("count")).toBe(0);
  await host.fetch(new Request("http://host/agents/notes/a"));
  expect(agentFiles(dir)).toEqual([]);
  expect(host.listAgents()).toEqual([]);
  expect(await host.getAgentByName(Notes, "a").add("one")).toBe(1);
  expect(agentFiles(dir).filter((file) => file.endsWith(".db"))).toEqual([databaseFile(dir, "a")]);
  expect(host.listAgents()).toEqual(["Notes/a"]);
});

test("a transaction that is rolled back leaves no agent behind in the index", async () => {
  class Careful extends Agent {
    attempt(): string {
      try {
        this.transaction(() => {
          this.sql`CREATE TABLE t (x)`;
          throw new Error("no");
        });
      } catch {
        return "undone";
      }
      return "done";
    }
  }
  const host = await openHost({ agents: { Careful } });
  expect(await host.getAgentByName(Careful, "a").attempt()).toBe("undone");
  expect(host.listAgents()).toEqual([]);
});

test("a database of a newer version is refused for that agent alone, and left as it is", async () => {
  const dir = tempDir();
  const { bad } = await twoAgents(dir);
  withDatabase(bad, (db) => db.exec("INSERT INTO perdure_migration (id) VALUES (9999)"));
  const before = hashOf(bad);
  expect(await refusals(dir)).toEqual(four("database_newer"));
  expect(hashOf(bad)).toBe(before);
  expect(readdirSync(dirname(bad)).filter((file) => file.startsWith("bad."))).toHaveLength(1);
});

test("a file full of garbage is refused for that agent alone", async () => {
  const dir = tempDir();
  const { bad } = await twoAgents(dir);
  writeFileSync(bad, "this is not a database ".repeat(1000));
  const before = hashOf(bad);
  expect(await refusals(dir)).toEqual(four("database_corrupt"));
  expect(hashOf(bad)).toBe(before);
});

test.each([0, 1, 100, 5000, 20_000])("a file cut off after %i bytes is refused for that agent alone", async (bytes) => {
  const dir = tempDir();
  const { bad } = await twoAgents(dir);
  truncateSync(bad, bytes);
  expect(await refusals(dir)).toEqual(four("database_corrupt"));
});

test("a directory where the file should be is refused for that agent alone", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Notes }, dir });
  await host.getAgentByName(Notes, "good").add("kept");
  await host.getAgentByName(Notes, "bad").add("kept");
  const file = databaseFile(dir, "bad");
  await host.getAgentByName(Notes, "bad").destroy();
  mkdirSync(file);
  await expect(host.getAgentByName(Notes, "bad").add("x")).rejects.toMatchObject({ code: "sql_failed" });
  expect(await host.getAgentByName(Notes, "good").list()).toEqual(["kept"]);
});

test("stored state that is not JSON is reported, and the agent goes on with its initial state", async () => {
  const dir = tempDir();
  const { bad } = await twoAgents(dir);
  withDatabase(bad, (db) => db.exec("UPDATE perdure_state SET value = '{\"count\":'"));
  const failures: string[] = [];
  onTestFinished(
    subscribe("agent:failed", ({ id, payload }) => failures.push(`${id} ${payload.stage}: ${payload.error}`)),
  );
  const host = await openHost({ agents: { Notes }, dir });
  const client = await connect(host, "/agents/notes/bad");
  expect(client.states()).toEqual([{ count: 0 }]);
  expect(await client.call("list")).toHaveLength(51);
  expect(failures).toEqual([expect.stringContaining("Notes/bad state: The stored state is not JSON")]);
  expect(await host.getAgentByName(Notes, "bad").add("new")).toBe(1);
  await host.stop();
  expect(withDatabase(bad, (db) => db.prepare("SELECT value FROM perdure_state").pluck().get())).toBe('{"count":1}');
});

test("an agent with a row or two has a small file; one with the larger pages of before goes on, within the same bound", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Notes }, dir });
  await host.getAgentByName(Notes, "new").add("kept");
  await host.getAgentByName(Notes, "old").add("kept");
  await host.stop();
  const old = databaseFile(dir, "old");
  expect(statSync(databaseFile(dir, "new")).size).toBeLessThan(SMALL_FILE_BYTES);
  withDatabase(old, (db) => {
    for (const change of ["journal_mode = DELETE", "page_size = 4096", "journal_mode = WAL"]) {
      db.pragma(change);
      db.exec("VACUUM");
    }
  });
  const before = statSync(old).size;
  expect(before).toBeGreaterThan(SMALL_FILE_BYTES);

  const again = await openHost({ agents: { Notes }, dir, limits: { databaseBytes: before + 100_000 } });
  const stub = again.getAgentByName(Notes, "old");
  expect(await stub.add("y".repeat(50_000))).toBe(2);
  await expect(stub.add("z".repeat(100_000))).rejects.toMatchObject({ code: "disk_full" });
  expect(await stub.list()).toEqual(["kept", "y".repeat(50_000)]);
});

test("a full disk: the write fails, what was committed stays, and there is room again after the limit is raised", async () => {
  const dir = tempDir();
  const small = { databaseBytes: 400_000 };
  const host = await openHost({ agents: { Notes }, dir, limits: small });
  const stub = host.getAgentByName(Notes, "a");
  const client = await connect(host, "/agents/notes/a");
  let written = 0;
  const error = await (async () => {
    for (;;) {
      await stub.add("y".repeat(10_000));
      written++;
    }
  })().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "disk_full" });
  expect(written).toBeGreaterThan(3);
  // The failed one is undone as a whole: rows, state in memory, frames.
  expect(await client.call("list")).toHaveLength(written);
  expect(await client.call("count")).toBe(written);
  expect(client.states().at(-1)).toEqual({ count: written });
  await expect(stub.add("z".repeat(10_000))).rejects.toMatchObject({ code: "disk_full" });
  // Others have room of their own.
  expect(await host.getAgentByName(Notes, "b").add("fits")).toBe(1);
  await host.stop();

  const again = await openHost({ agents: { Notes }, dir });
  expect(await again.getAgentByName(Notes, "a").list()).toHaveLength(written);
  expect(await again.getAgentByName(Notes, "a").add("z".repeat(10_000))).toBe(written + 1);
});
