import type { StateSource } from "perdure";
import { expect, test } from "vitest";
import { Base, Counter } from "./fixtures.ts";
import { connect, connected, eventually, ofType, startHost, stopHost } from "./harness.ts";

interface Doc {
  readonly text: string;
  readonly tags?: readonly string[];
}

/** Clients may write here. */
class Shared extends Base<unknown> {
  static override options = { allowClientState: true };
  readonly sources: string[] = [];

  override onStateChanged(_state: unknown, source: StateSource): void {
    this.sources.push(source === "server" ? "server" : source.id);
  }

  heard(): string[] {
    return this.sources;
  }

  read(): unknown {
    return this.state;
  }
}

class Board extends Base<Doc> {
  static override options = { allowClientState: true };
  override initialState: Doc = { text: "empty" };

  read(): Doc {
    return this.state;
  }
}

test("a change on the server reaches every client, the one whose call caused it included", async () => {
  const host = await startHost({ agents: { Counter } });
  const a = await connected(host, { agent: "Counter", name: "x" });
  const b = await connected(host, { agent: "Counter", name: "x" });
  expect(await a.client.call("add", [4])).toBe(4);
  await b.client.call("ping");
  for (const { client, states } of [a, b]) {
    expect(client.state).toEqual({ count: 4 });
    expect(states).toEqual([
      { state: { count: 0 }, source: "server" },
      { state: { count: 4 }, source: "server" },
    ]);
  }
  // The state is sent before the answer to the call that set it.
  expect(a.frames.slice(-2).map(({ type }) => type)).toEqual(["cf_agent_state", "rpc"]);
});

test("a client's change is stored, reaches the others, and is not echoed to the sender", async () => {
  const host = await startHost({ agents: { Board } });
  const writer = await connected<Doc>(host, { agent: "Board", name: "x" });
  const reader = await connected<Doc>(host, { agent: "Board", name: "x" });
  writer.client.setState({ text: "hello", tags: ["a"] });
  await writer.client.call("ping");
  await reader.client.call("ping");
  expect(reader.client.state).toEqual({ text: "hello", tags: ["a"] });
  expect(writer.states.slice(1)).toEqual([{ state: { text: "hello", tags: ["a"] }, source: "client" }]);
  expect(ofType(writer.frames, "cf_agent_state")).toHaveLength(1);
  expect(await host.getAgentByName(Board, "x").read()).toEqual({ text: "hello", tags: ["a"] });
  expect(writer.stateErrors).toEqual([]);
});

test("another socket of the sender's own id gets its change: only the socket is left out, not the id", async () => {
  const host = await startHost({ agents: { Board } });
  const writer = await connected<Doc>(host, { agent: "Board", name: "x", id: "tab" });
  const twin = await connected<Doc>(host, { agent: "Board", name: "x", id: "tab" });
  writer.client.setState({ text: "from the twin" });
  await writer.client.call("ping");
  await twin.client.call("ping");
  expect(twin.client.state).toEqual({ text: "from the twin" });
  expect(ofType(writer.frames, "cf_agent_state")).toHaveLength(1);
});

test("the agent is told who changed the state", async () => {
  const host = await startHost({ agents: { Shared } });
  const { client } = await connected(host, { agent: "Shared", name: "x", id: "me" });
  const stub = host.getAgentByName(Shared, "x");
  client.setState(1);
  await client.call("ping");
  await stub.setState(2);
  expect(await stub.heard()).toEqual(["me", "server"]);
});

test("falsy states are states, in both directions and on connect", async () => {
  const host = await startHost({ agents: { Shared } });
  for (const [index, value] of [null, 0, false, "", [], {}].entries()) {
    const name = `falsy-${index}`;
    const writer = await connected(host, { agent: "Shared", name });
    const reader = await connected(host, { agent: "Shared", name });
    expect(ofType(reader.frames, "cf_agent_state")).toEqual([]);
    writer.client.setState(value);
    await writer.client.call("ping");
    await reader.client.call("ping");
    expect(ofType(reader.frames, "cf_agent_state")).toEqual([{ type: "cf_agent_state", state: value }]);
    expect(await host.getAgentByName(Shared, name).read()).toEqual(value);
    const late = await connected(host, { agent: "Shared", name });
    expect(late.frames[0]).toMatchObject({ type: "cf_agent_identity", stateFollows: true });
    expect(late.states).toEqual([{ state: value, source: "server" }]);
  }
});

