// An agent as an MCP server: what it shows, who may ask, and sessions.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
import { tool } from "ai";
import { durableTool } from "perdure";
import { agentMcpServer, createMcpHandler, type McpHandlerOptions } from "perdure/mcp";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { listen } from "./web-server.ts";

const counter = {
  count: 0,
  add(by: number) {
    return (this.count += by);
  },
  lookup({ key }: { key: string }) {
    if (key === "bad") throw new Error("There is no such key.");
    return { key, value: 1 };
  },
  hidden: () => "secret",
  getCallableMethods: () => new Map([["add", { description: "Adds." }]]),
};

const tools = {
  shout: durableTool(
    tool({
      description: "Shouts.",
      inputSchema: z.object({ word: z.string() }),
      execute: ({ word }) => word.toUpperCase(),
    }),
    { replay: "safe" },
  ),
  long: tool({ inputSchema: z.object({}), execute: () => "x".repeat(1_000_000) }),
  picture: tool({
    inputSchema: z.object({}),
    execute: () => ({ png: "AAAA" }),
    toModelOutput: ({ output }) => ({
      type: "content",
      value: [{ type: "file", mediaType: "image/png", data: { type: "data", data: output.png } }],
    }),
  }),
  worded: durableTool(tool({ inputSchema: z.object({}), execute: () => "done" }), { needsApproval: "Do it?" }),
  danger: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => "done" }),
};

const lookup = { inputSchema: { properties: { key: { type: "string" } }, required: ["key"] }, readOnly: true };

async function open(options: McpHandlerOptions = {}) {
  const factory = agentMcpServer(counter, { name: "counter", tools, methods: { add: {}, lookup } });
  const handler = createMcpHandler(factory, options);
  const web = await listen(handler);
  onTestFinished(async () => {
    await handler.close();
    await web.stop();
  });
  return { handler, url: `${web.origin}/mcp` };
}

async function connect(url: string, mode: "auto" | "legacy", headers: Record<string, string> = {}) {
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, transport };
}

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
  });
}

test.each([
  ["the newest revision", "auto", false],
  ["an older one, without sessions", "legacy", false],
  ["an older one, with sessions", "legacy", true],
  ["the newest one beside sessions", "auto", true],
] as const)("tools and methods are used in %s", async (_what, mode, sessions) => {
  counter.count = 0;
  const { url } = await open({ sessions });
  const { client } = await connect(url, mode);
  const { tools: listed } = await client.listTools();
  expect(listed.map(({ name }) => name)).toEqual(["shout", "long", "picture", "worded", "danger", "add", "lookup"]);
  expect(listed[0]).toMatchObject({ description: "Shouts.", annotations: { idempotentHint: true } });
  expect(listed[6]).toMatchObject({ inputSchema: { required: ["key"] }, annotations: { readOnlyHint: true } });
  const call = async (name: string, given: Record<string, unknown> = {}) => client.callTool({ name, arguments: given });
  expect(await call("shout", { word: "hey" })).toMatchObject({ content: [{ text: "HEY" }] });
  expect(await call("shout", { word: 7 })).toMatchObject({ isError: true });
  expect(await call("add", { args: [2] })).toMatchObject({ content: [{ text: "2" }] });
  expect(await call("lookup", { key: "k" })).toMatchObject({ structuredContent: { key: "k", value: 1 } });
  expect(await call("lookup", { key: "bad" })).toMatchObject({
    isError: true,
    content: [{ text: "There is no such key." }],
  });
  expect(await call("lookup", {})).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('needs the field "key"') }],
  });
  expect(await call("picture")).toMatchObject({ content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] });
  for (const asks of ["danger", "worded"])
    expect(await call(asks)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("approval") }] });
  const { content } = await call("long");
  expect(JSON.stringify(content).length).toBeLessThan(100_000);
  await expect(client.callTool({ name: "hidden" })).rejects.toThrow("not found");
});

test("all callable methods of an agent, and names that are there twice", async () => {
  const server = await agentMcpServer(counter, { methods: "callable" })({ era: "modern" });
  expect(server).toBeInstanceOf(McpServer);
  const twice = agentMcpServer(counter, { tools: { add: tools.long }, methods: "callable" });
  await expect(async () => twice({ era: "modern" })).rejects.toMatchObject({ code: "bad_config" });
  await expect(async () => agentMcpServer(counter, { methods: { no: {} } })({ era: "modern" })).rejects.toMatchObject({
    code: "bad_config",
  });
});

