import { addressKind } from "./address.ts";
import { isNamedPlace, isPrivateName, parsePrivatePlace } from "./private-names.ts";
import { parseTarget } from "./target.ts";

/** What {@link guardUrl} takes for granted. */
export interface UrlGuardOptions {
  /** Default: `http:` and `https:`. */
  readonly schemes?: readonly ("http:" | "https:")[];
  /** Places of the own network that are meant, as `host:port`. */
  readonly allowPrivate?: readonly string[];
}

/** What became of it. */
export type UrlVerdict =
  | { readonly ok: true; readonly url: URL; readonly host: string; readonly port: number }
  | { readonly ok: false; readonly reason: string };

/**
 * Whether a URL that somebody else wrote can be public, by its text alone: scheme, user name, private addresses in any spelling,
 * local names. `createGuardedFetch` and `createEgress` also check what the name resolves to.
 * @throws PerdureError `bad_config` for an invalid `allowPrivate`
 */
export function guardUrl(url: string | URL, options: UrlGuardOptions = {}): UrlVerdict {
  const target = parseTarget(String(url));
  if ("fault" in target) return { ok: false, reason: target.fault };
  const { schemes = ["http:", "https:"], allowPrivate = [] } = options;
  if (!schemes.includes(`${target.scheme}:`))
    return { ok: false, reason: `Only ${schemes.join(" and ")} can be used.` };
  const { host, port } = target;
  const places = allowPrivate.map(parsePrivatePlace);
  const kind = addressKind(host);
  if (kind !== undefined && kind !== "public" && !isNamedPlace(places, host, port, host)) {
    return { ok: false, reason: `${host} is no public address (${kind}).` };
  }
  if (isPrivateName(host) && !places.some((place) => place.host === host && place.port === port)) {
    return { ok: false, reason: `${host} is a name of a private network.` };
  }
  return { ok: true, url: target.url, host, port };
}
