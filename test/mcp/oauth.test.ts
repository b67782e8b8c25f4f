// Signing in at an MCP server, against a real authorization server.
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import type { McpClientManager } from "../../src/toolbox/mcp/client/manager.ts";
import { type McpAgent, openMcp } from "./agent.ts";
import { type AuthServer, startAuth } from "./authorization-server.ts";
import { startMcp, type TestServer } from "./mcp-servers.ts";

const quick = { retry: { maxAttempts: 1 } };

function secret(server: McpServer): void {
  server.registerTool("secret", { annotations: { readOnlyHint: true } }, () => ({
    content: [{ type: "text", text: "42" }],
  }));
}

interface Stage {
  readonly auth: AuthServer;
  readonly server: TestServer;
  readonly agent: McpAgent;
  readonly mcp: McpClientManager;
  readonly id: string;
  readonly authUrl: string;
}

/** A server that wants a sign-in, and an agent that was told so. */
async function stage(options: Parameters<typeof openMcp>[0] = {}): Promise<Stage> {
  const auth = await startAuth();
  const server = await startMcp("modern", secret, auth.gate);
  const agent = await openMcp(options);
  const mcp = await agent.mcp();
  const added = await mcp.addServer("vault", server.url, {
    ...quick,
    callbackHost: agent.url(),
    transport: { headers: { "x-own": "for the server alone" } },
  });
  if (added.state !== "authenticating") throw new Error("A sign-in was expected.");
  return { auth, server, agent, mcp, id: added.id, authUrl: added.authUrl };
}

/** What a browser does: goes there, and is sent back. @returns where to */
async function visit(authUrl: string): Promise<string> {
  const response = await fetch(authUrl, { redirect: "manual" });
  await response.text();
  return response.headers.get("location") ?? "";
}

async function comeBack(url: string): Promise<{ status: number; location: string | null; text: string }> {
  const response = await fetch(url, { redirect: "manual" });
  return { status: response.status, location: response.headers.get("location"), text: await response.text() };
}

test("a person signs in, and the tools are there; headers of the server go to the server alone", async () => {
  const { auth, agent, mcp, id, authUrl } = await stage();
  expect(mcp.listServers()).toMatchObject([{ state: "authenticating", authUrl }]);
  expect(mcp.state()).toMatchObject({ servers: { [id]: { auth_url: authUrl, state: "authenticating" } }, tools: [] });
  expect(mcp.getAITools()).toEqual({});
  await expect(mcp.callTool({ serverId: id, name: "secret" })).rejects.toMatchObject({ code: "not_allowed" });
  const back = await visit(authUrl);
  expect(back).toContain(`${agent.url()}/agents/holder/one/callback?`);
  expect(await comeBack(back)).toMatchObject({ status: 302, location: `${agent.url()}/` });
  await mcp.waitForConnections();
  expect(await mcp.callTool({ serverId: id, name: "secret" })).toMatchObject({ content: [{ text: "42" }] });
  expect(auth.registered).toMatchObject([{ redirect_uris: [`${agent.url()}/agents/holder/one/callback`] }]);
  expect(auth.headers.some((headers) => headers.has("x-own"))).toBe(false);
  expect(new URL(authUrl).searchParams.get("code_challenge_method")).toBe("S256");
});

test("the way back works once, in time, and with nothing made up", async () => {
  const { auth, mcp, authUrl, agent } = await stage();
  const back = await visit(authUrl);
  const forged = new URL(back);
  forged.searchParams.set("state", `${"0".repeat(64)}.${mcp.listServers()[0]?.id}`);
  expect(await comeBack(forged.href)).toMatchObject({ status: 400, text: expect.stringContaining("not known here") });
  const garbage = new URL(back);
  garbage.searchParams.set("state", "<script>");
  expect((await comeBack(garbage.href)).text).not.toContain("<script>");
  expect((await comeBack(back)).status).toBe(302);
  await mcp.waitForConnections();
  const asked = auth.asked.length;
  expect(await comeBack(back)).toMatchObject({ status: 400, text: expect.stringContaining("was used already") });
  expect(auth.asked.length).toBe(asked);
  expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
  // Without what a sign-in brings, it is a request like any other.
  expect((await comeBack(`${agent.url()}/agents/holder/one/callback`)).text).toBe("Not implemented");
});

test("a restart while the person is away does not matter", async () => {
  const { agent, authUrl, id, auth } = await stage();
  const back = new URL(await visit(authUrl));
  await agent.restart();
  const mcp = await agent.mcp();
  expect(mcp.listServers()).toMatchObject([{ id, state: "authenticating", authUrl }]);
  back.host = new URL(agent.url()).host;
  // The port of the host is another one now; what was registered stays.
  expect((await comeBack(back.href)).status).toBe(302);
  await mcp.waitForConnections();
  expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
  expect(auth.registered).toHaveLength(1);
  await agent.restart();
  const next = await agent.mcp();
  await next.waitForConnections();
  expect(next.listServers()).toMatchObject([{ state: "ready" }]);
});

