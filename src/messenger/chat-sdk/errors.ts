import { errorText } from "../../base/error.ts";
import { isRecord, tryParseJson } from "../../base/json.ts";
import { ChannelError, type ChannelErrorKind } from "../channel.ts";

/** Failures before a connection was made: what was asked for has surely not been done. */
const NEVER_LEFT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/** What networks say in words alone. The first that fits counts. */
const WORDS: readonly (readonly [RegExp, ChannelErrorKind])[] = [
  [/not modified/i, "same"],
  [/message to edit not found|message can't be edited|message_not_found|edit_window_closed|Unknown Message/i, "gone"],
  // The last: of a server that does not know texts in Markdown.
  [/can't parse|ENTIT(Y|IES)_|message text is empty/i, "format"],
  [/ratelimited|rate.?limit/i, "rate"],
  [/invalid_auth|not_authed|account_inactive|token_revoked|token_expired|no_bot_token/i, "auth"],
  [/internal_error|fatal_error|service_unavailable|request_timeout/i, "unknown"],
];

/** What an adapter is asked to do. */
export type Op = "create" | "edit" | "fetch";

/** What the classes of the SDK's own errors mean, by name: each adapter may bring its own copy of them. */
const NAMES: Readonly<Record<string, ChannelErrorKind>> = {
  AdapterRateLimitError: "rate",
  RateLimitError: "rate",
  AuthenticationError: "auth",
  PermissionError: "refused",
  ValidationError: "refused",
  NotImplementedError: "refused",
};

const DEFAULT_WAIT_MS = 1_000;

/** What an adapter's failed call means. When in doubt, unknown: asked about, or repeated with a note, but never dropped. */
export function channelErrorOf(network: string, op: Op, thrown: unknown): ChannelError {
  if (thrown instanceof ChannelError) return thrown;
  // Addresses may hold a token.
  const words = `${network} (${op}): ${errorText(thrown).replaceAll(/\bhttps?:\/\/\S+/gi, "…")}`;
  const layers = layersOf(thrown);
  const kind = kindOf(op, layers);
  if (kind !== "rate") return new ChannelError(kind, words);
  return new ChannelError("rate", words, { retryAfterMs: waitOf(layers) });
}

/** The error, and what it was made of, from the outside in. */
function layersOf(thrown: unknown): readonly Record<string, unknown>[] {
  const layers: Record<string, unknown>[] = [];
  for (let next: unknown = thrown; isObject(next) && !layers.includes(next) && layers.length < 5;) {
    layers.push(next);
    next = next.originalError ?? next.original ?? next.cause;
  }
  return layers;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function kindOf(op: Op, layers: readonly Record<string, unknown>[]): ChannelErrorKind {
  if (layers.some(({ code }) => typeof code === "string" && NEVER_LEFT.test(code))) return "unsent";
  const status = layers.map(statusOf).find((one) => one !== undefined);
  if (status === 429 || (status === 403 && headersOf(layers)["x-ratelimit-remaining"] === "0")) return "rate";
  const texts = layers.map((layer) => `${textOf(layer.message)} ${textOf(platformOf(layer))}`);
  const said = WORDS.find(([pattern]) => texts.some((text) => pattern.test(text)))?.[1];
  if (said !== undefined) return said;
  const named = NAMES[textOf(layers[0]?.name)];
  if (named !== undefined) return named;
  if (layers[0]?.name === "ResourceNotFoundError") return op === "create" ? "refused" : "gone";
  if (layers.some((layer) => platformOf(layer) !== undefined)) return "refused";
  if (status === undefined || status >= 500) return "unknown";
  if (status === 401) return "auth";
  if ((status === 404 || status === 410) && op !== "create") return "gone";
  return status >= 400 ? "refused" : "unknown";
}

function statusOf(layer: Record<string, unknown>): number | undefined {
  const status = layer.status ?? layer.statusCode;
  // A client that never had an answer makes one up.
  return typeof status === "number" && isObject(layer.response) === (layer.name === "HttpError") ? status : undefined;
}

/** What Slack calls what was wrong. */
function platformOf({ data }: Record<string, unknown>): unknown {
  return isObject(data) ? data.error : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function headersOf(layers: readonly Record<string, unknown>[]): Record<string, unknown> {
  for (const { response } of layers) if (isObject(response) && isObject(response.headers)) return response.headers;
  return {};
}

/** When the network wants to be called again. Clients count in seconds. */
function waitOf(layers: readonly Record<string, unknown>[]): number {
  const told = layers.map(({ retryAfter, message }) => {
    const body: unknown = tryParseJson(/\{.*\}$/s.exec(textOf(message))?.[0] ?? "");
    return Number(retryAfter ?? (isRecord(body) ? body.retry_after : undefined));
  });
  const seconds = [...told, Number(headersOf(layers)["retry-after"])].find((one) => Number.isFinite(one) && one > 0);
  return seconds === undefined ? DEFAULT_WAIT_MS : Math.ceil(seconds * 1_000);
}
