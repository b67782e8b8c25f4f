import { agentFetch } from "agents/client";
import { PerdureError } from "perdure";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, eventually, startHost, stopHost } from "./harness.ts";

class Api extends Base {
  override async onRequest(request: Request): Promise<Response> {
    const url = new URL(request.url);
    switch (url.searchParams.get("do")) {
      case "throw":
        throw new Error("secret detail");
      case "refuse":
        throw new PerdureError("read_only", "You may only read here.");
      case "empty":
        return new Response(null, { status: 204 });
      case "redirect":
        return Response.redirect("https://example.com/away", 307);
      case "headers": {
        const headers = new Headers({ "x-one": "1" });
        headers.append("set-cookie", "a=1");
        headers.append("set-cookie", "b=2");
        return new Response("with headers", { status: 418, headers });
      }
      case "store":
        void this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
        void this.sql`INSERT INTO note VALUES (${await request.text()})`;
        return Response.json(this.sql<{ text: string }>`SELECT text FROM note ORDER BY rowid`.map(({ text }) => text));
      default:
        return Response.json({
          method: request.method,
          url: url.pathname + url.search,
          type: request.headers.get("content-type"),
          custom: request.headers.get("x-custom"),
          body: request.body === null ? null : await request.text(),
          name: this.name,
        });
    }
  }
  failures(): string[] {
    return this.errors.map(String);
  }
}

const start = () => startHost({ agents: { Api } });
const to = (host: { port: number }, what?: string) => ({
  host: addressOf(host),
  agent: "Api",
  name: "x",
  ...(what === undefined ? {} : { query: { do: what } }),
});

test("every method reaches the agent with headers, body, path and query", async () => {
  const host = await start();
  for (const method of ["GET", "DELETE", "OPTIONS"]) {
    const init = { method, headers: { "x-custom": `of ${method}` } };
    const response = await agentFetch({ ...to(host), path: "a/b", query: { q: "1" } }, init);
    const body = method === "GET" ? null : "";
    expect(await response.json()).toEqual({
      method,
      url: "/agents/api/x/a/b?q=1",
      type: null,
      custom: `of ${method}`,
      body,
      name: "x",
    });
  }
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const init = { method, headers: { "content-type": "text/x-odd" }, body: `body of ${method} ü😀` };
    const response = await agentFetch(to(host), init);
    expect(await response.json()).toMatchObject({ method, type: "text/x-odd", body: `body of ${method} ü😀` });
  }
});

test("HEAD gets the headers and no body", async () => {
  const host = await start();
  const response = await agentFetch(to(host), { method: "HEAD" });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("application/json");
  expect(await response.text()).toBe("");
});

test("an empty body is an empty body", async () => {
  const host = await start();
  const response = await agentFetch(to(host), { method: "POST", body: "" });
  expect(await response.json()).toMatchObject({ method: "POST", body: "" });
});

test("status, headers and repeated headers of the answer arrive", async () => {
  const host = await start();
  const response = await agentFetch(to(host, "headers"));
  expect(response.status).toBe(418);
  expect(response.headers.get("x-one")).toBe("1");
  expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  expect(await response.text()).toBe("with headers");
  expect((await agentFetch(to(host, "empty"))).status).toBe(204);
  const redirect = await agentFetch(to(host, "redirect"), { redirect: "manual" });
  expect([redirect.status, redirect.headers.get("location")]).toEqual([307, "https://example.com/away"]);
});

test("what an agent throws is a 500 without details, and goes to the agent", async () => {
  const host = await start();
  const response = await agentFetch(to(host, "throw"));
  expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  expect(await host.getAgentByName(Api, "x").failures()).toEqual(["Error: secret detail"]);
});

test("an error of the framework is told with its code", async () => {
  const host = await start();
  const response = await agentFetch(to(host, "refuse"));
  expect(response.status).toBe(403);
  expect(await response.json()).toEqual({ error: { code: "read_only", message: "You may only read here." } });
});

test("an answer stands on stored rows: it is there after a restart", async () => {
  const first = await start();
  for (const text of ["one", "two"]) await agentFetch(to(first, "store"), { method: "POST", body: text });
  const second = await startHost({ agents: { Api }, dir: await stopHost(first) });
  const response = await agentFetch(to(second, "store"), { method: "POST", body: "three" });
  expect(await response.json()).toEqual(["one", "two", "three"]);
});

test("many requests at once are answered each for itself", async () => {
  const host = await start();
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const response = await agentFetch({ ...to(host), name: `n${i % 5}` }, { method: "POST", body: String(i) });
      return (await response.json()) as { name: string; body: string };
    }),
  );
  expect(answers.map(({ name, body }) => `${name} ${body}`)).toEqual(answers.map((_, i) => `n${i % 5} ${i}`));
});

test("the health check and foreign paths are not agents", async () => {
  const host = await startHost({
    agents: { Api },
    fetch: (request) => new Response(`app: ${new URL(request.url).pathname}`),
  });
  const health = await fetch(`${host.url}/health`);
  expect(await health.json()).toMatchObject({ ok: true, connections: 0 });
  expect(await (await fetch(`${host.url}/about`)).text()).toBe("app: /about");
});

test("requests while the host stops are told to come again", async () => {
  const host = await start();
  await agentFetch(to(host));
  const request = new Request(`${host.url}/agents/api/x`);
  const stopping = host.stop();
  const response = await host.fetch(request);
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: { code: "host_stopped" } });
  await stopping;
  await eventually(() => expect(host.status().ok).toBe(false));
});
