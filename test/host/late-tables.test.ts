import { statSync } from "node:fs";
import { type AgentHost, Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { databaseFile, withDatabase } from "./agent-files.ts";
import { openHost, tempDir } from "./open-host.ts";

/** What an agent costs on disk that has said one thing. */
const FILE_BYTES = 64 * 1024;
const DAY = 86_400;

class Light extends Think {
  readonly #host: AgentHost;
  constructor(host: AgentHost) {
    super(host);
    this.#host = host;
  }
  override getModel() {
    return scriptedModel(({ userText }) => `Said ${userText}.`);
  }
  async say(input: string): Promise<void> {
    await this.runTurn({ input });
  }
  async plan(id: string): Promise<void> {
    await this.schedule(DAY, "say", id);
  }
  planned(): string[] {
    return this.getSchedules().map(({ payload }) => String(payload));
  }
  /** Reads what was planned in vain as well, in the middle of it. */
  planInVain(): string[] {
    try {
      this.transaction(() => {
        void this.schedule(DAY, "say", "in vain");
        throw new Error("undone");
      });
    } catch {
      return this.planned();
    }
    return ["never"];
  }
  planHalf(): string[] {
    this.transaction(() => {
      try {
        this.transaction(() => {
          void this.schedule(DAY, "say", "in vain");
          throw new Error("undone");
        });
      } catch {
        // Only the inner one is undone.
      }
      void this.schedule(DAY, "say", "half");
    });
    return this.planned();
  }
  forget(): void {
    this.#host.sql("DELETE FROM perdure_schedule");
    this.#host.sql("UPDATE perdure_queue SET at = 0");
  }
}

function tablesOf(dir: string, name: string): string[] {
  const query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure%' ORDER BY name";
  return withDatabase(databaseFile(dir, name), (db) => db.prepare(query).pluck().all() as string[]);
}

const ALWAYS = [
  ...["perdure_call_id", "perdure_cell", "perdure_message", "perdure_migration", "perdure_session", "perdure_state"],
  ...["perdure_stream", "perdure_tool_call", "perdure_turn", "perdure_usage", "perdure_usage_total"],
];

test("an agent that has said one thing has the tables of conversations and of requests alone, in a small file", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Light }, dir });
  await host.getAgentByName(Light, "one").say("hello");
  await host.stop();
  expect(tablesOf(dir, "one")).toEqual([...ALWAYS, "perdure_frame"].sort());
  expect(statSync(databaseFile(dir, "one")).size).toBeLessThanOrEqual(FILE_BYTES);
});

test("a table is made with its first row, and is not there when that was undone", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Light }, dir });
  const one = host.getAgentByName(Light, "one");
  expect(await one.planned()).toEqual([]);
  expect(await one.planInVain()).toEqual([]);
  await one.forget();
  expect(await host.getAgentByName(Light, "half").planHalf()).toEqual(["half"]);
  const two = host.getAgentByName(Light, "two");
  await two.plan("a");
  expect(await two.planInVain()).toEqual(["a"]);
  await two.plan("b");
  await host.stop();
  expect(tablesOf(dir, "one")).toEqual(ALWAYS);
  for (const name of ["two", "half"]) expect(tablesOf(dir, name)).toEqual([...ALWAYS, "perdure_schedule"].sort());
  const again = await openHost({ agents: { Light }, dir });
  expect(await again.getAgentByName(Light, "two").planned()).toEqual(["a", "b"]);
});

test("who changes what was never there stores nothing", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Light }, dir });
  await host.getAgentByName(Light, "read").forget();
  await host.stop();
  expect(() => databaseFile(dir, "read")).toThrow();
});
