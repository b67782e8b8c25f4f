import { isTerminal, isToolPart, type ToolPart, toolName, type UIMessage } from "../message/types.ts";
import { isCleared } from "./cleared.ts";
import { callKey, type ContextView, type NewerCall } from "./view.ts";

/** What an output is about, so that newer ones can replace it: all of something, or a piece of it. */
export type OutputSubject = string | { readonly of: string; readonly piece: string };

/** What is known of the tools of a conversation. */
export interface OutputRules {
  /** Outputs of this tool are never left out. */
  keepAlways(tool: string): boolean;
  /** What an output is about. None: nothing stands for it, and it stands for nothing. Must not throw. */
  subjects(part: ToolPart): readonly OutputSubject[];
}

/** An output that newer ones stand for. */
interface SupersededCall {
  readonly seq: number;
  readonly message: UIMessage;
  readonly part: ToolPart;
  /** Each of its subjects is in one of these. */
  readonly newer: readonly NewerCall[];
  /** The newest message with one of them: where it is not, the output is the newest. */
  readonly at: number;
}

/** The newest output of a subject. */
interface Newest extends NewerCall {
  readonly seq: number;
  readonly step: string;
}

/**
 * Outputs of a view that newer ones replace, oldest first: the same tool looked at all of an output's subjects, or at what it is
 * a piece of, again in a later step, without failing. Calls of one step do not know of each other, so none replaces another.
 * Never pinned messages, outputs that a tool keeps, or a provider's own.
 */
export function findSuperseded(view: ContextView, rules: OutputRules): SupersededCall[] {
  const newest = new Map<string, Newest>();
  const found: SupersededCall[] = [];
  for (const { seq, message, from, pinned } of view.nodes.toReversed()) {
    if (message.role !== "assistant") continue;
    for (const { part, step } of shownCalls(message, seq, from).toReversed()) {
      const { toolCallId } = part;
      if (view.cleared.has(callKey(seq, toolCallId)) && !pinned) continue;
      const subjects = rules.subjects(part).map((subject) => keysOf(toolName(part), subject));
      if (subjects.length === 0) continue;
      const later = subjects.map((keys) => keys.map((key) => newest.get(key)).find((one) => isLater(one, step)));
      const own = { message: message.id, call: toolCallId };
      const newer = distinct(later.filter((one) => one !== undefined)).filter((one) => !isSame(one, own));
      const stays = pinned || rules.keepAlways(toolName(part)) || part.providerExecuted === true;
      if (!stays && newer.length > 0 && later.every((one) => one !== undefined)) {
        const at = Math.max(...newer.map((one) => one.seq));
        found.push({ seq, message, part, newer: newer.map(({ message: id, call }) => ({ message: id, call })), at });
        continue;
      }
      for (const [key] of subjects) if (key !== undefined && !newest.has(key)) newest.set(key, { ...own, seq, step });
    }
  }
  return found.reverse();
}

/** The calls of a message that have an output which is shown, each with the step in which it was asked for. */
function shownCalls(message: UIMessage, seq: number, from: number): { part: ToolPart; step: string }[] {
  const calls: { part: ToolPart; step: string }[] = [];
  let step = 0;
  for (const [index, part] of message.parts.entries()) {
    if (part.type === "step-start") step = index;
    if (index < from || !isToolPart(part) || part.state !== "output-available" || !isTerminal(part)) continue;
    if (!isCleared(part)) calls.push({ part, step: `${seq} ${step}` });
  }
  return calls;
}

/** What a subject is found by, then what it is a piece of. A tool knows no other's subjects. */
function keysOf(tool: string, subject: OutputSubject): string[] {
  if (typeof subject === "string") return [JSON.stringify([tool, subject])];
  return [JSON.stringify([tool, subject.of, subject.piece]), JSON.stringify([tool, subject.of])];
}

function isLater(one: Newest | undefined, step: string): boolean {
  return one !== undefined && one.step !== step;
}

function isSame(one: NewerCall, other: NewerCall): boolean {
  return one.message === other.message && one.call === other.call;
}

function distinct(calls: readonly Newest[]): Newest[] {
  return calls.filter((one, index) => calls.findIndex((other) => isSame(one, other)) === index);
}
