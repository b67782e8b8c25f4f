import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { createEngine, type EgressOptions } from "./egress.ts";
import { guestHeaders } from "./headers.ts";
import { parseTarget } from "./target.ts";

/** What {@link createGuardedFetch} may reach. */
export interface GuardedFetchOptions extends Pick<
  EgressOptions,
  "allowPrivate" | "ca" | "inject" | "onDecision" | "resolve"
> {
  /** Rules as of `createEgress`. Default: every public host. */
  readonly allow?: readonly string[];
  /** Milliseconds until the headers of the answer have come. Default: 30 s. The body may take as long as it likes. */
  readonly headersMs?: number;
  readonly redirects?: number;
}

const guardedFetchOptionsNames = namesOf<GuardedFetchOptions>()(
  "allowPrivate ca inject onDecision resolve allow headersMs redirects",
);

/** The part of `fetch` that is guarded. */
export type GuardedFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * A `fetch` for servers that somebody else named, such as MCP servers. It reaches public addresses only, connects to what it
 * checked, and checks redirects anew. Bodies are streams, so server-sent events work.
 * @throws PerdureError `bad_config` for invalid rules. The function rejects with `not_allowed`, `bad_input`, `call_failed` or
 *   `timeout`, or with the reason of the signal.
 */
export function createGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  refuseUnknown(options, guardedFetchOptionsNames, "createGuardedFetch()");
  const { allow, headersMs, redirects, ...rest } = options;
  const unbounded = { requestsPerMinute: Number.POSITIVE_INFINITY, concurrent: Number.POSITIVE_INFINITY };
  const limits = { ...unbounded, totalMs: headersMs, redirects };
  const engine = createEngine({ ...rest, limits, allow: allow ?? "public" });
  return async (input, init) => {
    const request = new Request(input, init);
    // Of a Request only what the parser made of it is left: a text tells more.
    const target = parseTarget(typeof input === "string" ? input : request.url);
    if ("fault" in target) throw new PerdureError("not_allowed", target.fault);
    const headers = guestHeaders(Object.fromEntries(request.headers), { keepMethod: false, ownEncoding: true });
    const bytes = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    const { fetchStream } = await import("./node/fetch.ts");
    const redirect = init?.redirect ?? request.redirect;
    return fetchStream(
      engine,
      { target, method: request.method.toUpperCase(), headers, body: bytes },
      request.signal,
      redirect,
    );
  };
}
