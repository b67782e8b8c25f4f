import { Agent, type AgentEnv, callable, PerdureError } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";

interface Box {
  list: number[];
  when: Date;
  bytes: Uint8Array;
  map: Map<string, string[]>;
}

class Keeper extends Agent {
  box: Box | undefined;

  put(box: Box): Box {
    this.box = box;
    box.list.push(99);
    box.bytes[0] = 99;
    box.map.get("k")?.push("changed");
    return box;
  }
  size(): number {
    return this.box?.list.length ?? 0;
  }
  twice(work: (n: number) => number): number {
    return work(work(2));
  }
  fail(): never {
    throw new RangeError("out of range");
  }
}

test("plain data is copied both ways: neither side can change the other's", async () => {
  const host = await openHost({ agents: { Keeper }, storage: memoryStorage() });
  const stub = host.getAgentByName(Keeper, "a");
  const mine: Box = { list: [1], when: new Date(5), bytes: new Uint8Array([1]), map: new Map([["k", ["v"]]]) };
  const back = await stub.put(mine);
  expect(mine).toEqual({ list: [1], when: new Date(5), bytes: new Uint8Array([1]), map: new Map([["k", ["v"]]]) });
  expect(back.list).toEqual([1, 99]);
  back.list.push(100);
  expect(await stub.size()).toBe(2);
});

test("functions pass, errors arrive as they were thrown", async () => {
  const host = await openHost({ agents: { Keeper }, storage: memoryStorage() });
  const stub = host.getAgentByName(Keeper, "a");
  expect(await stub.twice((n) => n * 3)).toBe(18);
  await expect(stub.fail()).rejects.toThrow(new RangeError("out of range"));
});

test("a key called __proto__ stays a key", async () => {
  class Echo extends Agent {
    echo(value: unknown): unknown {
      return value;
    }
  }
  const host = await openHost({ agents: { Echo }, storage: memoryStorage() });
  const evil: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}');
  const back = await host.getAgentByName(Echo, "a").echo(evil);
  expect(JSON.stringify(back)).toBe('{"__proto__":{"polluted":true},"a":1}');
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

class Parent extends Agent<AgentEnv, { done: number }> {
  static {
    callable(this, "cut");
  }
  override initialState = { done: 0 };

  async childAdd(): Promise<number> {
    return (await this.subAgent(Child, "c")).add();
  }
  async childHang(): Promise<string> {
    return (await this.subAgent(Child, "c")).hang();
  }
  async childCutsItself(): Promise<void> {
    return (await this.subAgent(Child, "c")).viaParent();
  }
  cut(): void {
    this.abortSubAgent(Child, "c", new Error("enough"));
  }
}

class Child extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "hang");
    callable(this, "add");
  }
  static hanging = 0;
  static rang = 0;
  override initialState = { count: 0 };

  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }
  hang(): Promise<string> {
    Child.hanging++;
    return new Promise(() => undefined);
  }
  async soon(): Promise<void> {
    await this.schedule(0.3, "ring");
  }
  ring(): void {
    Child.rang++;
  }
  async viaParent(): Promise<void> {
    await this.parentAgent(Parent).cut();
  }
}

test("abort: calls under way fail with agent_gone, rows stay, and the next call begins a new life", async () => {
  Child.hanging = 0;
  const host = await openHost({ agents: { Parent }, subAgents: { Child } });
  const parent = host.getAgentByName(Parent, "p");
  expect(await parent.childAdd()).toBe(1);
  const client = await connect(host, "/agents/parent/p/sub/child/c");
  const cutCall = parent.childHang().catch((error: unknown) => error);
  const cutRpc = client.call("hang").catch((error: unknown) => error);
  await eventually(() => Child.hanging === 2, "both calls reach the child");
  await parent.cut();
  const error = await cutCall;
  expect(PerdureError.is(error, "agent_gone")).toBe(true);
  expect((error as Error).cause).toEqual(new Error("enough"));
  // The client whose call was cut is told by the end of its socket, and comes back.
  expect(String(await cutRpc)).toContain("closed with 1011");
  expect(await parent.childAdd()).toBe(2);
  const again = await connect(host, "/agents/parent/p/sub/child/c");
  expect(again.states()).toEqual([{ count: 2 }]);
});

