import { isRecord } from "./json.ts";
import { asPart, isTerminal, isToolPart, toolName } from "./types.ts";
import type { Part, UIMessage } from "./types.ts";

/** Longer texts in what a provider's own tool took and gave are cut to this many characters. */
export const MAX_PROVIDER_TOOL_TEXT = 500;
/** Their results are sent back to the provider on later turns and must come back as they were. */
const replayedTools: ReadonlySet<string> = new Set(["web_search", "web_fetch"]);
const opaquePrefix = "encrypted";

/**
 * Shortens long texts in the input and output of settled tools that the provider ran itself (code execution,
 * text editor …): the model has had its use of them, and they can be hundreds of kilobytes. Fields whose name
 * starts with `encrypted` and the tools that are sent back later stay whole.
 * @returns the same object when nothing was long.
 */
export function trimProviderTools(message: UIMessage): UIMessage {
  let changed = false;
  const parts = message.parts.map((part): Part => {
    if (!isToolPart(part) || part.providerExecuted !== true || !isTerminal(part)) return part;
    if (replayedTools.has(toolName(part))) return part;
    const input = trim(part.input);
    const output = trim(part.output);
    if (input === part.input && output === part.output) return part;
    changed = true;
    return asPart({ ...part, input, ...(part.output !== undefined && { output }) });
  });
  return changed ? { ...message, parts } : message;
}

function trim(value: unknown): unknown {
  if (typeof value === "string") return trimText(value);
  if (Array.isArray(value)) {
    const items = value.map(trim);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, key.startsWith(opaquePrefix) ? item : trim(item)]);
  return entries.some(([key, item]) => item !== value[key as string]) ? Object.fromEntries(entries) : value;
}

function trimText(text: string): string {
  if (text.length <= MAX_PROVIDER_TOOL_TEXT) return text;
  // The mark is counted, so that a trimmed text is not trimmed again.
  const mark = `… [cut, ${text.length} characters in all]`;
  return text.slice(0, MAX_PROVIDER_TOOL_TEXT - mark.length) + mark;
}
