import type { AuthInfo, McpHttpHandler, McpServerFactory as SdkFactory } from "@modelcontextprotocol/server";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { MAX_JSON_DEPTH, notReadWords, readJson } from "../../../wire/json.ts";
import { loadServerSdk, type ServerSdk } from "../load-sdk.ts";
import { type McpAccessOptions, preflight, refusal, refuse, withCors } from "./access.ts";
import { type McpSessionOptions, McpSessions } from "./sessions.ts";

const DEFAULT_MAX_BODY = 4 * 1024 * 1024;
/** The most values of one request. Each is checked and copied several times before a tool has it. */
const MAX_VALUES = 20_000;
/** The most messages of one request. Each may be a call, and all of them begin at once. */
const MAX_MESSAGES = 100;

/** Makes a server (an `McpServer` of `@modelcontextprotocol/server`) for one request, or one session. */
export type McpServerFactory = SdkFactory;

/**
 * Says who asks. A {@link Response} is the answer; nothing (`undefined`) refuses with 401. What it throws is answered with 500.
 */
export type McpAuthenticate = (
  request: Request,
) => AuthInfo | Response | undefined | Promise<AuthInfo | Response | undefined>;

/** How an MCP server is served. */
export interface McpHandlerOptions extends McpAccessOptions {
  /**
   * Remembers clients of the 2025 revisions between requests, which resumed streams and questions back need; newer clients do
   * not. Default false.
   */
  readonly sessions?: boolean | McpSessionOptions;
  readonly auth?: McpAuthenticate;
  /** Where the metadata of the protected resource are, for those who are refused with 401. */
  readonly resourceMetadataUrl?: string;
  /** The largest request. Default 4 MiB. */
  readonly maxBodyBytes?: number;
  /** Something went wrong that no client was told of. Must not throw. */
  readonly onError?: (error: Error) => void;
}

const mcpHandlerOptionsNames = namesOf<McpHandlerOptions>()(
  "sessions auth resourceMetadataUrl maxBodyBytes onError allowedHosts allowedOrigins cors",
);

/** Tells clients that something has changed. */
export interface McpNotify {
  toolsChanged(): void;
  promptsChanged(): void;
  resourcesChanged(): void;
}

/** Answers requests as an MCP server. */
export interface McpHandler {
  (request: Request): Promise<Response>;
  readonly notify: McpNotify;
  /** Ends all that is open. */
  close(): Promise<void>;
}

/** What is made when the first request comes. */
interface Parts {
  readonly sdk: ServerSdk;
  readonly newest: McpHttpHandler;
  readonly sessions: McpSessions | undefined;
}

/**
 * An MCP server over streamable HTTP, as a function of a request: for an agent's `onRequest`, or any router. `factory` makes a
 * fresh server per request or session (see `agentMcpServer`). Speaks all protocol revisions since 2025. Answers only this machine
 * unless `auth` or `allowedHosts` is given. Rejects with PerdureError `bad_config` when `@modelcontextprotocol/server` is not
 * installed.
 */
export function createMcpHandler(factory: McpServerFactory, options: McpHandlerOptions = {}): McpHandler {
  refuseUnknown(options, mcpHandlerOptionsNames, "createMcpHandler()");
  let made: Promise<Parts> | undefined;
  const load = () => (made ??= makeParts(factory, options));
  const answer = async (request: Request): Promise<Response> => {
    const refused = refuse(request, options, options.auth !== undefined);
    if (refused !== undefined) return refused;
    return withCors(request, preflight(request, options) ?? (await respond(request, await load(), options)), options);
  };
  const tell = (event: keyof McpNotify) => void made?.then((parts) => notifyAll(parts, event)).catch(() => {});
  return Object.assign(answer, {
    notify: {
      toolsChanged: () => tell("toolsChanged"),
      promptsChanged: () => tell("promptsChanged"),
      resourcesChanged: () => tell("resourcesChanged"),
    },
    close: async () => {
      const parts = await made;
      await Promise.all([parts?.newest.close(), parts?.sessions?.close()]);
    },
  });
}

async function makeParts(factory: McpServerFactory, options: McpHandlerOptions): Promise<Parts> {
  const sdk = await loadServerSdk();
  const { sessions = false, maxBodyBytes = DEFAULT_MAX_BODY, onError } = options;
  const newest = sdk.createMcpHandler(factory, {
    legacy: sessions === false ? "stateless" : "reject",
    maxRequestBodySize: maxBodyBytes,
    ...(onError !== undefined && { onerror: onError }),
  });
  const kept = sessions === false ? undefined : new McpSessions(sdk, factory, sessions === true ? {} : sessions);
  return { sdk, newest, sessions: kept };
}

async function respond(request: Request, parts: Parts, options: McpHandlerOptions): Promise<Response> {
  const auth = await options.auth?.(request);
  if (auth instanceof Response) return auth;
  if (options.auth !== undefined && auth === undefined) return challenge(options);
  const { newest, sessions, sdk } = parts;
  const who = auth === undefined ? {} : { authInfo: auth };
  if (request.method !== "POST") {
    return sessions === undefined ? newest.fetch(request, who) : sessions.answer(request, undefined, auth);
  }
  if (!sdk.isJsonContentType(request.headers.get("content-type"))) {
    return refusal(415, "Send JSON, with content-type: application/json.");
  }
  const limit = options.maxBodyBytes ?? DEFAULT_MAX_BODY;
  const text = await sdk.readRequestBody(request.clone(), limit);
  if (text.tooLarge) return refusal(413, `A request may have ${limit} bytes.`);
  const read = readJson(text.text, MAX_JSON_DEPTH, MAX_VALUES);
  if (!read.ok) {
    if (read.why === "not-json") return Response.json(PARSE_ERROR, { status: 400 });
    return refusal(413, `The request ${notReadWords(read.why, MAX_JSON_DEPTH, MAX_VALUES)}.`);
  }
  const body = read.value;
  if (Array.isArray(body) && body.length > MAX_MESSAGES) {
    return refusal(413, `A request may hold ${MAX_MESSAGES} messages.`);
  }
  if (sessions === undefined) return newest.fetch(request, { ...who, parsedBody: body });
  const legacy = await sdk.isLegacyRequest(request, body);
  return legacy ? sessions.answer(request, body, auth) : newest.fetch(request, { ...who, parsedBody: body });
}

const PARSE_ERROR = { jsonrpc: "2.0", error: { code: -32_700, message: "Parse error: Invalid JSON" }, id: null };

function challenge({ resourceMetadataUrl }: McpHandlerOptions): Response {
  const where = resourceMetadataUrl === undefined ? "" : `, resource_metadata="${resourceMetadataUrl}"`;
  return refusal(401, "Sign in first.", { "www-authenticate": `Bearer error="invalid_token"${where}` });
}

function notifyAll({ newest, sessions }: Parts, event: keyof McpNotify): void {
  newest.notify[event]();
  for (const server of sessions?.servers ?? []) {
    if (!("sendToolListChanged" in server) || "setRequestHandler" in server) continue;
    if (event === "toolsChanged") server.sendToolListChanged();
    else if (event === "promptsChanged") server.sendPromptListChanged();
    else server.sendResourceListChanged();
  }
}
