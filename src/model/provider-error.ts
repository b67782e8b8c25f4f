import { errorText, PerdureError } from "../base/error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import { describeProviderError } from "./describe-error.ts";
import { type ErrorFacts, readError } from "./error-facts.ts";
import {
  hasOverflowCode,
  saysLargerThanMinute,
  saysNetwork,
  saysOutputLimit,
  saysOverflow,
  saysQuota,
  saysRateLimit,
} from "./error-wording.ts";

export { describeProviderError };

/** The connection was never made, so nothing was asked of a model. */
const unconnected = new Set([
  "econnrefused",
  "enotfound",
  "eai_again",
  "ehostunreach",
  "enetunreach",
  "und_err_connect_timeout",
  "connectionrefused",
  "failedtoopensocket",
]);
const disconnected = new Set([
  "econnreset",
  "econnaborted",
  "epipe",
  "etimedout",
  "connectionclosed",
  "timeout",
  "err_stream_premature_close",
]);

/** What a provider calls a trouble of its own. */
const ownTrouble = new Set([
  "api_error",
  "deadline_exceeded",
  "engine_overloaded_error",
  "internal",
  "internal_error",
  "internal_server_error",
  "internalserverexception",
  "modelstreamerrorexception",
  "modeltimeoutexception",
  "overloaded",
  "overloaded_error",
  "server_error",
  "service_unavailable",
  "serviceunavailableexception",
  "timeout_error",
  "unavailable",
]);
/** What a provider will say again however often it is asked. */
const refusals = new Set([
  "access_denied",
  "accessdeniedexception",
  "authentication_error",
  "bad_config",
  "content_filter",
  "content_policy_violation",
  "forbidden",
  "invalid_api_key",
  "invalid_argument",
  "invalid_prompt",
  "invalid_request_error",
  "model_not_found",
  "not_found_error",
  "permission_denied",
  "permission_error",
  "resourcenotfoundexception",
  "unauthenticated",
  "unsupported_parameter",
  "validationexception",
]);
/** The model made something of its own that the provider could not use: another try makes something else. */
const modelSlips = new Set(["tool_use_failed", "json_validate_failed", "output_parse_failed"]);
/** Errors of the SDK before anything is sent: settings and arguments. */
const neverSent = new Set([
  "AI_InvalidArgumentError",
  "AI_InvalidMessageRoleError",
  "AI_InvalidPromptError",
  "AI_LoadAPIKeyError",
  "AI_LoadSettingError",
  "AI_MessageConversionError",
  "AI_MissingToolResultsError",
  "AI_NoSuchModelError",
  "AI_NoSuchProviderError",
  "AI_NoSuchProviderReferenceError",
  "AI_UnsupportedFunctionalityError",
  "AI_UnsupportedModelVersionError",
]);

/** 409 and 425 are about the moment, 424 is about a server behind the server. */
const worthAnotherTry = new Set([408, 409, 424, 425]);
/** "I do not do that": a 5xx that stays. */
const neverSupported = new Set([501, 505]);

/**
 * What a failed model call means, read from the error's structure and words, so it works across copies of the AI SDK, on stream
 * errors, on plain `fetch` errors and inside `RetryError` or `cause`. The outermost HTTP status decides. A stopped call
 * (`AbortError`) comes out as `unknown`: look for your own signal first. Never throws.
 */
export function classifyProviderError(error: unknown): ChatErrorClassification {
  // Ours: what was too much once is too much again.
  if (error instanceof Error && PerdureError.is(error, "limit")) return "fatal";
  const facts = readError(error);
  const status = facts.statuses[0];
  if (facts.names[0] === "AbortError") return "unknown";
  if (facts.names.some((name) => neverSent.has(name))) return "fatal";
  if (status === 402 || saysQuota(facts)) return "fatal";
  if (status !== 429 && hasOverflowCode(facts)) return "context_overflow";
  if (saysLargerThanMinute(facts)) return "fatal";
  if (status === 401 || status === 404) return "fatal";
  if (status === 429 || saysRateLimit(facts)) return "rate_limit";
  if (status === 403) return "fatal";
  if (saysOutputLimit(facts)) return "fatal";
  if (status === 413 || saysOverflow(facts)) return "context_overflow";
  return status === undefined ? withoutStatus(facts) : withStatus(status, facts);
}

function withStatus(status: number, { codes }: ErrorFacts): ChatErrorClassification {
  if (worthAnotherTry.has(status)) return "transient";
  if (status >= 500) return neverSupported.has(status) ? "fatal" : "transient";
  return some(codes, modelSlips) ? "unknown" : "fatal";
}

function withoutStatus(facts: ErrorFacts): ChatErrorClassification {
  const { codes, names } = facts;
  if (facts.retryable === true || names.includes("TimeoutError")) return "transient";
  if (some(codes, unconnected) || some(codes, disconnected) || some(codes, ownTrouble)) return "transient";
  if ([...codes].some((code) => code.startsWith("und_err_"))) return "transient";
  if (some(codes, modelSlips)) return "unknown";
  if (some(codes, refusals)) return "fatal";
  // Of the SDK: an answer without a body is a connection that broke in time.
  if (names.includes("AI_EmptyResponseBodyError") || saysNetwork(facts)) return "transient";
  return "unknown";
}

