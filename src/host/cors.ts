import { PerdureError } from "../base/error.ts";

/** Cross-origin access: off, open to every origin, or the app's own headers. */
export type Cors = boolean | Readonly<Record<string, string>>;

const OPEN: Readonly<Record<string, string>> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "GET, POST, HEAD, OPTIONS",
  "Access-Control-Allow-Headers": "*",
  "Access-Control-Max-Age": "86400",
};

/** @throws PerdureError `bad_config` unless this is such a setting. */
export function checkCors(cors: unknown): void {
  if (cors === undefined || typeof cors === "boolean") return;
  const isRecord = typeof cors === "object" && cors !== null && Object.getPrototypeOf(cors) === Object.prototype;
  if (isRecord && Object.values(cors).every((value) => typeof value === "string")) return;
  throw new PerdureError("bad_config", "cors must be true, false, or an object of headers with string values.");
}

/** The headers of a setting, or `undefined` when cross-origin access is off. */
export function corsHeaders(cors: Cors | undefined): Readonly<Record<string, string>> | undefined {
  if (cors === undefined || cors === false) return undefined;
  return cors === true ? OPEN : cors;
}

/** The origin that a setting names, or `*`; `undefined` when it names none. */
export function allowedOrigin(cors: Cors | undefined): string | undefined {
  const named = Object.entries(corsHeaders(cors) ?? {}).find(
    ([name]) => name.toLowerCase() === "access-control-allow-origin",
  );
  return named?.[1].trim();
}

/** `response` with the headers added. A response made by `fetch` cannot be changed, hence the copy. */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>> | undefined): Response {
  if (headers === undefined) return response;
  const copy = new Response(response.body, response);
  for (const [name, value] of Object.entries(headers)) copy.headers.set(name, value);
  return copy;
}
