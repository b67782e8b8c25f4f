import { Agent, type AgentEnv, callable, PerdureError } from "perdure";
import type { FiberContext } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost, quiet } from "./open-host.ts";

let starts: string[] = [];
let made = 0;

class Counter extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "add");
  }
  override initialState = { count: 0 };
  readonly number = ++made;

  override async onStart(): Promise<void> {
    // Long enough for everyone to come while it starts.
    await new Promise((resolve) => setTimeout(resolve, 20));
    starts.push(this.name);
  }
  override onRequest(): Response {
    return Response.json({ number: this.number });
  }
  add(): { count: number; number: number } {
    this.setState({ count: this.state.count + 1 });
    return { count: this.state.count, number: this.number };
  }
}

test("a hundred first uses at once, of every kind, meet one object that started once", async () => {
  starts = [];
  const host = await openHost({ agents: { Counter } });
  const stub = host.getAgentByName(Counter, "anna");
  const numbers = await Promise.all(
    Array.from({ length: 100 }, async (_, i): Promise<unknown> => {
      if (i % 3 === 0) return (await stub.add()).number;
      if (i % 3 === 1) {
        const response = await host.fetch(new Request("http://host/agents/counter/anna"));
        return ((await response.json()) as { number: number }).number;
      }
      const client = await connect(host, "/agents/counter/anna");
      return ((await client.call("add")) as { number: number }).number;
    }),
  );
  expect(new Set(numbers).size).toBe(1);
  expect(starts).toEqual(["anna"]);
  expect((await stub.add()).count).toBe(68);
  expect(host.status()).toMatchObject({ live: 1, kept: 1, connections: 33 });
});

test("the same name in two classes, and two names in one class, are different agents", async () => {
  class Other extends Counter {}
  const host = await openHost({ agents: { Counter, Other } });
  const counts = await Promise.all([
    host.getAgentByName(Counter, "x").add(),
    host.getAgentByName(Counter, "X").add(),
    host.getAgentByName(Other, "x").add(),
    host.getAgentByName(Counter, "x/sub/counter/y").add(),
  ]);
  expect(counts.map(({ count }) => count)).toEqual([1, 1, 1, 1]);
  expect(new Set(counts.map(({ number }) => number)).size).toBe(4);
});

test("an onStart that throws fails all who waited for it, once, and the next use tries again", async () => {
  let tries = 0;
  class Shy extends Agent {
    override onError(): void {}
    override async onStart(): Promise<void> {
      tries++;
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (tries === 1) throw new Error("not yet");
    }
    hello(): string {
      return "hello";
    }
  }
  const host = await openHost({ agents: { Shy }, storage: memoryStorage() });
  const stub = host.getAgentByName(Shy, "a");
  const first = await Promise.allSettled([stub.hello(), stub.hello(), stub.hello()]);
  expect(first.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(tries).toBe(1);
  expect(await stub.hello()).toBe("hello");
  expect(tries).toBe(2);
});

test("a client whose agent cannot start is told with a close code, and can come back", async () => {
  let broken = true;
  class Shy extends Agent {
    override onError(): void {}
    override onStart(): void {
      if (broken) throw new Error("not yet");
    }
  }
  const host = await openHost({ agents: { Shy }, storage: memoryStorage() });
  const client = await connect(host, "/agents/shy/a", { greeted: false });
  expect((await client.whenClosed()).code).toBe(1011);
  broken = false;
  const again = await connect(host, "/agents/shy/a");
  expect(again.frames[0]).toMatchObject({ type: "cf_agent_identity", name: "a", agent: "shy" });
});

test("an agent that cannot start leaves nothing behind in memory", async () => {
  class Never extends Agent {
    override onError(): void {}
    override onStart(): void {
      throw new Error("never");
    }
    hello(): void {}
  }
  const host = await openHost({ agents: { Never }, storage: memoryStorage() });
  await expect(host.getAgentByName(Never, "a").hello()).rejects.toThrow("never");
  expect(host.status().live).toBe(0);
});

test("an onStart that throws ends the work that it had set going, and nothing of it is left to fail later", async () => {
  const ended: string[] = [];
  let broken = true;
  class Hasty extends Agent {
    override onError(): void {}
    override async onStart(): Promise<void> {
      if (!broken) return;
      this.spawnFiber("long");
      await this.queue("item");
      await new Promise((resolve) => setTimeout(resolve, 20));
      throw new Error("not yet");
    }
    async long(_: unknown, fiber: FiberContext): Promise<void> {
      if (broken) await new Promise((resolve) => fiber.signal.addEventListener("abort", resolve));
      ended.push(broken ? "stopped" : "done");
    }
    async item(): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, 60));
      ended.push("item");
    }
    hello(): string {
      return "hello";
    }
  }
  const host = await openHost({ agents: { Hasty }, storage: memoryStorage() });
  await expect(host.getAgentByName(Hasty, "a").hello()).rejects.toThrow("not yet");
  await eventually(() => ended.length === 2, "both have ended");
  // Time for what they could have left behind: an unhandled rejection fails the run.
  await quiet();
  expect(ended).toEqual(["stopped", "item"]);
  broken = false;
  expect(await host.getAgentByName(Hasty, "a").hello()).toBe("hello");
  await eventually(() => ended.length === 4, "the next life carries both on");
});

