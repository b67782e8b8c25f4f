import { PerdureError } from "../base/error.ts";
import { type Identity, readIdentity, writeIdentity } from "../base/identity.ts";
import type { ReadVerdict } from "../port.ts";

/*
 * Not `instanceof`: some servers replace the global classes, and what `fetch()` makes is then no instance. An unrecognised
 * refusal would let requests in.
 */

/** Whether `value` is a `Response`, whoever made it. */
export function isResponse(value: unknown): value is Response {
  return hasHeaders(value) && "status" in value && typeof value.status === "number" && "body" in value;
}

/** Whether `value` is a `Request`, whoever made it. */
export function isRequest(value: unknown): value is Request {
  return hasHeaders(value) && "url" in value && "method" in value && typeof value.method === "string";
}

/** What a hook says of a request that it lets in: who sent it, and what it is to be from now on. */
export interface Admitted {
  readonly identity: Identity;
  /** Instead of the request that came. */
  readonly request?: Request;
}

/** What a hook may return: a Response refuses, a Request replaces, an identity says who it is, nothing lets pass. */
export type Verdict = Request | Response | Admitted | undefined | void;

/**
 * What a hook that may refuse, replace, name or let pass has said. Anything unknown does not let pass.
 * @throws PerdureError `bad_state`; `bad_config` for what is no identity
 */
export function readVerdict(verdict: unknown, hook: string): ReadVerdict {
  if (verdict === undefined || verdict === null) return {};
  if (isResponse(verdict)) return { refusal: verdict };
  if (isRequest(verdict)) return { request: verdict };
  if (!isAdmitted(verdict))
    throw new PerdureError(
      "bad_state",
      `${hook} must return a Response, a Request, { identity, request? } or nothing.`,
    );
  const identity = readIdentity(writeIdentity(verdict.identity, hook, "bad_config"));
  const { request } = verdict;
  return { ...(identity !== undefined && { identity }), ...(request !== undefined && { request }) };
}

function isAdmitted(value: unknown): value is { readonly identity: unknown; readonly request?: Request } {
  if (typeof value !== "object" || value === null || !("identity" in value)) return false;
  const { identity: _, request, ...more } = value as { identity: unknown; request?: unknown };
  return Object.keys(more).length === 0 && (request === undefined || isRequest(request));
}

function hasHeaders(value: unknown): value is { readonly headers: object } {
  return typeof value === "object" && value !== null && "headers" in value && typeof value.headers === "object";
}
