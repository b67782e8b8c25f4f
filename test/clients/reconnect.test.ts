import type { Connection } from "perdure";
import { expect, test } from "vitest";
import { WebSocket as WebSocketOfWs } from "ws";
import { Base } from "./fixtures.ts";
import { connect, connected, eventually, ofType, rawSocket, startHost } from "./harness.ts";

class Lobby extends Base {
  readonly log: string[] = [];

  override onConnect({ id }: Connection): void {
    this.log.push(`+${id}`);
  }
  override onClose({ id }: Connection, code: number, _reason: string, wasClean: boolean): void {
    this.log.push(`-${id} ${code} ${wasClean}`);
  }
  history(): string[] {
    return this.log;
  }
  tell(id: string, text: string): boolean {
    const connection = this.getConnection(id);
    connection?.send(text);
    return connection !== undefined;
  }
}

const options = { agent: "Lobby", name: "x" };

test("an ordinary close brings the client back under the same id", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const test = await connected(host, options);
  const { id } = test.client;
  for (const [round, code] of [1000, 1001, 1011, 1012, 1013, 3000].entries()) {
    await stub.drop(code, `code ${code}`);
    await eventually(() => expect(test.closes).toHaveLength(round + 1));
    expect(test.closes[round]?.code).toBe(code);
    await test.client.ready;
    expect(test.client.id).toBe(id);
    expect(test.client.connectionError).toBeNull();
    await eventually(async () => expect(await stub.ids()).toEqual([id]));
  }
  const log = await stub.history();
  expect(log.filter((line) => line === `+${id}`)).toHaveLength(7);
  expect(log.filter((line) => line.startsWith("-"))).toEqual(
    [1000, 1001, 1011, 1012, 1013, 3000].map((c) => `-${id} ${c} true`),
  );
});

test("1008 and 4000 to 4999 are for good", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  for (const code of [1008, 4000, 4403, 4999]) {
    const { client, closes, ...test } = await connected(host, options);
    await stub.drop(code, "go away");
    await eventually(() => expect(client.connectionError).not.toBeNull());
    expect(client.connectionError).toMatchObject({ code, reason: "go away", wasClean: true });
    expect(closes).toEqual([{ code, reason: "go away" }]);
    expect(client.shouldReconnect).toBe(false);
    expect(test.identities).toHaveLength(1);
  }
  await eventually(async () => expect(await stub.ids()).toEqual([]));
});

test("a client that gave up comes back when the app asks for it", async () => {
  const host = await startHost({ agents: { Lobby } });
  const { client, identities } = await connected(host, options);
  await host.getAgentByName(Lobby, "x").drop(4001);
  await eventually(() => expect(client.connectionError).not.toBeNull());
  client.reconnect();
  await client.ready;
  expect(client.connectionError).toBeNull();
  expect(identities).toHaveLength(2);
});

test("the app's own word on reconnecting is kept beside the close codes", async () => {
  const host = await startHost({ agents: { Lobby } });
  const { client } = await connected(host, { ...options, shouldReconnectOnClose: ({ code }) => code !== 1011 });
  const stub = host.getAgentByName(Lobby, "x");
  await stub.drop(1012);
  await eventually(async () => expect((await stub.history()).filter((line) => line.startsWith("+"))).toHaveLength(2));
  await client.ready;
  await stub.drop(1011);
  await eventually(() => expect(client.connectionError).toMatchObject({ code: 1011 }));
});

test("a code that may not be sent is refused where it is used", async () => {
  const host = await startHost({ agents: { Lobby } });
  const { client } = await connected(host, options);
  for (const code of [999, 1005, 1006, 2000, 5000]) {
    await expect(host.getAgentByName(Lobby, "x").drop(code)).rejects.toThrow(`${code} is not a close code`);
  }
  expect(await client.call("ping")).toBe("pong");
});

test("two live sockets with one id are two connections", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const a = await connected(host, { ...options, id: "same" });
  const b = await connected(host, { ...options, id: "same" });
  expect(await stub.ids()).toEqual(["same", "same"]);
  expect(await a.client.call("ping")).toBe("pong");
  expect(await b.client.call("ping")).toBe("pong");
  await stub.say('{"type":"hello"}');
  for (const { client, frames } of [a, b]) {
    await client.call("ping");
    expect(ofType(frames, "hello")).toHaveLength(1);
  }
});

test("the late close of the old socket does not take the new one away", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const old = await connected(host, { ...options, id: "same" });
  const fresh = await connected(host, { ...options, id: "same" });
  old.client.close();
  await eventually(async () => expect(await stub.ids()).toEqual(["same"]));
  expect(await stub.tell("same", '{"type":"still here"}')).toBe(true);
  await fresh.client.call("ping");
  expect(ofType(fresh.frames, "still here")).toHaveLength(1);
});

test("an id is found as its newest socket", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const old = await connected(host, { ...options, id: "same" });
  const fresh = await connected(host, { ...options, id: "same" });
  await stub.tell("same", '{"type":"for you"}');
  await old.client.call("ping");
  await fresh.client.call("ping");
  expect(ofType(old.frames, "for you")).toHaveLength(0);
  expect(ofType(fresh.frames, "for you")).toHaveLength(1);
});

test("a client that leaves is reported with its code", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const { client } = await connected(host, { ...options, id: "me" });
  client.close(4321, "bye");
  await eventually(async () => expect(await stub.history()).toEqual(["+me", "-me 4321 true"]));
});

test("without an id the host makes one up, and a different one each time", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  for (const query of ["", "?_pk=", `?_pk=${"x".repeat(5_000)}`]) await rawSocket(`${host.url}/agents/lobby/x${query}`);
  const ids = await eventually(async () => {
    const found = await stub.ids();
    expect(found).toHaveLength(3);
    return found;
  });
  expect(new Set(ids).size).toBe(3);
  expect(ids.every((id) => id.length > 0 && id.length < 100)).toBe(true);
});

test("many clients at once all come back", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const tests = Array.from({ length: 40 }, () => connect(host, options));
  await Promise.all(tests.map(({ client }) => client.ready));
  expect(await stub.drop(1012)).toBe(40);
  await eventually(() => expect(tests.every(({ closes }) => closes.length === 1)).toBe(true));
  await Promise.all(tests.map(({ client }) => client.ready));
  expect(new Set(await stub.ids())).toEqual(new Set(tests.map(({ client }) => client.id)));
});

test("a socket that breaks without a word is noticed, and its client may come back", async () => {
  const host = await startHost({ agents: { Lobby } });
  const stub = host.getAgentByName(Lobby, "x");
  const ws = new WebSocketOfWs(`${host.url.replace("http", "ws")}/agents/lobby/x?_pk=me`);
  await new Promise((resolve) => ws.once("open", resolve));
  await eventually(async () => expect(await stub.ids()).toEqual(["me"]));
  ws.terminate();
  await eventually(async () => expect(await stub.history()).toEqual(["+me", "-me 1006 false"]));
  await connected(host, { ...options, id: "me" });
  expect(await stub.ids()).toEqual(["me"]);
});
