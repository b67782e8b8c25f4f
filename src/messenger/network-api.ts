import { errorText, PerdureError } from "../base/error.ts";
import { createGuardedFetch, type GuardedFetch } from "../toolbox/egress/guarded-fetch.ts";
import { ChannelError } from "./channel.ts";

/** The way to one network's servers, and to nothing else. */
export interface NetworkApi {
  /** Where methods are, without a slash at its end. */
  readonly root: string;
  /** Reaches the servers of this network alone, once, and follows no redirects. */
  readonly fetch: GuardedFetch;
  /** Does a call. What fails on the way is a ChannelError, whose words never hold a secret. */
  readonly careful: <T>(method: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;
}

/** Failures before a connection was made: what was asked for has surely not been done. */
const NEVER_LEFT =
  /could not be resolved|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CERT_|has no address/;

/** @throws PerdureError `bad_config` for an address that is none */
export function networkApi(options: {
  /** What people call it. */
  readonly network: string;
  /** Its public address, and others of its servers. */
  readonly address: string;
  readonly more?: readonly string[];
  /** A server that the app names instead. */
  readonly apiUrl: string | undefined;
  readonly secret: string;
  readonly headersMs: number;
}): NetworkApi {
  const { network, address, more = [], apiUrl, secret, headersMs } = options;
  const base = apiUrl ?? address;
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol))
    throw new PerdureError("bad_config", `\`apiUrl\` must be the http or https address of a server of ${network}.`);
  const { origin, protocol, hostname, port, pathname } = new URL(base);
  const place = `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
  const fetch = createGuardedFetch({
    ...{ allow: apiUrl === undefined ? [origin, ...more] : [origin], redirects: 0, headersMs },
    // Whoever names a server of their own may have it in their own network.
    ...(apiUrl !== undefined && { allowPrivate: [place] }),
  });
  return {
    root: `${origin}${pathname.replace(/\/$/, "")}`,
    fetch,
    async careful(method, signal, work) {
      try {
        return await work();
      } catch (thrown) {
        if (thrown instanceof ChannelError) throw thrown;
        if (signal.aborted) throw signal.reason;
        const words = errorText(thrown).replaceAll(secret, "…");
        const isUnsent = PerdureError.is(thrown, "not_allowed") || NEVER_LEFT.test(words);
        throw new ChannelError(isUnsent ? "unsent" : "unknown", `${network} (${method}): ${words}`);
      }
    },
  };
}
