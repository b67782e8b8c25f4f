import { sameJson } from "../base/json.ts";
import {
  asPart,
  isPending,
  isTerminal,
  isToolPart,
  type Part,
  type ToolPart,
  toolParts,
  type UIMessage,
} from "./types.ts";

/** What a list of messages changes in the stored conversation. Nothing is ever removed. */
interface Merged {
  readonly add: UIMessage[];
  readonly update: UIMessage[];
}

/**
 * Merges a transcript that is trusted, assistant messages included, into the stored one: for server code
 * that persists messages, not for what clients send with a turn (`reconcile` is).
 *
 * 1. Each message is matched with a stored one, and no stored one twice: by id; else, for assistants, by a
 *    shared call with the same tool and input; else by equal parts, for assistants without calls, in order.
 * 2. Where the stored call has ended and the incoming one has not, the stored end is kept.
 * 3. An assistant that matched nothing and only repeats calls that ended in matched rows is a stale copy and
 *    is left out, unless it is the last message.
 * 4. Matched messages that differ are updates under the stored id; the rest is added.
 */
export function mergeMessages(stored: readonly UIMessage[], incoming: readonly UIMessage[]): Merged {
  const rows = matchRows(stored, incoming);
  const settled = new Set<string>();
  for (const row of rows.values()) {
    for (const part of toolParts(row)) if (isTerminal(part)) settled.add(part.toolCallId);
  }
  const add: UIMessage[] = [];
  const update: UIMessage[] = [];
  const last = incoming.at(-1);
  for (const message of incoming) {
    const row = rows.get(message);
    if (row !== undefined) {
      const merged = { ...message, id: row.id, parts: keepSettled(row, message) };
      if (!sameJson(row, merged)) update.push(merged);
    } else if (message === last || !isStaleCopy(message, settled)) {
      add.push(message);
    }
  }
  return { add, update };
}

function matchRows(stored: readonly UIMessage[], incoming: readonly UIMessage[]): Map<UIMessage, UIMessage> {
  const rows = new Map<UIMessage, UIMessage>();
  const free = new Map(stored.map((row) => [row.id, row]));
  const claim = (message: UIMessage, row: UIMessage | undefined) => {
    if (row === undefined) return;
    rows.set(message, row);
    free.delete(row.id);
  };
  // Ids first, for the whole list: an exact match must not lose its row to a similar message before it.
  for (const message of incoming) {
    const row = free.get(message.id);
    if (row?.role === message.role) claim(message, row);
  }
  const byCall = new Map<string, UIMessage[]>();
  for (const row of free.values()) {
    for (const part of toolParts(row)) byCall.set(part.toolCallId, [...(byCall.get(part.toolCallId) ?? []), row]);
  }
  const isFree = (row: UIMessage) => free.has(row.id) && row.role === "assistant";
  for (const message of incoming) {
    if (message.role !== "assistant" || rows.has(message)) continue;
    const calls = toolParts(message);
    const candidates = calls.length > 0 ? calls.flatMap((part) => byCall.get(part.toolCallId) ?? []) : free.values();
    const fit = calls.length > 0 ? sameCalls : sameContent;
    claim(
      message,
      [...candidates].find((row) => isFree(row) && fit(row, message)),
    );
  }
  return rows;
}

/** All calls that both have are the same call: providers give one id to several. */
function sameCalls(row: UIMessage, message: UIMessage): boolean {
  const theirs = new Map(toolParts(message).map((part) => [part.toolCallId, part]));
  return toolParts(row).every((part) => {
    const other = theirs.get(part.toolCallId);
    return other === undefined || (other.type === part.type && sameJson(other.input, part.input));
  });
}

function sameContent(row: UIMessage, message: UIMessage): boolean {
  return sameJson(row.parts, message.parts);
}

function keepSettled(row: UIMessage, message: UIMessage): Part[] {
  const ended = new Map<string, ToolPart>();
  for (const part of toolParts(row)) if (isTerminal(part)) ended.set(part.toolCallId, part);
  if (ended.size === 0) return message.parts;
  return message.parts.map((part) => {
    if (!isToolPart(part) || isTerminal(part)) return part;
    const end = ended.get(part.toolCallId);
    return end === undefined || end.type !== part.type ? part : asPart(endedAs(part, end));
  });
}

/** `part` in the state of `end`, with that state's result and no other. */
function endedAs(part: ToolPart, end: ToolPart): ToolPart {
  const { output: _output, errorText: _errorText, preliminary: _preliminary, rawInput: _rawInput, ...call } = part;
  const result: ToolPart = { ...call, state: end.state };
  if (end.state === "output-available") result.output = end.output;
  if (end.state === "output-error") result.errorText = end.errorText;
  if (end.approval !== undefined) result.approval = end.approval;
  if (part.input === undefined) result.input = end.input;
  return result;
}

function isStaleCopy(message: UIMessage, settled: ReadonlySet<string>): boolean {
  if (message.role !== "assistant" || toolParts(message).length === 0) return false;
  return message.parts.every((part) => {
    if (part.type === "step-start") return true;
    return isToolPart(part) && isPending(part) && settled.has(part.toolCallId);
  });
}