test("an agent without state takes one later", async () => {
  const host = await startHost({ agents: { Shared } });
  const { client, frames } = await connected(host, { agent: "Shared", name: "x" });
  expect(client.state).toBeUndefined();
  expect(frames[0]).not.toHaveProperty("stateFollows");
  await host.getAgentByName(Shared, "x").setState({ now: true });
  await client.call("ping");
  expect(client.state).toEqual({ now: true });
});

test("a fast sequence from one client arrives whole and in order", async () => {
  const host = await startHost({ agents: { Shared } });
  const writer = await connected(host, { agent: "Shared", name: "x" });
  const reader = await connected(host, { agent: "Shared", name: "x" });
  const numbers = Array.from({ length: 200 }, (_, i) => i);
  for (const n of numbers) writer.client.setState({ n });
  await writer.client.call("ping");
  await reader.client.call("ping");
  expect(reader.states.map(({ state }) => state)).toEqual(numbers.map((n) => ({ n })));
  expect(await host.getAgentByName(Shared, "x").read()).toEqual({ n: 199 });
});

test("two clients that write at once agree with the server in the end", async () => {
  const host = await startHost({ agents: { Shared } });
  const a = await connected(host, { agent: "Shared", name: "x" });
  const b = await connected(host, { agent: "Shared", name: "x" });
  for (let n = 0; n < 50; n++) {
    a.client.setState({ a: n });
    b.client.setState({ b: n });
  }
  await Promise.all([a.client.call("ping"), b.client.call("ping")]);
  const last = await connected(host, { agent: "Shared", name: "x" });
  expect(await host.getAgentByName(Shared, "x").read()).toEqual(last.client.state);
  expect([{ a: 49 }, { b: 49 }]).toContainEqual(last.client.state);
});

test("what was set while the socket was down is sent on the next open", async () => {
  const host = await startHost({ agents: { Board } });
  const test = await connected<Doc>(host, { agent: "Board", name: "x" });
  const stub = host.getAgentByName(Board, "x");
  await stub.drop(1012);
  await eventually(() => expect(test.closes).toHaveLength(1));
  test.client.setState({ text: "written offline" });
  await eventually(async () => expect(await stub.read()).toEqual({ text: "written offline" }));
});

test("a late client gets the newest state, large and with every kind of text", async () => {
  const host = await startHost({ agents: { Board } });
  const text = `${'ü€😀\u2028\u0000"\\'.repeat(20_000)}end`;
  const writer = await connected<Doc>(host, { agent: "Board", name: "x" });
  writer.client.setState({ text });
  await writer.client.call("ping");
  const late = await connected<Doc>(host, { agent: "Board", name: "x" });
  expect(late.client.state?.text === text).toBe(true);
});

test("a client's state survives a restart of the host", async () => {
  const first = await startHost({ agents: { Board } });
  const { client } = await connected<Doc>(first, { agent: "Board", name: "x" });
  client.setState({ text: "kept" });
  await client.call("ping");
  client.close();
  const second = await startHost({ agents: { Board }, dir: await stopHost(first) });
  expect((await connected(second, { agent: "Board", name: "x" })).client.state).toEqual({ text: "kept" });
});

test("keys that would change prototypes do not get in", async () => {
  const host = await startHost({ agents: { Shared } });
  const { client } = connect(host, { agent: "Shared", name: "x" });
  client.send('{"type":"cf_agent_state","state":{"__proto__":{"admin":true},"ok":1}}');
  await client.call("ping");
  const stored = await host.getAgentByName(Shared, "x").read();
  expect(stored).toEqual({ ok: 1 });
  expect(Object.hasOwn(stored as object, "__proto__")).toBe(false);
});
