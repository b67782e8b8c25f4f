import { PerdureError } from "../../../base/error.ts";
import { type AnswerBounds, boundBody } from "./bound-body.ts";
import type { McpServerRecord } from "./server-record.ts";

/** The most that a server may send as an answer, or as an event of a stream. */
const ANSWER_BOUNDS: AnswerBounds = { bytes: 8 * 1024 * 1024, values: 100_000 };

/** The shape of `fetch` that the MCP client packages ask for. */
export type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Who may be asked on behalf of a server. */
export interface FetchRules {
  /** Asks `url`; refuses addresses of private networks except those in the list (`host:port`). */
  readonly reach: (url: URL, init: RequestInit | undefined, allowPrivate: readonly string[]) => Promise<Response>;
  /** Whether servers on this machine may be used. */
  readonly loopback: boolean;
}

/**
 * One server's `fetch`, for its requests and for signing in. Headers of its options go to its own origin only. Private addresses
 * are refused, this machine's too unless the server is there: what it says of its authorization server must not lead to places
 * that only we can reach. Answers are bounded, and concurrent calls that need a new token send the refresh token once.
 */
export function serverFetch(record: McpServerRecord, rules: FetchRules): McpFetch {
  const { target, options } = record;
  if (target.kind !== "http") throw new PerdureError("bad_state", "A program is not reached over HTTP.");
  const own = new URL(target.url);
  const allowPrivate = options.transport?.allowPrivate ?? false;
  const allowed = [
    ...(allowPrivate === true ? [placeOf(own)] : []),
    ...(Array.isArray(allowPrivate) ? allowPrivate : []),
  ];
  const refreshes = new Map<string, Promise<Response>>();
  const ask = async (url: URL, init: RequestInit | undefined): Promise<Response> => {
    const local = rules.loopback && isLoopback(own) && isLoopback(url) ? [placeOf(url)] : [];
    const headers = new Headers(init?.headers);
    if (url.origin === own.origin) {
      for (const [name, value] of Object.entries(options.transport?.headers ?? {})) {
        if (!headers.has(name)) headers.set(name, value);
      }
    }
    const response = boundBody(await rules.reach(url, { ...init, headers }, [...allowed, ...local]), ANSWER_BOUNDS);
    return response.ok ? response : readAtOnce(response);
  };
  return async (input, init) => {
    const url = new URL(input);
    const refresh = refreshOf(init);
    if (refresh === undefined) return ask(url, init);
    const key = `${url.href} ${refresh}`;
    const sent = refreshes.get(key) ?? ask(url, init);
    refreshes.set(key, sent);
    try {
      // One answer can be read once; whoever comes while it is under way gets a copy.
      return (await sent).clone();
    } finally {
      refreshes.delete(key);
    }
  };
}

/** Nobody may ever read why something was refused, and an answer that is not read keeps its connection. */
async function readAtOnce(response: Response): Promise<Response> {
  const { status, statusText, headers, url } = response;
  if (response.body === null) return response;
  const read = new Response(await response.arrayBuffer(), { status, statusText, headers });
  Object.defineProperty(read, "url", { value: url });
  return read;
}

/** Whether a URL names this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** `host:port`. */
export function placeOf(url: URL): string {
  return `${url.hostname}:${url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port}`;
}

/** The refresh token that a request spends. */
function refreshOf(init: RequestInit | undefined): string | undefined {
  const body: unknown = init?.body;
  if (!(body instanceof URLSearchParams) || body.get("grant_type") !== "refresh_token") return undefined;
  return body.get("refresh_token") ?? undefined;
}
