import { createGuardedFetch } from "../../egress/guarded-fetch.ts";
import type { FetchRules } from "./http-fetch.ts";

/** Different sets of places that may be private, for which a `fetch` is kept. */
const MAX_KEPT = 64;
/** A tool may think for long before it says anything; the requests have timeouts of their own. */
const HEADERS_MS = 60 * 60 * 1000;

/** Asks public hosts, with names resolved once and held on to; and the private places that are named. */
export function guardedReach(): FetchRules["reach"] {
  const kept = new Map<string, ReturnType<typeof createGuardedFetch>>();
  return (url, init, allowPrivate) => {
    const key = allowPrivate.join(" ");
    let fetch = kept.get(key);
    if (fetch === undefined) {
      if (kept.size >= MAX_KEPT) kept.clear();
      fetch = createGuardedFetch({ allowPrivate, headersMs: HEADERS_MS });
      kept.set(key, fetch);
    }
    return fetch(url, init);
  };
}
