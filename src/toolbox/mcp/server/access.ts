/** Who may ask, and from where. */
export interface McpAccessOptions {
  /**
   * The hosts that this server is known under, such as `mcp.example.com` or `localhost:3000`; without a port, any port. A page
   * can point its own name at your address, so this matters without `auth`. Default: this machine only, or any host with `auth`.
   */
  readonly allowedHosts?: readonly string[];
  /** The origins of pages that may ask, such as `https://app.example.com`. Default: only pages of the same host. */
  readonly allowedOrigins?: readonly string[];
  /** Lets the allowed pages of other origins read answers. Default: false. */
  readonly cors?: boolean | { readonly maxAgeSeconds?: number; readonly headers?: readonly string[] };
}

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];
const DAY = 86_400;
const asked = ["content-type", "authorization", "accept", "last-event-id", "mcp-session-id", "mcp-protocol-version"];
const newer = ["mcp-method", "mcp-name"];

/** Turns away who may not ask. @returns undefined to let the request pass */
export function refuse(request: Request, options: McpAccessOptions, hasAuth: boolean): Response | undefined {
  const host = hostOf(request);
  const hosts = options.allowedHosts ?? (hasAuth ? undefined : LOCAL);
  if (hosts !== undefined && !hosts.some((allowed) => isHost(allowed, host))) {
    return refusal(403, `This MCP server is not known as "${host}". Add the host to allowedHosts.`);
  }
  const origin = request.headers.get("origin");
  if (origin === null || isAllowedOrigin(origin, host, options)) return undefined;
  return refusal(403, "Pages of this origin may not ask this MCP server. Add the origin to allowedOrigins.");
}

/** Answers the question of a browser whether it may ask. @returns undefined when the request is none */
export function preflight(request: Request, options: McpAccessOptions): Response | undefined {
  if (request.method !== "OPTIONS") return undefined;
  const { cors = false } = options;
  if (cors === false) return new Response(null, { status: 405, headers: { allow: "GET, POST, DELETE" } });
  const { maxAgeSeconds = DAY, headers = [] } = cors === true ? {} : cors;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
      "access-control-allow-headers": [...asked, ...newer, ...headers].join(", "),
      "access-control-max-age": String(maxAgeSeconds),
    },
  });
}

/** Adds what lets a page of another origin read the answer. */
export function withCors(request: Request, response: Response, options: McpAccessOptions): Response {
  const origin = request.headers.get("origin");
  if (origin === null || (options.cors ?? false) === false) return response;
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", "mcp-session-id, mcp-protocol-version, www-authenticate");
  headers.append("vary", "Origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/** An error as this protocol writes it. */
export function refusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  const body = { jsonrpc: "2.0", error: { code: -32_000, message }, id: null };
  return Response.json(body, { status, headers });
}

function hostOf(request: Request): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
}

function isHost(allowed: string, host: string): boolean {
  const wanted = allowed.toLowerCase();
  return wanted === host || wanted === host.replace(/:\d+$/, "");
}

function isAllowedOrigin(origin: string, host: string, { allowedOrigins }: McpAccessOptions): boolean {
  if (allowedOrigins !== undefined) return allowedOrigins.includes(origin);
  return URL.parse(origin)?.host === host;
}