test.each([
  ["another host", { host: "evil.example.com" }, {}, 403],
  ["a page of another host", { origin: "http://evil.example.com" }, {}, 403],
  ["no origin that can be read", { origin: "null" }, {}, 403],
  ["an allowed page", { origin: "https://app.example.com" }, { allowedOrigins: ["https://app.example.com"] }, 200],
  ["an allowed host", { host: "mcp.example.com" }, { allowedHosts: ["mcp.example.com"] }, 200],
  ["a host that is not on the list", {}, { allowedHosts: ["mcp.example.com"] }, 403],
])("%s", async (_what, headers, options, status) => {
  const handler = createMcpHandler(agentMcpServer(counter, { tools }), options);
  const given = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
  const request = new Request("http://127.0.0.1:3000/mcp", {
    method: "POST",
    headers: given,
    body: JSON.stringify(initialize),
  });
  // A made Request does not take a host.
  const host = (headers as { host?: string }).host ?? "127.0.0.1:3000";
  const plain = request.headers.get.bind(request.headers);
  vi.spyOn(request.headers, "get").mockImplementation((name) => (name.toLowerCase() === "host" ? host : plain(name)));
  const response = await handler(request);
  expect(response.status).toBe(status);
  await response.text();
});

test("pages of allowed origins may read answers when that is wanted", async () => {
  const origin = "https://app.example.com";
  const { url } = await open({ cors: true, allowedOrigins: [origin] });
  const asked = await fetch(url, { method: "OPTIONS", headers: { origin } });
  expect(asked.status).toBe(204);
  expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
  expect(asked.headers.get("access-control-allow-headers")).toContain("mcp-session-id");
  const answer = await post(url, initialize, { origin });
  expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
  await answer.text();
  const plain = await open();
  expect((await fetch(plain.url, { method: "OPTIONS" })).status).toBe(405);
});

test("who asks has to say who they are, and a session is theirs alone", async () => {
  const auth = (request: Request) => {
    const token = request.headers.get("authorization")?.replace("Bearer ", "");
    return token === "a" || token === "b" ? { token, clientId: token, scopes: [] } : undefined;
  };
  const { url } = await open({ sessions: true, auth, resourceMetadataUrl: "https://example.com/meta" });
  const refused = await post(url, initialize);
  expect(refused.status).toBe(401);
  expect(refused.headers.get("www-authenticate")).toContain('resource_metadata="https://example.com/meta"');
  const { client, transport } = await connect(url, "legacy", { authorization: "Bearer a" });
  expect((await client.listTools()).tools).toHaveLength(7);
  const ping = { jsonrpc: "2.0", id: 9, method: "ping" };
  const session = { "mcp-session-id": transport.sessionId ?? "" };
  expect((await post(url, ping, { ...session, authorization: "Bearer b" })).status).toBe(404);
  const own = await post(url, ping, { ...session, authorization: "Bearer a" });
  expect(own.status).toBe(200);
  await own.text();
});

test("large and broken bodies are refused", async () => {
  for (const sessions of [false, true]) {
    const { url } = await open({ sessions, maxBodyBytes: 1_000 });
    expect((await post(url, { ...initialize, padding: "x".repeat(2_000) })).status).toBe(413);
    expect((await post(url, "{")).status).toBe(400);
    expect((await post(url, initialize, { "content-type": "text/plain" })).status).toBe(415);
  }
});

test("sessions end when they are quiet, when there are too many, and when clients say so", async () => {
  let now = 0;
  const { url } = await open({ sessions: { max: 2, idleMs: 1_000, now: () => now } });
  const begin = async () => {
    const response = await post(url, initialize);
    await response.text();
    return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  };
  const ask = async (session: Record<string, string>) => {
    const response = await post(url, { jsonrpc: "2.0", id: 2, method: "ping" }, session);
    await response.text();
    return response.status;
  };
  const first = await begin();
  expect(await ask(first)).toBe(200);
  expect(await ask({})).toBe(400);
  expect(await ask({ "mcp-session-id": "made-up" })).toBe(404);
  now = 500;
  const second = await begin();
  now = 600;
  const third = await begin();
  expect(await ask(first)).toBe(404);
  expect((await fetch(url, { method: "DELETE", headers: second })).status).toBe(200);
  expect(await ask(second)).toBe(404);
  now = 5_000;
  expect(await ask(third)).toBe(404);
});

test("clients of both kinds are told that the tools have changed", async () => {
  const { url, handler } = await open({ sessions: true });
  for (const mode of ["auto", "legacy"] as const) {
    const told = Promise.withResolvers<string>();
    const client = new Client(
      { name: "test", version: "1.0.0" },
      {
        versionNegotiation: { mode },
        listChanged: { tools: { onChanged: () => told.resolve("told"), debounceMs: 0 } },
      },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    onTestFinished(() => client.close());
    const again = setInterval(() => handler.notify.toolsChanged(), 20);
    expect(await told.promise).toBe("told");
    clearInterval(again);
  }
});

test.each([
  ["values", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${"[],".repeat(60_000)}1]}}`, "20000 values"],
  [
    "levels",
    `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${"[".repeat(500)}${"]".repeat(500)}}}`,
    "256 levels",
  ],
  ["messages", JSON.stringify(Array.from({ length: 101 }, (_, id) => ({ ...initialize, id }))), "100 messages"],
])("a request with too many %s is refused, with sessions and without", async (_what, body, words) => {
  for (const sessions of [false, true]) {
    const { url } = await open({ sessions });
    const answer = await post(url, body);
    expect(answer.status).toBe(413);
    expect(await answer.text()).toContain(words);
  }
});
