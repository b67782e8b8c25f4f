import { callable, type Connection, type ConnectionContext, getCurrentAgent } from "perdure";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { asleep, connect, connected, eventually, ofType, rawSocket, startHost, takeFailures } from "./harness.ts";

interface Kept {
  readonly visits: number;
  readonly text?: string;
}

/** `?quiet=1`: no protocol frames; `?tag=a,b`: tags; `?view=1`: read-only. */
class Hall extends Base<Count> {
  static {
    for (const name of ["add", "visit", "mine", "forget", "spoil", "flags"] as const) callable(this, name);
  }
  override initialState: Count = { count: 0 };

  override shouldSendProtocolMessages(_connection: Connection, { request }: ConnectionContext): boolean {
    return !new URL(request.url).searchParams.has("quiet");
  }
  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.has("view");
  }
  override async getConnectionTags(_connection: Connection, { request }: ConnectionContext): Promise<string[]> {
    await new Promise(setImmediate);
    return (new URL(request.url).searchParams.get("tag") ?? "").split(",").filter(Boolean);
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  visit(): Kept | null | undefined {
    const connection = getCurrentAgent().connection as Connection<Kept> | undefined;
    return connection?.setState((kept) => ({ ...kept, visits: (kept?.visits ?? 0) + 1 }));
  }
  mine(): unknown {
    return getCurrentAgent().connection?.state;
  }
  forget(): unknown {
    return getCurrentAgent().connection?.setState(null);
  }
  spoil(): unknown {
    return getCurrentAgent().connection?.setState({ big: 1n });
  }
  flags(): { tags: readonly string[] | undefined; quiet: boolean; view: boolean } {
    const { connection } = getCurrentAgent();
    return {
      tags: connection?.tags,
      quiet: connection !== undefined && !this.isConnectionProtocolEnabled(connection),
      view: connection !== undefined && this.isConnectionReadonly(connection),
    };
  }
  tellTag(tag: string, text: string): void {
    for (const connection of this.getConnections(tag)) connection.send(text);
  }
  tellOthers(text: string, without: string[]): void {
    this.broadcast(text, without);
  }
}

const options = { agent: "Hall", name: "x" };
const PROTOCOL = ["cf_agent_identity", "cf_agent_state", "cf_agent_mcp_servers"];

test("a quiet connection gets no protocol frames, on connect or later, but calls and app frames", async () => {
  const host = await startHost({ agents: { Hall } });
  const quiet = connect(host, { ...options, query: { quiet: "1" } });
  const plain = await connected(host, options);
  expect(await quiet.client.call("add", [2])).toBe(2);
  await host.getAgentByName(Hall, "x").say('{"type":"news"}');
  await plain.client.call("add", [1]);
  await quiet.client.call("ping");
  expect(quiet.frames.filter(({ type }) => PROTOCOL.includes(type))).toEqual([]);
  expect(ofType(quiet.frames, "news")).toHaveLength(1);
  expect(quiet.client.identified).toBe(false);
  expect(plain.client.state).toEqual({ count: 3 });
});

test("a refused state does not make a quiet connection loud", async () => {
  const host = await startHost({ agents: { Hall } });
  const quiet = connect(host, { ...options, query: { quiet: "1", view: "1" } });
  quiet.client.setState({ count: 5 });
  await quiet.client.call("ping");
  expect(quiet.stateErrors).toEqual(["Connection is readonly"]);
  expect(quiet.frames.map(({ type }) => type)).toEqual(["cf_agent_state_error", "rpc"]);
});

test("both flags, tags and kept values stand side by side", async () => {
  const host = await startHost({ agents: { Hall } });
  const { client } = connect(host, { ...options, query: { quiet: "1", view: "1", tag: "a,b" } });
  await client.call("visit");
  expect(await client.call("visit")).toEqual({ visits: 2 });
  expect(await client.call("flags")).toEqual({ tags: ["a", "b"], quiet: true, view: true });
});

test("being quiet is decided anew on each connect", async () => {
  const host = await startHost({ agents: { Hall } });
  let quiet: string | undefined = "1";
  const test = connect(host, { ...options, query: () => Promise.resolve(quiet === undefined ? {} : { quiet }) });
  await test.client.call("ping");
  expect(test.identities).toEqual([]);
  quiet = undefined;
  await host.getAgentByName(Hall, "x").drop(1012);
  await eventually(() => expect(test.identities).toHaveLength(1));
});

test("connections are found by tag", async () => {
  const host = await startHost({ agents: { Hall } });
  const stub = host.getAgentByName(Hall, "x");
  const a = await connected(host, { ...options, id: "a", query: { tag: "red,round" } });
  const b = await connected(host, { ...options, id: "b", query: { tag: "red" } });
  const c = await connected(host, { ...options, id: "c" });
  expect(await stub.ids("red")).toEqual(["a", "b"]);
  expect(await stub.ids("round")).toEqual(["a"]);
  expect(await stub.ids("none")).toEqual([]);
  expect(await stub.ids()).toEqual(["a", "b", "c"]);
  await stub.tellTag("red", '{"type":"reds"}');
  for (const { client } of [a, b, c]) await client.call("ping");
  expect([a, b, c].map(({ frames }) => ofType(frames, "reds").length)).toEqual([1, 1, 0]);
});

