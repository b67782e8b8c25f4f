import type { ToolSet } from "ai";
import type { ToolPart, UIMessage } from "../message/types.ts";
import { asPart, isToolPart, toolName } from "../message/types.ts";

/** What the output of a tool begins with that is not shown any more. */
const CLEARED = "[Cleared to make room: ";
/** The same where newer ones stand for it. */
const SUPERSEDED = "[Superseded: ";

/** What stands in the place of an output: it says how to get it again. */
export function clearedText(part: ToolPart, messageId: string): string {
  return `${CLEARED}the output of ${toolName(part)}, call ${part.toolCallId}, is kept in message ${messageId}. Search the conversation for it, or call the tool again if you need it.]`;
}

/** What stands in the place of an output for which newer ones stand: it says where they are. */
export function supersededText(part: ToolPart, newer: readonly { message: string; call: string }[]): string {
  const where = newer.map(({ message, call }) => `call ${call} in message ${message}`).join(", ");
  return `${SUPERSEDED}the output of ${toolName(part)}, call ${part.toolCallId}, is out of date. The newer one is that of ${where}.]`;
}

/** Whether an output is {@link clearedText} or {@link supersededText}. */
export function isCleared(output: unknown): output is string {
  return typeof output === "string" && (output.startsWith(CLEARED) || output.startsWith(SUPERSEDED));
}

/**
 * The tools for one message. A tool that shows its outputs to the model in its own way knows nothing of texts that stand
 * in their places. The same object when there are none.
 */
export function toolsFor(message: UIMessage, tools: ToolSet): ToolSet {
  const names = new Set<string>();
  for (const part of message.parts) if (isToolPart(part) && isCleared(part.output)) names.add(toolName(part));
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
        isCleared(call.output) ? { type: "text", value: call.output } : show(call),
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
