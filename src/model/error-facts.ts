/** What can be read off an error of a model call, whoever made it. */
export interface ErrorFacts {
  /** Names of error classes, outermost first. */
  readonly names: readonly string[];
  /** HTTP statuses of failures (400 to 599), outermost first. */
  readonly statuses: readonly number[];
  /** Codes, types and status words, in lower case. */
  readonly codes: ReadonlySet<string>;
  /** Messages, outermost first, as they are. */
  readonly texts: readonly string[];
  /** All messages in lower case. */
  readonly wording: string;
  /** What the SDK thinks of trying again, where it says so. */
  readonly retryable: boolean | undefined;
  /** Headers of responses, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

interface Reading {
  names: string[];
  statuses: number[];
  codes: Set<string>;
  texts: string[];
  retryable: boolean | undefined;
  headers: Record<string, string>;
}

/** Errors are a few levels deep; responses can be anything. */
const MAX_DEPTH = 10;
const MAX_NODES = 200;
const MAX_LIST = 8;
const MAX_TEXT = 4000;
const MAX_JSON = 200_000;

/** Where errors keep other errors and a provider's answer. Nothing else is read: requests and misfit values hold users' words. */
const inside = [
  "error",
  "lastError",
  "cause",
  "data",
  "responseBody",
  "body",
  "response",
  "detail",
  "details",
  "innererror",
  "inner_error",
  "metadata",
  "raw",
  "base_resp",
  "$metadata",
  "violations",
];
const textKeys = ["message", "Message", "msg", "status_msg", "error_message", "error_description"];
const statusKeys = ["statusCode", "status", "status_code", "httpStatusCode", "http_code", "code"];
const codeKeys = [
  "code",
  "type",
  "status",
  "reason",
  "error_type",
  "errorCode",
  "error_code",
  "quotaId",
  "quota_limit",
];

/** Reads an error structurally: no `instanceof`, because copies of the SDK differ. Bounded; never throws. */
export function readError(error: unknown): ErrorFacts {
  const reading: Reading = { names: [], statuses: [], codes: new Set(), texts: [], retryable: undefined, headers: {} };
  const seen = new Set<unknown>();
  // Breadth first: what is further out was said by somebody who knew more.
  let level: unknown[] = [error];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const value of level) {
      if (seen.size >= MAX_NODES) break;
      if (typeof value === "string") {
        readText(reading, value, next);
      } else if (typeof value === "object" && value !== null && !seen.has(value)) {
        seen.add(value);
        readObject(reading, value, next);
      }
    }
    level = next;
  }
  const { names, statuses, codes, texts, retryable, headers } = reading;
  return { names, statuses, codes, texts, wording: texts.join("\n").toLowerCase(), retryable, headers };
}

function readText(reading: Reading, text: string, next: unknown[]): void {
  const trimmed = text.trim();
  if (trimmed === "") return;
  // The body of a response, or a message that a proxy made of one.
  if ((trimmed.startsWith("{") || trimmed.startsWith("[")) && trimmed.length <= MAX_JSON) {
    try {
      next.push(JSON.parse(trimmed));
      return;
    } catch {
      // Then it is text.
    }
  }
  const cut = trimmed.slice(0, MAX_TEXT);
  if (!reading.texts.includes(cut)) reading.texts.push(cut);
}

function readObject(reading: Reading, value: object, next: unknown[]): void {
  if (Array.isArray(value)) {
    next.push(...value.slice(0, MAX_LIST));
    return;
  }
  const name = get(value, "name");
  if (typeof name === "string" && name !== "") reading.names.push(name);
  for (const key of statusKeys) {
    const status = toStatus(get(value, key));
    if (status !== undefined) reading.statuses.push(status);
  }
  for (const key of codeKeys) {
    const code = get(value, key);
    if (typeof code === "string" && code !== "") reading.codes.add(code.slice(0, MAX_TEXT).toLowerCase());
    else if (typeof code === "number") reading.codes.add(String(code));
  }
  const retryable = get(value, "isRetryable");
  if (typeof retryable === "boolean") reading.retryable ??= retryable;
  for (const key of ["responseHeaders", "headers"]) addHeaders(reading.headers, get(value, key));
  const retryDelay = get(value, "retryDelay");
  if (typeof retryDelay === "string") reading.headers["retry-delay"] ??= retryDelay;
  for (const key of textKeys) {
    const text = get(value, key);
    if (typeof text === "string") readText(reading, text, next);
  }
  for (const key of inside) {
    const child = get(value, key);
    if (child !== undefined && child !== null) next.push(child);
  }
  // Of several tries only the last counts; of several addresses of one host, all do.
  const errors = get(value, "errors");
  if (Array.isArray(errors) && get(value, "lastError") === undefined) {
    next.push(...(name === "AI_RetryError" ? errors.slice(-1) : errors.slice(0, MAX_LIST)));
  }
}

function toStatus(value: unknown): number | undefined {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
}

function addHeaders(headers: Record<string, string>, given: unknown): void {
  if (typeof given !== "object" || given === null) return;
  try {
    const entries: Iterable<[string, unknown]> =
      given instanceof Headers ? given.entries() : Object.entries(given as Record<string, unknown>);
    for (const [name, value] of entries) {
      if (typeof value === "string") headers[name.toLowerCase()] ??= value.slice(0, MAX_TEXT);
    }
  } catch {
    // Headers that cannot be listed are no headers.
  }
}

/** Reading a property can run anything, and anything can throw. */
function get(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}
