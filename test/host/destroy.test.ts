import fs, { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentHost } from "perdure";
import { manualClock } from "perdure/testing";
import { memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { agentFiles } from "./agent-files.ts";
import { connect, eventually, openHost, quiet, tempDir } from "./open-host.ts";

let rings: string[] = [];

class Node extends Agent<AgentEnv, { count: number }> {
  static override readonly subAgents = ["Node"];
  static {
    callable(this, "add");
    callable(this, "destroy");
  }
  override initialState = { count: 0 };
  readonly port: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override async onRequest(): Promise<Response> {
    await this.destroy();
    return new Response("destroyed");
  }
  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }
  async blob(text: string): Promise<string> {
    return this.port.blobs.put(new TextEncoder().encode(text));
  }
  async blobText(name: string): Promise<string | undefined> {
    const bytes = await this.port.blobs.get(name);
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  }
  async grow(depth: number): Promise<void> {
    this.add();
    await this.blob(`blob of ${this.port.id}`);
    if (depth > 0) await (await this.subAgent(Node, `child ${depth}`)).grow(depth - 1);
  }
  async planIn(seconds: number): Promise<void> {
    await this.schedule(seconds, "ring");
  }
  ring(): void {
    rings.push(this.port.id);
  }
  children(): string[] {
    return this.listSubAgents().map(({ name }) => name);
  }
  async childAdd(name: string): Promise<number> {
    return (await this.subAgent(Node, name)).add();
  }
  async childPlan(name: string): Promise<void> {
    await (await this.subAgent(Node, name)).planIn(0.2);
  }
  async childDestroys(name: string): Promise<void> {
    await (await this.subAgent(Node, name)).destroy();
  }
  async childDelete(name: string): Promise<void> {
    await this.deleteSubAgent(Node, name);
  }
  hang(): Promise<void> {
    return new Promise(() => undefined);
  }
}

test("destroy: rows, files, blobs, index and children are gone, and the name can be used anew", async () => {
  const dir = tempDir();
  const destroyed: string[] = [];
  onTestFinished(subscribe("agent:destroyed", ({ id }) => destroyed.push(id)));
  const host = await openHost({ agents: { Node }, dir });
  const stub = host.getAgentByName(Node, "a");
  await stub.grow(2);
  const name = await stub.blob("kept");
  expect(await stub.blobText(name)).toBe("kept");
  await host.getAgentByName(Node, "ab").add();
  expect(host.listAgents()).toHaveLength(4);
  expect(agentFiles(dir).length).toBeGreaterThanOrEqual(4 + 4);

  await stub.destroy();
  expect(host.listAgents()).toEqual(["Node/ab"]);
  expect(agentFiles(dir).filter((file) => !file.includes("/ab."))).toEqual([]);
  expect(readdirSync(join(dir, "blobs"))).toEqual([]);
  expect(destroyed.toSorted()).toEqual(["Node/a", "Node/a/Node/child%202", "Node/a/Node/child%202/Node/child%201"]);

  expect(await stub.add()).toBe(1);
  expect(await stub.children()).toEqual([]);
  expect(await stub.blobText(name)).toBeUndefined();
  expect(await host.getAgentByName(Node, "ab").add()).toBe(2);
});

test("destroy closes all sockets below it with 1001", async () => {
  const host = await openHost({ agents: { Node } });
  const clients = [
    await connect(host, "/agents/node/a"),
    await connect(host, "/agents/node/a/sub/node/c"),
    await connect(host, "/agents/node/a/sub/node/c/sub/node/d"),
  ];
  const other = await connect(host, "/agents/node/b");
  await clients[0]?.call("add");
  clients[0]?.send(JSON.stringify({ type: "rpc", id: "x", method: "destroy", args: [] }));
  for (const client of clients) expect((await client.whenClosed()).code).toBe(1001);
  expect(await other.call("add")).toBe(1);
  const again = await connect(host, "/agents/node/a");
  expect(again.states()).toEqual([{ count: 0 }]);
});

test("a request that destroys its own agent is answered; other calls under way fail with agent_gone", async () => {
  const host = await openHost({ agents: { Node } });
  const stub = host.getAgentByName(Node, "a");
  await stub.add();
  const hanging = stub.hang().catch((error: unknown) => error);
  const response = await host.fetch(new Request("http://host/agents/node/a"));
  expect([response.status, await response.text()]).toEqual([200, "destroyed"]);
  expect(await hanging).toMatchObject({ code: "agent_gone" });
  expect(host.listAgents()).toEqual([]);
});

test("a child that destroys itself is struck off its parent's list", async () => {
  const host = await openHost({ agents: { Node } });
  const parent = host.getAgentByName(Node, "p");
  await parent.childAdd("c");
  await parent.childAdd("d");
  await parent.childDestroys("c");
  expect(await parent.children()).toEqual(["d"]);
  expect(host.listAgents()).toEqual(
    ["Node/p", "Node/p/Node/d"].map((id) => expect.stringContaining(id.split("/").at(-1) ?? "")),
  );
  expect(await parent.childAdd("c")).toBe(1);
  expect(await parent.children()).toEqual(["d", "c"]);
});

