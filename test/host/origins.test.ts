import { Agent, type AgentEnv, callable } from "perdure";
import { createHost, memoryStorage, subscribe } from "perdure/node";
import type { ServeOptions } from "perdure/node";
import { expect, onTestFinished, test, vi } from "vitest";
import { connect, openHost } from "./open-host.ts";

class Diary extends Agent<AgentEnv, { lines: string[] }> {
  static {
    callable(this, "write");
  }
  override initialState: { lines: string[] } = { lines: [] };

  override async onRequest(request: Request): Promise<Response> {
    if (request.method === "POST") this.write(await request.text());
    return Response.json(this.state.lines);
  }
  write(line: string): void {
    this.setState({ lines: [...this.state.lines, line] });
  }
}

const PATH = "/agents/diary/mine";
const STRANGER = "https://evil.example";
const open = (options: Partial<ServeOptions> = {}) =>
  openHost({ agents: { Diary }, storage: memoryStorage(), ...options });

type Host = Awaited<ReturnType<typeof open>>;
const post = (host: Host, origin: string | undefined) =>
  fetch(host.url + PATH, { method: "POST", body: "x", ...(origin !== undefined && { headers: { origin } }) });
/** How a socket of a page ends; undefined when it is let in. */
const socket = async (host: Host, origin: string) => {
  const client = await connect(host, PATH, { origin, greeted: false });
  const greeted = client.frame(({ type }) => type === "cf_agent_identity").then(() => undefined);
  return Promise.race([greeted, client.whenClosed()]);
};

test("pages of strangers change nothing and wake nobody; they are told what to set, and an event tells of it", async () => {
  const events: unknown[] = [];
  onTestFinished(subscribe("origin:refused", ({ id, payload }) => events.push([id, payload])));
  const asked = vi.fn<() => undefined>();
  const host = await open({ onBeforeRequest: asked, onBeforeConnect: asked });
  const refused = await post(host, STRANGER);
  expect(refused.status).toBe(403);
  expect(refused.headers.get("content-type")).toMatch(/^text\/plain/);
  expect(await refused.text()).toContain('set `origins: ["https://evil.example"]` of serve() or createHost()');
  expect(await socket(host, STRANGER)).toEqual({
    code: 4403,
    reason: "origin not allowed: see the option `origins` of the host",
  });
  expect((await post(host, "null")).status).toBe(403);
  expect(events).toEqual([
    ["Diary/mine", { origin: STRANGER, method: "POST", approach: "request" }],
    ["Diary/mine", { origin: STRANGER, method: "GET", approach: "socket" }],
    ["Diary/mine", { origin: "null", method: "POST", approach: "request" }],
  ]);
  expect(asked).not.toHaveBeenCalled();
  expect(host.status()).toMatchObject({ live: 0, kept: 0, connections: 0 });
});

test("what a refused socket sends before it hears of it reaches nobody", async () => {
  const host = await open();
  const client = await connect(host, PATH, { origin: STRANGER, greeted: false });
  client.send(JSON.stringify({ type: "rpc", id: "1", method: "write", args: ["hijacked"] }));
  expect((await client.whenClosed()).code).toBe(4403);
  expect(client.frames).toEqual([]);
  expect(await (await fetch(host.url + PATH)).json()).toEqual([]);
});

test("the host's own page, pages of this machine and what is no page are let in", async () => {
  const host = await open();
  for (const origin of [host.url, "http://localhost:5173", "http://app.localhost"]) {
    expect((await post(host, origin)).status, origin).toBe(200);
    expect(await socket(host, origin), origin).toBeUndefined();
  }
  expect((await post(host, undefined)).status).toBe(200);
  const asked = await fetch(host.url + PATH, { headers: { origin: STRANGER } });
  expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([200, null]);
});

test("origins lets in more: a list, a function, all", async () => {
  const settings: NonNullable<ServeOptions["origins"]>[] = [[STRANGER], (origin) => origin === STRANGER, "any"];
  for (const origins of settings) {
    const host = await open({ origins });
    expect((await post(host, STRANGER)).status).toBe(200);
    expect(await socket(host, STRANGER)).toBeUndefined();
    expect((await post(host, "https://other.example")).status).toBe(origins === "any" ? 200 : 403);
  }
});

test("cors names who may come, for sockets too; cors for all is no door for sockets", async () => {
  const named = await open({ cors: { "Access-Control-Allow-Origin": STRANGER } });
  const answer = await post(named, STRANGER);
  expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, STRANGER]);
  expect(await socket(named, STRANGER)).toBeUndefined();
  expect((await post(named, "https://other.example")).status).toBe(403);
  const all = await open({ cors: true });
  expect((await post(all, STRANGER)).status).toBe(200);
  expect(await socket(all, STRANGER)).toMatchObject({ code: 4403 });
});

test("a function that throws lets nobody in, and what it threw stays on the server", async () => {
  const failures: unknown[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => failures.push(payload)));
  const said = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => said.mockRestore());
  const host = await open({
    origins: () => {
      throw new Error("no list today");
    },
  });
  const answer = await post(host, STRANGER);
  expect([answer.status, await answer.text()]).toEqual([500, "Internal Server Error"]);
  expect(failures).toEqual([{ stage: "origins", error: "no list today" }]);
  expect(said).toHaveBeenCalledTimes(1);
});

test("a setting that cannot work is refused before anything is opened", () => {
  const start = (options: object) => () => createHost({ agents: { Diary }, storage: memoryStorage(), ...options });
  expect(start({ origins: ["app.example"] })).toThrow('"app.example" is not an origin');
  expect(start({ origins: ["*"] })).toThrow('origins: "any"');
  expect(start({ maxBodyBytes: 0 })).toThrow("maxBodyBytes");
});
