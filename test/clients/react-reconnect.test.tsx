import { render, rendered } from "./react.tsx";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { callable, type Connection, type ConnectionContext } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { expect, test, vi } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { atEnd, eventually, startHost } from "./harness.ts";

class Desk extends Base<Count> {
  static {
    callable(this, "add");
    callable(this, "hold");
  }
  override initialState: Count = { count: 0 };
  readonly held: (() => void)[] = [];
  readonly queries: string[] = [];

  override onConnect(_connection: Connection, { request }: ConnectionContext): void {
    this.queries.push(new URL(request.url).search.replace(/_pk=[^&]*&?/, ""));
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  async hold(): Promise<string> {
    await new Promise<void>((resolve) => this.held.push(resolve));
    return "let go";
  }
  letGo(): number {
    return this.held.splice(0).map((resolve) => resolve()).length;
  }
  searches(): string[] {
    return this.queries;
  }
}

const desk = { agent: "Desk", name: "x" };
const start = () => startHost({ agents: { Desk } });

test("after a drop the page comes back with the same id, is ready again and shows the newest state", async () => {
  const host = await start();
  const stub = host.getAgentByName(Desk, "x");
  let closes = 0;
  const page = await rendered<Count>(host, { ...desk, onClose: () => void closes++ });
  const { id } = page.agent();
  for (let round = 1; round <= 3; round++) {
    await stub.drop(1012);
    await eventually(() => expect(closes).toBe(round));
    await stub.add(1);
    await page.agent().ready;
    await eventually(() => expect(page.agent().identified).toBe(true));
    await eventually(() => expect(page.text()).toBe(`{"count":${round}}`));
    expect(await stub.ids()).toEqual([id]);
  }
});

test("a drop rejects calls under way, and calls made meanwhile are answered after it", async () => {
  const host = await start();
  const stub = host.getAgentByName(Desk, "x");
  let closes = 0;
  const page = await rendered<Count>(host, { ...desk, onClose: () => void closes++ });
  const lost = expect(page.agent().call("hold")).rejects.toThrow("Connection closed");
  await page.agent().call("ping");
  await stub.drop(1001);
  await lost;
  await eventually(() => expect(closes).toBe(1));
  expect(await page.agent().call("add", [5])).toBe(5);
  await stub.letGo();
});

test("a terminal close is shown, ends the tries, and rejects calls", async () => {
  const host = await start();
  const stub = host.getAgentByName(Desk, "x");
  for (const code of [1008, 4001]) {
    const errors: number[] = [];
    const page = await rendered<Count>(host, { ...desk, onConnectionError: (error) => void errors.push(error.code) });
    await stub.drop(code, "banned");
    await eventually(() => expect(page.agent().connectionError).toMatchObject({ code, reason: "banned" }));
    expect(errors).toEqual([code]);
    await expect(page.agent().call("add", [1])).rejects.toThrow("Connection closed");
    await page.unmount();
  }
  expect(await stub.ids()).toEqual([]);
});

test("a page that moves to another agent closes the old socket and shows the other state", async () => {
  const host = await start();
  await host.getAgentByName(Desk, "b").add(9);
  const page = await rendered<Count>(host, { agent: "Desk", name: "a" });
  await page.update({ agent: "Desk", name: "b" });
  await eventually(() => expect(page.text()).toBe('{"count":9}'));
  expect(page.agent().name).toBe("b");
  await eventually(async () => expect(await host.getAgentByName(Desk, "a").ids()).toEqual([]));
});

test("an asynchronous query suspends the page, reaches onConnect, and is made anew after a drop", async () => {
  const host = await start();
  const stub = host.getAgentByName(Desk, "x");
  let token = 0;
  const options = { ...desk, query: () => Promise.resolve({ token: `t${++token}` }), queryDeps: ["drop"] };
  const page = await render<Count>(host, options);
  await eventually(() => expect(page.agent().identified).toBe(true));
  const first = (await stub.searches()).at(-1);
  expect(first).toMatch(/^\?token=t\d+$/);
  await stub.drop(1012);
  await eventually(async () => {
    const last = (await stub.searches()).at(-1);
    expect(last).toMatch(/^\?token=t\d+$/);
    expect(last).not.toBe(first);
  });
  await eventually(() => expect(page.agent().identified).toBe(true));
});

test("after a terminal close an asynchronous query is not asked again", async () => {
  const host = await start();
  let asked = 0;
  const query = () => Promise.resolve({ token: `t${++asked}` });
  const page = await render<Count>(host, { ...desk, query, queryDeps: ["terminal"] });
  await eventually(() => expect(page.agent().identified).toBe(true));
  const before = asked;
  await host.getAgentByName(Desk, "x").drop(4003);
  await eventually(() => expect(page.agent().connectionError).toMatchObject({ code: 4003 }));
  expect(asked).toBe(before);
});

test("a page that is switched off has no socket, and gets one when it is switched on", async () => {
  const host = await start();
  const page = await render<Count>(host, { ...desk, enabled: false });
  expect(page.text()).toBe("no state");
  expect(host.status().connections).toBe(0);
  await page.update({ ...desk, enabled: true });
  await eventually(() => expect(page.text()).toBe('{"count":0}'));
  await page.update({ ...desk, enabled: false });
  await eventually(() => expect(host.status().connections).toBe(0));
});

test("a class that hides its identity: the page has the state and is never ready", async () => {
  class Hidden extends Desk {
    static override options = { sendIdentityOnConnect: false };
  }
  const host = await startHost({ agents: { Hidden } });
  const page = await render<Count>(host, { agent: "Hidden", name: "x" });
  await eventually(() => expect(page.text()).toBe('{"count":0}'));
  expect(await page.agent().call("add", [1])).toBe(1);
  expect(page.agent().identified).toBe(false);
  expect(page.agent().name).toBe("x");
});

test("Cap'n Web is refused for good", async () => {
  const host = await start();
  const page = await render<Count>(host, { ...desk, transport: "capnweb" });
  await eventually(() => expect(page.agent().connectionError).toMatchObject({ code: 4400 }));
});

test("basePath: the page learns which agent the server chose", async () => {
  const host = createHost({ agents: { Desk }, storage: memoryStorage() });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => {
    const target = { agent: { className: "Desk", name: "chosen by the session" } };
    void host.upgrade(request, socket, head, target);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(async () => {
    await host.stop();
    server.close();
  });
  const warn = vi.spyOn(console, "warn");
  atEnd(() => warn.mockRestore());
  const { port } = server.address() as AddressInfo;
  const page = await rendered<Count>({ port }, { agent: "Desk", basePath: "my/desk" });
  expect(page.agent().name).toBe("chosen by the session");
  expect(page.agent().agent).toBe("desk");
  expect(await page.agent().call("add", [2])).toBe(2);
  expect(await host.getAgentByName(Desk, "chosen by the session").ids()).toEqual([page.agent().id]);
  expect(warn).not.toHaveBeenCalled();
});