test("the alarm of a deleted child never rings, awake or asleep", async () => {
  rings = [];
  const clock = manualClock();
  const host = await openHost({ agents: { Node }, idleMs: 20, clock });
  const parent = host.getAgentByName(Node, "p");
  await parent.childPlan("awake");
  await parent.childDelete("awake");
  await parent.childPlan("asleep");
  await clock.advance(50);
  await eventually(() => host.status().live === 0, "all sleep");
  await parent.childDelete("asleep");
  await parent.planIn(0.3);
  await clock.advance(1_000);
  await eventually(() => rings.length > 0, "a later alarm of the parent rings");
  await clock.advance(1_000);
  expect(rings).toEqual(["Node/p"]);
});

test("deleting what is not there, or twice at once, does nothing and makes no file", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Node }, dir });
  const stub = host.getAgentByName(Node, "a");
  await stub.destroy();
  await Promise.all([stub.destroy(), stub.destroy()]);
  await stub.childDelete("nobody");
  expect(agentFiles(dir)).toEqual([]);
  expect(host.listAgents()).toEqual([]);
});

test("uses during a removal wait for it and meet a new, empty agent", async () => {
  for (const options of [{ storage: memoryStorage() }, { dir: tempDir() }]) {
    const host = await openHost({ agents: { Node }, ...options });
    const stub = host.getAgentByName(Node, "a");
    for (let round = 0; round < 20; round++) {
      await stub.add();
      const removal = stub.destroy();
      await Promise.resolve();
      const counts = await Promise.all([stub.add(), stub.add(), stub.add()].map((call) => call.catch(() => 0)));
      await removal;
      expect(await stub.add()).toBeLessThanOrEqual(counts.length + 1);
      await stub.destroy();
    }
    expect(host.listAgents()).toEqual([]);
  }
});

test("an agent that was woken by its alarm and then destroyed is not listed again", async () => {
  rings = [];
  const host = await openHost({ agents: { Node }, idleMs: 20 });
  const stub = host.getAgentByName(Node, "a");
  await stub.planIn(0.1);
  await eventually(() => host.status().live === 0, "it sleeps");
  await eventually(() => rings.length === 1, "its alarm wakes it");
  await stub.destroy();
  expect(await stub.children()).toEqual([]);
  await eventually(() => host.status().live === 0, "it sleeps again");
  expect(host.listAgents()).toEqual([]);
});

test("destroy survives a restart", async () => {
  const dir = tempDir();
  const first = await openHost({ agents: { Node }, dir });
  await first.getAgentByName(Node, "a").grow(1);
  await first.getAgentByName(Node, "a").planIn(0.01);
  await first.getAgentByName(Node, "a").destroy();
  await first.stop();
  rings = [];
  const second = await openHost({ agents: { Node }, dir });
  await quiet();
  expect([rings, second.listAgents(), second.status().live]).toEqual([[], [], 0]);
  expect(existsSync(join(dir, "agents", "Node")) ? readdirSync(join(dir, "agents", "Node")) : []).toEqual([]);
});

test("a host that stops while an agent is deleted finishes that first", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Node }, dir, graceMs: 0 });
  await host.getAgentByName(Node, "a").grow(1);
  const { rm } = fs.promises;
  onTestFinished(() => void (fs.promises.rm = rm));
  fs.promises.rm = async (...args) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return rm(...args);
  };
  const ended = host
    .getAgentByName(Node, "a")
    .destroy()
    .then(() => "deleted", String);
  await eventually(() => host.listAgents().length === 0, "it is doomed");
  await host.stop();
  expect(await ended).toBe("deleted");
  expect(readdirSync(join(dir, "agents", "Node"))).toEqual([]);
});

test("destroy inside of a transaction undoes it and leaves no agent behind in the index", async () => {
  class Rash extends Agent {
    go(): void {
      this.transaction(() => {
        this.sql`CREATE TABLE note (text TEXT)`;
        void this.destroy();
      });
    }
  }
  const host = await openHost({ agents: { Rash } });
  await expect(host.getAgentByName(Rash, "a").go()).rejects.toMatchObject({ code: "agent_gone" });
  await quiet();
  expect(host.listAgents()).toEqual([]);
});

test("a removal that failed is made up for before the next life, so that no restart deletes what that one stored", async () => {
  const dir = tempDir();
  const first = await openHost({ agents: { Node }, dir });
  const stub = first.getAgentByName(Node, "a");
  expect([await stub.add(), await stub.add()]).toEqual([1, 2]);
  const real = fs.promises.rm;
  const restore = (): void => void Object.assign(fs.promises, { rm: real });
  onTestFinished(restore);
  Object.assign(fs.promises, { rm: () => Promise.reject(new Error("EIO: i/o error, rm")) });
  await expect(stub.destroy()).rejects.toThrow("EIO");
  await expect(stub.add()).rejects.toThrow("EIO");
  restore();
  expect(await stub.add()).toBe(1);
  await first.stop();
  const second = await openHost({ agents: { Node }, dir });
  await quiet();
  expect(await second.getAgentByName(Node, "a").add()).toBe(2);
});
