import { APICallError, InvalidPromptError, LoadAPIKeyError, NoSuchModelError, RetryError } from "ai";
import { expect, test } from "vitest";
import { answered } from "../../test/chat/provider-answer.ts";
import { PerdureError } from "../base/error.ts";
import { classifyProviderError, defaultContextOverflowClassifier, wasRefused } from "./provider-error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";

const coded = (code: string) => Object.assign(new Error("x"), { code });
const inStream = (type: string) => ({ type: "error", error: { type, message: "No." } });

type Case = readonly [string, unknown];

/** Limits by time, most of which speak of tokens. */
const rateLimits: readonly Case[] = [
  [
    "OpenAI",
    answered(
      429,
      "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 25000, Requested 8000. Please try again in 6s.",
    ),
  ],
  [
    "Anthropic",
    answered(429, {
      error: {
        type: "rate_limit_error",
        message:
          "This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later.",
      },
    }),
  ],
  [
    "Groq, for a day",
    answered(
      429,
      "Rate limit reached for model `llama-3.3-70b-versatile` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
    ),
  ],
  [
    "Bedrock",
    Object.assign(new Error("Too many tokens, please wait before trying again."), { name: "ThrottlingException" }),
  ],
  [
    "Gemini, for a minute",
    answered(429, {
      error: {
        code: 429,
        message: "You exceeded your current quota, please check your plan and billing details.",
        status: "RESOURCE_EXHAUSTED",
        details: [{ violations: [{ quotaId: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier" }] }],
      },
    }),
  ],
  ["Vertex", answered(429, "Resource exhausted. Please try again later.")],
  ["GitHub, with a strange status", answered(403, "API rate limit exceeded for user.")],
  ["a stream", inStream("rate_limit_error")],
  ["a status", answered(429, "")],
];

const fatal: readonly Case[] = [
  [
    "OpenAI, no quota",
    answered(429, {
      error: {
        message: "You exceeded your current quota, please check your plan and billing details.",
        type: "insufficient_quota",
        code: "insufficient_quota",
      },
    }),
  ],
  [
    "Gemini, no quota for the day",
    answered(429, {
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        message: "You exceeded your current quota.",
        details: [{ violations: [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] }],
      },
    }),
  ],
  ["DeepSeek, no money", answered(402, "Insufficient Balance")],
  ["z.ai, no money", answered(429, "Insufficient balance or no resource package. Please recharge.")],
  ["Moonshot, no money", answered(429, { error: { type: "exceeded_current_quota_error", message: "Suspended." } })],
  ["Anthropic, no money", answered(400, "Your credit balance is too low to access the Anthropic API.")],
  ["Anthropic, no long context", answered(429, "Extra usage is required for long context requests.")],
  [
    "OpenRouter, too little money",
    answered(
      402,
      "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3456.",
    ),
  ],
  [
    "Groq, more than a minute allows",
    answered(413, {
      error: {
        message:
          "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
  ],
  [
    "OpenAI, more than a minute allows",
    answered(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 132819. Reduce it."),
  ],
  [
    "Anthropic, longest answer",
    answered(
      400,
      "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
    ),
  ],
  [
    "Groq, longest answer",
    answered(
      400,
      "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
    ),
  ],
  [
    "OpenAI, longest answer",
    answered(
      400,
      "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
    ),
  ],
  ["DeepSeek, longest answer", new Error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")],
  ["TGI, longest answer", answered(422, "Input validation error: `max_new_tokens` must be <= 192. Given: 200")],
  [
    "Gemini, longest answer",
    new Error("it has a maxOutputTokens value of 99999 but the supported range is from 1 to 8193"),
  ],
  ["a long tool name", answered(400, "Invalid 'tools[0].function.name': string too long. Maximum length 64.")],
  ["a wrong key", answered(401, "Incorrect API key provided: sk-proj-abc. See the rate limits of your account.")],
  ["a forbidden model", answered(403, "Forbidden")],
  ["no such model", answered(404, { error: { type: "not_found_error", message: "model: claude-9" } })],
  ["no such model, in the SDK", new NoSuchModelError({ modelId: "gpt-9", modelType: "languageModel" })],
  ["no key", new LoadAPIKeyError({ message: "OpenAI API key is missing." })],
  ["a bad prompt", new InvalidPromptError({ prompt: "maximum context length is 1", message: "must not be empty" })],
  ["a bad parameter", answered(400, "Unsupported parameter: 'temperature' is not supported with this model.")],
  ["not done here", answered(501, "Not Implemented")],
  ["a stream", inStream("authentication_error")],
  ["Perdure's own", new PerdureError("bad_config", "no")],
];

const transient: readonly Case[] = [
  ...[408, 409, 424, 425, 500, 502, 503, 504, 529].map((status): Case => [`${status}`, answered(status, "oops")]),
  ...["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EPIPE", "ENOTFOUND", "UND_ERR_SOCKET", "UND_ERR_BODY_TIMEOUT"].map(
    (code): Case => [code, coded(code)],
  ),
  ["a stream", inStream("overloaded_error")],
  ["fetch", Object.assign(new TypeError("something"), { cause: coded("ECONNREFUSED") })],
  ["fetch without a cause", new TypeError("fetch failed")],
  ["all addresses of a host", new AggregateError([coded("ECONNREFUSED"), coded("ECONNREFUSED")])],
  ["a body that ended", new TypeError("terminated")],
  ["an old client", new Error("socket hang up")],
  [
    "the SDK, before an answer",
    new APICallError({ message: "No.", url: "", requestBodyValues: {}, isRetryable: true }),
  ],
  [
    "the SDK, in the middle of an answer",
    new APICallError({
      message: "Failed to process successful response",
      url: "",
      requestBodyValues: {},
      statusCode: 200,
      cause: coded("ECONNRESET"),
    }),
  ],
  ["a signal's timeout", new DOMException("No.", "TimeoutError")],
  ["a stall", new PerdureError("timeout", "No.")],
  [
    "the last of several tries",
    new RetryError({
      message: "Failed after 2 attempts.",
      reason: "maxRetriesExceeded",
      errors: [answered(429, "slow"), answered(503, "down")],
    }),
  ],
];

const unknown: readonly Case[] = [
  [
    "a slip of the model",
    answered(400, {
      error: { message: "Failed to call a function.", type: "invalid_request_error", code: "tool_use_failed" },
    }),
  ],
  ["a bug", new TypeError("Cannot read properties of undefined (reading 'x')")],
  ["a stop", new DOMException("This operation was aborted", "AbortError")],
  ...[undefined, null, 7, "", {}, []].map((value): Case => [`${JSON.stringify(value)}`, value]),
];

const classes: readonly (readonly [ChatErrorClassification, readonly Case[]])[] = [
  ["rate_limit", rateLimits],
  ["fatal", fatal],
  ["transient", transient],
  ["unknown", unknown],
];

for (const [expected, cases] of classes) {
  test.each(cases)(`%s is ${expected}`, (_what, error) => {
    expect(classifyProviderError(error)).toBe(expected);
    expect(defaultContextOverflowClassifier(error)).toBeUndefined();
  });
}

test("what cannot be read does no harm", () => {
  const circle: Record<string, unknown> = { message: "x" };
  circle["cause"] = circle;
  const fail = () => {
    throw new Error("no");
  };
  const trap = new Proxy({}, { get: fail, has: fail, ownKeys: fail });
  const deep = Array.from({ length: 100 }).reduce<unknown>((cause) => ({ cause }), { statusCode: 500 });
  const wide = { errors: Array.from({ length: 10_000 }, () => ({ message: "x".repeat(100) })) };
  for (const error of [circle, trap, deep, wide, { message: 7, code: {}, headers: trap, responseBody: "{broken" }]) {
    expect(classifyProviderError(error)).toBe("unknown");
    expect(wasRefused(error)).toBe(false);
  }
});

test("what a schema or a request holds is not what the provider said", () => {
  const error = Object.assign(new Error("Type validation failed"), {
    name: "AI_TypeValidationError",
    value: { error: { message: "prompt is too long" } },
    requestBodyValues: { message: "rate limit" },
  });
  expect(classifyProviderError(error)).toBe("unknown");
  const echoed = answered(422, { detail: [{ msg: "Field required", input: "maximum context length is 1" }] });
  expect(classifyProviderError(echoed)).toBe("fatal");
});

test("refused before any work is what costs nothing", () => {
  expect(wasRefused(answered(400, ""))).toBe(true);
  expect(wasRefused(answered(503, ""))).toBe(true);
  expect(wasRefused(new TypeError("fetch failed", { cause: coded("ECONNREFUSED") }))).toBe(true);
  expect(wasRefused(new LoadAPIKeyError({ message: "no" }))).toBe(true);
  expect(wasRefused(coded("ECONNRESET"))).toBe(false);
  expect(wasRefused(inStream("overloaded_error"))).toBe(false);
  const status = Object.assign(new Error("Overloaded"), { name: "AI_StreamProviderError", statusCode: 529 });
  expect(wasRefused(status)).toBe(false);
});
