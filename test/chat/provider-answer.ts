// For tests of what becomes of provider errors.
import { APICallError } from "ai";

/** The error that the AI SDK makes of a provider's answer: a status with a message, or with a whole body. */
export function answered(status: number, body: unknown, headers: Record<string, string> = {}): APICallError {
  const plain = typeof body === "string";
  return new APICallError({
    message: plain && !body.startsWith("<") ? body : "Bad Request",
    url: "https://api.example.com/v1/chat?key=url-secret",
    // What a user wrote must never decide.
    requestBodyValues: {
      messages: [{ content: "maximum context length is 8192 tokens, rate limit, insufficient_quota" }],
    },
    statusCode: status,
    responseHeaders: headers,
    responseBody: plain ? body : JSON.stringify(body),
  });
}
