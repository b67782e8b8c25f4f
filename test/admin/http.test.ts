import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PerdureError } from "perdure";
import type { ServedHost, ServeOptions } from "perdure/node";
import { expect, test } from "vitest";
import { ADMIN_ROUTES } from "../../src/admin/routes.ts";
import { ADMIN_ACTS, type AdminRole } from "../../src/door/authorize.ts";
import { openHost, tempDir } from "../host/open-host.ts";
import { type Answered, deskOf, send, V1 } from "./desk.ts";

const TOKENS = { read: "r".repeat(32), operate: "o".repeat(32), erase: "e".repeat(40) };
type Headers = Record<string, string>;

function ask(host: ServedHost, method: string, path: string, headers: Headers = {}): Promise<Answered> {
  const all = { host: `localhost:${host.port}`, ...headers };
  return send({ host: "127.0.0.1", port: host.port, method, path, headers: all });
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function open(admin?: ServeOptions["admin"]): Promise<ServedHost> {
  const { Desk } = deskOf(["Good day."]);
  const host = await openHost({ agents: { Desk }, ...(admin && { admin }) });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Hello" });
  return host;
}

test("without the option there is nothing at these addresses", async () => {
  const host = await open();
  expect((await ask(host, "GET", `${V1}/host`, bearer("x".repeat(32)))).status).toBe(404);
});

test("no token, a wrong one, and one that is nearly right are refused", async () => {
  const host = await open({ token: TOKENS });
  const tries: Headers[] = [{}, bearer("x".repeat(32)), bearer(TOKENS.read.slice(1)), bearer(`${TOKENS.read}r`)];
  for (const headers of [...tries, { authorization: TOKENS.erase }, { authorization: `Basic ${TOKENS.erase}` }]) {
    const { status, body } = await ask(host, "GET", `${V1}/host`, headers);
    expect({ status, body }).toMatchObject({ status: 401, body: { error: { code: "not_allowed" } } });
  }
  expect((await ask(host, "GET", `${V1}/host?token=${TOKENS.erase}`)).status).toBe(401);
  // Streams as well: there is one door.
  expect((await ask(host, "GET", `${V1}/events`)).status).toBe(401);
  expect((await ask(host, "GET", `${V1}/host`, bearer(TOKENS.read))).status).toBe(200);
});

test("a name that leads here by rebinding is refused, one of the host's own is not", async () => {
  const host = await open({ token: TOKENS.erase, hosts: ["app.example"] });
  const by = (name: string) => ask(host, "GET", `${V1}/host`, { ...bearer(TOKENS.erase), host: name });
  // The port's own names come first: on this machine it answers to none but those.
  expect((await by("evil.example")).status).toBe(421);
  expect((await by("app.example")).status).toBe(200);
  expect((await by(`127.0.0.1:${host.port}`)).status).toBe(200);
});

test("pages are refused, those of the host too, even with a token", async () => {
  const host = await open({ token: TOKENS.erase });
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: host.url },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-origin" },
  ] as readonly Headers[]) {
    expect((await ask(host, "GET", `${V1}/agents`, { ...bearer(TOKENS.erase), ...headers })).status).toBe(403);
  }
  const preflight = await ask(host, "OPTIONS", `${V1}/agents`, { origin: "https://evil.example" });
  expect(preflight.status).toBe(403);
});

test("each role may do what the table says, and nothing is done before it is asked", async () => {
  const host = await open({ token: TOKENS });
  const roles = ["read", "operate", "erase"] as const;
  for (const { method, shape, act } of ADMIN_ROUTES.filter((route) => route.shape !== "events")) {
    const path = `${V1}/${shape.replace("{id}", "Desk%2Fnobody").replace(/\{\w+\}/, "none")}`;
    for (const role of roles) {
      const needed: AdminRole = ADMIN_ACTS[act];
      const { body } = await ask(host, method, path, bearer(TOKENS[role]));
      const text = JSON.stringify(body);
      const isShort = roles.indexOf(role) < roles.indexOf(needed);
      expect(text.includes("takes the role"), `${role}: ${shape}`).toBe(isShort);
    }
  }
  expect(host.listAgents()).toEqual(["Desk/anna"]);
});

test("tricks with the path lead nowhere", async () => {
  const dir = tempDir();
  const { Desk } = deskOf([]);
  const host = await openHost({ agents: { Desk }, dir, admin: { token: TOKENS.erase } });
  for (const path of [
    `${V1}/agents/..%2F..%2Fetc%2Fpasswd`,
    `${V1}/agents/Desk`,
    `${V1}/agents/Desk%2Fa%00b`,
    `${V1}/agents/%E0%A4%A`,
    `${V1}//agents`,
    `/_perdure/v2/agents`,
    `/_perdure/`,
    `/_perdure/../_perdure/v1/agents/x`,
  ]) {
    const { status } = await ask(host, "GET", path, bearer(TOKENS.erase));
    expect([400, 404], path).toContain(status);
    const without = await ask(host, "GET", path);
    expect([400, 401, 404], path).toContain(without.status);
  }
  expect(host.listAgents()).toEqual([]);
});

test("tokens are in no answer and in no file", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["Your token is " + TOKENS.erase]);
  const host = await openHost({ agents: { Desk }, dir, admin: { token: TOKENS.erase, redact: ["iban"] } });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Hello" });
  const { body } = await ask(host, "GET", `${V1}/agents/Desk%2Fanna/messages`, bearer(TOKENS.erase));
  expect(JSON.stringify(body)).toContain("Your token is •••");
  await ask(host, "DELETE", `${V1}/agents/Desk%2Fanna`, bearer(TOKENS.erase));
  await host.stop();
  expect(readFileSync(join(dir, "host.db")).includes(TOKENS.erase)).toBe(false);
});

test("what would let strangers in is refused at the start", async () => {
  const { Desk } = deskOf([]);
  const token = TOKENS.erase;
  for (const admin of [
    { token: "short" },
    { token: "" },
    { token: {} },
    { token: `${"a ".repeat(20)}` },
    { token: { read: token, erase: token } },
    { token, hosts: "any" as const },
    { token, host: ["x"] } as never,
  ]) {
    const failed = await openHost({ agents: { Desk }, admin }).catch((thrown: unknown) => thrown);
    expect(PerdureError.is(failed, "bad_config"), JSON.stringify(admin)).toBe(true);
  }
});
