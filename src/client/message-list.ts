import { sameJson } from "../base/json.ts";
import {
  asPart,
  isAnswered,
  isToolPart,
  type Part,
  type ToolPart,
  toolParts,
  type UIMessage,
} from "../message/types.ts";

/** `list` with `message` in the place of the one with its id, or else behind the one with `after`, or else last. */
export function putMessage(list: readonly UIMessage[], message: UIMessage, after?: string): UIMessage[] {
  const at = list.findIndex(({ id }) => id === message.id);
  if (at !== -1) return list.with(at, message);
  const before = after === undefined ? -1 : list.findIndex(({ id }) => id === after);
  return before === -1 ? [...list, message] : list.toSpliced(before + 1, 0, message);
}

/** The new list, with the objects of the old one for messages that are the same: they need not be drawn again. */
export function keepObjects(old: readonly UIMessage[], next: readonly UIMessage[]): UIMessage[] {
  const known = new Map(old.map((message) => [message.id, message]));
  return next.map((message) => {
    const before = known.get(message.id);
    return before !== undefined && sameJson(before, message) ? before : message;
  });
}

/** Replaces the message with the same id, else the one with a call of it; adds nothing. Calls answered here stay answered. */
export function updateMessage(list: readonly UIMessage[], message: UIMessage): UIMessage[] {
  let at = list.findIndex(({ id }) => id === message.id);
  if (at === -1) {
    const calls = new Set(toolParts(message).map(({ toolCallId }) => toolCallId));
    at = list.findIndex((one) => toolParts(one).some(({ toolCallId }) => calls.has(toolCallId)));
  }
  const old = list[at];
  return old === undefined ? [...list] : list.with(at, { ...message, id: old.id, parts: keepAnswers(old, message) });
}

function keepAnswers(old: UIMessage, message: UIMessage): Part[] {
  const answered = new Map<string, ToolPart>();
  for (const part of toolParts(old)) if (isAnswered(part)) answered.set(part.toolCallId, part);
  return message.parts.map((part) => {
    const ours = isToolPart(part) && !isAnswered(part) ? answered.get(part.toolCallId) : undefined;
    return ours === undefined ? part : asPart(ours);
  });
}

/** The message with this part in the place of its call, if it has that; else the same object. */
export function withCall(message: UIMessage, call: ToolPart): UIMessage {
  if (toolParts(message).every(({ toolCallId }) => toolCallId !== call.toolCallId)) return message;
  const isIt = (part: Part) => isToolPart(part) && part.toolCallId === call.toolCallId;
  return { ...message, parts: message.parts.map((part) => (isIt(part) ? asPart(call) : part)) };
}

/** The call with this id, or with a question for approval of this id. */
export function findCall(list: readonly UIMessage[], id: string): ToolPart | undefined {
  return list.flatMap(toolParts).find(({ approval, toolCallId }) => toolCallId === id || approval?.id === id);
}

/** The message behind which an answer is given anew: the last answer, or that of the message with `id`. */
export function beforeAnswer(list: readonly UIMessage[], id: string | undefined): UIMessage | undefined {
  const at = list.findLastIndex((message) => (id === undefined ? message.role === "assistant" : message.id === id));
  return list[at]?.role === "assistant" ? list[at - 1] : (list[at] ?? list.at(-1));
}

/** The id of the message before the one with `id`. */
export function idBefore(list: readonly UIMessage[], id: string): string | undefined {
  const at = list.findIndex((message) => message.id === id);
  return at > 0 ? list[at - 1]?.id : undefined;
}
