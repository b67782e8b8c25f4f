import { errorText, PerdureError } from "../base/error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import { type ErrorFacts, readError } from "./error-facts.ts";
import { saysLargerThanMinute, saysOutputLimit, saysQuota } from "./error-wording.ts";

/** Two sentences are read; a response is not. */
const MAX_EXCERPT = 200;
const MAX_READ = 1000;
/** What is thrown where there is a bug, and no provider. */
const BUG = /^((Type|Reference|Range|Syntax|URI|Eval|Aggregate)?Error|PerdureError)$/;

/**
 * One or two sentences for a person about a failed model call: what failed and what to do. Safe to show: the provider is quoted
 * only where it helps, on one short line without keys, long ids or URL queries, and never for a refused key. Never throws.
 */
export function describeProviderError(error: unknown, classification: ChatErrorClassification): string {
  if (error instanceof Error && PerdureError.is(error, "limit")) return errorText(error);
  const facts = readError(error);
  const status = facts.statuses[0];
  const http = status === undefined ? "" : ` (HTTP ${status})`;
  switch (classification) {
    case "context_overflow":
      return "The conversation is longer than the model can read. Compact it, start a new one, or use a model with a larger context window.";
    case "rate_limit":
      return `The model provider is limiting requests${http}. Wait a moment and try again, or use another model.`;
    case "transient":
      return status === undefined
        ? "The connection to the model provider failed. Check the network and the address of the provider, then try again."
        : `The model provider had a problem of its own${http}. Try again in a moment.`;
    case "fatal":
      return describeFatal(facts, status, http);
    case "unknown":
      return `The model call failed${http}${isProviders(error, facts) ? excerpt(facts) : ""}. Try again; if it stays, look at the settings of the model.`;
  }
}

/** Whether an error tells what a provider said. Plain errors of code do not; a stream's report may be anything but an error. */
function isProviders(error: unknown, { names, statuses, codes }: ErrorFacts): boolean {
  if (statuses.length > 0 || codes.size > 0 || !(error instanceof Error)) return true;
  return !BUG.test(names[0] ?? "");
}

function describeFatal(facts: ErrorFacts, status: number | undefined, http: string): string {
  if (status === 402 || saysQuota(facts)) {
    return `The account at the model provider has no credit or quota left${http}. Add credit or raise its limit, or use another model.`;
  }
  if (saysLargerThanMinute(facts)) {
    return `The request is larger than the account may send in a minute${http}. Send less, ask for a shorter answer, or raise the limit at the provider.`;
  }
  const missingKey = facts.names.some((name) => name === "AI_LoadAPIKeyError" || name === "AI_LoadSettingError");
  if (missingKey) return "The model provider has no API key or setting to work with. Set it and try again.";
  const badKey = facts.codes.has("authentication_error") || facts.codes.has("invalid_api_key");
  if (status === 401 || status === 403 || badKey) {
    return `The model provider refused the API key${http}. Check that the key is valid and may use this model.`;
  }
  const noModel = facts.codes.has("model_not_found") || facts.names.includes("AI_NoSuchModelError");
  if (status === 404 || noModel) {
    return `The model provider does not know this model or address${http}. Check the name of the model and the provider's URL.`;
  }
  if (saysOutputLimit(facts)) {
    return `The model cannot give an answer as long as it was asked for${http}. Lower the limit for output tokens.`;
  }
  return `The model provider refused the request${http}${excerpt(facts)}. Trying again will not help; change the request or the model.`;
}

function excerpt({ texts }: ErrorFacts): string {
  const text = texts.map(clean).find((one) => one !== "");
  return text === undefined ? "" : `: ${text}`;
}

/** Words that name a secret, with what follows them. */
const named = /\b(api[ _-]?key|token|secret|password|authorization)(\s+provided)?["']?\s*[:=]\s*\S+/gi;
/** Anything that could be a secret: better a message with a gap than a leak. */
const secrets: readonly RegExp[] = [
  /\b(bearer|basic)\s+\S+/gi,
  /\b(sk|pk|gsk|xai|hf|ghp|gho|github_pat)[-_][\w.*-]{4,}/g,
  /\b(AIza|AKIA|ASIA|eyJ)[\w.-]{8,}/g,
  // Long words with a digit in them: keys of any other kind.
  /(?=\w*\d)\w{20,}/g,
];

/** The text with a gap for everything in it that could be a key. */
export function withoutSecrets(text: string): string {
  return secrets.reduce((line, secret) => line.replaceAll(secret, "…"), text);
}

function clean(text: string): string {
  // What looks like a stack ends the message.
  let line = (text.slice(0, MAX_READ).split(/\n\s*at /)[0] ?? "").replaceAll(/\s+/g, " ").trim();
  line = line.replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)([^\s/@]*@)?([^\s?#]*)[^\s]*/gi, "$1$3");
  line = withoutSecrets(line.replaceAll(named, "…"));
  const cut = line.length > MAX_EXCERPT ? `${line.slice(0, MAX_EXCERPT).trimEnd()}…` : line;
  return cut.replace(/[.:;\s]+$/, "");
}