test("a broadcast leaves out the ids that it is told to", async () => {
  const host = await startHost({ agents: { Hall } });
  const [a, b] = [await connected(host, { ...options, id: "a" }), await connected(host, { ...options, id: "b" })];
  await host.getAgentByName(Hall, "x").tellOthers('{"type":"psst"}', ["a"]);
  for (const { client } of [a, b]) await client.call("ping");
  expect([a, b].map(({ frames }) => ofType(frames, "psst").length)).toEqual([0, 1]);
});

test("tags, flags and kept values survive when the agent leaves memory; sockets stay open", async () => {
  const host = await startHost({ agents: { Hall }, idleMs: 20 });
  const stub = host.getAgentByName(Hall, "x");
  const a = connect(host, { ...options, id: "a", query: { tag: "red", quiet: "1", view: "1" } });
  const b = await connected(host, { ...options, id: "b" });
  await a.client.call("visit");
  await b.client.call("visit");
  await asleep(host);
  expect(host.status()).toMatchObject({ connections: 2 });
  expect(await a.client.call("flags")).toEqual({ tags: ["red"], quiet: true, view: true });
  expect(await a.client.call("mine")).toEqual({ visits: 1 });
  expect(await b.client.call("visit")).toEqual({ visits: 2 });
  expect(await b.client.call("flags")).toEqual({ tags: [], quiet: false, view: false });
  expect(await stub.ids("red")).toEqual(["a"]);
  await b.client.call("add", [4]);
  await a.client.call("ping");
  expect(b.client.state).toEqual({ count: 4 });
  expect(a.frames.filter(({ type }) => PROTOCOL.includes(type))).toEqual([]);
  expect([a.closes, b.closes]).toEqual([[], []]);
  // Nobody was greeted again.
  expect(b.identities).toHaveLength(1);
});

test("kept values end with the socket, and belong to one socket", async () => {
  const host = await startHost({ agents: { Hall } });
  const a = await connected(host, { ...options, id: "same" });
  const b = await connected(host, { ...options, id: "same" });
  await a.client.call("visit");
  expect(await b.client.call("mine")).toBeNull();
  expect(await a.client.call("forget")).toBeNull();
  await a.client.call("visit");
  await host.getAgentByName(Hall, "x").drop(1012);
  await eventually(() => expect(a.closes).toHaveLength(1));
  expect(await a.client.call("mine")).toBeNull();
});

test("a value that JSON cannot hold is not kept, and the old one stays", async () => {
  const host = await startHost({ agents: { Hall } });
  const { client } = await connected(host, options);
  await client.call("visit");
  await expect(client.call("spoil")).rejects.toThrow("The connection's state cannot be written as JSON");
  expect(await client.call("mine")).toEqual({ visits: 1 });
});

test("tags that fail refuse the connection before anything was sent", async () => {
  class Picky extends Base {
    override getConnectionTags(): string[] {
      throw new Error("no tags today");
    }
  }
  const host = await startHost({ agents: { Picky } });
  const { ws, frames } = await rawSocket(`${host.url}/agents/picky/x`);
  const closed = await new Promise<CloseEvent>((resolve) => ws.addEventListener("close", resolve));
  expect([closed.code, closed.reason]).toEqual([1011, "setup failed"]);
  expect(frames).toEqual([]);
  expect(takeFailures()).toEqual(["Picky/x connect: no tags today"]);
});

test("a connection that is still being tagged hears nothing before its greeting, and then the newest state", async () => {
  const waiting: (() => void)[] = [];
  class Slow extends Base<Count> {
    override initialState: Count = { count: 0 };
    override async getConnectionTags(): Promise<string[]> {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return ["late"];
    }
    bump(): void {
      this.setState({ count: this.state.count + 1 });
      this.broadcast('{"type":"too early"}');
    }
  }
  const host = await startHost({ agents: { Slow } });
  const test = connect<Count>(host, { agent: "Slow", name: "x" });
  await eventually(() => expect(waiting).toHaveLength(1));
  const stub = host.getAgentByName(Slow, "x");
  expect(await stub.ids()).toEqual([]);
  await stub.bump();
  waiting[0]?.();
  await test.client.ready;
  await test.client.call("ping");
  expect(test.frames.map(({ type }) => type)).toEqual([
    "cf_agent_identity",
    "cf_agent_state",
    "cf_agent_mcp_servers",
    "rpc",
  ]);
  expect(test.client.state).toEqual({ count: 1 });
  expect(await stub.ids("late")).toEqual([test.client.id]);
});
