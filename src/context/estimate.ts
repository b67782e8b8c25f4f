import type { ModelMessage, ToolSet } from "ai";

/** Characters of English text per token, on the careful side: a reservation should not be too small. */
const CHARS_PER_TOKEN = 3;
/** What an image or a file costs about, in tokens. */
const MEDIA_TOKENS = 1_600;
/** What a provider adds around each message and tool. */
const OVERHEAD_TOKENS = 8;

const known = new WeakMap<object, number>();

/** About how many tokens a request has. Each message is looked at once. */
export function estimateTokens(messages: readonly ModelMessage[], system: string, tools: ToolSet): number {
  let sum = textTokens(system);
  for (const message of messages) sum += remembered(message, () => contentTokens(message.content) + OVERHEAD_TOKENS);
  for (const [name, tool] of Object.entries(tools)) {
    const { description, inputSchema } = tool as { description?: unknown; inputSchema?: unknown };
    const schema = typeof inputSchema === "object" && inputSchema !== null ? inputSchema : {};
    const text = `${name}${typeof description === "string" ? description : ""}`;
    sum += textTokens(text) + OVERHEAD_TOKENS + remembered(schema, () => textTokens(safeJson(schema)));
  }
  return sum;
}

function remembered(key: object, count: () => number): number {
  const before = known.get(key);
  if (before !== undefined) return before;
  const counted = count();
  known.set(key, counted);
  return counted;
}

function contentTokens(content: ModelMessage["content"]): number {
  if (typeof content === "string") return textTokens(content);
  let sum = 0;
  for (const part of content) {
    if (part.type === "text" || part.type === "reasoning") sum += textTokens(part.text);
    else if (part.type === "file" || part.type === "image" || part.type === "reasoning-file") sum += MEDIA_TOKENS;
    else if (part.type === "tool-result" && part.output.type === "content") sum += outputTokens(part.output.value);
    else sum += textTokens(safeJson(part));
  }
  return sum;
}

/** A tool's output may hold images, whose bytes are not what they cost. */
function outputTokens(value: readonly { readonly type: string; readonly text?: string }[]): number {
  let sum = 0;
  for (const { type, text } of value) sum += type === "text" ? textTokens(text ?? "") : MEDIA_TOKENS;
  return sum;
}

function textTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
