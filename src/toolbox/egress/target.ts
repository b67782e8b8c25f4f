/** Where a request goes, in one spelling: what is checked is what is connected to. */
export interface Target {
  readonly url: URL;
  readonly scheme: "http" | "https";
  /** Lower case, punycode, without a dot at the end; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Has dots or slashes that another server might undo behind our back. */
  readonly trickyPath: boolean;
}

/** Why a text is no target. */
interface BadTarget {
  readonly fault: string;
}

const MAX_URL_CHARS = 8_192;
const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Reads a URL of a guest. Nothing is asked of the network. */
export function parseTarget(text: string): Target | BadTarget {
  if (text.length > MAX_URL_CHARS) return { fault: `The URL is longer than ${MAX_URL_CHARS} characters.` };
  // The parser drops tabs and line breaks, and takes \ for /. Whoever wrote them wants us to read something else.
  if (/[\p{Cc}\s\\]/u.test(text)) return { fault: "The URL has spaces, control characters or backslashes in it." };
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { fault: "This is no absolute URL. Write it as https://host/path." };
  }
  const scheme = url.protocol === "https:" ? "https" : url.protocol === "http:" ? "http" : undefined;
  if (scheme === undefined) return { fault: `Only http and https can be fetched, not "${url.protocol.slice(0, 20)}".` };
  // An empty name and password leave no trace in the parsed URL.
  if (url.username !== "" || url.password !== "" || authorityOf(text).includes("@")) {
    return { fault: "The URL has a user name or password in it (the part before @). Leave it out." };
  }
  const host = normalHost(url.hostname);
  if (host === undefined) return { fault: "The URL has no usable host name." };
  url.hostname = host.includes(":") ? `[${host}]` : host;
  url.hash = "";
  const port = url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port);
  if (port === 0) return { fault: "Port 0 cannot be connected to." };
  return { url, scheme, host, port, trickyPath: isTricky(pathOf(text)) || isTricky(url.pathname) };
}

/** The spelling of a host that the URL parser gave; `undefined` for one that no server can have. */
export function normalHost(hostname: string): string | undefined {
  if (hostname.startsWith("[")) return hostname.slice(1, -1);
  const host = hostname.toLowerCase().replace(/\.$/, "");
  const usable =
    host !== "" && host.length <= 253 && host.split(".").every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
  return usable ? host : undefined;
}

/** `host` or `host:port` for messages, with the brackets that IPv6 needs. */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function authorityOf(text: string): string {
  return /^[a-z][a-z0-9+.-]*:\/*([^/?#]*)/i.exec(text)?.[1] ?? "";
}

function pathOf(text: string): string {
  return /^[a-z][a-z0-9+.-]*:\/*[^/?#]*([^?#]*)/i.exec(text)?.[1] ?? "";
}

/** `%2e`, `%2f`, `%5c`, also encoded twice, and `..;`, which some servers take for `..`. */
function isTricky(path: string): boolean {
  return /%(?:25)*(?:2e|2f|5c)/i.test(path) || /(?:^|\/)\.{1,2};/.test(path);
}
