import { request } from "node:http";
import { expect, test } from "vitest";
import { Counter } from "./fixtures.ts";
import { connect, connected, eventually, rawSocket, startHost } from "./harness.ts";

test("Cap'n Web is refused for good, and says so", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client, closes } = connect(host, { agent: "Counter", name: "x", transport: "capnweb" });
  const call = client.call("add", [1]);
  await expect(call).rejects.toThrow("4400 transport not supported");
  await eventually(() => expect(client.connectionError).toMatchObject({ code: 4400 }));
  expect(closes[0]?.reason).toBe("transport not supported");
  // The agent was not even woken.
  expect(host.status()).toMatchObject({ live: 0, connections: 0 });
});

test("one of the offered sub-protocols is chosen", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client } = await connected(host, { agent: "Counter", name: "x", protocols: ["first.v1", "second"] });
  expect(client.protocol).toBe("first.v1");
  const plain = await connected(host, { agent: "Counter", name: "x" });
  expect(plain.client.protocol).toBe("");
  const refused = await rawSocket(`${host.url}/agents/nobody/x`, ["one", "two"]);
  expect(refused.ws.protocol).toBe("one");
});

test("an upgrade header of any case is an upgrade", async () => {
  const host = await startHost({ agents: { Counter } });
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const upgrading = request(`${host.url}/agents/counter/x`, {
      headers: {
        Connection: "Upgrade",
        Upgrade: "WebSocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": Buffer.from("0123456789abcdef").toString("base64"),
      },
    });
    upgrading.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    upgrading.on("response", (response) => resolve(response.statusCode));
    upgrading.on("error", reject);
    upgrading.end();
  });
  expect(status).toBe(101);
});

test("an upgrade that is no proper WebSocket handshake is refused, and nothing is left behind", async () => {
  const host = await startHost({ agents: { Counter } });
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const upgrading = request(`${host.url}/agents/counter/x`, {
      headers: { Connection: "Upgrade", Upgrade: "websocket" },
    });
    upgrading.on("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    upgrading.on("error", reject);
    upgrading.end();
  });
  expect(status).toBe(400);
  expect(host.status()).toMatchObject({ live: 0, connections: 0 });
});

test("one connection too many is told to try later, and gets in when there is room", async () => {
  const host = await startHost({ agents: { Counter }, limits: { connectionsPerAgent: 2 } });
  const a = await connected(host, { agent: "Counter", name: "x" });
  await connected(host, { agent: "Counter", name: "x" });
  const third = connect(host, { agent: "Counter", name: "x" });
  await eventually(() => expect(third.closes[0]).toMatchObject({ code: 1013 }));
  a.client.close();
  await eventually(() => expect(third.client.identified).toBe(true));
});

test("hundreds of sockets on one agent all hear a change", async () => {
  const host = await startHost({ agents: { Counter } });
  const tests: ReturnType<typeof connect>[] = [];
  // Some at a time: the public client gives a connection up that takes seconds, and all at once they do on a busy machine.
  for (let round = 0; round < 10; round++) {
    const some = Array.from({ length: 30 }, () => connect(host, { agent: "Counter", name: "x" }));
    await Promise.all(some.map(({ client }) => client.ready));
    tests.push(...some);
  }
  await host.getAgentByName(Counter, "x").add(3);
  await eventually(() =>
    expect(tests.every(({ client }) => (client.state as { count: number }).count === 3)).toBe(true),
  );
});
