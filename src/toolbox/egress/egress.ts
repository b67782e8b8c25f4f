import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import type { Egress, EgressRequest } from "../sandbox/sandbox.ts";
import { createAdmission } from "./admission.ts";
import { type OnDecision, shownUrl, tell } from "./decision.ts";
import { guestHeaders } from "./headers.ts";
import { createInject, type Injection } from "./inject.ts";
import { egressLimits, type EgressLimits } from "./limits.ts";
import { createPolicy, type Verdict } from "./policy.ts";
import type { Hop } from "./redirect.ts";
import { parseTarget } from "./target.ts";

/** What may be reached, and on which terms. */
export interface EgressOptions {
  /**
   * Where requests may go, nothing else: `api.example.com` (ports 80 and 443), `api.example.com:8443`, `*.example.com` (not the
   * apex), `https://host`, `https://host:port/path/`. An empty list allows nothing.
   */
  readonly allow: readonly string[];
  /** Headers that the host adds after the guest's, which never sees nor replaces them. */
  readonly inject?: readonly Injection[];
  /** Default: GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS. Tunnels of the proxy cannot be bounded by method. */
  readonly methods?: readonly string[];
  readonly limits?: Partial<EgressLimits>;
  readonly onDecision?: OnDecision;
  /** Default: the system's resolver. */
  readonly resolve?: ResolveHost;
  /** Private places that may be reached all the same (`host:port`), for tests and internal services. `allow` them too. */
  readonly allowPrivate?: readonly string[];
  /** Certificates (PEM) of internal services, to trust besides the usual ones. */
  readonly ca?: string;
}

/** All addresses of a host. May be slow; a throw fails the request. Asked once per connection, which goes only to these. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

const egressOptionsNames = namesOf<EgressOptions>()("allow inject methods limits onDecision resolve allowPrivate ca");

/** An {@link Egress} that can be asked beforehand. */
export interface PolicedEgress extends Egress {
  /** The rules, as they were written. */
  readonly allow: readonly string[];
  /** What the rules say of a URL. The address behind the name is looked at only when it is fetched. */
  check(url: string, method?: string): Verdict;
}

const MAX_METHOD_CHARS = 20;

/**
 * The one way out to the network. Every request, and each redirect, is decided here on the host: by the rules, and by what the
 * name resolves to (once; private addresses are refused, and only what was checked is connected to).
 * @throws PerdureError `bad_config` for rules, limits or headers that cannot work
 */
export function createEgress(options: EgressOptions): PolicedEgress {
  refuseUnknown(options, egressOptionsNames, "createEgress()");
  const engine = createEngine(options);
  return {
    allow: engine.policy.allow,
    check(url, method = "GET") {
      const target = parseTarget(url);
      if ("fault" in target) return { allowed: false, reason: target.fault };
      return engine.policy.request(target, method.toUpperCase());
    },
    async fetch(url, request = {}) {
      const start = firstHop(engine, url, request);
      const { fetchWhole } = await import("./node/fetch.ts");
      return fetchWhole(engine, start, request);
    },
    async listen(socketPath) {
      const { listen } = await import("./node/proxy.ts");
      return listen(engine, socketPath);
    },
  };
}

/** What {@link createEgress} runs on, also for clients that read streams. */
export function createEngine(options: Omit<EgressOptions, "allow"> & { readonly allow: readonly string[] | "public" }) {
  const limits = egressLimits(options.limits);
  if (options.allow !== "public" && !Array.isArray(options.allow)) {
    throw new PerdureError("bad_config", "`allow` must be a list of network rules. An empty list allows nothing.");
  }
  return {
    policy: createPolicy(options),
    limits,
    enter: createAdmission(limits),
    inject: createInject(options.inject ?? []),
    /** Whether the methods are bounded, so that headers must not change them. */
    keepMethod: options.methods !== undefined,
    onDecision: options.onDecision,
    resolve: options.resolve,
    ca: options.ca,
  };
}

/** What the sockets are told by the part that knows no sockets. */
export type Engine = Readonly<ReturnType<typeof createEngine>>;

/** @throws PerdureError `bad_input`, `not_allowed` or `limit`: what is wrong with the request itself */
function firstHop(engine: Engine, url: string, { method = "GET", headers = {}, body }: EgressRequest): Hop {
  const upper = String(method).toUpperCase();
  const refuse = (code: "bad_input" | "not_allowed" | "limit", reason: string) => {
    const shown = { via: "fetch", method: upper.slice(0, MAX_METHOD_CHARS), url: shownUrl(url), hop: 0 } as const;
    tell(engine.onDecision, { ...shown, allowed: false, reason });
    return new PerdureError(code, reason);
  };
  if (typeof url !== "string") throw new PerdureError("bad_input", "The URL must be a string.");
  const target = parseTarget(url);
  if ("fault" in target) throw refuse("not_allowed", target.fault);
  let cleaned: Record<string, string>;
  try {
    cleaned = guestHeaders(headers, { keepMethod: engine.keepMethod, ownEncoding: true });
  } catch (thrown) {
    if (!PerdureError.is(thrown)) throw thrown;
    throw refuse(thrown.code === "limit" ? "limit" : "bad_input", thrown.message);
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  if (bytes !== undefined && bytes.byteLength > engine.limits.requestBytes) {
    throw refuse("limit", `The body of the request is larger than ${engine.limits.requestBytes} bytes.`);
  }
  if (bytes !== undefined && (upper === "GET" || upper === "HEAD"))
    throw refuse("bad_input", `${upper} cannot have a body.`);
  return { target, method: upper, headers: cleaned, body: bytes };
}
