import type { Random } from "../support/seeded.ts";
import { NETWORK_SECRET, signatureOf } from "./agents.ts";
import { broken, pick } from "./breaking.ts";
import { chatBody, type Known, MARK } from "./frames.ts";

/** A request over HTTP. */
export interface Sent {
  readonly method: string;
  /** Path and query, as they stand in the request. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What a route is asked: behind an agent's address, or with a path of its own. */
interface Ask {
  readonly method: string;
  readonly rest?: string;
  readonly path?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

type Maker = (random: Random, known: Known) => Ask;

const some = (random: Random, list: readonly string[]) =>
  list.length > 0 && random(6) > 0
    ? pick(random, list)
    : pick(random, ["none", "a%2Fb", "%00", "%ff", "..", "x".repeat(3_000)]);
const segment = (text: string) => (/[^\w.%-]/.test(text) ? encodeURIComponent(text.toWellFormed()) : text);
const query = (random: Random, names: readonly string[]) => {
  const values = ["0", "1", "-1", "1e9", "NaN", "", "main", "%00", "x".repeat(500), "9007199254740993", "1.5", "null"];
  const parts = names.filter(() => random(2) === 0).map((name) => `${name}=${pick(random, values)}`);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
};
const turn = (random: Random, known: Known) => segment(some(random, known.turns));

/** What MCP clients send. */
const MCP: readonly object[] = [
  {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "fuzz", version: "1" } },
  },
  { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} },
  { jsonrpc: "2.0", id: "3", method: "tools/call", params: { name: "add", arguments: { args: [1] } } },
  { jsonrpc: "2.0", id: 4, method: "tools/call", params: { name: "look", arguments: {} } },
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", id: 5, method: "resources/read", params: { uri: "file:///etc/passwd" } },
  { jsonrpc: "2.0", id: 6, method: "ping" },
];
const MCP_HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };

/** Every route that answers strangers, by its name. */
export const ROUTES: { readonly [name: string]: Maker } = {
  "GET get-messages": (random) => ({
    method: "GET",
    rest: `/get-messages${query(random, ["last", "before", "_session"])}`,
  }),
  "GET chat": (random) => ({ method: "GET", rest: `/chat${query(random, ["_session"])}` }),
  "POST chat": (random, known) => ({
    method: "POST",
    rest: `/chat${query(random, ["_session"])}`,
    body: { ...chatBody(random, known), requestId: known.fresh() },
    headers: { accept: pick(random, ["text/event-stream", "application/json", "*/*"]) },
  }),
  "POST chat, with a text": (_random, known) => ({
    method: "POST",
    rest: "/chat",
    body: { message: `${MARK} hello`, id: known.fresh() },
  }),
  "DELETE chat": (random) => ({ method: "DELETE", rest: random(8) === 0 ? "/chat" : "/chat/inbox/none" }),
  "GET stream": (random, known) => ({
    method: "GET",
    rest: `/chat/${turn(random, known)}/stream${query(random, ["after"])}`,
    ...(random(3) === 0 && { headers: { "last-event-id": pick(random, ["0", "-2", "x", "1e3"]) } }),
  }),
  "POST cancel": (random, known) => ({ method: "POST", rest: `/chat/${turn(random, known)}/cancel` }),
  "POST tools": (random, known) => ({
    method: "POST",
    rest: `/chat/tools/${segment(some(random, known.calls))}`,
    body: pick(random, [{ approved: true }, { approved: false, reason: MARK }, { output: MARK }, { errorText: MARK }]),
  }),
  "GET inbox": (random, known) => ({
    method: "GET",
    rest: `/chat/inbox${random(2) === 0 ? "" : `/${turn(random, known)}`}`,
  }),
  "PATCH inbox": (random, known) => ({
    method: "PATCH",
    rest: `/chat/inbox/${turn(random, known)}`,
    body: pick(random, [
      { text: MARK },
      { parts: [{ type: "text", text: MARK }] },
      { before: null },
      { before: "none" },
    ]),
  }),
  "DELETE inbox": (random, known) => ({ method: "DELETE", rest: `/chat/inbox/${turn(random, known)}` }),
  "GET background": () => ({ method: "GET", rest: "/chat/background" }),
  "DELETE background": (random, known) => ({
    method: "DELETE",
    rest: `/chat/background/${segment(some(random, known.calls))}`,
  }),
  "GET files": (random) => ({ method: "GET", rest: `/files/${pick(random, ["0", "f"]).repeat(64)}` }),
  "GET files, by no name": (random) => ({
    method: "GET",
    rest: `/files/${pick(random, ["f".repeat(63), "..%2Fx"])}`,
  }),
  "GET callback": (random) => ({ method: "GET", rest: `/callback${query(random, ["code", "state", "error"])}` }),
  "of the app": (random) => ({
    method: pick(random, ["GET", "POST", "PUT", "OPTIONS", "HEAD"]),
    rest: "/anything",
    body: {},
  }),
  "POST mcp": (random) => ({
    method: "POST",
    path: "/mcp",
    body: pick(random, MCP),
    headers: random(3) === 0 ? { ...MCP_HEADERS, "mcp-session-id": "none" } : MCP_HEADERS,
  }),
  "GET mcp": () => ({
    method: "GET",
    path: "/mcp",
    headers: { accept: "text/event-stream", "mcp-session-id": "none" },
  }),
  "DELETE mcp": () => ({ method: "DELETE", path: "/mcp" }),
  "POST messenger": (random, known) => ({
    method: "POST",
    rest: `/messengers/${pick(random, ["memory", "memory", "memory", "none"])}/webhook`,
    body: {
      id: pick(random, [known.fresh(), "again", "__proto__"]),
      from: pick(random, ["7", "8", "__proto__", "x".repeat(500)]),
      text: pick(random, ["hello", "/stop", "both", "slow", "", MARK]),
    },
    headers: { "x-secret": random(4) === 0 ? "none" : NETWORK_SECRET },
  }),
  "POST wake": (random, known) => ({
    method: "POST",
    path: "/wake",
    body: {
      subscription_id: "s",
      wake_id: known.fresh(),
      generation: 1 + random(3),
      streams: [{ path: "a", link_type: "explicit", acked_offset: "0", tail_offset: "1", has_pending: true }],
      callback_url: "http://127.0.0.1:1/",
      callback_token: "t",
    },
  }),
};

