/** How providers word failures: patterns for messages in lower case, by who was seen to write so (many share a dialect). */

/** The request is longer than the model can read. */
const overflow: readonly RegExp[] = [
  // Anthropic, Bedrock, Fireworks; vLLM puts the length in between. Ollama.
  /\bprompt (\([^)]*\) )?is too long\b|\bprompt too long\b/,
  // Bedrock
  /\binput is too long\b|\btoo many input tokens\b|\bexpected maxlength: \d+, actual: \d+/,
  /\bvalue at 'body' failed to satisfy constraint: member must have length less/,
  // OpenAI, Anthropic ("input length and `max_tokens` exceed context limit"), llama.cpp, Ollama, SGLang, Workers AI
  /\bexceed(s|ed|ing)? (the |this |its )?(model'?s? )?(maximum |max |available )?context[ _-]?(window|length|size|limit)/,
  // MiniMax, LM Studio and many more
  /\bcontext[ _-]?(window|length|size)( \w+){0,3} exceed/,
  // OpenAI, Azure, DeepSeek, OpenRouter, vLLM, Together, SambaNova
  /\b(maximum|max) context (length|window|size)\b[^.\n]{0,80}\d/,
  // Mistral
  /\btoo large for model with \d+ maximum context/,
  // Gemini, Vertex
  /\binput token count\b[^\n]{0,80}\b(exceeds|only supports)\b/,
  // xAI
  /\bmaximum prompt length is \d/,
  // Groq, Cerebras, OpenRouter
  /\breduce the length of (the |your |either )?(messages|prompt|input|one)\b/,
  // GitHub Copilot, Moonshot
  /\bprompt token count of \d+ exceeds the limit|\bexceeded model token limit/,
  // Text Generation Inference, Together
  /`inputs` (tokens \+ `max_new_tokens` must be <=|must have less than \d+ tokens)/,
  // LM Studio, SGLang, vLLM
  /\b(greater|longer|larger) than the (model'?s )?(maximum )?(context|model) length/,
  /\bkeep the first \d+ tokens when context the overflows/,
  // GitHub Models
  /\brequest body too large for [^\n]{0,100}max size: \d+ tokens/,
  // Cohere
  /\btoo many tokens: (the )?(total )?number of tokens/,
  // z.ai, Qwen, Doubao
  /\bprompt exceeds max(imum)? length|\breached its context window limit/,
  /\brange of input length should be\b|\bexceeds? max message tokens/,
  // OpenAI, Azure
  /\binput tokens? exceeds? the configured limit/,
  /'(messages|input)(\[\d+\])?(\.content[^']*)?': (string|array) too long/,
  // Anthropic and whatever stands in front of a provider
  /\brequest exceeds the maximum (size|allowed number of bytes)|\brequest entity too large|\bpayload too large/,
  /\b(context_length_exceeded|model_context_window_exceeded|exceed_context_size_error)\b/,
];

/** The same, as codes. */
const overflowCodes: readonly string[] = [
  "context_length_exceeded",
  "context_window_exceeded",
  "model_context_window_exceeded",
  "exceed_context_size_error",
  "model_max_prompt_tokens_exceeded",
  "prompt_too_long",
  "request_too_large",
  "tokens_limit_reached",
];

/** A longer answer was asked for than the model gives: a mistake in a setting, and no shorter conversation helps. */
const outputLimit: readonly RegExp[] = [
  /\bmax_(\w+_)?tokens: \d+ > \d+, which is the maximum/,
  /(?<!\+ [`'"]?)\bmax_(\w+_)?tokens[`'"]? (must be|should be|is too large: \d+\. this model supports at most)/,
  /\bvalid range of max_(\w+_)?tokens\b/,
  /\bmaxoutputtokens\b/,
];

const rateLimit =
  /\brate[ _-]?limit|\btoo many requests\b|\b(tokens|requests) per (min|minute|hour|day)\b|\b[tr]p[md]\b|\bthrottl|\bresource[ _]?(has been )?exhausted\b|\bplease wait before trying again\b|\bquota exceeded\b|\bconcurrency limit/;
const rateLimitCodes: readonly string[] = [
  "rate_limit_error",
  "rate_limit_exceeded",
  "ratelimitexceeded",
  "resource_exhausted",
  "too_many_requests",
  "throttlingexception",
];

/** More tokens than a minute's allowance: waiting never helps, only a smaller request does. */
const largerThanMinute = /\brequest too large for [^\n]*\b(tokens per min|tpm\b)/;

const quota =
  /\bexceeded your current quota\b|\binsufficient (balance|credits?|funds|quota)\b|\bcredit balance is too low\b|\bout of credits\b|\brequires more credits\b|\bbilling hard limit\b|\bextra usage is required\b/;
const quotaCodes: readonly string[] = [
  "insufficient_quota",
  "insufficient_balance",
  "insufficient_credits",
  "billing_error",
  "billing_hard_limit_reached",
  "billing_not_active",
  "exceeded_current_quota_error",
];

const network =
  /\bfetch failed\b|\bfailed to fetch\b|\bcannot connect to api\b|\bsocket hang up\b|\bother side closed\b|^terminated$|\bnetwork ?error\b|\bconnection (error|closed|refused|reset|lost|timed out)\b|\bpremature close\b|\btimed? ?out\b|\boverloaded\b|\btemporarily unavailable\b|\binternal server error\b/m;

type Wording = { readonly wording: string; readonly codes: ReadonlySet<string> };

const someOf = (codes: readonly string[], { codes: given }: Wording) => codes.some((code) => given.has(code));

/** By its code, which nobody writes by accident. */
export function hasOverflowCode(facts: Wording): boolean {
  return someOf(overflowCodes, facts);
}

export function saysOverflow({ wording }: Wording): boolean {
  return overflow.some((pattern) => pattern.test(wording));
}

export function saysOutputLimit({ wording }: Wording): boolean {
  return outputLimit.some((pattern) => pattern.test(wording));
}

export function saysRateLimit(facts: Wording): boolean {
  return someOf(rateLimitCodes, facts) || rateLimit.test(facts.wording);
}

/** One request is larger than all that may be sent in a minute. */
export function saysLargerThanMinute({ wording }: Wording): boolean {
  if (largerThanMinute.test(wording)) return true;
  const [, limit, requested] = /\blimit:? (\d+), requested:? (\d+)/.exec(wording) ?? [];
  return Number(requested) > Number(limit);
}

/** No money or allowance is left. Google words every limit so: only those of a day, and those of 0, are not worth waiting for. */
export function saysQuota(facts: Wording): boolean {
  if (someOf(quotaCodes, facts)) return true;
  if (facts.codes.has("resource_exhausted")) {
    return /\bper day\b|\blimit: 0\b/.test(facts.wording) || [...facts.codes].some((code) => code.includes("perday"));
  }
  return quota.test(facts.wording);
}

export function saysNetwork({ wording }: Wording): boolean {
  return network.test(wording);
}