test("a token that has run out is renewed once, however many calls find out", async () => {
  const { auth, mcp, authUrl, id } = await stage();
  await comeBack(await visit(authUrl));
  await mcp.waitForConnections();
  auth.expire();
  const calls = Array.from({ length: 5 }, () => mcp.callTool({ serverId: id, name: "secret" }));
  expect(await Promise.all(calls)).toHaveLength(5);
  const renewed = auth.asked.filter(({ grant }) => grant === "refresh_token");
  expect(renewed.every(({ ok }) => ok)).toBe(true);
  expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
});

test("a sign-in that nobody renews any more is asked for again", async () => {
  const { auth, mcp, authUrl, id, agent } = await stage();
  await comeBack(await visit(authUrl));
  await mcp.waitForConnections();
  auth.expire();
  await comeBack(`${auth.origin}/token`);
  const [row] = await agent.rows("mcp-oauth:");
  expect(row?.value).toContain("access_token");
  // The other side has forgotten the refresh token as well.
  const used = JSON.parse(row?.value ?? "{}") as { tokens: { refresh_token: string } };
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: used.tokens.refresh_token });
  await (await fetch(`${auth.origin}/token`, { method: "POST", body })).text();
  auth.expire();
  await expect(mcp.callTool({ serverId: id, name: "secret" })).rejects.toMatchObject({ code: "not_allowed" });
  const [info] = mcp.listServers();
  expect(info).toMatchObject({ state: "authenticating", authUrl: expect.stringContaining("/authorize") });
  await comeBack(await visit(info?.authUrl ?? ""));
  await mcp.waitForConnections();
  expect(await mcp.callTool({ serverId: id, name: "secret" })).toMatchObject({ content: [{ text: "42" }] });
});

test("a person who says no, and pages of the app's own", async () => {
  const { auth, mcp, authUrl } = await stage();
  auth.denies = true;
  const back = await visit(authUrl);
  mcp.configureOAuthCallback({ successRedirect: "/welcome", errorRedirect: "https://app.example.com/failed" });
  const answer = await comeBack(back);
  expect(answer.location).toContain("https://app.example.com/failed?error=");
  expect(mcp.listServers()).toMatchObject([
    { state: "failed", error: expect.stringContaining("Signing in did not work") },
  ]);
  auth.denies = false;
  const again = await mcp.reconnect(mcp.listServers()[0]?.id ?? "");
  if (again.state !== "authenticating") throw new Error("A sign-in was expected.");
  mcp.configureOAuthCallback({ customHandler: (result) => Response.json(result) });
  expect(JSON.parse((await comeBack(await visit(again.authUrl))).text)).toEqual({
    serverId: again.id,
    authSuccess: true,
  });
});

test("metadata of another issuer are refused, unless they are said to be wrong", async () => {
  const auth = await startAuth();
  auth.issuer = "https://elsewhere.example.com";
  const server = await startMcp("modern", secret, auth.gate);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const options = { ...quick, callbackHost: agent.url() };
  await expect(mcp.addServer("vault", server.url, options)).rejects.toThrow(/[Ii]ssuer/);
  const transport = { skipIssuerMetadataValidation: true };
  expect(await mcp.addServer("vault", server.url, { ...options, transport })).toMatchObject({
    state: "authenticating",
  });
});

test("an answer of another authorization server is refused", async () => {
  const { authUrl, auth } = await stage();
  const back = new URL(await visit(authUrl));
  back.searchParams.set("iss", "https://evil.example.com");
  const answer = await comeBack(back.href);
  expect(answer.status).toBe(400);
  expect(auth.asked).toEqual([]);
});

test("without a place to come back to, a sign-in is not begun", async () => {
  const auth = await startAuth();
  const server = await startMcp("modern", secret, auth.gate);
  const mcp = await (await openMcp()).mcp();
  await expect(mcp.addServer("vault", server.url, quick)).rejects.toMatchObject({
    code: "not_allowed",
    message: expect.stringContaining("callbackHost"),
  });
  expect(mcp.listServers()).toEqual([]);
});

test("removing a server forgets its tokens and sign-ins", async () => {
  const { mcp, id, authUrl, agent } = await stage();
  await comeBack(await visit(authUrl));
  await mcp.waitForConnections();
  expect((await agent.rows("mcp")).length).toBeGreaterThan(1);
  await mcp.removeServer(id);
  expect(await agent.rows("mcp")).toEqual([]);
});

test("an app that is registered already uses its own name, and keeps its tokens where it likes", async () => {
  const kept: { tokens?: unknown } = {};
  const { auth, mcp, authUrl, agent } = await stage({
    createOAuthProvider: () => ({
      clientInformation: () => ({ client_id: "known-app" }),
      saveTokens: (tokens) => void (kept.tokens = tokens),
      tokens: () => kept.tokens as never,
    }),
  });
  expect(new URL(authUrl).searchParams.get("client_id")).toBe("known-app");
  await comeBack(await visit(authUrl));
  await mcp.waitForConnections();
  expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
  expect(auth.registered).toEqual([]);
  expect(kept.tokens).toMatchObject({ access_token: expect.any(String) });
  expect(JSON.stringify(await agent.rows("mcp-oauth:"))).not.toContain("access_token");
});
