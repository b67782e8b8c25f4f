import { PerdureError } from "../../base/error.ts";
import { withoutSecrets } from "./headers.ts";
import { parseTarget, type Target } from "./target.ts";

/** One request on its way, as the guest means it. */
export interface Hop {
  readonly target: Target;
  readonly method: string;
  /** The guest's. What the host injects is added for each hop anew. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

const redirects = new Set([301, 302, 303, 307, 308]);
const bodyHeaders = ["content-type", "content-encoding", "content-language", "content-location"];

/**
 * Where a response redirects to, or `undefined`. As in browsers: 303, and 301 and 302 after a POST, go on as GET without the
 * body; `authorization` and `cookie` stay behind when the origin changes.
 * @throws PerdureError `not_allowed` for a place that no request can go to
 */
export function nextHop(hop: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!redirects.has(status) || location === undefined) return undefined;
  const target = parseTarget(absolute(location, hop.target.url));
  if ("fault" in target)
    throw new PerdureError("not_allowed", `It redirects to a place that is not allowed. ${target.fault}`);
  const sameOrigin = target.url.origin === hop.target.url.origin;
  const headers = sameOrigin ? hop.headers : withoutSecrets(hop.headers);
  const becomesGet = (status === 303 && hop.method !== "HEAD") || (status < 303 && hop.method === "POST");
  if (!becomesGet) return { target, method: hop.method, headers, body: hop.body };
  const left = Object.fromEntries(Object.entries(headers).filter(([name]) => !bodyHeaders.includes(name)));
  return { target, method: "GET", headers: left, body: undefined };
}

function absolute(location: string, base: URL): string {
  // What is absolute already stays as it is written: the parser would hide what is wrong with it.
  if (/^[a-z][a-z0-9+.-]*:/i.test(location)) return location;
  if (/[\p{Cc}\s\\]/u.test(location)) return location;
  try {
    return new URL(location, base).href;
  } catch {
    return location;
  }
}