test("an agent that destroys itself while it starts fails who waited, and is not started over and over", async () => {
  let tries = 0;
  class Spent extends Agent {
    override async onStart(): Promise<void> {
      if (++tries === 1) await this.destroy();
    }
    hello(): string {
      return "hello";
    }
  }
  const host = await openHost({ agents: { Spent }, storage: memoryStorage() });
  await expect(host.getAgentByName(Spent, "a").hello()).rejects.toMatchObject({ code: "agent_gone" });
  expect(tries).toBe(1);
  expect(await host.getAgentByName(Spent, "a").hello()).toBe("hello");
});

test("onStart gets the host's props, or those of the caller that wakes it", async () => {
  const seen: unknown[] = [];
  class Typed extends Agent<AgentEnv, unknown, { key: string }> {
    override onStart(props?: { key: string }): void {
      seen.push(this.name, props);
    }
    hello(): void {}
  }
  const host = await openHost({ agents: { Typed }, storage: memoryStorage(), props: { key: "host" } });
  await host.getAgentByName(Typed, "a").hello();
  await host.getAgentByName(Typed, "b", { props: { key: "caller" } }).hello();
  await host.getAgentByName(Typed, "b", { props: { key: "too late" } }).hello();
  expect(seen).toEqual(["a", { key: "host" }, "b", { key: "caller" }]);
});

test("getAgentByName: a stub calls methods and nothing else, and says what it cannot find", async () => {
  const host = await openHost({ agents: { Counter }, storage: memoryStorage() });
  const stub = host.getAgentByName(Counter, "a");
  expect(await Promise.resolve(stub)).toBe(stub);
  expect(JSON.stringify({ stub })).toBe('{"stub":{}}');
  const missing = stub as unknown as {
    nothing(): Promise<void>;
    hasOwnProperty(): Promise<void>;
    number(): Promise<void>;
  };
  await expect(missing.nothing()).rejects.toMatchObject({ code: "not_found" });
  await expect(missing.hasOwnProperty()).rejects.toMatchObject({ code: "not_found" });
  await expect(missing.number()).rejects.toMatchObject({ code: "not_found" });
  class Stranger extends Agent {}
  const refused = await Promise.resolve()
    .then(() => host.getAgentByName(Stranger, "a"))
    .catch((error: unknown) => error);
  expect(PerdureError.is(refused, "unknown_agent")).toBe(true);
  expect(String(refused)).toContain("This host knows: Counter");
});