/** Addresses that name an agent, or nearly. */
const ODD_ADDRESSES: readonly string[] = [
  ...[
    "/agents",
    "/agents/",
    "/agents/talk",
    "/agents/nobody/a",
    "//agents/talk/a",
    "/agents//talk//a",
    "/agents/talk/%",
    "/agents/talk/%00",
  ],
  ...[
    "/agents/talk/%ff",
    "/agents/__proto__/a",
    "/agents/constructor/a",
    "/agents/talk/..%2f..%2fa",
    "/agents/Talk/a",
    "/agents/leaf/a",
  ],
  ...[
    "/agents/plain/a/sub",
    "/agents/plain/a/sub/leaf",
    "/agents/plain/a/sub/leaf/%",
    "/agents/plain/a/sub/talk/a",
    "/agents/talk/a:b",
  ],
  ...[
    `/agents/talk/${"n".repeat(5_000)}`,
    `/agents/plain/a${"/sub/leaf/x".repeat(20)}`,
    "/agents/talk/💥",
    "/agents/talk/a%20b",
  ],
];

/** A request that a stranger sends: right, nearly right or anything. */
export function makeRequest(random: Random, known: Known, agent: string): Sent {
  const ask = pick(random, Object.values(ROUTES))(random, known);
  const odd = random(12) === 0;
  const path = ask.path ?? `${odd ? pick(random, ODD_ADDRESSES) : agent}${ask.rest ?? ""}`;
  const method = random(15) === 0 ? pick(random, ["PUT", "PATCH", "DELETE", "GET", "POST", "OPTIONS"]) : ask.method;
  const text =
    ask.body === undefined ? undefined : random(2) === 0 ? JSON.stringify(ask.body) : broken(random, ask.body);
  const body = method === "GET" || method === "HEAD" ? undefined : text;
  const headers: Record<string, string> = { ...ask.headers };
  if (ask.path === "/wake" && body !== undefined && random(2) === 0) headers["webhook-signature"] = signatureOf(body);
  if (random(20) === 0) headers["idempotency-key"] = pick(random, ["x", "y".repeat(300), "__proto__"]);
  return {
    method,
    path: safePath(path),
    headers,
    ...(body !== undefined && { body }),
  };
}

/** What a socket can carry in the first line of a request; the rest is encoded. */
function safePath(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/gu, (char) => encodeURIComponent(char.toWellFormed()));
}
