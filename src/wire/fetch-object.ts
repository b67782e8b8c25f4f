import { PerdureError } from "../error.ts";

/*
 * Not by `instanceof`: some servers put classes of their own in the place of the global ones, and then what
 * `fetch()` makes is no instance any more. A refusal that is not recognised would let in.
 */

/** Whether `value` is a `Response`, whoever made it. */
export function isResponse(value: unknown): value is Response {
  return hasHeaders(value) && "status" in value && typeof value.status === "number" && "body" in value;
}

/** Whether `value` is a `Request`, whoever made it. */
export function isRequest(value: unknown): value is Request {
  return hasHeaders(value) && "url" in value && "method" in value && typeof value.method === "string";
}

/**
 * What a hook that may refuse, replace or let pass has said. Anything else was meant to say something, so it does not
 * let pass.
 * @throws PerdureError `bad_state`
 */
export function checkVerdict(verdict: unknown, hook: string): Request | Response | undefined {
  if (verdict === undefined || verdict === null) return undefined;
  if (isResponse(verdict) || isRequest(verdict)) return verdict;
  throw new PerdureError("bad_state", `${hook} must return a Response, a Request or nothing.`);
}

function hasHeaders(value: unknown): value is { readonly headers: object } {
  return typeof value === "object" && value !== null && "headers" in value && typeof value.headers === "object";
}
