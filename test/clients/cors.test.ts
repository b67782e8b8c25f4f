import { agentFetch } from "agents/client";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, connected, startHost } from "./harness.ts";

class Open extends Base {
  override onRequest(request: Request): Response {
    if (new URL(request.url).searchParams.has("fail")) throw new Error("x");
    return new Response(`did ${request.method}`, { headers: { "x-own": "1" } });
  }
}

const to = { agent: "Open", name: "x" };
const cors = (response: Response) => [...response.headers].filter(([name]) => name.startsWith("access-control-"));

test("off by default: no headers, and OPTIONS is the agent's", async () => {
  const host = await startHost({ agents: { Open } });
  const response = await agentFetch(
    { host: addressOf(host), ...to },
    { method: "OPTIONS", headers: { origin: "https://app.example" } },
  );
  expect(await response.text()).toBe("did OPTIONS");
  expect(cors(response)).toEqual([]);
});

test("on: every answer of an agent's path carries the headers, refusals and failures too", async () => {
  const host = await startHost({
    agents: { Open },
    cors: true,
    onBeforeRequest: (request) =>
      new URL(request.url).searchParams.has("no") ? new Response("no", { status: 401 }) : undefined,
  });
  const open = [
    ["access-control-allow-headers", "*"],
    ["access-control-allow-methods", "GET, POST, HEAD, OPTIONS"],
    ["access-control-allow-origin", "*"],
    ["access-control-max-age", "86400"],
  ];
  for (const [path, status] of [
    ["/agents/open/x", 200],
    ["/agents/open/x?no", 401],
    ["/agents/open/x?fail", 500],
    ["/agents/nobody/x", 400],
    ["/agents/open/x/sub/open/%00", 400],
  ] as const) {
    const response = await fetch(host.url + path, { headers: { origin: "https://app.example" } });
    expect(response.status, path).toBe(status);
    expect(cors(response), path).toEqual(open);
  }
  const response = await fetch(`${host.url}/agents/open/x`);
  expect([await response.text(), response.headers.get("x-own")]).toEqual(["did GET", "1"]);
  expect(cors(await fetch(`${host.url}/elsewhere`))).toEqual([]);
});

test("a preflight is answered at once, before hooks, without waking the agent", async () => {
  let asked = 0;
  const host = await startHost({ agents: { Open }, cors: true, onBeforeRequest: () => void asked++ });
  const headers = { origin: "https://app.example", "access-control-request-method": "POST" };
  const response = await fetch(`${host.url}/agents/open/x/get-messages`, { method: "OPTIONS", headers });
  expect(response.ok).toBe(true);
  expect(await response.text()).toBe("");
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  expect(asked).toBe(0);
  expect(host.status()).toMatchObject({ live: 0, kept: 0 });
});

test("the app's own headers replace the open ones, for cookies", async () => {
  const own = { "Access-Control-Allow-Origin": "https://app.example", "Access-Control-Allow-Credentials": "true" };
  const host = await startHost({ agents: { Open }, cors: own });
  for (const method of ["GET", "OPTIONS"]) {
    const response = await fetch(`${host.url}/agents/open/x`, { method });
    expect(cors(response)).toEqual([
      ["access-control-allow-credentials", "true"],
      ["access-control-allow-origin", "https://app.example"],
    ]);
  }
});

test("sockets are no business of cross-origin rules", async () => {
  const host = await startHost({ agents: { Open }, cors: { "Access-Control-Allow-Origin": "https://app.example" } });
  const { client } = await connected(host, to);
  expect(await client.call("ping")).toBe("pong");
});
