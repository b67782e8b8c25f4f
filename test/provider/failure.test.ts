import { APICallError, RetryError } from "ai";
import { expect, test } from "vitest";
import type { ModelChoice } from "../../examples/start/model/choose.ts";
import { explainFailure } from "../../examples/start/model/failure.ts";
import { guide } from "../../examples/start/model/guide.ts";

const KEY = "sk-live-abcdef123456";
const choice: ModelChoice = {
  model: guide(0),
  name: "gpt-x",
  builtIn: false,
  service: "OpenAI",
  keyName: "OPENAI_API_KEY",
  secrets: [KEY],
};

function call(fields: { status?: number; message?: string; body?: string; cause?: unknown }): APICallError {
  const { status: statusCode, message = "", body: responseBody, cause } = fields;
  return new APICallError({
    message,
    url: "https://x",
    requestBodyValues: { key: KEY },
    statusCode,
    responseBody,
    cause,
  });
}

const coded = (code: string) => Object.assign(new Error(code), { code });

test.each<[unknown, string]>([
  [call({ status: 401, message: `Wrong: ${KEY}` }), "OpenAI did not accept the key. Check OPENAI_API_KEY"],
  [call({ status: 403 }), 'does not let this key use the model "gpt-x"'],
  [call({ status: 404 }), 'does not know the model "gpt-x"'],
  [call({ status: 402 }), "no credit left"],
  [call({ status: 400, body: '{"error":"Your credit balance is too low"}' }), "no credit left"],
  [call({ status: 413 }), "too large for OpenAI"],
  [call({ status: 429 }), "too many requests"],
  [call({ status: 503 }), "status 503"],
  [call({ status: 504 }), "took too long"],
  [call({ status: 200, message: "Invalid JSON response" }), "is not understood"],
  [call({ status: 422, message: "temperature is too hot" }), "(status 422). It said: temperature is too hot"],
  [call({ cause: coded("ECONNREFUSED") }), "(ECONNREFUSED)"],
  [call({ cause: new AggregateError([coded("ECONNREFUSED")]) }), "(ECONNREFUSED)"],
  [call({ cause: coded("ENOTFOUND") }), "was not found (ENOTFOUND)"],
  [call({ cause: coded("EHOSTUNREACH") }), "could not be reached (EHOSTUNREACH)"],
  [call({ message: "Cannot connect" }), "could not be reached."],
  [call({ cause: new TypeError("fetch failed", { cause: coded("UND_ERR_HEADERS_TIMEOUT") }) }), "fell silent"],
  [call({ status: 200, cause: new TypeError("terminated", { cause: coded("UND_ERR_SOCKET") }) }), "broke off"],
  [new TypeError("terminated"), "broke off"],
  [new DOMException("slow", "TimeoutError"), "fell silent"],
  [
    new RetryError({ message: "m", reason: "maxRetriesExceeded", errors: [call({ status: 429 })] }),
    "too many requests",
  ],
  [new Error(`odd ${KEY} and sk-proj-****wxyz`), "OpenAI failed: odd … and …"],
  [{ message: "overloaded", type: "server_error" }, "OpenAI failed: overloaded"],
  ["plain text", "OpenAI failed: plain text"],
  [undefined, "OpenAI failed: it gave no reason."],
])("%s is told as: %s", (error, text) => {
  const told = explainFailure(error, choice);
  expect(told).toContain(text);
  expect(told).not.toContain(KEY);
  expect(told).not.toContain("\n");
});

test("a long story is cut", () => {
  expect(explainFailure(new Error("x".repeat(5000)), choice).length).toBeLessThanOrEqual(300);
});
