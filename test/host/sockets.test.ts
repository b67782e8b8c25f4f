import net from "node:net";
import { Agent, type AgentEnv, callable } from "perdure";
import type { Connection } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost, quiet } from "./open-host.ts";

class Room extends Agent<AgentEnv, { text: string }> {
  static {
    callable(this, "shout");
    callable(this, "hello");
  }
  override initialState = { text: "" };
  override onMessage(connection: Connection, message: string | Uint8Array): void {
    if (typeof message === "string") this.broadcast(message, [connection.id]);
    else connection.send(message);
  }
  shout(bytes: number): void {
    this.broadcast("x".repeat(bytes));
  }
  hello(): string {
    return "hello";
  }
}

test("a reader that never reads is dropped, and the others get everything", async () => {
  const dropped: string[] = [];
  onTestFinished(subscribe("connection:dropped", ({ payload }) => dropped.push(payload.connectionId)));
  const host = await openHost({ agents: { Room }, storage: memoryStorage(), limits: { sendBufferBytes: 100_000 } });
  const quick = await connect(host, "/agents/room/a?_pk=quick");
  const slow = await connect(host, "/agents/room/a?_pk=slow");
  slow.ws.pause();
  let sent = 0;
  while (dropped.length === 0) {
    await quick.call("shout", 90_000);
    sent++;
    expect(sent).toBeLessThan(1000);
  }
  expect(dropped).toEqual(["slow"]);
  expect(quick.frames.filter(({ text }) => typeof text === "string" && text.length === 90_000)).toHaveLength(sent);
  await eventually(() => host.status().connections === 1, "the slow one is gone");
  slow.ws.resume();
  expect((await slow.whenClosed()).code).toBe(1006);
  expect(await quick.call("hello")).toBe("hello");
});

test("one frame that is larger than the send buffer reaches everyone who reads", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage(), limits: { sendBufferBytes: 10_000 } });
  const [one, other] = [await connect(host, "/agents/room/a"), await connect(host, "/agents/room/a")];
  await one.call("shout", 20_000_000);
  await other.frame(({ text }) => typeof text === "string" && text.length === 20_000_000);
  expect([await one.call("hello"), await other.call("hello")]).toEqual(["hello", "hello"]);
});

test("what is neither text nor bytes is refused where it is sent, and harms nobody", async () => {
  class Careless extends Agent<AgentEnv, { count: number }> {
    static {
      callable(this, "careless");
      callable(this, "count");
    }
    override initialState = { count: 0 };
    careless(): void {
      this.setState({ count: this.state.count + 1 });
      const data: unknown = { not: "text" };
      this.broadcast(data as string);
    }
    count(): number {
      return this.state.count;
    }
  }
  const host = await openHost({ agents: { Careless } });
  const [one, other] = [await connect(host, "/agents/careless/a"), await connect(host, "/agents/careless/a")];
  await expect(one.call("careless")).rejects.toThrow("text or bytes");
  expect([await one.call("count"), await other.call("count")]).toEqual([1, 1]);
});

test("a frame that is too large closes its socket with 1009 and a reason; nobody else notices", async () => {
  const refused: string[] = [];
  onTestFinished(subscribe("frame:refused", ({ payload }) => refused.push(payload.reason)));
  const host = await openHost({ agents: { Room }, storage: memoryStorage(), limits: { frameBytes: 1000 } });
  const [client, binary, parts, other] = await Promise.all(
    ["a", "a", "a", "a"].map((name) => connect(host, `/agents/room/${name}`)),
  );
  client?.send("y".repeat(1000));
  await other?.frame(({ text }) => text === "y".repeat(1000));
  client?.send("y".repeat(1001));
  binary?.send(new Uint8Array(10_000_000));
  // In pieces, none of which is too large.
  for (let i = 0; i < 3; i++) parts?.ws.send("z".repeat(400), { fin: false });
  for (const one of [client, binary, parts]) {
    expect(await one?.whenClosed()).toEqual({ code: 1009, reason: "a frame of more than 1000 bytes" });
  }
  expect(refused).toEqual(
    Array.from({ length: 3 }, () => "a frame of more than 1000 bytes is more than this host takes"),
  );
  expect(other?.frames.filter(({ text, bytes }) => typeof text === "string" || bytes !== undefined)).toHaveLength(1);
  expect(await other?.call("hello")).toBe("hello");
});

