// Which names a host answers to: a stranger's name that leads to this machine is not one of them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent } from "perdure";
import { createHost, memoryStorage, type ServeOptions, subscribe } from "perdure/node";
import { expect, onTestFinished, test, vi } from "vitest";
import { openHost } from "./open-host.ts";
import { askRaw } from "./raw-request.ts";

class Diary extends Agent {
  override onRequest(): Response {
    return new Response("secret");
  }
}

const PATH = "/agents/diary/mine";
const open = (options: Partial<ServeOptions> = {}) =>
  openHost({ agents: { Diary }, storage: memoryStorage(), ...options });
const under = (name: string) => ({ headers: [`Host: ${name}`, "Origin: http://evil.example:8787"] });

/** The statuses of a request and of an upgrade that come with this `Host`. */
async function both(port: number, name: string, path = PATH): Promise<number[]> {
  const headers = [`Host: ${name}`];
  const asked = await askRaw(port, path, { headers });
  const socket = await askRaw(port, path, { headers, upgrade: true });
  return [asked.status, socket.status];
}

test("a name of a stranger that leads to this machine reads nothing, opens no socket and is heard by no hook", async () => {
  const events: unknown[] = [];
  onTestFinished(subscribe("host:refused", ({ id, payload }) => events.push([id, payload])));
  const asked = vi.fn<() => undefined>();
  const host = await open({
    onBeforeRequest: asked,
    onBeforeConnect: asked,
    fetch: () => new Response("the app's own"),
  });
  const refused = await askRaw(host.port, PATH, under("evil.example:8787"));
  expect(refused.status).toBe(421);
  expect(refused.text).toContain('set `hosts: ["evil.example"]` of serve() or createHost()');
  const socket = await askRaw(host.port, PATH, { ...under("evil.example:8787"), upgrade: true });
  expect(socket).toEqual({ status: 421, text: "host not allowed: see the option `hosts` of the host" });
  for (const path of ["/", "/index.html", "/agents/nobody/x", "/agents"]) {
    expect((await askRaw(host.port, path, under("evil.example"))).status, path).toBe(421);
  }
  expect((await askRaw(host.port, "/", { headers: ["Host: localhost"] })).text).toContain("the app's own");
  expect((await askRaw(host.port, "/health", under("evil.example"))).status).toBe(200);
  const payload = { host: "evil.example:8787", method: "GET" };
  expect(events).toEqual([
    ["Diary/mine", { ...payload, approach: "request" }],
    ["Diary/mine", { ...payload, approach: "socket" }],
  ]);
  expect(asked).not.toHaveBeenCalled();
  expect(host.status()).toMatchObject({ live: 0, kept: 0, connections: 0 });
});

test.each(["127.0.0.1", "localhost", "LOCALHOST:1", "app.localhost", "localhost.", "127.8.9.1:80", "[::1]:8787"])(
  "on this machine %s is a name of it",
  async (name) => {
    const { port } = await open();
    expect(await both(port, name)).toEqual([200, 101]);
  },
);

test.each([
  ...["localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost", "10.0.0.1", "0.0.0.0", "[::2]"],
  ...["2130706433", "0x7f.1", "127.1", "127.0.0.1.", "127.0.0.1@evil.example", "evil.example#localhost"],
])("on this machine %s is none", async (name) => {
  const { port } = await open();
  const [asked, socket] = await both(port, name);
  expect([400, 421]).toContain(asked);
  expect(socket).toBe(asked);
});

test("preflights are answered for its own names alone", async () => {
  const { port } = await open({ cors: true });
  const preflight = (name: string) => askRaw(port, PATH, { method: "OPTIONS", headers: [`Host: ${name}`] });
  expect((await preflight("localhost")).status).toBe(200);
  expect((await preflight("evil.example")).status).toBe(421);
});

