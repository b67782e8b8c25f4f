import { agentFetch } from "agents/client";
import { callable, type Connection, type ConnectionContext } from "perdure";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import {
  addressOf,
  asleep,
  connect,
  connected,
  eventually,
  ofType,
  rawSocket,
  startHost,
  stopHost,
} from "./harness.ts";

/** Every level is the same class of behaviour, so that what leaks is seen. */
class Node extends Base<Count> {
  static override options = { allowClientState: true };
  static override readonly subAgents = ["Leaf"];
  static {
    for (const name of ["add", "where", "childAdd", "removeChild", "parentRead", "flags"] as const)
      callable(this, name);
  }
  override initialState: Count = { count: 0 };
  gateCalls = 0;

  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.has("view");
  }
  override shouldSendProtocolMessages(_connection: Connection, { request }: ConnectionContext): boolean {
    return !new URL(request.url).searchParams.has("quiet");
  }
  override getConnectionTags(_connection: Connection, { request }: ConnectionContext): string[] {
    return [`at:${new URL(request.url).pathname}`];
  }
  override onRequest(request: Request): Response {
    const { pathname, search } = new URL(request.url);
    return Response.json({ where: this.where(), pathname, search });
  }
  override onBeforeSubAgent(): void {
    this.gateCalls++;
  }
  gates(): number {
    return this.gateCalls;
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  where(): string {
    return this.selfPath.map(({ className, name }) => `${className}:${name}`).join(" > ");
  }
  async childAdd(name: string, by: number): Promise<number> {
    return (await this.subAgent(Leaf, name)).add(by);
  }
  async removeChild(name: string): Promise<void> {
    await this.deleteSubAgent(Leaf, name);
  }
  parentRead(): Promise<number> {
    return this.parentAgent(Tree).add(0);
  }
  flags(): unknown {
    return [...this.getConnections()].map((connection) => ({ tags: connection.tags, view: connection.isReadonly }));
  }
  async childIds(name: string): Promise<string[]> {
    return (await this.subAgent(Leaf, name)).ids();
  }
}

class Tree extends Node {}
class Leaf extends Node {}

const start = (idleMs?: number) => startHost({ agents: { Tree }, subAgents: { Leaf }, idleMs });
const at = (path: string) => ({ agent: "Tree", name: "t", path });

test("a child is reached below its parent and names itself in its identity", async () => {
  const host = await start();
  const { client, identities } = await connected<Count>(host, at("sub/leaf/one"));
  expect(identities).toEqual([{ name: "one", agent: "leaf" }]);
  expect(await client.call("where")).toBe("Tree:t > Leaf:one");
  expect(await client.call("add", [3])).toBe(3);
  expect(client.state).toEqual({ count: 3 });
  expect(await host.getAgentByName(Tree, "t").childAdd("one", 0)).toBe(3);
});

test("two levels down, and the same name on each level, are different agents", async () => {
  const host = await start();
  const root = await connected<Count>(host, { agent: "Tree", name: "x" });
  const child = await connected<Count>(host, { agent: "Tree", name: "x", path: "sub/leaf/x" });
  const grandchild = await connected<Count>(host, { agent: "Tree", name: "x", path: "sub/leaf/x/sub/leaf/x" });
  expect(await grandchild.client.call("where")).toBe("Tree:x > Leaf:x > Leaf:x");
  await grandchild.client.call("add", [1]);
  await child.client.call("add", [10]);
  await root.client.call("add", [100]);
  expect([root, child, grandchild].map(({ client }) => client.state?.count)).toEqual([100, 10, 1]);
});

test("nothing leaks between levels or siblings: broadcasts, states, answers", async () => {
  const host = await start();
  const parent = await connected<Count>(host, at(""));
  const one = await connected<Count>(host, at("sub/leaf/one"));
  const two = await connected<Count>(host, at("sub/leaf/two"));
  const all = [parent, one, two];
  await host.getAgentByName(Tree, "t").say('{"type":"from parent"}');
  one.client.send("unheard by others");
  one.client.setState({ count: 5 });
  await parent.client.call("add", [1]);
  await two.client.call("add", [2]);
  for (const { client } of all) await client.call("ping");
  expect(all.map(({ frames }) => ofType(frames, "from parent").length)).toEqual([1, 0, 0]);
  expect(all.map(({ client }) => client.state?.count)).toEqual([1, 5, 2]);
  expect(all.map(({ frames }) => ofType(frames, "cf_agent_state").length)).toEqual([2, 1, 2]);
  expect(await host.getAgentByName(Tree, "t").ids()).toEqual([parent.client.id]);
  expect(await host.getAgentByName(Tree, "t").childIds("one")).toEqual([one.client.id]);
});

