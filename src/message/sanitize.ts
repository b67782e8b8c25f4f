import { isRecord } from "../base/json.ts";
import type { Part, UIMessage } from "./types.ts";

/** Providers whose metadata names things that they keep for a while only; sending them later fails. */
const expiringProviders = ["openai", "azure"];
const expiringKeys: ReadonlySet<string> = new Set(["itemId", "reasoningEncryptedContent"]);
const metadataFields = ["providerMetadata", "callProviderMetadata", "resultProviderMetadata"] as const;

/**
 * Removes what must not outlive the turn: OpenAI's item ids and encrypted reasoning, then reasoning left without text and
 * metadata. Anthropic's redacted reasoning is all metadata and stays. Idempotent. @returns the same object if nothing was
 * removed.
 */
export function sanitizeMessage(message: UIMessage): UIMessage {
  let changed = false;
  const parts: Part[] = [];
  for (const part of message.parts) {
    const clean = stripExpiring(part);
    const empty = isEmptyReasoning(clean);
    if (!empty) parts.push(clean);
    if (empty || clean !== part) changed = true;
  }
  return changed ? { ...message, parts } : message;
}

function isEmptyReasoning(part: Part): boolean {
  if (part.type !== "reasoning" || part.providerMetadata !== undefined) return false;
  return typeof part.text !== "string" || part.text.trim() === "";
}

function stripExpiring(part: Part): Part {
  let result = part;
  for (const field of metadataFields) {
    const metadata: unknown = (part as { [field]?: unknown })[field];
    if (!isRecord(metadata)) continue;
    const kept = stripMetadata(metadata);
    if (kept === metadata) continue;
    const { [field]: _removed, ...rest } = result as Part & { [field]?: unknown };
    result = (kept === undefined ? rest : { ...rest, [field]: kept }) as Part;
  }
  return result;
}

function stripMetadata(metadata: Record<string, unknown>): Record<string, unknown> | undefined {
  let kept = metadata;
  for (const provider of expiringProviders) {
    const own = metadata[provider];
    if (!isRecord(own) || !Object.keys(own).some((key) => expiringKeys.has(key))) continue;
    const rest = Object.entries(own).filter(([key]) => !expiringKeys.has(key));
    const { [provider]: _removed, ...others } = kept;
    kept = rest.length === 0 ? others : { ...others, [provider]: Object.fromEntries(rest) };
  }
  return Object.keys(kept).length === 0 && kept !== metadata ? undefined : kept;
}
