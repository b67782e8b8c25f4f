import { callable, type Connection, type ConnectionContext } from "perdure";
import { subscribe } from "perdure/node";
import { expect, test } from "vitest";
import { WebSocket as WebSocketOfWs } from "ws";
import { Base } from "./fixtures.ts";
import {
  asleep,
  atEnd,
  connect,
  connected,
  eventually,
  ofType,
  rawSocket,
  startHost,
  takeFailures,
} from "./harness.ts";

/** Keeps what it hears and says it back; `?slow=1` takes its time to greet. */
class Ear extends Base<{ open: boolean }> {
  static {
    callable(this, "order");
  }
  override initialState = { open: true };
  readonly log: string[] = [];
  #greet: (() => void)[] = [];

  override async onConnect(connection: Connection, { request }: ConnectionContext): Promise<void> {
    const query = new URL(request.url).searchParams;
    if (query.has("slow")) await new Promise<void>((resolve) => this.#greet.push(resolve));
    this.log.push("connected");
    connection.send(JSON.stringify({ type: "greeting", query: Object.fromEntries(query) }));
  }
  override onMessage(connection: Connection, message: string | Uint8Array): void {
    if (message === "throw") throw new Error("bad message");
    this.log.push(typeof message === "string" ? message : `bytes ${message.length}`);
    connection.send(message);
  }
  greetAll(): number {
    return this.#greet.splice(0).map((resolve) => resolve()).length;
  }
  order(): string[] {
    this.log.push("rpc");
    return [...this.log];
  }
  heard(): string[] {
    return this.log;
  }
  failures(): string[] {
    return this.errors.map(String);
  }
}

const options = { agent: "Ear", name: "x" };
const start = async (idleMs?: number) => {
  const host = await startHost({ agents: { Ear }, idleMs });
  return { host, stub: host.getAgentByName(Ear, "x") };
};

test("the app's own frames reach onMessage as they are and come back as they are", async () => {
  const { host } = await start();
  const { client, messages } = await connected(host, options);
  const texts = ["plain", "", "{not json", '{"type":"mine","x":1}', "[]", "0", '"text"', "ü😀\u0000"];
  for (const text of texts) client.send(text);
  await client.call("ping");
  const echoed = messages.filter((data) => typeof data === "string" && !/"(rpc|cf_agent_\w+|greeting)"/.test(data));
  expect(echoed).toEqual(texts);
});

test("frames with a type of ours and the wrong fields go to the app, and are reported", async () => {
  const { host, stub } = await start();
  const refused: string[] = [];
  atEnd(subscribe("frame:refused", ({ payload }) => void refused.push(payload.reason)));
  const { ws } = await rawSocket(`${host.url}/agents/ear/x`);
  const texts = ['{"type":"rpc","id":1}', '{"type":"cf_agent_state"}', '{"type":"cf_agent_unknown"}', "null"];
  for (const text of texts) ws.send(text);
  await eventually(async () => expect(await stub.heard()).toEqual(["connected", ...texts]));
  expect(refused).toEqual(['rpc: "id" is missing or malformed', 'cf_agent_state: "state" is missing or malformed']);
});

test("binary frames keep their bytes, in both directions, and no client trips over them", async () => {
  const { host, stub } = await start();
  const { client, messages } = await connected(host, options);
  client.binaryType = "arraybuffer";
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
  client.send(bytes);
  client.send(new Uint8Array());
  await client.call("ping");
  const back = messages.filter((data): data is ArrayBuffer => data instanceof ArrayBuffer);
  expect(back.map(({ byteLength }) => byteLength)).toEqual([70_000, 0]);
  expect(Buffer.from(back[0] ?? new ArrayBuffer()).equals(bytes)).toBe(true);
  expect(await stub.heard()).toEqual(["connected", "bytes 70000", "bytes 0"]);
  expect(client.state).toEqual({ open: true });
});

test("JSON in a binary frame is no call", async () => {
  const { host, stub } = await start();
  const { ws, frames } = await rawSocket(`${host.url}/agents/ear/x`);
  const call = JSON.stringify({ type: "rpc", id: "1", method: "ping", args: [] });
  ws.send(new TextEncoder().encode(call));
  await eventually(async () => expect(await stub.heard()).toEqual(["connected", `bytes ${call.length}`]));
  expect(ofType(frames, "rpc")).toEqual([]);
});

test("frames that come before connecting is done wait, and keep their order", async () => {
  const { host, stub } = await start();
  const sockets: Pinging[] = [];
  class Pinging extends WebSocketOfWs {
    constructor(url: string) {
      super(url);
      sockets.push(this);
    }
    /** The host answers in order: when this resolves, it has read all that was sent before. */
    async arrived(): Promise<void> {
      const pong = new Promise((resolve) => this.once("pong", resolve));
      this.ping();
      await pong;
    }
  }
  const { client } = connect(host, { ...options, query: { slow: "1" }, WebSocket: Pinging });
  client.send("first");
  const order = client.call<string[]>("order");
  client.send("second");
  // What the agent sends while it greets does not wait: identity and state are there.
  await client.ready;
  client.send("third");
  await sockets[0]?.arrived();
  expect(await stub.heard()).toEqual([]);
  expect(await stub.greetAll()).toBe(1);
  expect(await order).toEqual(["connected", "first", "rpc"]);
  await eventually(async () => expect(await stub.heard()).toEqual(["connected", "first", "rpc", "second", "third"]));
});

test("a client that leaves while it is being greeted is closed after that, once", async () => {
  const { host, stub } = await start();
  const closed: string[] = [];
  atEnd(subscribe("connection:closed", ({ payload }) => void closed.push(payload.connectionId)));
  const { client } = connect(host, { ...options, id: "gone", query: { slow: "1" } });
  await client.ready;
  client.close();
  await eventually(() => expect(host.status().connections).toBe(0));
  expect(closed).toEqual([]);
  await stub.greetAll();
  await eventually(() => expect(closed).toEqual(["gone"]));
  expect(await stub.ids()).toEqual([]);
});

test("an onConnect that throws closes with a code that lets the client come back", async () => {
  class Moody extends Base {
    tries = 0;
    override onConnect(): void {
      if (++this.tries < 3) throw new Error("not yet");
    }
    attempts(): number {
      return this.tries;
    }
  }
  const host = await startHost({ agents: { Moody } });
  const test = connect(host, { agent: "Moody", name: "x" });
  await eventually(async () => expect(await host.getAgentByName(Moody, "x").attempts()).toBe(3));
  expect(await test.client.call("ping")).toBe("pong");
  expect(test.closes.map(({ code }) => code)).toEqual([1011, 1011]);
  expect(takeFailures()).toEqual(["Moody/x connect: not yet", "Moody/x connect: not yet"]);
});

test("an onMessage that throws is reported to the agent and closes nothing", async () => {
  const { host, stub } = await start();
  const { client, closes } = await connected(host, options);
  client.send("throw");
  client.send("after");
  await client.call("ping");
  expect(await stub.heard()).toEqual(["connected", "after"]);
  expect(await stub.failures()).toEqual(["Error: bad message"]);
  expect(closes).toEqual([]);
});

test("frames wake an agent that has left memory, in their order", async () => {
  const { host, stub } = await start(20);
  const { client } = await connected(host, options);
  await asleep(host);
  const texts = Array.from({ length: 50 }, (_, i) => `n${i}`);
  for (const text of texts) client.send(text);
  await client.call("ping");
  expect(await stub.heard()).toEqual(texts);
});

test("a frame above the limit closes its connection with a reason, and what waits for an answer is told", async () => {
  const host = await startHost({ agents: { Ear }, limits: { frameBytes: 1_000 } });
  const refused: string[] = [];
  atEnd(subscribe("frame:refused", ({ payload }) => void refused.push(payload.reason)));
  const { client, closes } = await connected(host, options);
  client.send("y".repeat(1_000));
  await client.call("ping");
  await expect(client.call("ping", ["x".repeat(1_500)])).rejects.toThrow("onnection closed");
  await eventually(() =>
    expect(closes.map(({ code, reason }) => [code, reason])).toEqual([[1009, "a frame of more than 1000 bytes"]]),
  );
  expect(refused).toEqual(["a frame of more than 1000 bytes is more than this host takes"]);
  await eventually(async () => expect(await client.call("ping")).toBe("pong"));
  expect((await host.getAgentByName(Ear, "x").heard()).filter((text) => text.length > 20)).toEqual(["y".repeat(1_000)]);
});
