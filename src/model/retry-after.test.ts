import { RetryError } from "ai";
import { expect, test } from "vitest";
import { answered } from "../../test/chat/provider-answer.ts";
import { retryAfterMs } from "./provider-error.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const DAY = 24 * 60 * 60 * 1000;

const cases: readonly (readonly [string, Record<string, string>, number | undefined])[] = [
  ["milliseconds", { "retry-after-ms": "1250.5", "retry-after": "9" }, 1251],
  ["seconds", { "Retry-After": "30" }, 30_000],
  ["parts of seconds", { "retry-after": "0.5" }, 500],
  ["a date", { "retry-after": "Fri, 02 Jan 2026 03:04:35 GMT" }, 30_000],
  ["a date that has passed", { "retry-after": "Fri, 02 Jan 2026 03:04:00 GMT" }, 0],
  ["a negative number", { "retry-after": "-5" }, 0],
  ["a week", { "retry-after": "604800" }, DAY],
  ["no time", { "retry-after": "soon" }, undefined],
  ["no time, but another header", { "retry-after": "soon", "x-ratelimit-reset": "7" }, 7000],
  ["OpenAI's durations", { "x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0s" }, 360_000],
  [
    "the limit that is used up",
    {
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "2s",
      "x-ratelimit-remaining-tokens": "900",
      "x-ratelimit-reset-tokens": "50s",
    },
    2000,
  ],
  ["Groq's durations", { "x-ratelimit-reset-tokens": "2m59.56s" }, 179_560],
  ["hours and days", { "x-ratelimit-reset-requests": "1h2m" }, 3_720_000],
  ["Anthropic's dates", { "anthropic-ratelimit-input-tokens-reset": "2026-01-02T03:04:15Z" }, 10_000],
  ["seconds since 1970", { "x-ratelimit-reset": String(NOW / 1000 + 12) }, 12_000],
  ["OpenRouter's milliseconds since 1970", { "x-ratelimit-reset": String(NOW + 1500) }, 1500],
  ["a unit that there is not", { "x-ratelimit-reset-tokens": "3 fortnights" }, undefined],
  ["nothing", { "content-type": "application/json" }, undefined],
];

test.each(cases)("%s", (_what, headers, expected) => {
  expect(retryAfterMs(answered(429, "", headers), NOW)).toBe(expected);
});

test.each([
  ["Rate limit reached. Please try again in 4.77s. Need more tokens?", 4770],
  ["Please try again in 9m38.016s.", 578_016],
  ["Please try again in 20ms.", 20],
  ["Please retry in 34.07s.", 34_070],
  ["Please retry after 20 seconds.", 20_000],
  ["Please try again later.", undefined],
])("in words: %s", (text, expected) => {
  expect(retryAfterMs(answered(429, { error: { message: text } }), NOW)).toBe(expected);
  expect(retryAfterMs(new Error(text), NOW)).toBe(expected);
});

test("in Google's answer", () => {
  const body = [{ error: { code: 429, message: "No.", details: [{ retryDelay: "34.5s" }] } }];
  expect(retryAfterMs(answered(429, body), NOW)).toBe(34_500);
});

test("headers say more than words, and those of the last try count", () => {
  const last = answered(429, "try again in 4s", { "retry-after": "2" });
  const error = new RetryError({
    message: "Failed.",
    reason: "maxRetriesExceeded",
    errors: [answered(429, "", { "retry-after-ms": "1" }), last],
  });
  expect(retryAfterMs(error, NOW)).toBe(2000);
});

test("headers that come with every answer count for rate limits only", () => {
  const headers = { "x-ratelimit-reset-tokens": "6m0s" };
  expect(retryAfterMs(answered(500, "", headers), NOW)).toBeUndefined();
  expect(retryAfterMs(answered(503, "", { ...headers, "retry-after": "3" }), NOW)).toBe(3000);
});

test("anything else says nothing", () => {
  for (const error of [undefined, null, 7, "x", {}, { headers: 7 }, { responseHeaders: { "retry-after": {} } }]) {
    expect(retryAfterMs(error, NOW)).toBeUndefined();
  }
});
