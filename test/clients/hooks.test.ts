import { agentFetch } from "agents/client";
import type { Connection, ConnectionContext } from "perdure";
import type { AgentStep } from "perdure/host";
import { expect, test, vi } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, atEnd, connect, connected, eventually, startHost, takeFailures } from "./harness.ts";

class Bare extends Base {
  static override readonly subAgents = ["Child"];
  override onConnect(connection: Connection, { request }: ConnectionContext): void {
    connection.send(JSON.stringify({ type: "user", user: request.headers.get("x-user"), url: request.url }));
  }
  override async onRequest(request: Request): Promise<Response> {
    const user = request.headers.get("x-user");
    const { pathname, search } = new URL(request.url);
    return Response.json({ user, method: request.method, url: pathname + search, body: await request.text() });
  }
}
class Child extends Bare {}

const agents = { agents: { Bare }, subAgents: { Child } };
const to = { agent: "Bare", name: "x" };

test("a hook that returns nothing lets pass, and is told which agent is meant", async () => {
  const asked: string[] = [];
  const note = (kind: string) => (request: Request, agent: AgentStep) => {
    asked.push(`${kind} ${request.method} ${new URL(request.url).pathname} ${agent.className}/${agent.name}`);
  };
  const host = await startHost({ ...agents, onBeforeConnect: note("connect"), onBeforeRequest: note("request") });
  const { client } = await connected(host, { agent: "Bare", name: "a b", path: "sub/child/c" });
  await client.call("ping");
  await agentFetch({ host: addressOf(host), ...to });
  expect(asked).toEqual(["connect GET /agents/bare/a%20b/sub/child/c Bare/a b", "request GET /agents/bare/x Bare/x"]);
});

test("a refused request gets the answer, and the agent is not woken", async () => {
  const host = await startHost({
    ...agents,
    onBeforeRequest: () =>
      Promise.resolve(new Response("who are you?", { status: 401, headers: { "www-authenticate": "Bearer" } })),
  });
  const response = await agentFetch({ host: addressOf(host), ...to });
  expect([response.status, await response.text(), response.headers.get("www-authenticate")]).toEqual([
    401,
    "who are you?",
    "Bearer",
  ]);
  expect(host.status()).toMatchObject({ live: 0, kept: 0 });
});

test("a refused socket is closed for good after a 4xx, and the agent is not woken", async () => {
  const host = await startHost({ ...agents, onBeforeConnect: () => new Response("no", { status: 403 }) });
  const { client, identities } = connect(host, to);
  await eventually(() => expect(client.connectionError).toMatchObject({ code: 4403 }));
  expect(identities).toEqual([]);
  expect(host.status()).toMatchObject({ live: 0, kept: 0 });
});

test("a socket refused with another status is let in when the hook changes its mind, and nothing queued is lost", async () => {
  let tries = 0;
  const onBeforeConnect = () => (++tries < 3 ? new Response("busy", { status: 503 }) : undefined);
  const host = await startHost({ ...agents, onBeforeConnect });
  const test = connect(host, to);
  // Queued by the client; it would leave with the first socket that opens, so none may open in vain.
  expect(await test.client.call("ping")).toBe("pong");
  expect(tries).toBe(3);
  expect(test.opens).toBe(1);
});

test("a token in the query decides, as apps do it", async () => {
  const host = await startHost({
    ...agents,
    onBeforeConnect(request) {
      const token = new URL(request.url).searchParams.get("token");
      return token === "good" ? undefined : new Response("bad token", { status: 401 });
    },
  });
  const good = await connected(host, { ...to, query: { token: "good" } });
  expect(await good.client.call("ping")).toBe("pong");
  const bad = connect(host, { ...to, query: { token: "bad" } });
  await eventually(() => expect(bad.client.connectionError).toMatchObject({ code: 4401 }));
});

test("a hook may replace a socket's request: the agent sees the new headers", async () => {
  const host = await startHost({
    ...agents,
    onBeforeConnect(request) {
      const headers = new Headers(request.headers);
      headers.set("x-user", "ada");
      return new Request(request, { headers });
    },
  });
  for (const path of ["", "sub/child/c"]) {
    const { client, frames } = await connected(host, { ...to, path });
    await client.call("ping");
    expect(frames.find(({ type }) => type === "user")).toMatchObject({ user: "ada" });
  }
});

test("a hook may replace a request from the one it got: method, body and query stay unless it says so", async () => {
  const host = await startHost({
    ...agents,
    onBeforeRequest(request) {
      const headers = new Headers(request.headers);
      headers.set("x-user", "ada");
      return new Request(request, { headers });
    },
  });
  for (const path of ["", "sub/child/c"]) {
    const init = { method: "POST", body: "some text" };
    const response = await agentFetch({ host: addressOf(host), ...to, path, query: { q: "1" } }, init);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ user: "ada", method: "POST", body: "some text" });
  }
});

test("a replaced request may bring another query; the agent stays the one addressed", async () => {
  const host = await startHost({
    ...agents,
    onBeforeRequest(request) {
      const url = new URL(request.url);
      return url.searchParams.has("own")
        ? new Request(`${url.origin}/agents/bare/other?mine=1`, { method: "PUT", body: "x" })
        : undefined;
    },
  });
  const own = await agentFetch({ host: addressOf(host), ...to, query: { own: "1" } });
  expect(await own.json()).toEqual({ user: null, method: "PUT", url: "/agents/bare/other?mine=1", body: "x" });
  const kept = await agentFetch({ host: addressOf(host), ...to, query: { kept: "1" } });
  expect(await kept.json()).toMatchObject({ url: "/agents/bare/x?kept=1" });
  expect(host.listAgents()).not.toContain("Bare/other");
});

test("a hook that throws: 500 by request, another try by socket, no details, and a report", async () => {
  const log = vi.spyOn(console, "error").mockImplementation(() => {});
  atEnd(() => log.mockRestore());
  const fail = () => {
    throw new Error("secret of the hook");
  };
  const host = await startHost({ ...agents, onBeforeRequest: fail, onBeforeConnect: fail });
  const response = await agentFetch({ host: addressOf(host), ...to });
  expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  const test = connect(host, to);
  await eventually(() => expect(test.closes.length).toBeGreaterThan(1));
  test.client.close();
  expect(test.client.connectionError).toBeNull();
  expect(JSON.stringify(test.closes)).not.toContain("secret");
  expect(takeFailures()[0]).toBe("Bare/x onBeforeRequest: secret of the hook");
  expect(log).toHaveBeenCalled();
});

test("an agent may hand its request on, copy it, and read the copy", async () => {
  class Proxy extends Base {
    override async onRequest(request: Request): Promise<Response> {
      const copy = request.clone();
      const again = new Request(request, { headers: { "x-again": "1" } });
      const { status } = await fetch(
        new Request(`${new URL(request.url).origin}/health`, { headers: request.headers }),
      );
      return Response.json([await copy.text(), await again.text(), again.headers.get("x-again"), again.method, status]);
    }
  }
  const host = await startHost({ agents: { Proxy } });
  const response = await agentFetch(
    { host: addressOf(host), agent: "Proxy", name: "x" },
    { method: "POST", body: "twice" },
  );
  expect(await response.json()).toEqual(["twice", "twice", "1", "POST", 200]);
});
