import { APICallError, RetryError } from "ai";
import type { ModelChoice } from "./choose.ts";
import { GuideError } from "./guide.ts";

/** How much of a provider's own words is shown. */
const MAX_DETAIL = 300;

/**
 * What went wrong with a model call, in one line for the user and the log: what failed and what to do. Never has a
 * stack, a key or the content of the request. Never throws.
 */
export function explainFailure(thrown: unknown, choice: ModelChoice): string {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown;
  return clean(explain(error, choice), choice.secrets);
}

function explain(error: unknown, choice: ModelChoice): string {
  const { service } = choice;
  if (error instanceof GuideError) return error.message;
  if (isTimeout(error)) return `${service} fell silent, so the answer was given up. Send your message again.`;
  if (isBrokenConnection(error)) {
    return `The connection to ${inSentence(service)} broke off before the end of the answer. What came is kept; ask again for the rest.`;
  }
  if (APICallError.isInstance(error)) return explainCall(error, choice);
  return `${service} failed: ${messageOf(error)}`;
}

function explainCall(error: APICallError, choice: ModelChoice): string {
  const { service, keyName, name } = choice;
  const { statusCode: status } = error;
  const detail = error.message === "" ? "" : ` It said: ${error.message}`;
  if (status === undefined) return explainNetwork(error, choice);
  // What a provider says about a refused key may have a part of it.
  if (status === 401) return `${service} did not accept the key. Check ${keyName ?? "the key"} and start again.`;
  if (status === 403)
    return `${service} does not let this key use the model "${name}". Check ${keyName} and PERDURE_MODEL.`;
  if (status === 404) {
    return `${service} does not know the model "${name}". Set PERDURE_MODEL to one that it has and start again.`;
  }
  if (status === 402 || /insufficient_quota|billing|credit balance/i.test(error.responseBody ?? "")) {
    return `${service} refused because the account has no credit left. Check its billing page.`;
  }
  if (status === 429) return `${service} is getting too many requests right now. Wait a moment and send it again.`;
  if (status === 408 || status === 504) return `${service} took too long to answer. Send it again.`;
  if (status === 413) return `The conversation is too large for ${inSentence(service)}. Start a new one, or send less.`;
  if (status >= 500) return `${service} has a problem of its own (status ${status}). Wait a moment and send it again.`;
  if (status < 300) return `${service} gave an answer that is not understood. Is it an OpenAI-compatible server?`;
  return `${service} did not accept the request (status ${status}).${detail}`;
}

function explainNetwork(error: APICallError, { service, keyName }: ModelChoice): string {
  const code = codeOf(error);
  const where = service.startsWith("The ") ? service : `${service}'s server`;
  const why = code === undefined ? "" : ` (${code})`;
  if (code === "ECONNREFUSED")
    return `${where} is not running or not reachable${why}. Start it, or check OPENAI_BASE_URL.`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `${where} was not found${why}. Check the network connection${keyName === "OPENAI_API_KEY" ? " and OPENAI_BASE_URL" : ""}.`;
  }
  return `${where} could not be reached${why}. Check the network connection and send it again.`;
}

/** The system's code of a network error, from anywhere in the chain of causes. */
function codeOf(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < MAX_DEPTH; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string") return at.code;
    if (at instanceof AggregateError) {
      const found = at.errors.map(codeOf).find((code) => code !== undefined);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

const MAX_DEPTH = 5;
// What Node and its `fetch` call them.
const BROKEN = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "ERR_STREAM_PREMATURE_CLOSE"]);
const SILENT = new Set(["ETIMEDOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT"]);

function isBrokenConnection(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return BROKEN.has(code);
  if (APICallError.isInstance(error)) return isBrokenConnection(error.cause);
  return error instanceof TypeError && /terminated|fetch failed|network/i.test(error.message);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === "TimeoutError" || SILENT.has(codeOf(error) ?? ""));
}

function messageOf(error: unknown): string {
  if (typeof error === "string") return error;
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return error.message;
  }
  return "it gave no reason.";
}

function inSentence(service: string): string {
  return service.startsWith("The ") ? `the ${service.slice("The ".length)}` : service;
}

/** Keys of the usual form, also those that a provider masks in its messages. */
const KEY = /\b(?:sk|key|pk)-[\w*.-]{4,}/g;

function clean(text: string, secrets: readonly string[]): string {
  let safe = text.replaceAll(/\s+/g, " ").replaceAll(KEY, "…");
  for (const secret of secrets) if (secret !== "") safe = safe.replaceAll(secret, "…");
  return safe.length > MAX_DETAIL ? `${safe.slice(0, MAX_DETAIL - 1)}…` : safe;
}
