import type { ToolSet } from "ai";
import { asPart, isToolPart, toolName, type ToolPart, type UIMessage } from "../message/types.ts";

/** What the output of a tool begins with that is not shown any more. */
const CLEARED = "[Cleared to make room: ";
/** The same where newer ones stand for it. */
const SUPERSEDED = "[Superseded: ";

/** What stands in the place of an output: it says how to get it again, or where the newer ones are that stand for it. */
export function noteInstead(
  part: ToolPart,
  messageId: string,
  newer: readonly { message: string; call: string }[] | undefined,
): string {
  if (newer === undefined)
    return `${beginning(CLEARED, part)}is kept in message ${messageId}. Search the conversation for it, or call the tool again if you need it.]`;
  const where = newer.map(({ message, call }) => `call ${call} in message ${message}`).join(", ");
  return `${beginning(SUPERSEDED, part)}is out of date. The newer one is that of ${where}.]`;
}

/** Whether the output of a call is from {@link noteInstead}. It names the call, so no page or file can pass for one. */
export function isCleared(part: ToolPart): boolean {
  const { output } = part;
  if (typeof output !== "string") return false;
  return output.startsWith(beginning(CLEARED, part)) || output.startsWith(beginning(SUPERSEDED, part));
}

function beginning(mark: string, part: ToolPart): string {
  return `${mark}the output of ${toolName(part)}, call ${part.toolCallId}, `;
}

/** The tools for one message: those with their own `toModelOutput` show cleared outputs as text. The same object if none has. */
export function toolsFor(message: UIMessage, tools: ToolSet): ToolSet {
  const names = new Set<string>();
  const notes = new Set<unknown>();
  for (const part of message.parts) {
    if (!isToolPart(part) || !isCleared(part)) continue;
    names.add(toolName(part));
    notes.add(part.output);
  }
  const own = [...names].filter((name) => tools[name]?.toModelOutput !== undefined);
  if (own.length === 0) return tools;
  const changed = { ...tools };
  for (const name of own) {
    const tool = tools[name];
    const show = tool?.toModelOutput;
    if (tool === undefined || show === undefined) continue;
    changed[name] = {
      ...tool,
      toModelOutput: (call: Parameters<typeof show>[0]) =>
        notes.has(call.output) ? { type: "text", value: String(call.output) } : show(call),
    } as ToolSet[string];
  }
  return changed;
}

/** A message with texts in the places of the outputs of some calls. */
export function withTexts(message: UIMessage, texts: ReadonlyMap<string, string>): UIMessage {
  const parts = message.parts.map((part) => {
    const output = isToolPart(part) ? texts.get(part.toolCallId) : undefined;
    if (output === undefined || !isToolPart(part)) return part;
    const { resultProviderMetadata: _metadata, ...rest } = part;
    return asPart({ ...rest, output });
  });
  return { ...message, parts };
}
