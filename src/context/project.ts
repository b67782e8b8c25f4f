import { isTerminal, toolParts, type UIMessage } from "../message/types.ts";
import { markerFor } from "../memory/loaded.ts";
import type { CompactionRow } from "../store/compaction.ts";
import { noteInstead, withTexts } from "./cleared.ts";
import { callKey, type ContextView, type PathNode, type ShownNode } from "./view.ts";

/** What the ids of summaries begin with. They are no messages: no row and no client knows them. */
const SUMMARY_ID = "compaction-";

/**
 * The conversation as the model reads it: the summary with the state that code carried over, as one message of the user;
 * pinned messages that it covers, whole but for their reasoning, which belongs to a context that is gone; then what it
 * does not cover, as it was said. The same view gives the same messages, and between compactions they only grow at the
 * end. Messages that are shown as they are stored are the same objects.
 */
export function project(view: ContextView): UIMessage[] {
  const messages = view.pinned.map(shownWhole);
  for (const node of view.nodes) {
    const message = shownFrom(node, view);
    if (message !== undefined) messages.push(message);
  }
  if (view.compaction !== undefined) return [summaryMessage(view.compaction), ...messages];
  return messages.find(isSpoken)?.role === "assistant" ? [BEGINNING, ...messages] : messages;
}

/** What the model reads first where a conversation begins with an answer: providers take none that begins so. */
export const BEGINNING: UIMessage = {
  id: "beginning",
  role: "user",
  parts: [{ type: "text", text: "[Note of the system, not of the user. The assistant has begun this conversation.]" }],
};

/** Whether anything of a message is said to the model as a message of its own. */
function isSpoken({ role, parts }: UIMessage): boolean {
  if (role !== "user") return role === "assistant";
  return parts.some((part) => (part.type === "text" ? part.text !== "" : part.type === "file"));
}

const summaries = new WeakMap<CompactionRow, UIMessage>();

/** What the model reads in the place of what is covered. */
function summaryMessage(row: CompactionRow): UIMessage {
  const known = summaries.get(row);
  if (known !== undefined) return known;
  const what =
    row.kind === "truncate"
      ? "The beginning of this conversation was left out because it is too long. This is what is known of it:"
      : "The beginning of this conversation was replaced by this summary because it is too long:";
  const { summary, carried } = row;
  const state = carried ? `\n\nHow things stood when it was made, as the system knows it:\n${carried}` : "";
  const text = `[Note of the system, not of the user. ${what}]\n\n${summary ?? ""}${state}\n\n[End of the note. The conversation goes on from here. Do not mention the note, and begin nothing that the user did not ask for.]`;
  const message: UIMessage = { id: `${SUMMARY_ID}${row.id}`, role: "user", parts: [{ type: "text", text }] };
  summaries.set(row, message);
  return message;
}

const pinnedMessages = new WeakMap<UIMessage, UIMessage>();

function shownWhole({ message }: PathNode): UIMessage {
  if (!message.parts.some(({ type }) => type === "reasoning")) return message;
  const known = pinnedMessages.get(message);
  if (known !== undefined) return known;
  const shown = { ...message, parts: message.parts.filter(({ type }) => type !== "reasoning") };
  pinnedMessages.set(message, shown);
  return shown;
}

const changedMessages = new WeakMap<UIMessage, { readonly key: string; readonly message: UIMessage }>();

/** One message of a view, from its first part that is not covered on. Undefined when nothing of it is left. */
export function shownFrom(node: ShownNode, view: ContextView): UIMessage | undefined {
  const { message, from } = node;
  const texts = textsIn(node, view);
  if (from === 0 && texts.size === 0) return message;
  if (from >= message.parts.length) return undefined;
  const key = `${from} ${JSON.stringify([...texts])}`;
  const known = changedMessages.get(message);
  if (known?.key === key) return known.message;
  const rest = from === 0 ? message : { ...message, parts: message.parts.slice(from) };
  const shown = texts.size === 0 ? rest : withTexts(rest, texts);
  changedMessages.set(message, { key, message: shown });
  return shown;
}

/** Some parts of a message of a view, with texts in the places of the outputs that it leaves out. */
export function shownParts(node: ShownNode, parts: UIMessage["parts"], view: ContextView): UIMessage["parts"] {
  const message = { ...node.message, parts };
  const texts = textsIn({ ...node, message }, { ...view, unloaded: new Map() });
  return texts.size === 0 ? parts : withTexts(message, texts).parts;
}

/** What is shown instead of outputs, by the ids of their calls. */
function textsIn({ seq, message, pinned }: ShownNode, view: ContextView): Map<string, string> {
  const { cleared, unloaded } = view;
  const texts = new Map<string, string>();
  if ((cleared.size === 0 && unloaded.size === 0) || message.role !== "assistant") return texts;
  for (const part of toolParts(message)) {
    if (part.state !== "output-available" || !isTerminal(part)) continue;
    const { toolCallId } = part;
    const key = callKey(seq, toolCallId);
    const isClear = !pinned && cleared.has(key);
    const text = isClear
      ? noteInstead(part, message.id, view.newer?.get(key))
      : markerFor(unloaded, message.id, toolCallId);
    if (text !== undefined) texts.set(toolCallId, text);
  }
  return texts;
}
