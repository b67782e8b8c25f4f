import { once } from "node:events";
import { createServer, get, Agent as HttpAgent } from "node:http";
import type { IncomingMessage, RequestListener, Server } from "node:http";
import net from "node:net";
import type { AddressInfo } from "node:net";
import express from "express";
import { Hono } from "hono";
import { getRequestListener } from "@hono/node-server";
import { Agent, type AgentEnv, callable } from "perdure";
import { createHost } from "perdure/node";
import type { Host } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHost, tempDir } from "./open-host.ts";

class Counter extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "add");
  }
  override initialState = { count: 0 };

  override async onRequest(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const body = await request.text();
    return Response.json({ name: this.name, method: request.method, pathname, q: searchParams.get("q"), body });
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
}

function openAgents(): Host {
  const host = createHost({ agents: { Counter }, dir: tempDir() });
  onTestFinished(() => host.stop());
  return host;
}

/** A server of the app's own, with the host behind it. */
async function listen(host: Host, listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener);
  server.on("upgrade", (request, socket, head) => {
    void host.upgrade(request, socket, head).then((ours) => {
      if (!ours) socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** What must work whatever the agents are mounted in. */
async function tryAll(url: string): Promise<unknown> {
  const answer = await fetch(`${url}/agents/counter/anna/extra?q=1`, { method: "POST", body: "hello ".repeat(1000) });
  const client = await connect({ url }, "/agents/counter/anna");
  const text = async (init?: RequestInit) => (await fetch(`${url}/own`, init)).text();
  return {
    agent: await answer.json(),
    call: await client.call("add", 2),
    unknownClass: (await fetch(`${url}/agents/nothing/x`)).status,
    own: [await text(), await text({ method: "POST", body: "mine" })],
    elsewhere: (await fetch(`${url}/elsewhere`)).status,
  };
}

const allWorks = {
  agent: { name: "anna", method: "POST", pathname: "/agents/counter/anna/extra", q: "1", body: "hello ".repeat(1000) },
  call: 2,
  unknownClass: 400,
  own: ["the app's own", "the app got mine"],
  elsewhere: 404,
};

test("mounted in plain node:http", async () => {
  const host = openAgents();
  const { url } = await listen(host, (request, response) => {
    host.handler(request, response, () => {
      if (request.url !== "/own") return response.writeHead(404).end();
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => response.end(body === "" ? "the app's own" : `the app got ${body}`));
    });
  });
  expect(await tryAll(url)).toEqual(allWorks);
});

test("mounted in Express", async () => {
  const host = openAgents();
  const app = express();
  app.use(host.handler);
  app.get("/own", (_, response) => void response.send("the app's own"));
  app.post("/own", express.text({ type: () => true }), (request, response) => {
    response.send(`the app got ${String(request.body)}`);
  });
  const { url } = await listen(host, app);
  expect(await tryAll(url)).toEqual(allWorks);
});

test("mounted in Hono", async () => {
  const host = openAgents();
  const app = new Hono();
  app.all("/agents/*", (c) => host.fetch(c.req.raw));
  app.get("/own", (c) => c.text("the app's own"));
  app.post("/own", async (c) => c.text(`the app got ${await c.req.text()}`));
  const { url } = await listen(host, getRequestListener(app.fetch));
  expect(await tryAll(url)).toEqual(allWorks);
});

test("an upgrade whose address no Request can have is answered, and does not end the process", async () => {
  const { server } = await listen(openAgents(), (_, response) => response.end());
  const { port } = server.address() as AddressInfo;
  const socket = net.connect(port, "127.0.0.1");
  socket.write(
    "GET /agents/counter/a HTTP/1.1\r\nHost: name:password@example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 /);
});

test("a refusal made by fetch counts also when the app's server has replaced the global classes", async () => {
  const own = { Response: globalThis.Response, Request: globalThis.Request };
  onTestFinished(() => void Object.assign(globalThis, own));
  const login = await listen(openAgents(), (_, response) => response.writeHead(401).end("no"));
  // By default it puts its own Request and Response in the place of the global ones.
  getRequestListener(() => new Response());
  const refuse = () => fetch(login.url);
  expect(await refuse()).not.toBeInstanceOf(globalThis.Response);
  const host = createHost({ agents: { Counter }, dir: tempDir(), onBeforeRequest: refuse, onBeforeConnect: refuse });
  onTestFinished(() => host.stop());
  const { url } = await listen(host, host.handler);
  expect((await fetch(`${url}/agents/counter/a`)).status).toBe(401);
  const client = await connect({ url }, "/agents/counter/a", { greeted: false });
  expect((await client.whenClosed()).code).toBe(4401);
});

test("a hook that answers with something else lets nothing pass", async () => {
  const odd = () => ({ allowed: false }) as unknown as Response;
  const host = createHost({ agents: { Counter }, dir: tempDir(), onBeforeRequest: odd, onBeforeConnect: odd });
  onTestFinished(() => host.stop());
  const { url } = await listen(host, host.handler);
  expect((await fetch(`${url}/agents/counter/a`)).status).toBe(500);
  await expect(connect({ url }, "/agents/counter/a")).rejects.toThrow("500");
});

test("a hook that refuses a socket with a response that cannot be read does not end the process", async () => {
  const used = new Response("used", { status: 500 });
  await used.text();
  const answers = [used, Response.error()];
  const host = createHost({ agents: { Counter }, dir: tempDir(), onBeforeConnect: () => answers.pop() });
  onTestFinished(() => host.stop());
  const { url } = await listen(host, host.handler);
  for (const _ of [1, 2]) await expect(connect({ url }, "/agents/counter/a")).rejects.toThrow("500");
  expect(await (await connect({ url }, "/agents/counter/a")).call("add", 1)).toBe(1);
});

test("without `next`, paths that are not an agent's are answered with 404", async () => {
  const host = openAgents();
  const { url } = await listen(host, host.handler);
  expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
  expect((await fetch(`${url}/agents/counter/a`)).status).toBe(200);
});

test("serve: health, the app's own pages, and 404 for the rest", async () => {
  const host = await openHost({
    agents: { Counter },
    fetch: (request) => new Response("page", { status: new URL(request.url).pathname === "/" ? 200 : 404 }),
  });
  await connect(host, "/agents/counter/a");
  const health = await fetch(`${host.url}/health`);
  expect(health.status).toBe(200);
  expect(await health.json()).toEqual({ ok: true, live: 1, kept: 1, connections: 1 });
  expect(await (await fetch(`${host.url}/`)).text()).toBe("page");
  expect((await fetch(`${host.url}/x`)).status).toBe(404);
  const other = await openHost({ agents: { Counter }, healthPath: "/up" });
  expect((await fetch(`${other.url}/up`)).status).toBe(200);
  expect((await fetch(`${other.url}/health`)).status).toBe(404);
});

test("a proxy in front closes idle connections before the server does, so that it loses no request in one", async () => {
  const host = await openHost({ agents: { Counter } });
  const agent = new HttpAgent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const { headers } = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${host.url}/health`, { agent }, (answer) => resolve(answer.resume())).on("error", reject);
  });
  const seconds = Number(/timeout=(\d+)/.exec(String(headers["keep-alive"]))?.[1]);
  // What nginx, HAProxy and the load balancers of clouds do unless they are told otherwise.
  expect(seconds).toBeGreaterThan(60);
});

test("an app may choose the agent itself, for requests and for sockets", async () => {
  const host = openAgents();
  const server = createServer();
  server.on("upgrade", (request, socket, head) => {
    void host.upgrade(request, socket, head, { agent: { className: "Counter", name: "me" } });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = await connect({ url }, "/me");
  expect(client.frames[0]).toMatchObject({ type: "cf_agent_identity", name: "me", agent: "counter" });
  const target = { agent: { className: "Counter", name: "me" } };
  const response = await host.fetch(new Request("http://host/me"), target);
  expect(await response.json()).toMatchObject({ name: "me" });
  const unknown = { agent: { className: "Nothing", name: "me" } };
  expect((await host.fetch(new Request("http://host/me"), unknown)).status).toBe(404);
});

test("hooks before a request and before a socket: refuse, replace, let pass", async () => {
  const asked: string[] = [];
  const host = await openHost({
    agents: { Counter },
    onBeforeRequest(request, { className, name }) {
      asked.push(`request ${className}/${name}`);
      if (name === "secret") return new Response("no", { status: 401 });
      if (name === "other") return new Request(`${request.url}?q=replaced`, request);
      return undefined;
    },
    onBeforeConnect(_request, { name }) {
      asked.push(`connect ${name}`);
      if (name === "secret") return new Response("no", { status: 401 });
      if (name === "busy") return new Response("later", { status: 503 });
      return undefined;
    },
  });
  expect((await fetch(`${host.url}/agents/counter/secret`)).status).toBe(401);
  expect(await (await fetch(`${host.url}/agents/counter/other`)).json()).toMatchObject({ q: "replaced" });
  const refused = await connect(host, "/agents/counter/secret", { greeted: false });
  expect((await refused.whenClosed()).code).toBe(4401);
  await expect(connect(host, "/agents/counter/busy")).rejects.toThrow("503");
  await connect(host, "/agents/counter/anna");
  expect(asked).toEqual([
    "request Counter/secret",
    "request Counter/other",
    "connect secret",
    "connect busy",
    "connect anna",
  ]);
});

test("cross-origin access is off by default, open when asked for", async () => {
  const closed = await openHost({ agents: { Counter } });
  expect((await fetch(`${closed.url}/agents/counter/a`)).headers.get("access-control-allow-origin")).toBeNull();
  const open = await openHost({ agents: { Counter }, cors: true });
  const preflight = await fetch(`${open.url}/agents/counter/a`, { method: "OPTIONS" });
  expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
  const answer = await fetch(`${open.url}/agents/counter/a`);
  expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
});
