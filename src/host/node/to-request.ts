import type { IncomingMessage } from "node:http";

/** The request of an upgrade as a web `Request`, without a body; `undefined` when its address makes no sense. */
export function toRequest(incoming: IncomingMessage): Request | undefined {
  try {
    return buildRequest(incoming);
  } catch {
    // What a client may write and a Request refuses: `Host: name:password@example`.
    return undefined;
  }
}

function buildRequest(incoming: IncomingMessage): Request | undefined {
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    const name = incoming.rawHeaders[i] ?? "";
    // Not allowed in a Request, and of no use to anyone behind the upgrade.
    if (/^(connection|keep-alive|transfer-encoding)$/i.test(name)) continue;
    headers.append(name, incoming.rawHeaders[i + 1] ?? "");
  }
  const encrypted = "encrypted" in incoming.socket && incoming.socket.encrypted === true;
  const host = incoming.headers.host ?? "localhost";
  const url = URL.parse(incoming.url ?? "/", `${encrypted ? "https" : "http"}://${host}`);
  return url === null ? undefined : new Request(url, { headers });
}
