import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { agentFetch } from "agents/client";
import { Agent, callable, type Connection, type ConnectionContext } from "perdure";
import { createHost, type Host, memoryStorage, type Target } from "perdure/node";
import { expect, test } from "vitest";
import { Base, Counter } from "./fixtures.ts";
import { addressOf, atEnd, connect, connected, eventually, rawSocket, startHost } from "./harness.ts";

/** Says what it was reached with. */
class Echo extends Base {
  static override readonly subAgents = ["Inner"];
  static {
    callable(this, "uris");
  }
  override onConnect(connection: Connection, { request }: ConnectionContext): void {
    const { pathname, search } = new URL(request.url);
    connection.send(JSON.stringify({ type: "reached", pathname, search, cookie: request.headers.get("x-test") }));
  }
  override onRequest(request: Request): Response {
    const { pathname, search } = new URL(request.url);
    return Response.json({ name: this.name, pathname, search });
  }
  uris(): string[] {
    return [...this.getConnections()].map(({ uri }) => uri);
  }
}

class Inner extends Echo {}

const reachedBy = (frames: readonly { type: string }[]) => frames.find(({ type }) => type === "reached");

test("the query reaches onConnect with the client's id; empty values are dropped", async () => {
  const host = await startHost({ agents: { Echo } });
  const query = { token: "a b&c=ü", n: "1", none: null, gone: undefined };
  const { client, frames } = await connected(host, { agent: "Echo", name: "x", id: "me", query });
  await client.call("ping");
  const search = new URLSearchParams((reachedBy(frames) as { search?: string } | undefined)?.search);
  expect([...search]).toEqual([
    ["_pk", "me"],
    ["token", "a b&c=ü"],
    ["n", "1"],
  ]);
});

test("a query that is made anew for each connection reaches each of them", async () => {
  const host = await startHost({ agents: { Echo } });
  let n = 0;
  const test = connect(host, { agent: "Echo", name: "x", query: () => Promise.resolve({ n: String(++n) }) });
  await test.client.ready;
  await host.getAgentByName(Echo, "x").drop(1012);
  await eventually(() => expect(test.frames.filter(({ type }) => type === "reached")).toHaveLength(2));
  const seen = test.frames.filter(({ type }) => type === "reached").map(({ search }) => String(search));
  expect(seen.map((search) => new URLSearchParams(search).get("n"))).toEqual(["1", "2"]);
});

test("the path behind the address reaches the agent", async () => {
  const host = await startHost({ agents: { Echo } });
  const { client, frames, identities } = await connected(host, { agent: "Echo", name: "x", path: "deep/er%20path" });
  await client.call("ping");
  expect(reachedBy(frames)).toMatchObject({ pathname: "/agents/echo/x/deep/er%20path" });
  expect(identities).toEqual([{ name: "x", agent: "echo" }]);
  const response = await agentFetch({
    host: addressOf(host),
    agent: "Echo",
    name: "x",
    path: "a/b",
    query: { q: "1" },
  });
  expect(await response.json()).toEqual({ name: "x", pathname: "/agents/echo/x/a/b", search: "?q=1" });
});

test("the URL that a connection came with is kept", async () => {
  const host = await startHost({ agents: { Echo } });
  const { client } = await connected(host, { agent: "Echo", name: "x", id: "me", query: { a: "1" } });
  expect(await client.call("uris")).toEqual([`${host.url}/agents/echo/x?_pk=me&a=1`]);
});

test("empty segments do not matter", async () => {
  const host = await startHost({ agents: { Echo } });
  expect((await fetch(`${host.url}//agents///echo//x/`)).status).toBe(200);
});

test("another prefix, of several segments, for sockets and requests; the default one is then nobody's", async () => {
  const host = await startHost({ agents: { Counter, Echo }, prefix: "api/v1/bots" });
  const { client, identities } = await connected(host, { agent: "Counter", name: "x", prefix: "api/v1/bots" });
  expect(await client.call("add", [2])).toBe(2);
  expect(identities).toEqual([{ name: "x", agent: "counter" }]);
  const response = await agentFetch({ host: addressOf(host), agent: "Echo", name: "y", prefix: "api/v1/bots" });
  expect(await response.json()).toMatchObject({ name: "y" });
  expect((await fetch(`${host.url}/agents/echo/y`)).status).toBe(404);
});

test("unknown classes are 400, paths without a name or of another prefix 404", async () => {
  const host = await startHost({ agents: { Echo } });
  const status = async (path: string) => (await fetch(host.url + path)).status;
  expect(await status("/agents/nobody/x")).toBe(400);
  expect(await (await fetch(`${host.url}/agents/nobody/x`)).text()).toBe("Invalid request");
  for (const path of ["/", "/agents", "/agents/echo", "/agents/echo/", "/other/echo/x", "/agentsecho/x"]) {
    expect(await status(path), path).toBe(404);
  }
});

