import { agentFetch } from "agents/client";
import { callable, type Connection, type ConnectionContext } from "perdure";
import type { AgentStep } from "perdure/host";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, connect, connected, eventually, startHost } from "./harness.ts";

/** Decides by the name of the child. */
class Door extends Base {
  static override readonly subAgents: readonly string[] = ["Desk"];
  readonly asked: string[] = [];

  override onBeforeSubAgent(request: Request, child: AgentStep): Request | Response | undefined {
    const url = new URL(request.url);
    this.asked.push(
      `${request.method} ${url.pathname}${url.search.replace(/_pk=[^&]*/, "")} -> ${child.className}/${child.name}`,
    );
    if (child.name === "broken") throw new Error("the gate broke");
    if (child.name === "registry")
      return this.hasSubAgent("Desk", child.name) ? undefined : new Response("unknown", { status: 404 });
    if (/^\d+$/.test(child.name)) {
      return new Response(`no: ${child.name}`, {
        status: Number(child.name),
        headers: { "x-gate": "yes", "www-authenticate": "Bearer" },
      });
    }
    if (child.name !== "rewritten") return undefined;
    url.searchParams.set("added", "by the gate");
    url.pathname = "/somewhere/else";
    const headers = new Headers(request.headers);
    headers.set("x-user", "ada");
    return new Request(url, { method: request.method, headers, body: request.body, duplex: "half" } as RequestInit);
  }
  history(): string[] {
    return this.asked;
  }
  async make(name: string): Promise<void> {
    await (await this.subAgent(Desk, name)).ping();
  }
  failures(): string[] {
    return this.errors.map(String);
  }
  children(): string[] {
    return this.listSubAgents().map(({ name }) => name);
  }
}

class Desk extends Base {
  static {
    callable(this, "user");
    callable(this, "keep");
  }
  override onConnect(connection: Connection, { request }: ConnectionContext): void {
    const { pathname, searchParams } = new URL(request.url);
    connection.setState({ user: request.headers.get("x-user"), pathname, added: searchParams.get("added") });
  }
  override async onRequest(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const user = request.headers.get("x-user");
    return Response.json({
      user,
      pathname,
      added: searchParams.get("added"),
      kept: searchParams.get("kept"),
      body: await request.text(),
    });
  }
  /** Stores something. */
  keep(): void {
    this.setState("kept");
  }
  user(): unknown {
    return [...this.getConnections()].at(-1)?.state;
  }
}

const start = () => startHost({ agents: { Door }, subAgents: { Desk } });
const to = (name: string) => ({ agent: "Door", name: "d", path: `sub/desk/${name}` });

test("a socket that the gate refuses is closed for good with the status in its code", async () => {
  const host = await start();
  for (const status of [400, 401, 403, 404, 409, 429]) {
    const test = connect(host, to(String(status)));
    await eventually(() => expect(test.client.connectionError).toMatchObject({ code: 4000 + status }));
    expect(test.identities).toEqual([]);
    expect(test.closes).toHaveLength(1);
  }
  expect(await host.getAgentByName(Door, "d").children()).toEqual([]);
});

test("a refusal that may pass lets the client try again", async () => {
  const host = await start();
  for (const status of [302, 500, 503]) {
    const test = connect(host, to(String(status)));
    await eventually(() => expect(test.closes.length).toBeGreaterThan(1));
    expect(test.opens).toBe(0);
    expect(test.client.connectionError).toBeNull();
    expect(test.client.shouldReconnect).toBe(true);
    test.client.close();
  }
});

test("a gate that throws lets the client try again, and tells it nothing", async () => {
  const host = await start();
  const test = connect(host, to("broken"));
  await eventually(() => expect(test.closes.length).toBeGreaterThan(1));
  expect(test.client.shouldReconnect).toBe(true);
  expect(JSON.stringify(test.closes)).not.toContain("gate broke");
  test.client.close();
  const response = await agentFetch({ host: addressOf(host), ...to("broken") });
  expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  expect(await host.getAgentByName(Door, "d").failures()).toContain("Error: the gate broke");
});

test("a request that the gate refuses gets its answer as it is", async () => {
  const host = await start();
  const response = await agentFetch({ host: addressOf(host), ...to("401") });
  expect(response.status).toBe(401);
  expect(response.headers.get("x-gate")).toBe("yes");
  expect(response.headers.get("www-authenticate")).toBe("Bearer");
  expect(await response.text()).toBe("no: 401");
});

test("the gate sees the whole URL, the method, and which child is meant", async () => {
  const host = await start();
  await agentFetch({ host: addressOf(host), ...to("a%2Fb/rest"), query: { q: "1" } }, { method: "PUT", body: "x" });
  expect(await host.getAgentByName(Door, "d").history()).toEqual([
    "PUT /agents/door/d/sub/desk/a%2Fb/rest?q=1 -> Desk/a/b",
  ]);
});

test("a request that the gate replaces: headers and query are new, the child and its path are not", async () => {
  const host = await start();
  const response = await agentFetch(
    { host: addressOf(host), ...to("rewritten/mine"), query: { kept: "1" } },
    { method: "POST", body: "hello" },
  );
  expect(await response.json()).toEqual({
    user: "ada",
    pathname: "/mine",
    added: "by the gate",
    kept: "1",
    body: "hello",
  });
  const { client } = await connected(host, to("rewritten/mine"));
  expect(await client.call("user")).toEqual({ user: "ada", pathname: "/mine", added: "by the gate" });
});

test("a gate that lets in only children that exist", async () => {
  const host = await start();
  const stub = host.getAgentByName(Door, "d");
  const refused = connect(host, to("registry"));
  await eventually(() => expect(refused.client.connectionError).toMatchObject({ code: 4404 }));
  await stub.make("registry");
  const { identities } = await connected(host, to("registry"));
  expect(identities).toEqual([{ name: "registry", agent: "desk" }]);
});

test("a child that is let in is noted once it stores something; one that is refused is not made", async () => {
  const host = await start();
  const { client } = await connected(host, to("good"));
  await connected(host, to("only-looked-at"));
  await agentFetch({ host: addressOf(host), ...to("403") });
  expect(await host.getAgentByName(Door, "d").children()).toEqual([]);
  await client.call("keep");
  expect(await host.getAgentByName(Door, "d").children()).toEqual(["good"]);
  expect(host.status().kept).toBe(3);
});

test("each hop has a gate, and the first refusal ends it", async () => {
  class Floor extends Door {}
  class Hall extends Door {
    static override readonly subAgents = ["Floor"];
  }
  const host = await startHost({ agents: { Door: Hall }, subAgents: { Floor, Desk } });
  const inside = await connected(host, { agent: "Door", name: "d", path: "sub/floor/one/sub/desk/x" });
  expect(inside.identities).toEqual([{ name: "x", agent: "desk" }]);
  await inside.client.call("keep");
  const below = connect(host, { agent: "Door", name: "d", path: "sub/floor/one/sub/desk/403" });
  await eventually(() => expect(below.client.connectionError).toMatchObject({ code: 4403 }));
  const above = connect(host, { agent: "Door", name: "d", path: "sub/floor/401/sub/desk/x" });
  await eventually(() => expect(above.client.connectionError).toMatchObject({ code: 4401 }));
  expect(await host.getAgentByName(Hall, "d").children()).toEqual(["one"]);
});
