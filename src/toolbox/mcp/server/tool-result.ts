import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Tool } from "ai";
import { isRecord } from "../../../message/json.ts";
import { toPlainJson } from "../../../tool/plain-json.ts";

type Part = CallToolResult["content"][number];

/** An output as an MCP client reads it: what the tool shows to models, or the value itself. */
export async function toResult(
  tool: Tool | undefined,
  toolCallId: string,
  input: unknown,
  output: unknown,
): Promise<CallToolResult> {
  if (tool?.toModelOutput !== undefined) {
    const shown = await tool.toModelOutput({ toolCallId, input: input as never, output: output as never });
    switch (shown.type) {
      case "text":
        return { content: [text(shown.value)] };
      case "error-text":
        return { content: [text(shown.value)], isError: true };
      case "error-json":
        return { content: [text(JSON.stringify(shown.value))], isError: true };
      case "content":
        return { content: shown.value.map((part) => partOf(part)) };
      default:
        break;
    }
  }
  const value = toPlainJson(output, "The output");
  if (typeof value === "string") return { content: [text(value)] };
  const json = text(JSON.stringify(value ?? null));
  return isRecord(value) ? { content: [json], structuredContent: value } : { content: [json] };
}

/** Pictures stay pictures; what has no counterpart is named. */
function partOf(part: Readonly<Record<string, unknown>>): Part {
  if (part.type === "text" && typeof part.text === "string") return text(part.text);
  const { mediaType } = part;
  const data = isRecord(part.data) ? part.data.data : part.data;
  if (typeof data === "string" && typeof mediaType === "string" && mediaType.startsWith("image/")) {
    return { type: "image", data, mimeType: mediaType };
  }
  return text(`[${[part.type, mediaType].filter((fact) => typeof fact === "string").join(", ")}]`);
}

function text(value: string): Part {
  return { type: "text", text: value };
}
