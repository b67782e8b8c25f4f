import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentHost, Connection, ConnectionContext } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";
import type { Client } from "./open-host.ts";

let starts: string[] = [];
let rings: string[] = [];

class Sleeper extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "add");
    callable(this, "who");
    callable(this, "remindIn");
  }
  override initialState = { count: 0 };

  override onStart(): void {
    starts.push(this.name);
  }
  override getConnectionTags(_connection: Connection, { request }: ConnectionContext): string[] {
    return new URL(request.url).searchParams.getAll("tag");
  }
  override onConnect(connection: Connection, { request }: ConnectionContext): void {
    connection.setState({ user: new URL(request.url).searchParams.get("user") });
  }
  override onMessage(connection: Connection, message: string | Uint8Array): void {
    connection.send(JSON.stringify({ echo: message }));
  }
  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }
  who(tag?: string): unknown[] {
    return [...this.getConnections(tag)].map(({ id, tags, state, uri }) => ({
      id,
      tags,
      state,
      uri: new URL(uri).search,
    }));
  }
  async remindIn(seconds: number): Promise<void> {
    await this.schedule(seconds, "remind");
  }
  remind(): void {
    rings.push(this.name);
  }
}

async function asleep(host: { status(): { live: number } }): Promise<void> {
  await eventually(() => host.status().live === 0, "all agents leave memory");
}

test("an idle agent leaves memory while its sockets stay, and a frame wakes it", async () => {
  starts = [];
  const host = await openHost({ agents: { Sleeper }, idleMs: 20 });
  const client = await connect(host, "/agents/sleeper/a?_pk=me&tag=red&tag=blue&user=anna");
  const other = await connect(host, "/agents/sleeper/a?_pk=you&tag=red&user=ben");
  expect(await client.call("add")).toBe(1);
  await asleep(host);
  expect(host.status()).toMatchObject({ kept: 1, connections: 2 });
  // A machine that is busy lets it fall asleep in between, too.
  const lives = starts.length;

  expect(await client.call("add")).toBe(2);
  expect(starts.length).toBeGreaterThan(lives);
  await other.frame(({ state }) => (state as { count?: number } | undefined)?.count === 2);
  await asleep(host);
  client.send("plain text");
  expect(await client.frame((frame) => "echo" in frame)).toEqual({ echo: "plain text" });
  expect(client.closed ?? other.closed).toBeUndefined();
});

test("what is kept with a connection survives, tags too", async () => {
  const host = await openHost({ agents: { Sleeper }, idleMs: 20 });
  const client = await connect(host, "/agents/sleeper/a?_pk=me&tag=red&tag=blue&user=anna");
  await connect(host, "/agents/sleeper/a?_pk=you&tag=red&user=ben");
  const before = await client.call("who");
  await asleep(host);
  expect(await client.call("who")).toEqual(before);
  expect(await client.call("who", "blue")).toEqual([
    { id: "me", tags: ["red", "blue"], state: { user: "anna" }, uri: "?_pk=me&tag=red&tag=blue&user=anna" },
  ]);
});

test("a call, a request and a timer wake it too", async () => {
  starts = [];
  rings = [];
  const host = await openHost({ agents: { Sleeper }, idleMs: 20 });
  const stub = host.getAgentByName(Sleeper, "a");
  await stub.remindIn(0.4);
  await asleep(host);
  expect(await stub.add()).toBe(1);
  await asleep(host);
  expect((await host.fetch(new Request("http://host/agents/sleeper/a"))).status).toBe(404);
  await asleep(host);
  await eventually(() => rings.length > 0, "the timer rings with nobody connected");
  await asleep(host);
  expect(rings).toEqual(["a"]);
  expect(starts.length).toBeGreaterThanOrEqual(4);
});

test("a client that leaves while the agent sleeps is noticed", async () => {
  const left: string[] = [];
  class Door extends Agent {
    override onClose(connection: Connection): void {
      left.push(connection.id);
    }
  }
  const host = await openHost({ agents: { Door }, idleMs: 20 });
  const client = await connect(host, "/agents/door/a?_pk=me");
  await asleep(host);
  client.ws.close();
  await eventually(() => left.length === 1, "onClose");
  await eventually(() => host.status().kept === 0, "nothing is kept of an agent that nobody needs");
  expect(left).toEqual(["me"]);
});

