import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentHost } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { databaseFile, withDatabase } from "./agent-files.ts";
import { malformedFrames } from "./malformed-frames.ts";
import { connect, eventually, openHost, quiet, tempDir } from "./open-host.ts";

const FRAME_LIMIT = 200_000;

class Target extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "add");
  }
  static errors: unknown[] = [];
  override initialState = { count: 0 };
  readonly port: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override onError(error: unknown): void {
    Target.errors.push(error);
  }
  add(by: number): number {
    // Trusting on purpose: a malformed call that gets here is stored.
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  write(): void {
    this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
    this.sql`INSERT INTO note VALUES (${"mine"})`;
  }
  /** Every row of every table, the framework's included. */
  dump(): Record<string, unknown> {
    const tables = this.port.sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    return Object.fromEntries(tables.map(({ name }) => [name, this.port.sql(`SELECT * FROM "${name}"`)]));
  }
}

test("a thousand malformed frames: nothing is stored, nobody else notices, the socket stays usable", async () => {
  Target.errors = [];
  const failures: string[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => failures.push(`${payload.stage}: ${payload.error}`)));
  const dir = tempDir();
  const host = await openHost({ agents: { Target }, dir, limits: { frameBytes: FRAME_LIMIT } });
  const bystander = await connect(host, "/agents/target/a?_pk=good");
  const attacker = await connect(host, "/agents/target/a?_pk=bad");
  const stub = host.getAgentByName(Target, "a");
  await stub.write();
  expect(await bystander.call("add", 1)).toBe(1);
  await attacker.frame(({ state }) => (state as { count?: number } | undefined)?.count === 1);
  const before = JSON.stringify(await stub.dump());
  const seen = bystander.frames.length;

  const frames = malformedFrames(1000, FRAME_LIMIT);
  expect(frames.length).toBeGreaterThanOrEqual(1000);
  expect(new Set(frames.map(({ what }) => what)).size).toBeGreaterThan(30);
  for (const { data } of frames) attacker.send(data);

  // The same socket still works, and its answer comes after all of them.
  await eventually(() => attacker.ws.bufferedAmount === 0, "all frames have left");
  await expect(attacker.call("nothing")).rejects.toThrow("Method nothing does not exist");
  await quiet();
  expect(attacker.closed).toBeUndefined();
  expect(bystander.frames.length).toBe(seen);
  expect(JSON.stringify(await stub.dump())).toBe(before);
  expect(failures).toEqual([]);
  expect(Target.errors).toEqual([]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();

  // Both go on working, and see each other.
  expect(await attacker.call("add", 1)).toBe(2);
  expect(await bystander.call("add", 1)).toBe(3);
  expect(bystander.states()).toEqual([0, 1, 2, 3].map((count) => ({ count })));
  await host.stop();
  const stored = withDatabase(databaseFile(dir, "a"), (db) =>
    db.prepare("SELECT value FROM perdure_state").pluck().all(),
  );
  expect(stored).toEqual(['{"count":3}']);
});

test("every answer to a malformed frame goes to its sender alone and says what was wrong", async () => {
  const host = await openHost({ agents: { Target }, limits: { frameBytes: FRAME_LIMIT } });
  const client = await connect(host, "/agents/target/b");
  for (const { data } of malformedFrames(1000, FRAME_LIMIT)) client.send(data);
  await expect(client.call("nothing")).rejects.toThrow("does not exist");
  const kinds = client.frames.slice(3).map(({ type, success, error, state }) => {
    if (type === "rpc") return `rpc ${String(success)}, ${typeof error}`;
    return `${String(type)}: ${String(error ?? JSON.stringify(state))}`;
  });
  expect([...new Set(kinds)].sort()).toEqual([
    'cf_agent_state: {"count":0}',
    "cf_agent_state_error: Clients may not set the state of this agent",
    "cf_agent_state_error: The frame is nested deeper than 256 levels.",
    "rpc false, string",
  ]);
});
