import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { rootCertificates } from "node:tls";
import type { Readable } from "node:stream";
import { PerdureError } from "../../../base/error.ts";
import { hostAndPort, type Target } from "../target.ts";
import { holdTo, type Pinned } from "./pin.ts";

/** One request over one connection of its own. */
interface Exchange {
  readonly target: Target;
  readonly pinned: Pinned;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream must end with an error when it is too long. */
  readonly body: Uint8Array | Readable | undefined;
  /** Milliseconds without a byte; `undefined`: no bound. */
  readonly idleMs: number | undefined;
  readonly signal: AbortSignal;
  readonly ca: string | undefined;
}

const MAX_HEADER_BYTES = 32_768;

/** Not the global ones: these may be told to use a proxy of the environment, and keep connections that others pinned. */
const httpAgent = new HttpAgent({ keepAlive: false });
const httpsAgent = new HttpsAgent({ keepAlive: false, maxCachedSessions: 0 });

/**
 * Sends a request; resolves to its response, body unread. `Host`, TLS and the certificate check use the name; the connection goes
 * to the pinned addresses only.
 * @throws PerdureError `call_failed`, `timeout`; the signal's reason when it aborts
 */
export function exchange(wanted: Exchange): Promise<IncomingMessage> {
  const { target, pinned, signal, body } = wanted;
  return new Promise<IncomingMessage>((resolve, reject) => {
    const request = open(wanted);
    request.on("socket", (socket) => holdTo(socket, pinned));
    request.on("timeout", () => request.destroy(idle(wanted.idleMs)));
    request.on("response", resolve);
    request.on("error", (error) => reject(reasonOf(error, target, signal)));
    if (body === undefined || body instanceof Uint8Array) request.end(body);
    else {
      body.on("error", (error) => request.destroy(error));
      body.pipe(request);
    }
  });
}

function open({ target, pinned, method, headers, idleMs, signal, ca, body }: Exchange): ClientRequest {
  const { url, scheme, host, port } = target;
  const options = {
    host,
    port,
    lookup: pinned.lookup,
    autoSelectFamily: true,
    method,
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, ...lengthOf(body) },
    setHost: false,
    signal,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    ...(idleMs !== undefined && { timeout: idleMs }),
  };
  if (scheme === "http") return requestHttp({ ...options, agent: httpAgent });
  const trust = ca === undefined ? {} : { ca: [...rootCertificates, ca] };
  // TLS has no names for addresses: then the certificate is checked against the address.
  return requestHttps({ ...options, ...trust, agent: httpsAgent, servername: isIP(host) === 0 ? host : "" });
}

function lengthOf(body: Exchange["body"]): Record<string, string> {
  return body instanceof Uint8Array ? { "content-length": String(body.byteLength) } : {};
}

function idle(ms: number | undefined): PerdureError {
  return new PerdureError("timeout", `Nothing came for ${ms} ms.`);
}

/** What a failed connection is called for a guest: no addresses, no host paths, no stack. */
export function reasonOf(error: unknown, target: Pick<Target, "host" | "port">, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (PerdureError.is(error)) return error;
  const code = typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
  const what = /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : "the connection broke";
  const place = hostAndPort(target.host, target.port);
  return new PerdureError("call_failed", `The request to ${place} failed: ${what}.`, { cause: error });
}