test("hosts adds names, with any port or with one; a function decides; any lets all in", async () => {
  const listed = await open({ hosts: ["App.example", "other.example:8443"] });
  expect(await both(listed.port, "app.example:1234")).toEqual([200, 101]);
  expect(await both(listed.port, "other.example:8443")).toEqual([200, 101]);
  expect(await both(listed.port, "other.example")).toEqual([421, 421]);
  expect(await both(listed.port, "sub.app.example")).toEqual([421, 421]);
  expect(await both(listed.port, "localhost")).toEqual([200, 101]);
  const asked: string[] = [];
  const decided = await open({
    hosts: (name, request) => (asked.push(`${name} ${request.method}`), name.endsWith(".app.example")),
  });
  expect(await both(decided.port, "Anna.app.example:80")).toEqual([200, 101]);
  expect(await both(decided.port, "evil.example")).toEqual([421, 421]);
  expect(asked).toEqual(["anna.app.example GET", "anna.app.example GET", "evil.example GET", "evil.example GET"]);
  const all = await open({ hosts: "any" });
  expect(await both(all.port, "whatever.example")).toEqual([200, 101]);
});

test("a function that does not say true or false lets nobody in, and what its promise rejects with ends nothing", async () => {
  const said = [() => Promise.reject(new Error("late")), () => Promise.resolve(true), () => 1, () => "yes", () => {}];
  const log = vi.fn<() => void>();
  const host = await open({ hosts: () => said.shift()?.() as unknown as boolean, log });
  for (let at = 0; at < 4; at++) expect((await askRaw(host.port, PATH, under("a.example"))).status).toBe(500);
  expect((await askRaw(host.port, PATH, { ...under("a.example"), upgrade: true })).status).toBe(500);
  expect(log).toHaveBeenCalledTimes(5);
});

test("a host for other machines, and one that is mounted elsewhere, answer to every name until they are told", async () => {
  const { port } = await open({ hostname: "0.0.0.0" });
  expect(await both(port, "app.example")).toEqual([200, 101]);
  const strict = await open({ hostname: "0.0.0.0", hosts: ["app.example"] });
  expect(await both(strict.port, "app.example")).toEqual([200, 101]);
  expect(await both(strict.port, "evil.example")).toEqual([421, 421]);

  const mounted = createHost({ agents: { Diary }, storage: memoryStorage(), hosts: ["app.example"] });
  const server = createServer((request, response) =>
    mounted.handler(request, response, () => response.end("the app's own")),
  );
  server.on("upgrade", (request, socket, head) => void mounted.upgrade(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    await mounted.stop();
    server.closeAllConnections();
    server.close();
  });
  const at = (server.address() as AddressInfo).port;
  expect(await both(at, "app.example")).toEqual([200, 101]);
  expect(await both(at, "evil.example")).toEqual([421, 421]);
  expect((await askRaw(at, "/own", under("evil.example"))).status).toBe(200);
  const free = createHost({ agents: { Diary }, storage: memoryStorage() });
  onTestFinished(() => free.stop());
  expect((await free.fetch(new Request(`http://any.example${PATH}`))).status).toBe(200);
});

test("what code hands to a host came over no network: it needs no name, unless a list says so", async () => {
  const request = () => new Request(`http://any.example${PATH}`);
  expect((await (await open()).fetch(request())).status).toBe(200);
  expect((await (await open({ hosts: ["app.example"] })).fetch(request())).status).toBe(421);
});

test.each([
  ["hosts", ["https://app.example"]],
  ["hosts", ["app.example/x"]],
  ["hosts", ["*"]],
  ["hosts", [""]],
])("%s: %j is refused at the start", (_, hosts) => {
  expect(() => createHost({ agents: { Diary }, storage: memoryStorage(), hosts })).toThrow(
    /^hosts: .* is not a host name/,
  );
});

test.each([
  ["hosts", "app.example"],
  ["hosts", true],
  ["hosts", Promise.resolve([])],
  ["origins", true],
  ["origins", "https://app.example"],
  ["origins", Promise.resolve([])],
  ["cors", "yes"],
  ["cors", 1],
  ["cors", Promise.resolve(true)],
  ["cors", { "Access-Control-Allow-Origin": 1 }],
  ["onBeforeConnect", true],
  ["onBeforeRequest", {}],
  ["prefix", 7],
])("an option `%s` of another kind is refused at the start: %o", (name, value) => {
  const options = { agents: { Diary }, storage: memoryStorage(), [name]: value };
  expect(() => createHost(options)).toThrow(new RegExp(`^${name}`));
});
