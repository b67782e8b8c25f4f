import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";

/** A name or an address, maybe with a port. What else a URL could hold here would be read as something else later. */
const HOST = /^[\w.~:[\]-]+$/;

/** Answers a request that came in over HTTP. */
type Answer = (request: Request, incoming: IncomingMessage) => Promise<Response>;

/** A listener of `node:http` that has `answer` answer; 400 for a request whose address makes no sense. */
export function toListener(answer: Answer): RequestListener {
  const listener = getRequestListener(
    // Not HTTP/2: such servers hand us web requests.
    (request, { incoming }) => answer(request, incoming as IncomingMessage),
    { overrideGlobalObjects: false },
  );
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (readTarget(incoming) !== undefined) return void listener(incoming, outgoing);
    outgoing.writeHead(400, { connection: "close" }).end("Bad Request");
  };
}

/** The request of an upgrade as a web `Request`, without a body; `undefined` when its address makes no sense. */
export function toRequest(incoming: IncomingMessage): Request | undefined {
  const url = readTarget(incoming);
  if (url === undefined) return undefined;
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    const name = incoming.rawHeaders[i] ?? "";
    // Not allowed in a Request, and of no use to anyone behind the upgrade.
    if (/^(connection|keep-alive|transfer-encoding)$/i.test(name)) continue;
    headers.append(name, incoming.rawHeaders[i + 1] ?? "");
  }
  return new Request(url, { headers });
}

/**
 * The address of a request, read alike for HTTP and upgrades; `undefined` when ambiguous: no leading slash, backslashes
 * (`//x/agents/…` is always a path), a URL of another host than the `Host` header, two such headers, or a bad one.
 */
function readTarget({ url: target = "", headers, rawHeaders, socket }: IncomingMessage): URL | undefined {
  const { host } = headers;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  if (host === undefined || hosts.length !== 1 || !HOST.test(host)) return undefined;
  if (/^[^?]*\\/.test(target)) return undefined;
  const scheme = /^(https?):\/\//.exec(target)?.[1];
  if (scheme === undefined && !target.startsWith("/")) return undefined;
  const encrypted = "encrypted" in socket && socket.encrypted === true;
  const own = URL.parse(`${scheme ?? (encrypted ? "https" : "http")}://${host}`);
  if (own === null || own.hostname !== host.replace(/:\d+$/, "").toLowerCase()) return undefined;
  const url = URL.parse(scheme === undefined ? own.origin + target : target);
  if (url === null || url.host !== own.host || url.username !== "" || url.password !== "") return undefined;
  return url;
}