test("a frame limit above what can be bounded is still a bound", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage(), limits: { frameBytes: 2 ** 32 } });
  const socket = await connect(host, "/agents/room/a");
  // The head of a masked text frame of 3 GiB.
  const { _socket: tcp } = socket.ws as unknown as { _socket: { write(data: Uint8Array): void } };
  tcp.write(Uint8Array.of(0x81, 0xff, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0));
  expect((await socket.whenClosed()).code).toBe(1009);
});

test("one connection more than an agent takes is closed with 1013", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage(), limits: { connectionsPerAgent: 2 } });
  const [first] = [await connect(host, "/agents/room/a"), await connect(host, "/agents/room/a")];
  const third = await connect(host, "/agents/room/a", { greeted: false });
  expect(await third.whenClosed()).toEqual({ code: 1013, reason: "too many connections" });
  await connect(host, "/agents/room/b");
  first.ws.close();
  await eventually(() => host.status().connections === 2, "the first one leaves");
  await connect(host, "/agents/room/a");
});

test("frames wait while onConnect runs, in order; a client that floods it is dropped", async () => {
  const gate = Promise.withResolvers<void>();
  const seen: unknown[] = [];
  class Slow extends Agent {
    override async onConnect(): Promise<void> {
      await gate.promise;
    }
    override onMessage(_connection: Connection, message: string | Uint8Array): void {
      seen.push(message);
    }
  }
  const dropped: string[] = [];
  onTestFinished(subscribe("connection:dropped", ({ payload }) => dropped.push(payload.reason)));
  const host = await openHost({ agents: { Slow }, storage: memoryStorage(), limits: { sendBufferBytes: 10_000 } });
  const polite = await connect(host, "/agents/slow/a");
  const flood = await connect(host, "/agents/slow/a");
  for (const text of ["one", "two", "three"]) polite.send(text);
  for (let i = 0; i < 20; i++) flood.send("f".repeat(1000));
  expect((await flood.whenClosed()).code).toBe(1006);
  expect(dropped).toEqual(["more than 10000 bytes came before it was connected"]);
  expect(seen).toEqual([]);
  gate.resolve();
  await eventually(() => seen.length === 3, "the frames are handed over");
  expect(seen).toEqual(["one", "two", "three"]);
});

test("binary frames come and go as bytes", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage() });
  const client = await connect(host, "/agents/room/a");
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  client.send(bytes);
  expect(await client.frame((frame) => "bytes" in frame)).toEqual({ bytes });
});

test("the first of the offered sub-protocols is chosen, as browsers demand", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage() });
  const client = await connect(host, "/agents/room/a", { protocol: undefined });
  expect(client.ws.protocol).toBe("");
  const socket = new (await import("ws")).WebSocket(`${host.url.replace("http", "ws")}/agents/room/a`, ["one", "two"]);
  onTestFinished(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  expect(socket.protocol).toBe("one");
});

test("an unknown class is refused for good, another path is not ours", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage() });
  const client = await connect(host, "/agents/nothing/a", { greeted: false });
  expect((await client.whenClosed()).code).toBe(4400);
  await expect(connect(host, "/elsewhere", { greeted: false })).rejects.toThrow("404");
});

test("upgrades that make no sense do not end the process", async () => {
  const host = await openHost({ agents: { Room }, storage: memoryStorage() });
  const upgrade = (start: string, hostHeader: string) =>
    `${start}\r\nHost: ${hostHeader}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
  const answers = await Promise.all(
    [
      upgrade("GET /agents/room/a HTTP/1.1", "[not a host"),
      upgrade("GET /agents/room/a HTTP/1.1", "a b"),
      upgrade("GET /agents/room/%E0%A4%A HTTP/1.1", "localhost"),
      upgrade("GET //// HTTP/1.1", "localhost"),
      upgrade("GET /agents/room/a HTTP/1.1", "localhost").replace("Sec-WebSocket-Key: ", "Sec-WebSocket-Key: bad "),
    ].map((text) => rawAnswer(host.port, text)),
  );
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 (400|404|101) /);
  await quiet();
  const client = await connect(host, "/agents/room/a");
  expect(await client.call("hello")).toBe("hello");
});

/** The first bytes that a server answers to `text`. */
function rawAnswer(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text));
    socket.once("data", (data) => {
      resolve(data.toString());
      socket.destroy();
    });
    socket.once("close", () => resolve(""));
    socket.once("error", reject);
  });
}
