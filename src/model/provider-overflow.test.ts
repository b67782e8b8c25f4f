import { expect, test } from "vitest";
import { answered } from "../../test/chat/provider-answer.ts";
import { classifyProviderError, defaultContextOverflowClassifier } from "./provider-error.ts";

/** Who says it, with which status, and how. */
const worded: readonly (readonly [string, number, string])[] = [
  ["Anthropic", 400, "prompt is too long: 219898 tokens > 200000 maximum"],
  [
    "Anthropic, with the answer",
    400,
    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
  ],
  ["Anthropic, in bytes", 413, "Request exceeds the maximum size"],
  [
    "OpenAI",
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 132166 tokens (including 317 in the response_format schemas.). Please reduce the length of the messages or schemas.",
  ],
  [
    "OpenAI, responses",
    400,
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
  ],
  [
    "OpenAI, one long message",
    400,
    "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1540820 instead.",
  ],
  ["OpenAI, many messages", 400, "Invalid 'input': array too long. Expected an array with maximum length 2048."],
  ["Azure", 400, "Input tokens exceed the configured limit of 272000 tokens."],
  ["Gemini", 400, "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."],
  [
    "Vertex",
    400,
    "Unable to submit request because the input token count is 1100000 but model only supports up to 1048576. Reduce the input token count and try again.",
  ],
  ["Bedrock", 400, "Input is too long for requested model."],
  ["Bedrock, Titan", 400, "Too many input tokens. Max input tokens: 8192, request input token count: 9279"],
  [
    "Bedrock, letters",
    400,
    "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input.",
  ],
  [
    "Bedrock, in bytes",
    400,
    "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000",
  ],
  [
    "Mistral",
    400,
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
  ],
  ["Groq", 400, "Please reduce the length of the messages or completion."],
  [
    "Cohere",
    400,
    "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.",
  ],
  ["xAI", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  [
    "DeepSeek",
    400,
    "This model's maximum context length is 65536 tokens. However, you requested 69648 tokens (69648 in the messages, 0 in the completion).",
  ],
  [
    "OpenRouter",
    400,
    "This endpoint's maximum context length is 524288 tokens. However, you requested about 538487 tokens (14474 of text input, 12013 of tool input, 512000 in the output). Please reduce the length of either one.",
  ],
  [
    "Together",
    422,
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2019 `inputs` tokens and 30 `max_new_tokens`",
  ],
  ["Fireworks", 400, "The prompt is too long: 264613, model maximum context length: 262141"],
  ["Ollama", 400, "prompt too long; exceeded max context length by 1234 tokens"],
  ["Ollama, as a fault of its own", 500, "the input length exceeds the context length"],
  [
    "LM Studio",
    400,
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
  ],
  [
    "LM Studio, older",
    400,
    "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.",
  ],
  ["vLLM", 400, "The decoder prompt (length 163840) is longer than the maximum model length of 131072."],
  ["vLLM, older", 400, "The prompt (total length 25938) is too long to fit into the model (context length 4096)."],
  [
    "vLLM, with the answer",
    400,
    "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4000 > 8192 - 5000).",
  ],
  ["SGLang", 400, "The input (50000 tokens) is longer than the model's context length (32768 tokens)."],
  ["llama.cpp", 400, "request (9100 tokens) exceeds the available context size (8192 tokens), try increasing it"],
  ["Text Generation Inference", 422, "Input validation error: `inputs` must have less than 2048 tokens. Given: 2222"],
  ["GitHub Models", 413, "Request body too large for gpt-4o model. Max size: 8000 tokens."],
  ["GitHub Copilot", 400, "prompt token count of 140000 exceeds the limit of 128000"],
  [
    "Cerebras",
    400,
    "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
  ],
  ["Moonshot", 400, "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)"],
  ["MiniMax", 400, "invalid params, context window exceeds limit (2013)"],
  ["z.ai", 400, "Prompt exceeds max length"],
  ["z.ai, in Anthropic's words", 400, "The model has reached its context window limit."],
  ["Qwen", 400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]"],
  ["Doubao", 400, "Total tokens of image and text exceed max message tokens."],
  [
    "Workers AI",
    400,
    "The estimated number of input and maximum output tokens (12000) exceeded this model context window limit (8000).",
  ],
  ["a local server", 400, "Prompt exceeds maximum context length"],
  ["a web server in front", 413, "413 Request Entity Too Large"],
  ["a proxy", 502, "upstream said: context_length_exceeded"],
];

test.each(worded)("the overflow of %s is one, however it arrives", (_provider, status, text) => {
  const shapes: readonly unknown[] = [
    answered(status, { error: { message: text, type: "invalid_request_error" } }),
    answered(status, text),
    new Error("The call failed.", { cause: answered(status, { error: text }) }),
    // Errors in a stream have no status.
    new Error(text),
    text,
    { type: "error", error: { message: text } },
  ];
  for (const error of shapes) {
    expect(classifyProviderError(error)).toBe("context_overflow");
    expect(defaultContextOverflowClassifier(error)).toBe("context_overflow");
  }
});

const shaped: readonly (readonly [string, unknown])[] = [
  ["OpenAI's code", answered(400, { error: { message: "Too much.", code: "context_length_exceeded" } })],
  ["Anthropic's type", answered(413, { type: "error", error: { type: "request_too_large", message: "Too much." } })],
  [
    "llama.cpp's type",
    answered(400, { error: { code: 400, message: "Too much.", type: "exceed_context_size_error" } }),
  ],
  ["GitHub's code", answered(413, { error: { code: "tokens_limit_reached", message: "Too much." } })],
  ["GitHub Copilot's code", answered(400, { error: { code: "model_max_prompt_tokens_exceeded", message: "No." } })],
  [
    "MiniMax' old answer",
    answered(400, { base_resp: { status_code: 2013, status_msg: "context window exceeds limit" } }),
  ],
  ["nothing but a status", answered(413, "")],
  ["a page", answered(413, "<html><h1>Too large</h1></html>")],
  [
    "a failed response in OpenAI's stream",
    { type: "response.failed", response: { error: { code: "context_length_exceeded", message: "Too much." } } },
  ],
  [
    "an error of the AWS SDK",
    Object.assign(new Error("prompt is too long: 200049 tokens > 200000 maximum"), {
      name: "ValidationException",
      $metadata: { httpStatusCode: 400 },
    }),
  ],
  [
    "an error of the provider behind OpenRouter",
    answered(400, {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: '{"error":{"message":"prompt is too long: 250000 tokens > 200000 maximum"}}' },
      },
    }),
  ],
  [
    "an answer inside of a message",
    new Error(
      JSON.stringify({
        error: {
          message: JSON.stringify({ error: { code: 400, message: "The input token count (3) exceeds the maximum" } }),
          code: 400,
        },
      }),
    ),
  ],
];

test.each(shaped)("%s says overflow", (_what, error) => {
  expect(classifyProviderError(error)).toBe("context_overflow");
});