test("abort while it starts: who waited fails, and a call right after begins a new life", async () => {
  let starts = 0;
  class Slow extends Agent {
    override async onStart(): Promise<void> {
      starts++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    hello(): string {
      return "hello";
    }
  }
  class Owner extends Agent {
    async go(): Promise<unknown[]> {
      const child = await this.subAgent(Slow, "c");
      const first = child.hello().catch((error: unknown) => error);
      await new Promise((resolve) => setTimeout(resolve, 5));
      this.abortSubAgent(Slow, "c");
      return Promise.all([first, child.hello(), child.hello()]);
    }
  }
  const host = await openHost({ agents: { Owner }, subAgents: { Slow }, storage: memoryStorage() });
  const [first, ...later] = await host.getAgentByName(Owner, "a").go();
  expect(first).toMatchObject({ code: "agent_gone" });
  expect(later).toEqual(["hello", "hello"]);
  expect(starts).toBe(2);
});

test("abort: what goes on running in the old life reaches no client any more", async () => {
  class Haunted extends Agent {
    static {
      callable(this, "hello");
    }
    async haunt(): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, 20));
      this.broadcast("from the old life");
      haunted = true;
    }
    hello(): string {
      return "hello";
    }
  }
  class Owner extends Agent {
    static override readonly subAgents = [Haunted];
    async go(): Promise<unknown> {
      const child = await this.subAgent(Haunted, "c");
      const call = child.haunt().catch((error: unknown) => error);
      await new Promise((resolve) => setTimeout(resolve, 5));
      this.abortSubAgent(Haunted, "c");
      return call;
    }
  }
  let haunted = false;
  const host = await openHost({ agents: { Owner }, subAgents: { Haunted }, storage: memoryStorage() });
  const client = await connect(host, "/agents/owner/a/sub/haunted/c");
  expect(await host.getAgentByName(Owner, "a").go()).toMatchObject({ code: "agent_gone" });
  await eventually(() => haunted, "the old life has spoken");
  expect(await client.call("hello")).toBe("hello");
  expect(client.frames.filter(({ text }) => text !== undefined)).toEqual([]);
});

test("abort: a schedule of the aborted agent still rings, with nobody asking", async () => {
  Child.rang = 0;
  class Boss extends Agent {
    async plan(): Promise<void> {
      const child = await this.subAgent(Child, "c");
      await child.soon();
      this.abortSubAgent(Child, "c");
    }
  }
  const host = await openHost({ agents: { Boss }, subAgents: { Child } });
  await host.getAgentByName(Boss, "b").plan();
  await eventually(() => Child.rang > 0, "the schedule rings");
  expect(Child.rang).toBe(1);
});

test("a child that is aborted by what it calls: its own call fails, nothing hangs", async () => {
  const host = await openHost({ agents: { Parent }, subAgents: { Child } });
  const parent = host.getAgentByName(Parent, "p");
  await parent.childAdd();
  await expect(parent.childCutsItself()).rejects.toMatchObject({ code: "agent_gone" });
  expect(await parent.childAdd()).toBe(2);
});

test("calls after the host has stopped are refused with host_stopped", async () => {
  const host = await openHost({ agents: { Keeper } });
  await host.getAgentByName(Keeper, "a").size();
  await host.stop();
  await expect(host.getAgentByName(Keeper, "a").size()).rejects.toMatchObject({ code: "host_stopped" });
  expect((await host.fetch(new Request("http://host/agents/keeper/a"))).status).toBe(503);
  expect(host.status()).toEqual({ ok: false, live: 0, kept: 0, connections: 0 });
});