/** `context_overflow` for a provider's error that a request is too long, else nothing: chain your own after it. Never throws. */
export function defaultContextOverflowClassifier(error: unknown): ChatErrorClassification | undefined {
  return classifyProviderError(error) === "context_overflow" ? "context_overflow" : undefined;
}

/**
 * Whether the call was refused before any model worked, so that it costs nothing: an HTTP error instead of an answer, no
 * connection, settings that could not be sent. Not an error in the middle of a stream. Never throws.
 */
export function wasRefused(error: unknown): boolean {
  const { names, statuses, codes } = readError(error);
  if (names.some((name) => neverSent.has(name)) || some(codes, unconnected)) return true;
  return statuses.length > 0 && names.some((name) => name === "AI_APICallError" || name.startsWith("Gateway"));
}

function some(codes: ReadonlySet<string>, known: ReadonlySet<string>): boolean {
  for (const code of codes) if (known.has(code)) return true;
  return false;
}

/** What the user reads of a bug of the app: its text is for those who can mend it. */
const OWN_FAILURE = "Something went wrong on the server, and the answer could not be finished. Please try again.";
/** Errors of ours that tell how the app's own SQL failed. */
const SQL_BUGS: ReadonlySet<string> = new Set(["sql_failed", "sql_refused"]);

/**
 * A sentence for the user about a turn that failed outside a model call. Errors of ours are told, so that an app can say
 * something on purpose; those of providers are described; others are not for users. Never throws.
 */
export function describeTurnError(error: unknown): string {
  if (PerdureError.is(error)) return SQL_BUGS.has(error.code) ? OWN_FAILURE : errorText(error);
  const isProviders = readError(error).names.some((name) => name.startsWith("AI_"));
  return isProviders ? describeProviderError(error, classifyProviderError(error)) : OWN_FAILURE;
}

/** Nobody waits longer for one call; a limit that lasts longer is as good as none. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;
/** A number above this is a date (seconds since 1970), and above the other, one in milliseconds. */
const DATE_IN_SECONDS = 1_000_000_000;
const DATE_IN_MS = 1_000_000_000_000;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * How long the provider asks to wait, in milliseconds from `now`, 0 to a day; `undefined` if it does not say. In order:
 * `retry-after-ms`; `retry-after` (seconds or a date); Google's `retryDelay`; "try again in 4.77s"; for rate limits the
 * `…ratelimit-reset…` headers (`6m0s`, seconds, dates) of limits that are used up, else of all. Never throws.
 */
export function retryAfterMs(error: unknown, now: number): number | undefined {
  const { headers, statuses, wording } = readError(error);
  const said =
    number(headers["retry-after-ms"]) ??
    secondsOrDate(headers["retry-after"], now) ??
    duration(headers["retry-delay"]) ??
    duration(
      /\b(?:try again|retry) (?:in|after) (?:~ ?)?((?:\d+(?:\.\d+)? ?(?:ms|[smhd])[a-z]* ?)+)/.exec(wording)?.[1],
    );
  const wait = said ?? (statuses[0] === undefined || statuses[0] === 429 ? resetHeaders(headers, now) : undefined);
  return wait === undefined ? undefined : Math.min(Math.max(0, Math.ceil(wait)), MAX_WAIT_MS);
}

/** `x-ratelimit-reset-tokens`, `anthropic-ratelimit-input-tokens-reset`, `x-ratelimit-reset`, `ratelimit-reset` … */
function resetHeaders(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const waits: number[] = [];
  const usedUp: number[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!name.includes("ratelimit") || !name.includes("reset")) continue;
    const wait = duration(value) ?? secondsOrDate(value, now);
    if (wait === undefined) continue;
    waits.push(wait);
    if (number(headers[name.replace("reset", "remaining")]) === 0) usedUp.push(wait);
  }
  const relevant = usedUp.length > 0 ? usedUp : waits;
  return relevant.length === 0 ? undefined : Math.max(...relevant);
}

function secondsOrDate(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = number(value);
  if (seconds !== undefined) {
    if (seconds >= DATE_IN_MS) return seconds - now;
    return seconds >= DATE_IN_SECONDS ? seconds * 1000 - now : seconds * 1000;
  }
  // `Date.parse` takes almost anything for a date; a real one has the year.
  const date = /\d{4}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : date - now;
}

/** `34.07s`, `6m0s`, `1h 2m`, `120ms`, `20 seconds` */
function duration(value: string | undefined): number | undefined {
  if (value === undefined || !/^(\s*\d+(\.\d+)? ?[a-z]+)+\s*$/.test(value)) return undefined;
  let total = 0;
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/g)) {
    const ms = unit === "ms" || unit?.startsWith("milli") ? unitMs["ms"] : unitMs[unit?.[0] ?? ""];
    if (ms === undefined) return undefined;
    total += Number(amount) * ms;
  }
  return total;
}

function number(value: string | undefined): number | undefined {
  return value !== undefined && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}
