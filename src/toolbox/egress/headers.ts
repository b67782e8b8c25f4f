import { PerdureError } from "../../base/error.ts";

/** Of one connection, so of the host: a guest can neither set nor see them. */
const hopByHop = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings"],
]);

/** Said by the host itself, from what is really sent. */
const hostsOwn = new Set(["host", "content-length", "expect"]);

/** Would turn an allowed method into another one. */
const methodDisguises = new Set(["x-http-method-override", "x-http-method", "x-method-override"]);

/** What must not follow to another origin. */
const secrets = ["authorization", "cookie", "proxy-authorization"];

const MAX_HEADERS = 64;
const MAX_HEADER_CHARS = 16_384;

/** What to leave of the guest's headers. */
interface HeaderPolicy {
  /** Drops what asks a server to take the request for one of another method. */
  readonly keepMethod: boolean;
  /** The host decodes the body, so the host says in which codings it may come. */
  readonly ownEncoding: boolean;
}

/**
 * A guest's headers that go out, by lower-case name. Those of the connection and the host are silently left out.
 * @throws PerdureError `bad_input` for names or values that could end the header, `limit` for too many
 */
export function guestHeaders(given: Readonly<Record<string, string>>, policy: HeaderPolicy): Record<string, string> {
  const entries = Object.entries(given);
  const listed = new Set<string>();
  for (const [name, value] of entries) {
    if (name.toLowerCase() === "connection")
      for (const one of String(value).split(",")) listed.add(one.trim().toLowerCase());
  }
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  let chars = 0;
  for (const [name, value] of entries) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)) {
      throw new PerdureError("bad_input", `${JSON.stringify(name.slice(0, 80))} cannot be the name of a header.`);
    }
    if (typeof value !== "string" || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new PerdureError(
        "bad_input",
        `The header "${name}" has a value with line breaks or characters that headers must not contain.`,
      );
    }
    const lower = name.toLowerCase();
    if (hopByHop.has(lower) || hostsOwn.has(lower) || listed.has(lower)) continue;
    if (policy.keepMethod && methodDisguises.has(lower)) continue;
    if (policy.ownEncoding && lower === "accept-encoding") continue;
    headers[lower] = value;
    chars += name.length + value.length;
  }
  if (entries.length > MAX_HEADERS || chars > MAX_HEADER_CHARS) {
    throw new PerdureError(
      "limit",
      `A request may have at most ${MAX_HEADERS} headers with ${MAX_HEADER_CHARS} characters in all.`,
    );
  }
  return headers;
}

/** What is left of the headers for a request to another origin. */
export function withoutSecrets(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !secrets.includes(name)));
}

/** The headers of a response, without those of the connection. Several of one name are joined. */
export function responseHeaders(
  given: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || hopByHop.has(name) || name === "__proto__") continue;
    headers[name] = typeof value === "string" ? value : value.join(", ");
  }
  return headers;
}
