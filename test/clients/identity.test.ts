import { Agent } from "perdure";
import { expect, test } from "vitest";
import { Base, Counter } from "./fixtures.ts";
import { connect, connected, eventually, ofType, startHost, stopHost } from "./harness.ts";

class Stateless extends Base {}

class Nameless extends Base<{ secret: number }> {
  static override options = { sendIdentityOnConnect: false };
  override initialState = { secret: 7 };
}

class SCREAMING_CASE extends Agent {}
class HTTPRelay extends Agent {}
class My_Agent extends Agent {}
class Agent2 extends Agent {}

test("the first frames are identity, state and MCP servers, each once, in this order", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client, frames } = await connected(host, { agent: "Counter", name: "one" });
  await client.call("ping");
  expect(frames.slice(0, 3)).toEqual([
    { type: "cf_agent_identity", name: "one", agent: "counter", stateFollows: true },
    { type: "cf_agent_state", state: { count: 0 } },
    { type: "cf_agent_mcp_servers", mcp: { servers: {}, tools: [], prompts: [], resources: [] } },
  ]);
  expect(frames.slice(3).map(({ type }) => type)).toEqual(["rpc"]);
});

test("the state is there when `ready` resolves", async () => {
  const host = await startHost({ agents: { Counter } });
  await host.getAgentByName(Counter, "one").add(41);
  const test = connect(host, { agent: "Counter", name: "one" });
  expect(test.client.identified).toBe(false);
  await test.client.ready;
  expect(test.client.identified).toBe(true);
  expect(test.client.state).toEqual({ count: 41 });
  expect(test.identities).toEqual([{ name: "one", agent: "counter" }]);
});

test("without a state no state is announced and none is sent", async () => {
  const host = await startHost({ agents: { Stateless } });
  const { client, frames, states } = await connected(host, { agent: "Stateless", name: "a" });
  await client.call("ping");
  expect(frames[0]).toEqual({ type: "cf_agent_identity", name: "a", agent: "stateless" });
  expect(ofType(frames, "cf_agent_state")).toEqual([]);
  expect(states).toEqual([]);
  expect(client.state).toBeUndefined();
});

test("a client that names no instance reaches the one called default", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client, identities } = await connected(host, { agent: "Counter" });
  await client.call("add", [3]);
  expect(identities).toEqual([{ name: "default", agent: "counter" }]);
  expect(await host.getAgentByName(Counter, "default").read()).toBe(3);
});

test("every kind of class name reaches its kebab address", async () => {
  const host = await startHost({ agents: { SCREAMING_CASE, HTTPRelay, My_Agent, Agent2 } });
  for (const [className, kebab] of [
    ["SCREAMING_CASE", "screaming-case"],
    ["HTTPRelay", "h-t-t-p-relay"],
    ["My_Agent", "my--agent"],
    ["Agent2", "agent2"],
    ["screaming-case", "screaming-case"],
  ] as const) {
    const { client, identities } = await connected(host, { agent: className, name: "x" });
    expect(identities).toEqual([{ name: "x", agent: kebab }]);
    expect(client.agent).toBe(kebab);
  }
});

test("instances and classes are apart", async () => {
  class Other extends Counter {}
  const host = await startHost({ agents: { Counter, Other } });
  const a = await connected(host, { agent: "Counter", name: "a" });
  const b = await connected(host, { agent: "Counter", name: "b" });
  const other = await connected(host, { agent: "Other", name: "a" });
  await a.client.call("add", [5]);
  await Promise.all([b.client.call("ping"), other.client.call("ping")]);
  expect([a, b, other].map(({ client }) => client.state)).toEqual([{ count: 5 }, { count: 0 }, { count: 0 }]);
});

test("identity comes again after each reconnect, and `ready` can be awaited again", async () => {
  const host = await startHost({ agents: { Counter } });
  const stub = host.getAgentByName(Counter, "one");
  const test = await connected(host, { agent: "Counter", name: "one" });
  for (let round = 1; round <= 3; round++) {
    const before = test.client.ready;
    await stub.drop(1012, "again");
    await eventually(() => expect(test.closes).toHaveLength(round));
    expect(test.client.ready).not.toBe(before);
    await stub.add(1);
    await test.client.ready;
    expect(test.client.identified).toBe(true);
    expect(test.client.state).toEqual({ count: round });
    expect(test.identities).toHaveLength(round + 1);
  }
  expect(new Set(test.identities.map(({ name, agent }) => `${agent}/${name}`))).toEqual(new Set(["counter/one"]));
});

test("a class that hides its identity still sends its state, unannounced", async () => {
  const host = await startHost({ agents: { Nameless } });
  const { client, frames, identities } = connect(host, { agent: "Nameless", name: "x" });
  await client.call("ping");
  expect(frames.map(({ type }) => type)).toEqual(["cf_agent_state", "cf_agent_mcp_servers", "rpc"]);
  expect(client.state).toEqual({ secret: 7 });
  expect(identities).toEqual([]);
  expect(client.identified).toBe(false);
  expect(client.name).toBe("x");
});

test("a stored state comes back after a restart of the host and beats the initial one", async () => {
  const first = await startHost({ agents: { Counter } });
  const { client } = await connected(first, { agent: "Counter", name: "one" });
  await client.call("add", [2]);
  client.close();
  const second = await startHost({ agents: { Counter }, dir: await stopHost(first) });
  const again = await connected(second, { agent: "Counter", name: "one" });
  expect(again.client.state).toEqual({ count: 2 });
});
