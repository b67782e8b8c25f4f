import { LoadAPIKeyError, NoSuchModelError } from "ai";
import { expect, test } from "vitest";
import { answered } from "../../test/chat/provider-answer.ts";
import { classifyProviderError, describeProviderError } from "./provider-error.ts";

const describe = (error: unknown) => describeProviderError(error, classifyProviderError(error));

test.each([
  [answered(400, "prompt is too long: 3 tokens > 2 maximum"), /longer than the model can read.*Compact/],
  [answered(429, "Rate limit reached"), /limiting requests \(HTTP 429\).*Wait/],
  [answered(503, "oops"), /problem of its own \(HTTP 503\).*Try again/],
  [Object.assign(new Error("x"), { code: "ECONNREFUSED" }), /connection.*failed.*Check the network/],
  [answered(429, { error: { code: "insufficient_quota", message: "No." } }), /no credit or quota left.*Add credit/],
  [answered(429, "Request too large for m on tokens per min (TPM): Limit 1, Requested 2"), /in a minute.*Send less/],
  [new LoadAPIKeyError({ message: "no" }), /no API key.*Set it/],
  [answered(401, "no"), /refused the API key \(HTTP 401\).*Check/],
  [{ error: { type: "authentication_error", message: "no" } }, /refused the API key\. Check/],
  [answered(404, "no"), /does not know this model.*Check the name/],
  [new NoSuchModelError({ modelId: "m", modelType: "languageModel" }), /does not know this model/],
  [answered(400, "`max_tokens` must be less than 8"), /answer as long.*Lower/],
  [
    answered(400, "Unsupported parameter: 'temperature'."),
    /refused the request \(HTTP 400\): Unsupported parameter: 'temperature'\. Try/,
  ],
  [new TypeError("Cannot read x"), /^The model call failed\. Try again/],
  [new Error("db password is hunter2"), /^The model call failed\. Try again/],
  [undefined, /^The model call failed\. Try again/],
])("%# says what failed and what to do", (error, expected) => {
  expect(describe(error)).toMatch(expected);
});

test("no secret, header, stack or query is in it", () => {
  const secrets = [
    "sk-proj-1234567890abcdef",
    "sk-ant-api03-abc_def-ghi",
    "gsk_abcdefgh12345",
    "AIzaSyA1234567890abcdefg",
    "Bearer abc.def",
    "api_key=hunter2",
    "token: hunter2",
    "0123456789abcdef0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.e30.abc",
    "https://user:pass@api.example.com/v1?key=hunter2#part",
  ];
  const parts =
    /1234567890|api03|abcdefgh|AIzaSy|abc\.def|hunter2|cdef0123|eyJhb|pass|url-secret|header-secret|file\.ts/;
  for (const secret of secrets) {
    for (const status of [400, 401, 403, 404, 422, 429, 500]) {
      const message = `Wrong: ${secret} was given`;
      const error = answered(status, { error: { message } }, { authorization: "header-secret" });
      error.stack = "Error\n at file.ts:1";
      expect(describe(error)).not.toMatch(parts);
      expect(describe(new Error(`${message}\n    at run (file.ts:1:2)`))).not.toMatch(parts);
    }
  }
});

test("names of models and places stay readable", () => {
  expect(
    describe(answered(400, "claude-sonnet-4-5-20250929 cannot do that, see https://docs.example.com/a?b=c.")),
  ).toContain("claude-sonnet-4-5-20250929 cannot do that, see https://docs.example.com/a");
  expect(describe(answered(400, "skipping packages of hfoobar"))).toContain("skipping packages of hfoobar");
});

test("it is short, whatever the provider said", () => {
  for (const status of [400, 401, 402, 404, 413, 429, 500]) {
    const text = describe(answered(status, `${"word ".repeat(5000)}\n\n${"x".repeat(5000)}`));
    expect(text.length).toBeLessThan(400);
    expect(text).not.toMatch(/\n/);
  }
});