test("requests reach the child with the path behind it and the whole query", async () => {
  const host = await start();
  const get = async (path: string, query?: Record<string, string>) =>
    (await agentFetch({ host: addressOf(host), ...at(path), query })).json();
  expect(await get("sub/leaf/one")).toEqual({ where: "Tree:t > Leaf:one", pathname: "/", search: "" });
  expect(await get("sub/leaf/one/a/b%20c", { q: "1" })).toEqual({
    where: "Tree:t > Leaf:one",
    pathname: "/a/b%20c",
    search: "?q=1",
  });
  expect(await get("sub/leaf/one/sub/leaf/two/x")).toMatchObject({
    where: "Tree:t > Leaf:one > Leaf:two",
    pathname: "/x",
  });
});

test("a marker that names no class or no child is a plain path", async () => {
  const host = await start();
  const where = async (path: string) =>
    (await (await fetch(`${host.url}/agents/tree/${path}`)).json()) as { where: string; pathname: string };
  expect(await where("sub")).toMatchObject({ where: "Tree:sub" });
  expect(await where("sub/sub/leaf/a")).toMatchObject({ where: "Tree:sub > Leaf:a" });
  expect(await where("t/sub")).toMatchObject({ where: "Tree:t", pathname: "/agents/tree/t/sub" });
  expect(await where("t/sub/leaf")).toMatchObject({ where: "Tree:t" });
  expect(await where("t/sub/nobody/a")).toMatchObject({ where: "Tree:t" });
  expect(await where("t/sub/nobody/sub/leaf/a")).toMatchObject({ where: "Tree:t > Leaf:a" });
  expect(await where("t/sub/leaf/sub/sub/leaf/b")).toMatchObject({ where: "Tree:t > Leaf:sub > Leaf:b" });
});

test("children work below another prefix", async () => {
  const host = await startHost({ agents: { Tree }, subAgents: { Leaf }, prefix: "v2/agents" });
  const { identities } = await connected(host, { ...at("sub/leaf/one/sub/leaf/two"), prefix: "v2/agents" });
  expect(identities).toEqual([{ name: "two", agent: "leaf" }]);
});

test("the gate is asked for each hop of a new socket, and not for its frames", async () => {
  const host = await start();
  const stub = host.getAgentByName(Tree, "t");
  const { client } = await connected(host, at("sub/leaf/one/sub/leaf/two"));
  for (let i = 0; i < 5; i++) await client.call("ping");
  expect(await stub.gates()).toBe(1);
  await connected(host, at("sub/leaf/one"));
  expect(await stub.gates()).toBe(2);
});

test("tags and flags of a child's connection are its own and survive its leaving memory", async () => {
  const host = await start(20);
  const view = await connected<Count>(host, { ...at("sub/leaf/one/extra"), query: { view: "1" } });
  const quiet = connect<Count>(host, { ...at("sub/leaf/one"), query: { quiet: "1" } });
  await quiet.client.call("ping");
  await asleep(host);
  expect(await quiet.client.call("flags")).toEqual([
    { tags: ["at:/extra"], view: true },
    { tags: ["at:/"], view: false },
  ]);
  await expect(view.client.call("add", [1])).rejects.toThrow("Connection is readonly");
  expect(await quiet.client.call("add", [1])).toBe(1);
  await view.client.call("ping");
  expect(view.client.state).toEqual({ count: 1 });
  expect(quiet.frames.every(({ type }) => type === "rpc")).toBe(true);
});

test("a child comes back to the same connection id and state after a drop and after a restart", async () => {
  const first = await start();
  const test = await connected<Count>(first, at("sub/leaf/one"));
  await test.client.call("add", [7]);
  const { id } = test.client;
  const leaf = await first.getAgentByName(Tree, "t").childIds("one");
  expect(leaf).toEqual([id]);
  test.client.close();
  const second = await startHost({ agents: { Tree }, subAgents: { Leaf }, dir: await stopHost(first) });
  const again = await connected<Count>(second, at("sub/leaf/one"));
  expect(again.client.state).toEqual({ count: 7 });
});

test("a child can call its parent while its client waits", async () => {
  const host = await start();
  await host.getAgentByName(Tree, "t").add(11);
  const { client } = await connected(host, at("sub/leaf/one"));
  expect(await client.call("parentRead")).toBe(11);
});

test("deleting a child closes its sockets with 1001 and forgets its rows; the client meets a new one", async () => {
  const host = await start();
  const parent = await connected(host, at(""));
  const child = await connected<Count>(host, at("sub/leaf/one"));
  await child.client.call("add", [9]);
  await parent.client.call("removeChild", ["one"]);
  await eventually(() => expect(child.closes[0]).toEqual({ code: 1001, reason: "agent deleted" }));
  await eventually(() => expect(child.client.identified).toBe(true));
  expect(child.client.state).toEqual({ count: 0 });
  expect(parent.closes).toEqual([]);
});

test("a child that is only a child cannot be had by its class alone", async () => {
  const host = await start();
  const { ws } = await rawSocket(`${host.url}/agents/leaf/one`);
  const closed = await new Promise<CloseEvent>((resolve) => ws.addEventListener("close", resolve));
  expect(closed.code).toBe(4400);
});