test("a running method and keepAlive keep it in memory", async () => {
  const gates: (() => void)[] = [];
  class Busy extends Agent {
    async wait(): Promise<string> {
      await new Promise<void>((resolve) => gates.push(resolve));
      return "done";
    }
    async hold(): Promise<void> {
      const release = await this.keepAlive();
      gates.push(release);
    }
  }
  const host = await openHost({ agents: { Busy }, idleMs: 20 });
  const waiting = host.getAgentByName(Busy, "a").wait();
  await host.getAgentByName(Busy, "b").hold();
  await eventually(() => gates.length === 2, "both are busy");
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(host.status().live).toBe(2);
  for (const open of gates) open();
  expect(await waiting).toBe("done");
  await asleep(host);
});

test("work that was left running after the agent left memory cannot write beside the next life", async () => {
  const wild: { host?: AgentHost } = {};
  class Wild extends Agent {
    constructor(host: AgentHost) {
      super(host);
      wild.host = host;
    }
    hello(): void {}
  }
  const host = await openHost({ agents: { Wild }, idleMs: 20 });
  await host.getAgentByName(Wild, "a").hello();
  const old = wild.host;
  await asleep(host);
  expect(() => old?.sql("CREATE TABLE t (x)")).toThrow(/had left memory/);
  expect(() => old?.tx(() => 1)).toThrow(/had left memory/);
  expect(() => old?.alarm(1)).toThrow(/had left memory/);
});

test("two open databases are enough for ten agents at work", async () => {
  const host = await openHost({ agents: { Sleeper }, limits: { openDatabases: 2 } });
  const clients: Client[] = [];
  for (let i = 0; i < 10; i++) clients.push(await connect(host, `/agents/sleeper/a${i}`));
  for (let round = 1; round <= 5; round++) {
    expect(await Promise.all(clients.map((client) => client.call("add")))).toEqual(Array(10).fill(round));
  }
  expect(host.status().live).toBe(10);
});

test("the limit of agents in memory: idle ones make room, busy ones do not", async () => {
  let open: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  class Busy extends Agent {
    async wait(): Promise<void> {
      await gate;
    }
    hello(): string {
      return this.name;
    }
  }
  const host = await openHost({ agents: { Busy }, storage: memoryStorage(), limits: { agents: 3 } });
  // Idle ones: any number, one after the other.
  for (let i = 0; i < 10; i++) expect(await host.getAgentByName(Busy, `idle${i}`).hello()).toBe(`idle${i}`);
  expect(host.status().live).toBeLessThanOrEqual(3);

  const results = Promise.allSettled(
    Array.from({ length: 10 }, (_, i) => host.getAgentByName(Busy, `busy${i}`).wait()),
  );
  await eventually(() => host.status().live === 3, "three are at work");
  const refused = await host.fetch(new Request("http://host/agents/busy/late"));
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: "limit" } });
  const client = await connect(host, "/agents/busy/late", { greeted: false });
  expect(await client.whenClosed()).toEqual({ code: 1013, reason: "limit" });
  open?.();
  const settled = await results;
  expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  expect(await host.getAgentByName(Busy, "late").hello()).toBe("late");
});

test("a sleeping agent with open sockets is counted when it wakes", async () => {
  let open: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  class Busy extends Agent {
    static {
      callable(this, "hello");
    }
    async wait(): Promise<void> {
      await gate;
    }
    hello(): string {
      return this.name;
    }
  }
  const host = await openHost({ agents: { Busy }, storage: memoryStorage(), idleMs: 20, limits: { agents: 1 } });
  const client = await connect(host, "/agents/busy/a");
  await asleep(host);
  const waiting = host.getAgentByName(Busy, "b").wait();
  await eventually(() => host.status().live === 1, "the other is at work");
  await expect(client.call("hello")).rejects.toThrow("closed with 1013");
  expect(host.status().live).toBe(1);
  open?.();
  await waiting;
});
