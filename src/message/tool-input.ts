import { isRecord, tryParseJson } from "../base/json.ts";
import type { ToolPart } from "./types.ts";

/** A tool's input as the object that providers insist on: parsed if a string holds one, else `{}`. */
export function toToolInput(input: unknown): Record<string, unknown> {
  if (isRecord(input)) return input;
  if (typeof input !== "string" || !input.trimStart().startsWith("{")) return {};
  const parsed = tryParseJson(input);
  return isRecord(parsed) ? parsed : {};
}

/** The input that `part` may be stored with: a string for a tool that takes text, else an object. */
export function storedToolInput(part: Pick<ToolPart, "inputEncoding">, input: unknown): unknown {
  return part.inputEncoding === "text" && typeof input === "string" ? input : toToolInput(input);
}
