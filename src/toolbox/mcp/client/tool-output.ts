import type { Tool } from "ai";
import { isRecord } from "../../../message/json.ts";
import type { McpCallResult } from "./types.ts";

/** What models take. A request with anything else fails, and so would every later one of the conversation. */
const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;

type ModelOutput = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;
type ModelPart = Extract<ModelOutput, { type: "content" }>["value"][number];

/**
 * What a model reads of a tool's answer: its texts, and its pictures as pictures. What models cannot read is named. Takes
 * anything, since an answer may have been cut before it was stored.
 */
export function toModelOutput(output: unknown): ModelOutput {
  const content = isRecord(output) && Array.isArray(output.content) ? output.content : undefined;
  const structured = isRecord(output) ? output.structuredContent : undefined;
  if (content === undefined || content.length === 0) {
    const value = content === undefined ? output : structured;
    return { type: "text", value: typeof value === "string" ? value : (JSON.stringify(value) ?? "(no output)") };
  }
  const parts = content.map(partOf);
  if (parts.some((part) => part.type !== "text")) return { type: "content", value: parts };
  return { type: "text", value: parts.map((part) => (part.type === "text" ? part.text : "")).join("\n") };
}

/** The words of an answer, for an error. */
export function textOf({ content }: McpCallResult): string {
  return content
    .map((part) => (part.type === "text" && typeof part.text === "string" ? part.text : nameOf(part)))
    .join("\n");
}

function partOf(part: unknown): ModelPart {
  if (!isRecord(part)) return text(typeof part === "string" ? part : JSON.stringify(part));
  if (part.type === "text" && typeof part.text === "string") return text(part.text);
  const holder = part.type === "resource" && isRecord(part.resource) ? part.resource : part;
  if (part.type === "resource" && typeof holder.text === "string") {
    return text(`${typeof holder.uri === "string" ? `${holder.uri}:\n` : ""}${holder.text}`);
  }
  const data = typeof holder.data === "string" ? holder.data : holder.blob;
  const { mimeType } = holder;
  if (typeof data === "string" && typeof mimeType === "string" && IMAGE.test(mimeType) && isBase64(data)) {
    return { type: "file", mediaType: mimeType, data: { type: "data", data } };
  }
  return text(nameOf(part));
}

function nameOf(part: Readonly<Record<string, unknown>>): string {
  const holder = isRecord(part.resource) ? part.resource : part;
  const facts = [part.type, holder.name, holder.title, holder.uri, holder.mimeType, holder.description];
  return `[${facts.filter((fact) => typeof fact === "string" && fact !== "").join(", ")}]`;
}

function isBase64(data: string): boolean {
  return data !== "" && data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
}

function text(value: string): ModelPart {
  return { type: "text", text: value };
}
