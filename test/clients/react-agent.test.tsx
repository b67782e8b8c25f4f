import { render, rendered } from "./react.tsx";
import { type AgentOptions, callable, type StreamingResponse } from "perdure";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { connected, eventually, startHost } from "./harness.ts";

class Tally extends Base<Count> {
  static override options: AgentOptions = { allowClientState: true };
  static {
    callable(this, "add");
    callable(this, "fail");
    callable(this, "tell", { streaming: true });
  }
  override initialState: Count = { count: 0 };

  override validateStateChange(next: Count): void {
    if (next.count > 1_000) throw new Error("too much");
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  fail(): never {
    throw new Error("no luck");
  }
  tell(stream: StreamingResponse, count: number): void {
    for (let i = 0; i < count; i++) stream.send(i);
    stream.end("over");
  }
  read(): number {
    return this.state.count;
  }
}
class Locked extends Tally {
  static override options: AgentOptions = {};
}
class Bare extends Base {}

const start = () => startHost({ agents: { Tally, Locked, Bare } });

test("the hook learns who it is and shows the state", async () => {
  const host = await start();
  await host.getAgentByName(Tally, "x").add(3);
  const seen: unknown[] = [];
  const mcp: unknown[] = [];
  const page = await render<Count>(host, {
    agent: "Tally",
    name: "x",
    onIdentity: (...identity) => void seen.push(identity),
    onStateUpdate: (...update) => void seen.push(update),
    onMcpUpdate: (servers) => void mcp.push(servers),
  });
  await page.agent().ready;
  await eventually(() => expect(page.text()).toBe('{"count":3}'));
  expect(seen).toEqual([
    [{ count: 3 }, "server"],
    ["x", "tally"],
  ]);
  const { agent, name, identified, state, path, connectionError } = page.agent();
  expect({ agent, name, identified, state, path, connectionError }).toEqual({
    agent: "tally",
    name: "x",
    identified: true,
    state: { count: 3 },
    path: [{ agent: "Tally", name: "x" }],
    connectionError: null,
  });
  await eventually(() => expect(mcp).toEqual([{ servers: {}, tools: [], prompts: [], resources: [] }]));
});

test("without a state the page has none, and is ready all the same", async () => {
  const host = await start();
  const page = await rendered(host, { agent: "Bare", name: "x" });
  await page.agent().ready;
  expect(page.text()).toBe("no state");
  expect(await page.agent().call("ping")).toBe("pong");
});

test("a change on the server is drawn", async () => {
  const host = await start();
  const page = await rendered<Count>(host, { agent: "Tally", name: "x" });
  for (let n = 1; n <= 20; n++) await host.getAgentByName(Tally, "x").add(1);
  await eventually(() => expect(page.text()).toBe('{"count":20}'));
});

test("a change on the page is drawn at once, stored, and seen by others", async () => {
  const host = await start();
  const page = await rendered<Count>(host, { agent: "Tally", name: "x" });
  const other = await connected<Count>(host, { agent: "Tally", name: "x" });
  page.agent().setState({ count: 12 });
  await eventually(() => expect(page.text()).toBe('{"count":12}'));
  await eventually(() => expect(other.client.state).toEqual({ count: 12 }));
  expect(await host.getAgentByName(Tally, "x").read()).toBe(12);
});

test("a refused change is reported, and the page goes back to what is true", async () => {
  const host = await start();
  for (const [agent, count, message] of [
    ["Tally", 5_000, "State update rejected"],
    ["Locked", 1, "Clients may not set the state of this agent"],
  ] as const) {
    const errors: string[] = [];
    const page = await rendered<Count>(host, {
      agent,
      name: "x",
      onStateUpdateError: (error) => void errors.push(error),
    });
    page.agent().setState({ count });
    await eventually(() => expect(errors).toEqual([message]));
    await eventually(() => expect(page.text()).toBe('{"count":0}'));
    await page.unmount();
  }
});

test("calls: results, errors, the stub, streams", async () => {
  const host = await start();
  const page = await rendered<Count>(host, { agent: "Tally", name: "x" });
  const agent = page.agent();
  expect(await agent.call("add", [2])).toBe(2);
  expect(await agent.stub.add?.(3)).toBe(5);
  await expect(agent.call("fail")).rejects.toThrow("no luck");
  await expect(agent.call("read")).rejects.toThrow("Method read is not callable");
  const chunks: unknown[] = [];
  expect(await agent.call("tell", [4], { stream: { onChunk: (chunk) => void chunks.push(chunk) } })).toBe("over");
  expect(chunks).toEqual([0, 1, 2, 3]);
  await eventually(() => expect(page.text()).toBe('{"count":5}'));
});

test("calls made before the socket is open are answered", async () => {
  const host = await start();
  const page = await render<Count>(host, { agent: "Tally", name: "x" });
  const calls = [1, 2, 3].map((by) => page.agent().call("add", [by]));
  expect(await Promise.all(calls)).toEqual([1, 3, 6]);
});

test("frames that are not the hook's reach onMessage, the others do not", async () => {
  const host = await start();
  const messages: unknown[] = [];
  const page = await rendered<Count>(host, {
    agent: "Tally",
    name: "x",
    onMessage: ({ data }) => void messages.push(data),
  });
  await host.getAgentByName(Tally, "x").say('{"type":"mine"}');
  await host.getAgentByName(Tally, "x").say("plain text");
  await page.agent().call("add", [1]);
  expect(messages).toEqual(['{"type":"mine"}', "plain text"]);
});

test("an unmounted page leaves the agent", async () => {
  const host = await start();
  const page = await rendered<Count>(host, { agent: "Tally", name: "x" });
  const stub = host.getAgentByName(Tally, "x");
  expect(await stub.ids()).toEqual([page.agent().id]);
  await page.unmount();
  await eventually(async () => expect(await stub.ids()).toEqual([]));
});

test("StrictMode mounts twice and ends with one connection", async () => {
  const host = await start();
  const page = await render<Count>(host, { agent: "Tally", name: "x" }, { strict: true });
  await eventually(() => expect(page.agent().identified).toBe(true));
  const stub = host.getAgentByName(Tally, "x");
  await eventually(async () => expect(await stub.ids()).toHaveLength(1));
  expect(await page.agent().call("add", [1])).toBe(1);
  await eventually(() => expect(page.text()).toBe('{"count":1}'));
});

test("two pages on one agent see each other", async () => {
  const host = await start();
  const a = await rendered<Count>(host, { agent: "Tally", name: "x" });
  const b = await rendered<Count>(host, { agent: "Tally", name: "x" });
  a.agent().setState({ count: 5 });
  await eventually(() => expect(b.text()).toBe('{"count":5}'));
  b.agent().setState({ count: 6 });
  await eventually(() => expect(a.text()).toBe('{"count":6}'));
});
