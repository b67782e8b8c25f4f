import type { UIMessage } from "ai";

/** A message in a line: `user: hi`, `assistant: text [tool:state output]`. */
export function toLine(message: UIMessage): string {
  const parts = message.parts.map((part) => {
    if (part.type === "text") return part.text;
    if (part.type === "step-start") return "";
    if ("toolCallId" in part) {
      const name = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
      return `[${name} ${part.state}${part.state === "output-available" ? ` ${JSON.stringify(part.output)}` : ""}]`;
    }
    return `<${part.type}>`;
  });
  return `${message.role}: ${parts.filter((text) => text !== "").join(" ")}`;
}