test("a client of an unknown class is told for good; one of a foreign path is not", async () => {
  const host = await startHost({ agents: { Echo } });
  const { client } = connect(host, { agent: "Nobody", name: "x" });
  await eventually(() => expect(client.connectionError).toMatchObject({ code: 4400 }));
  await expect(rawSocket(`${host.url}/elsewhere`)).rejects.toThrow("no connection");
});

test("classes that are only children cannot be reached at the root", async () => {
  const host = await startHost({ agents: { Echo }, subAgents: { Inner } });
  expect((await fetch(`${host.url}/agents/inner/x`)).status).toBe(400);
  expect((await fetch(`${host.url}/agents/echo/x/sub/inner/y`)).status).toBe(200);
});

test("an agent without onRequest answers 404", async () => {
  class Mute extends Agent {}
  const host = await startHost({ agents: { Mute } });
  const response = await fetch(`${host.url}/agents/mute/x`);
  expect([response.status, await response.text()]).toEqual([404, "Not implemented"]);
});

/** An app's own server: `/me…` is the agent that the header or the query names. */
async function mounted(host: Host): Promise<{ port: number; url: string }> {
  const target = (url = ""): Target | undefined => {
    const { pathname, searchParams } = new URL(url, "http://x");
    if (!pathname.startsWith("/me")) return undefined;
    return { agent: { className: "Echo", name: searchParams.get("user") ?? "guest" } };
  };
  const server = createServer((request, response) => {
    void (async () => {
      const answer = await host.fetch(new Request(`http://${request.headers.host}${request.url}`), target(request.url));
      response.writeHead(answer.status).end(await answer.text());
    })();
  });
  server.on("upgrade", (request, socket, head) => {
    void host.upgrade(request, socket, head, target(request.url)).then((ours) => {
      if (!ours) socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  atEnd(async () => {
    await eventually(() => expect(host.status().connections).toBe(0));
    await host.stop();
    server.closeAllConnections();
    server.close();
  });
  return { port, url: `http://127.0.0.1:${port}` };
}

test("basePath: the server chooses the agent, and the client learns which", async () => {
  const host = createHost({ agents: { Echo }, subAgents: { Inner }, storage: memoryStorage() });
  const server = await mounted(host);
  const query = { user: "Ada Lovelace" };
  const test = await connected(server, { agent: "whatever", name: "ignored", basePath: "me", path: "settings", query });
  expect(test.identities).toEqual([{ name: "Ada Lovelace", agent: "echo" }]);
  expect(test.client.name).toBe("Ada Lovelace");
  expect(test.client.agent).toBe("echo");
  await test.client.call("ping");
  expect(reachedBy(test.frames)).toMatchObject({ pathname: "/me/settings" });
  // Requests and server code reach the same instance.
  const response = await agentFetch({ host: addressOf(server), agent: "x", basePath: "me/a", query });
  expect(await response.json()).toMatchObject({ name: "Ada Lovelace", pathname: "/me/a" });
  expect(await host.getAgentByName(Echo, "Ada Lovelace").ids()).toEqual([test.client.id]);
});

test("basePath: children are found below it, and a literal sub in it is none", async () => {
  const host = createHost({ agents: { Echo }, subAgents: { Inner }, storage: memoryStorage() });
  const server = await mounted(host);
  const child = await connected(server, { agent: "x", basePath: "me", path: "sub/inner/room%201" });
  expect(child.identities).toEqual([{ name: "room 1", agent: "inner" }]);
  const literal = await connected(server, { agent: "x", basePath: "me/sub/way", path: "sub/inner/r" });
  expect(literal.identities).toEqual([{ name: "r", agent: "inner" }]);
  const none = await connected(server, { agent: "x", basePath: "me/sub" });
  expect(none.identities).toEqual([{ name: "guest", agent: "echo" }]);
});

test("basePath: another instance after a reconnect is reported as a change", async () => {
  const host = createHost({ agents: { Echo }, storage: memoryStorage() });
  const server = await mounted(host);
  let user = "ann";
  const changes: string[][] = [];
  const test = await connected(server, {
    agent: "x",
    basePath: "me",
    query: () => Promise.resolve({ user }),
    onIdentityChange: (...change) => void changes.push(change),
  });
  user = "bob";
  await host.getAgentByName(Echo, "ann").drop(1012);
  await eventually(() => expect(changes).toEqual([["ann", "bob", "echo", "echo"]]));
  expect(test.client.name).toBe("bob");
});

test("a mounted host leaves other upgrades alone", async () => {
  const host = createHost({ agents: { Echo }, storage: memoryStorage() });
  const server = await mounted(host);
  await expect(rawSocket(`${server.url}/elsewhere`)).rejects.toThrow("no connection");
  expect((await connected(server, { agent: "Echo", name: "plain" })).identities).toEqual([
    { name: "plain", agent: "echo" },
  ]);
});
