import { isRecord } from "../base/json.ts";
import type { UIMessageChunk } from "./types.ts";

type Fields = Readonly<Record<string, "string" | "boolean" | "array">>;

/** What a chunk must carry to be applied. Types that are not listed need nothing but their name. */
const required: Readonly<Record<string, Fields>> = {
  "text-start": { id: "string" },
  "text-delta": { id: "string", delta: "string" },
  "text-end": { id: "string" },
  "reasoning-start": { id: "string" },
  "reasoning-delta": { id: "string", delta: "string" },
  "reasoning-end": { id: "string" },
  "tool-input-start": { toolCallId: "string", toolName: "string" },
  "tool-input-delta": { toolCallId: "string", inputTextDelta: "string" },
  "tool-input-available": { toolCallId: "string", toolName: "string" },
  "tool-input-error": { toolCallId: "string", toolName: "string", errorText: "string" },
  "tool-output-available": { toolCallId: "string" },
  "tool-output-error": { toolCallId: "string", errorText: "string" },
  "tool-output-denied": { toolCallId: "string" },
  "tool-approval-request": { toolCallId: "string", approvalId: "string" },
  "tool-approval-response": { approvalId: "string", approved: "boolean" },
  file: { url: "string", mediaType: "string" },
  "reasoning-file": { url: "string", mediaType: "string" },
  "source-url": { sourceId: "string", url: "string" },
  "source-document": { sourceId: "string", mediaType: "string", title: "string" },
  custom: { kind: "string" },
  "steering-message": { id: "string", parts: "array" },
  error: { errorText: "string" },
};

/**
 * Checks a chunk from a model stream or the log. Unknown types pass: newer streams may have them, and folding ignores them.
 * @param namesCalls a call may come without an id: the reader gives it one.
 * @returns the same object, or `undefined` when it lacks what its type needs; never throws.
 */
export function parseChunk(value: unknown, namesCalls = false): UIMessageChunk | undefined {
  if (!isRecord(value) || typeof value.type !== "string" || value.type === "") return undefined;
  const fields = Object.hasOwn(required, value.type) ? required[value.type] : undefined;
  for (const [name, kind] of Object.entries(fields ?? {})) {
    const field = value[name];
    if (kind === "array" ? !Array.isArray(field) : typeof field !== kind) return undefined;
    // An empty name or call id would make a part that nothing can refer to.
    const mayBeEmpty = name === "toolCallId" ? namesCalls : name !== "toolName" && name !== "approvalId";
    if (field === "" && !mayBeEmpty) return undefined;
  }
  return value as UIMessageChunk;
}
