import { PerdureError } from "../../base/error.ts";
import { findTool, type MessageBuilder } from "../../message/builder.ts";
import type { UIMessageChunk } from "../../message/types.ts";

/** One chunk, as JSON. A picture that a model drew comes as one. */
const MAX_CHUNK_CHARS = 8 * 1024 * 1024;
/** The input of one call, as text. More than any model says at once. */
const MAX_INPUT_CHARS = 1024 * 1024;

/** Refuses a chunk that is far too large, before it is stored. @param chars its length as JSON @throws PerdureError `limit` */
export function checkChunk(builder: MessageBuilder, chunk: UIMessageChunk, chars: number): void {
  if (chars > MAX_CHUNK_CHARS) throw tooLarge("a piece of the answer", MAX_CHUNK_CHARS);
  if (chunk.type === "tool-input-available" && chars > MAX_INPUT_CHARS) throw tooLargeInput(chunk.toolName);
  if (chunk.type !== "tool-input-delta") return;
  const part = findTool(builder, chunk.toolCallId);
  const before = typeof part?.rawInput === "string" ? part.rawInput.length : 0;
  if (before + chunk.inputTextDelta.length > MAX_INPUT_CHARS) throw tooLargeInput();
}

/** Counts the calls of each step of a stream. @throws PerdureError `limit` when one has more than `max` */
export function callCounter(max: number): (chunk: UIMessageChunk) => void {
  const calls = new Set<string>();
  return (chunk) => {
    if (chunk.type === "start-step") calls.clear();
    if (chunk.type !== "tool-input-start" && chunk.type !== "tool-input-available") return;
    calls.add(chunk.toolCallId);
    if (calls.size > max) throw tooManyCalls(max);
  };
}

/** The model asks for more than it may. */
export function tooManyCalls(max: number): PerdureError {
  return new PerdureError(
    "limit",
    `The model asked for too many things at once (a step has at most ${max} tool calls), and was stopped. Try again, or ask for less.`,
  );
}

function tooLargeInput(tool?: string): PerdureError {
  return tooLarge(tool === undefined ? "the input of a tool" : `the input of "${tool}"`, MAX_INPUT_CHARS);
}

function tooLarge(what: string, max: number): PerdureError {
  return new PerdureError(
    "limit",
    `The model's answer was stopped: ${what} was too large (at most ${max} characters). Try again, or ask for less.`,
  );
}
