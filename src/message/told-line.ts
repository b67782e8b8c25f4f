import { isToolPart, toolName, type UIMessage } from "./types.ts";
import { isRecord } from "../base/json.ts";

/* Lines that code adds below a summary about what it does not cover: what waits, and calls that go on. Made and found here. */

/** The most characters of a line. */
export const MAX_LINE = 400;
/** What stands above the messages that wait. */
export const WAITING_TITLE = "Messages of the user that wait and come later (do not answer them yet):";

/** A text as one line, bounded. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= MAX_LINE ? line : `${line.slice(0, MAX_LINE - 1)}…`;
}

/** What a message says that waits. */
export function waitingText(parts: UIMessage["parts"]): string {
  return parts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join(" ");
}

/** What a line about a call begins with. */
export function callHead(tool: string, call: string): string {
  return `${tool}, call ${call}: `;
}

/** Whether such a text tells of what a message said. @param now what it says since; undefined: it is gone. */
export function isToldIn(carried: string, before: UIMessage, now?: UIMessage): boolean {
  const text = oneLine(waitingText(before.parts));
  if (text !== "" && (now === undefined || oneLine(waitingText(now.parts)) !== text)) {
    const waiting = carried.split("\n\n").find((block) => block.startsWith(WAITING_TITLE));
    if (waiting?.split("\n").includes(`- ${text}`) === true) return true;
  }
  const stays = new Set(now?.parts.map(callOf));
  return before.parts.some((part) => {
    if (!isToolPart(part) || stays.has(callOf(part))) return false;
    return carried.includes(`\n- ${callHead(toolName(part), part.toolCallId)}`);
  });
}

function callOf(part: UIMessage["parts"][number]): string | undefined {
  return isToolPart(part) ? JSON.stringify([part.toolCallId, part.input]) : undefined;
}

/** The name of the question whether to go on over a budget. It looks like a call of a tool, but no model asks for it. */
export const BUDGET_TOOL = "continue_over_budget";

/** The name under which the message about the end of a call in the background says which call it was. */
export const BACKGROUND_METADATA = "backgroundCall";

/** Whether a message in the user's place tells what a tool, or an agent nobody waited for, said. A run's task does not. */
export function isToldByCode({ id, role, metadata }: Pick<UIMessage, "id" | "role" | "metadata">): boolean {
  if (role !== "user" || !isRecord(metadata)) return false;
  const { agentToolRunId: run } = metadata;
  return BACKGROUND_METADATA in metadata || (typeof run === "string" && id.startsWith(`agent-tool:${run}:`));
}
