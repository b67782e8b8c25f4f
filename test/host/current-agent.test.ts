import { Agent, type AgentEnv, callable, getCurrentAgent } from "perdure";
import type { Connection, FiberContext } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";

const seen: string[] = [];

/** Looks from deep inside, across awaits, as a tool or a library would. */
async function look(where: string): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 1));
  return Promise.resolve().then(() => {
    const { agent, connection, request, fiber } = getCurrentAgent<Watcher>();
    const parts = [where, agent?.name, connection?.id, request && new URL(request.url).search, fiber?.name];
    const text = parts.map((part) => part ?? "-").join(" ");
    seen.push(text);
    return text;
  });
}

class Watcher extends Agent<AgentEnv, { n: number }> {
  static {
    for (const name of ["rpc", "plan", "fork", "mind", "other"] as const) callable(this, name);
  }
  override initialState = { n: 0 };

  override async onStart(): Promise<void> {
    await look("start");
  }
  override async onConnect(): Promise<void> {
    await look("connect");
  }
  override async onMessage(_connection: Connection): Promise<void> {
    await look("message");
  }
  override async onClose(): Promise<void> {
    await look("close");
  }
  override async onRequest(): Promise<Response> {
    return new Response(await look("request"));
  }
  override async onStateChanged(): Promise<void> {
    await look("state");
  }
  async rpc(): Promise<string> {
    return look("rpc");
  }
  async plan(): Promise<void> {
    await this.schedule(0, "scheduled");
    await this.queue("queued");
  }
  async scheduled(): Promise<void> {
    await look("schedule");
  }
  async queued(): Promise<void> {
    await look("queue");
  }
  async fork(): Promise<void> {
    this.spawnFiber("spawned");
    await this.runFiber("closure", async () => {
      await look("run");
    });
  }
  async spawned(_payload: unknown, _fiber: FiberContext): Promise<void> {
    await look("spawn");
  }
  async other(): Promise<string> {
    const child = await this.subAgent(Watcher, "child");
    const there = await child.rpc();
    return `${there} / ${await look("back")}`;
  }
  mind(): void {
    this.setState({ n: 1 });
  }
}

const has = (text: string) => eventually(() => seen.includes(text), text);

test("the agent, its connection and its request are known across awaits, wherever the code was entered", async () => {
  const host = await openHost({ agents: { Watcher }, storage: memoryStorage() });
  const client = await connect(host, "/agents/watcher/a?_pk=me");
  await has("start a - - -");
  await has("connect a me ?_pk=me -");
  client.send("hello");
  await has("message a me - -");
  expect(await client.call("rpc")).toBe("rpc a me - -");
  expect(await host.getAgentByName(Watcher, "a").rpc()).toBe("rpc a - - -");
  const response = await host.fetch(new Request("http://host/agents/watcher/a?q=1"));
  expect(await response.text()).toBe("request a - ?q=1 -");
  await client.call("mind");
  await has("state a me - -");
  client.ws.close();
  await has("close a me - -");
});

test("scheduled work runs as the agent and for no connection; fibers know themselves", async () => {
  const host = await openHost({ agents: { Watcher }, storage: memoryStorage() });
  const client = await connect(host, "/agents/watcher/b?_pk=me");
  await client.call("plan");
  await has("schedule b - - -");
  await has("queue b - - -");
  await client.call("fork");
  expect(await has("run b me - closure")).toBe(true);
  expect(await has("spawn b - - spawned")).toBe(true);
});

test("in a call of another agent it is the other, and afterwards the caller again", async () => {
  const host = await openHost({ agents: { Watcher }, storage: memoryStorage() });
  const client = await connect(host, "/agents/watcher/c?_pk=me");
  expect(await client.call("other")).toBe("rpc child - - - / back c me - -");
});

test("many at once are not mixed up, and outside there is nobody", async () => {
  const host = await openHost({ agents: { Watcher }, storage: memoryStorage() });
  const names = Array.from({ length: 50 }, (_, i) => `n${i}`);
  const answers = await Promise.all(names.map((name) => host.getAgentByName(Watcher, name).rpc()));
  expect(answers).toEqual(names.map((name) => `rpc ${name} - - -`));
  expect(getCurrentAgent()).toEqual({ agent: undefined, connection: undefined, request: undefined });
});
