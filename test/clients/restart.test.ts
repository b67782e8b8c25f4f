import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createHost, type Host, serve } from "perdure/node";
import { expect, test } from "vitest";
import { Base, type Count, Counter } from "./fixtures.ts";
import { atEnd, connected, eventually, startHost, stopHost, tempDir } from "./harness.ts";

const held: (() => void)[] = [];

class Notes extends Base<Count> {
  static override options = { allowClientState: true };
  override initialState: Count = { count: 0 };
  readonly log: string[] = [];

  override onMessage(_connection: unknown, message: string | Uint8Array): void {
    this.log.push(String(message));
  }
  heard(): string[] {
    return this.log;
  }
  async hold(): Promise<string> {
    await new Promise<void>((resolve) => held.push(resolve));
    return "done";
  }
  read(): number {
    return this.state.count;
  }
}

test("a restart of the host is a short drop: same id, same state, and a call waits for it", async () => {
  const first = await startHost({ agents: { Counter } });
  const { port } = first;
  const test = await connected<Count>(first, { agent: "Counter", name: "x" });
  await test.client.call("add", [5]);
  const dir = await stopHost(first);
  await eventually(() => expect(test.closes.length).toBeGreaterThan(0));
  expect(test.closes[0]).toEqual({ code: 1012, reason: "host restarts" });
  const waiting = test.client.call("add", [1]);
  const second = await serve({ agents: { Counter }, port, dir, signals: false });
  atEnd(() => second.stop());
  atEnd(() => test.client.close());
  expect(await waiting).toBe(6);
  expect(test.client.state).toEqual({ count: 6 });
  expect(await second.getAgentByName(Counter, "x").ids()).toEqual([test.client.id]);
});

/** An app's server that stays while the host behind it is replaced. */
async function mount(current: () => Host): Promise<{ port: number; server: Server }> {
  const server = createServer();
  server.on("upgrade", (request, socket, head) => void current().upgrade(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, server };
}

test("a mounted host that stops opens no socket in vain: what the client queued waits for the next host", async () => {
  const dir = tempDir();
  let host = createHost({ agents: { Notes }, dir });
  const { port, server } = await mount(() => host);
  atEnd(async () => {
    await host.stop();
    server.closeAllConnections();
    server.close();
  });
  const test = await connected<Count>({ port }, { agent: "Notes", name: "x" });
  const busy = host.getAgentByName(Notes, "x").hold();
  await eventually(() => expect(held).toHaveLength(1));
  const stopped = host.stop();
  await eventually(() => expect(test.closes.length).toBeGreaterThan(0));
  test.client.setState({ count: 7 });
  test.client.send("queued text");
  const call = test.client.call("ping");
  // Refused while the host still waits for its work, and after that.
  await eventually(() => expect(test.closes.length).toBeGreaterThan(2));
  held.splice(0).forEach((resolve) => resolve());
  expect(await busy).toBe("done");
  await stopped;
  const tries = test.closes.length;
  await eventually(() => expect(test.closes.length).toBeGreaterThan(tries));
  expect(test.opens).toBe(1);
  host = createHost({ agents: { Notes }, dir });
  expect(await call).toBe("pong");
  expect(test.opens).toBe(2);
  const stub = host.getAgentByName(Notes, "x");
  expect(await stub.heard()).toEqual(["queued text"]);
  expect(await stub.read()).toBe(7);
});
