import { render, rendered } from "./react.tsx";
import { type AgentOptions, callable } from "perdure";
import type { AgentStep } from "perdure/host";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { eventually, startHost } from "./harness.ts";

class Node extends Base<Count> {
  static override options: AgentOptions = { allowClientState: true };
  static override readonly subAgents = ["Chat", "Thread"];
  static {
    callable(this, "add");
    callable(this, "where");
  }
  override initialState: Count = { count: 0 };

  override onBeforeSubAgent(_request: Request, { name }: AgentStep): Response | undefined {
    return /^4\d\d$/.test(name) ? new Response("no", { status: Number(name) }) : undefined;
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  where(): string[] {
    return this.selfPath.map(({ className, name }) => `${className}:${name}`);
  }
}
class Inbox extends Node {}
class Chat extends Node {}
class Thread extends Node {}

const start = () => startHost({ agents: { Inbox }, subAgents: { Chat, Thread } });
const inbox = { agent: "Inbox", name: "ada" };

test("one level down: identity, state and calls are the child's", async () => {
  const host = await start();
  const page = await rendered<Count>(host, { ...inbox, sub: [{ agent: "Chat", name: "c1" }] });
  const agent = page.agent();
  expect([agent.agent, agent.name]).toEqual(["chat", "c1"]);
  expect(agent.path).toEqual([
    { agent: "Inbox", name: "ada" },
    { agent: "Chat", name: "c1" },
  ]);
  expect(await agent.call("where")).toEqual(["Inbox:ada", "Chat:c1"]);
  agent.setState({ count: 4 });
  expect(await agent.call("add", [1])).toBe(5);
  await eventually(() => expect(page.text()).toBe('{"count":5}'));
});

test("two levels down, with a path behind", async () => {
  const host = await start();
  const sub = [
    { agent: "Chat", name: "c1" },
    { agent: "Thread", name: "t1" },
  ];
  const page = await rendered<Count>(host, { ...inbox, sub, path: "extra/path" });
  expect([page.agent().agent, page.agent().name]).toEqual(["thread", "t1"]);
  expect(await page.agent().call("where")).toEqual(["Inbox:ada", "Chat:c1", "Thread:t1"]);
});

test("child names of every kind come back as they are", async () => {
  const host = await start();
  for (const name of [
    "with space",
    "a/b/c",
    "100%",
    "%20",
    "no #1",
    "why?",
    "ünïcödé 😀",
    "sub",
    "sub/chat/x",
    "a+b&c=d",
  ]) {
    const page = await rendered<Count>(host, { ...inbox, sub: [{ agent: "Chat", name }] });
    expect(page.agent().name, name).toBe(name);
    expect(await page.agent().call("where"), name).toEqual(["Inbox:ada", `Chat:${name}`]);
    await page.unmount();
  }
});

test("parent and child pages do not hear each other", async () => {
  const host = await start();
  const heard: string[] = [];
  const parent = await rendered<Count>(host, { ...inbox, onMessage: () => void heard.push("parent") });
  const child = await rendered<Count>(host, {
    ...inbox,
    sub: [{ agent: "Chat", name: "c1" }],
    onMessage: () => void heard.push("child"),
  });
  await host.getAgentByName(Inbox, "ada").say('{"type":"news"}');
  await child.agent().call("add", [7]);
  await parent.agent().call("ping");
  await child.agent().call("ping");
  expect(heard).toEqual(["parent"]);
  await eventually(() => expect(child.text()).toBe('{"count":7}'));
  expect(parent.text()).toBe('{"count":0}');
});

test("a gate's refusal ends the page's tries and is shown as its error", async () => {
  const host = await start();
  for (const status of [401, 403, 404]) {
    const errors: number[] = [];
    const page = await render<Count>(host, {
      ...inbox,
      sub: [{ agent: "Chat", name: String(status) }],
      onConnectionError: ({ code }) => void errors.push(code),
    });
    await eventually(() => expect(page.agent().connectionError).toMatchObject({ code: 4000 + status }));
    expect(errors).toEqual([4000 + status]);
    expect(page.agent().identified).toBe(false);
    await expect(page.agent().call("add", [1])).rejects.toThrow("Connection closed");
    await page.unmount();
  }
});

test("a page that moves on to another child forgets the error and the old child", async () => {
  const host = await start();
  const at = (name: string) => ({ ...inbox, sub: [{ agent: "Chat", name }] });
  const page = await render<Count>(host, at("403"));
  await eventually(() => expect(page.agent().connectionError).toMatchObject({ code: 4403 }));
  await page.update(at("open"));
  await eventually(() => expect(page.agent().identified).toBe(true));
  expect(page.agent().connectionError).toBeNull();
  expect(page.agent().name).toBe("open");
  expect(await page.agent().call("add", [2])).toBe(2);
  await page.update(at("other"));
  await eventually(() => expect(page.agent().name).toBe("other"));
  await eventually(() => expect(page.agent().identified).toBe(true));
  expect(await page.agent().call("where")).toEqual(["Inbox:ada", "Chat:other"]);
  await eventually(() => expect(host.status().connections).toBe(1));
});
