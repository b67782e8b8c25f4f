import { tryParseJson } from "../../base/json.ts";
import { PerdureError, errorText } from "../../base/error.ts";

/** How the control routes of a Durable Streams server are reached. */
export interface ControlOptions {
  /** Sent with each request; a function is asked each time. */
  readonly headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  readonly fetch?: typeof fetch;
}

/** What a server answered. */
export interface ControlAnswer {
  readonly status: number;
  /** Its JSON; undefined when it had none. */
  readonly body: unknown;
}

/** A call that takes longer counts as failed. */
const CALL_TIMEOUT_MS = 10_000;
/** Where a Durable Streams server keeps its streams. */
const STREAM_ROOT = "/v1/stream/";

/**
 * One request.
 * @throws PerdureError `disconnected` when there was no answer, or none that says what became of it (5xx).
 */
export async function callControl(
  options: ControlOptions,
  url: string,
  request: { readonly method: string; readonly body?: unknown; readonly token?: string; readonly signal?: AbortSignal },
): Promise<ControlAnswer> {
  const signals = [AbortSignal.timeout(CALL_TIMEOUT_MS), ...(request.signal === undefined ? [] : [request.signal])];
  try {
    const given = typeof options.headers === "function" ? await options.headers() : options.headers;
    const response = await (options.fetch ?? fetch)(url, {
      method: request.method,
      headers: {
        ...given,
        ...(request.body === undefined ? {} : { "content-type": "application/json" }),
        ...(request.token === undefined ? {} : { authorization: `Bearer ${request.token}` }),
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      signal: AbortSignal.any(signals),
    });
    const text = await response.text();
    return { status: response.status, body: tryParseJson(text) };
  } catch (error) {
    request.signal?.throwIfAborted();
    throw new PerdureError("disconnected", `${request.method} ${url} got no answer: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/** The answers that mean: this wake is not this runner's (any more). */
const LOST = new Set(["FENCED", "ALREADY_CLAIMED", "NO_PENDING_WORK", "TOKEN_EXPIRED", "TOKEN_INVALID"]);

/** The code of an error of the control routes, if the answer is one. */
function refusalCode(answer: ControlAnswer): string | undefined {
  const code = fieldOf(fieldOf(answer.body, "error"), "code");
  return typeof code === "string" ? code : undefined;
}

/** What an answer that is not a good one means to a runner, as an error. */
export function refusal(answer: ControlAnswer, what: string): PerdureError {
  const code = refusalCode(answer);
  const said = fieldOf(fieldOf(answer.body, "error"), "message");
  const text = `${what} was refused: ${code ?? answer.status}${typeof said === "string" ? ` (${said})` : ""}.`;
  if (code !== undefined && LOST.has(code)) return new PerdureError("fenced", `${text} Another wake is current.`);
  if (code === "SUBSCRIPTION_NOT_FOUND") {
    return new PerdureError("not_found", `${text} The server has forgotten the subscription: create it again.`);
  }
  if (code === "SUBSCRIPTION_ALREADY_EXISTS") return new PerdureError("conflict", text);
  if (answer.status >= 500 || answer.status === 429) return new PerdureError("disconnected", text);
  if (answer.status === 401 || answer.status === 403) return new PerdureError("not_allowed", text);
  return new PerdureError("bad_input", text);
}

/** A field of something that came from outside. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The address of a stream, or of what is behind `__ds/`. */
export function streamUrl(baseUrl: string | URL, path: string): string {
  const base = new URL(baseUrl);
  const before = base.pathname.replace(/\/v1\/stream\/?$/, "").replace(/\/+$/, "");
  return `${base.origin}${before}${STREAM_ROOT}${path}`;
}

/** The address of a subscription. */
export function subscriptionUrl(baseUrl: string | URL, id: string): string {
  return streamUrl(baseUrl, `__ds/subscriptions/${encodeURIComponent(id)}`);
}

/** A stream as a subscription names it, from its path or its address. */
export function streamPath(stream: string): string {
  let path = stream;
  if (/^https?:/.test(stream)) {
    const { pathname } = new URL(stream);
    const at = pathname.indexOf(STREAM_ROOT);
    path = decodeURI(at < 0 ? pathname : pathname.slice(at + STREAM_ROOT.length));
  }
  return path.replace(/^\/+|\/+$/g, "");
}

/** What a subscription is now. */
export interface SubscriptionFacts {
  /** ISO time of the server's clock: a subscription that was forgotten and made again has a later one. */
  readonly createdAt: string;
  readonly leaseMs: number;
}

/** Asks for a subscription. @throws PerdureError `not_found` when there is none. */
export async function readSubscription(options: ControlOptions, url: string): Promise<SubscriptionFacts> {
  const answer = await callControl(options, url, { method: "GET" });
  if (answer.status !== 200) throw refusal(answer, "The look at the subscription");
  const createdAt = fieldOf(answer.body, "created_at");
  const leaseMs = fieldOf(answer.body, "lease_ttl_ms");
  if (typeof createdAt !== "string" || typeof leaseMs !== "number" || Number.isNaN(Date.parse(createdAt))) {
    throw new PerdureError("bad_input", `The subscription at ${url} does not say when it was created, or its lease.`);
  }
  return { createdAt, leaseMs };
}

/** Room between two subscriptions that were created one millisecond apart: far more wakes than that time can hold. */
const EPOCHS_PER_MS = 1024;
/** How many tries of one wake have an epoch of their own. */
const TRIES_PER_WAKE = 8;

/**
 * The epoch of a wake's writer. Generations restart at 1 when a server forgets the subscription, so they count on from its
 * creation. `tries`: how often this wake was begun and given up.
 */
export function wakeEpoch({ createdAt }: SubscriptionFacts, generation: number, tries: number): number {
  return Date.parse(createdAt) * EPOCHS_PER_MS + generation * TRIES_PER_WAKE + Math.min(tries, TRIES_PER_WAKE - 1);
}

/** What a Durable Streams server posts to a webhook. */
export interface DurableStreamsWakePayload {
  readonly subscription_id: string;
  /** The same when the delivery is tried again. */
  readonly wake_id: string;
  /** Grows with each wake of the subscription, as long as the server remembers it. */
  readonly generation: number;
  readonly streams: readonly DurableStreamsWakeStream[];
  readonly callback_url: string;
  /** Good for one hour. */
  readonly callback_token: string;
}

/** A stream of a wake. */
export interface DurableStreamsWakeStream {
  readonly path: string;
  readonly link_type: "glob" | "explicit";
  /** Up to here it was consumed. */
  readonly acked_offset: string;
  /** Up to here it goes. */
  readonly tail_offset: string;
  readonly has_pending: boolean;
}

/**
 * Reads the body of a delivery.
 * @throws PerdureError `bad_input` that names the first field that is not as it must be.
 */
export function parseWakePayload(body: string): DurableStreamsWakePayload {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new PerdureError("bad_input", "The wake is not JSON.");
  }
  const generation = fieldOf(value, "generation");
  if (!Number.isSafeInteger(generation) || Number(generation) < 1) throw missing("generation", "a whole number from 1");
  const streams = fieldOf(value, "streams");
  if (!Array.isArray(streams)) throw missing("streams", "a list");
  return {
    subscription_id: text(value, "subscription_id"),
    wake_id: text(value, "wake_id"),
    generation: Number(generation),
    streams: streams.map(readStream),
    callback_url: url(text(value, "callback_url")),
    callback_token: text(value, "callback_token"),
  };
}

/** Reads a stream of a wake, also of the answer to a claim. */
export function readStream(value: unknown): DurableStreamsWakeStream {
  const link_type = fieldOf(value, "link_type") === "glob" ? "glob" : "explicit";
  return {
    path: text(value, "path"),
    link_type,
    acked_offset: text(value, "acked_offset"),
    tail_offset: text(value, "tail_offset"),
    has_pending: fieldOf(value, "has_pending") === true,
  };
}

function text(value: unknown, name: string): string {
  const found = fieldOf(value, name);
  if (typeof found !== "string" || found === "") throw missing(name, "a text");
  return found;
}

function url(value: string): string {
  if (!/^https?:\/\//.test(value) || !URL.canParse(value)) throw missing("callback_url", "an http address");
  return value;
}

function missing(name: string, what: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The wake has no "${name}" that is ${what}. Is this a Durable Streams delivery?`,
  );
}
