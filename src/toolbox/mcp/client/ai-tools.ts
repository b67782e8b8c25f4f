import type { Schema, Tool } from "ai";
import { toSchema } from "../../../base/json-schema.ts";
import { PerdureError } from "../../../base/error.ts";
import { withOrigin } from "../../../context/capabilities.ts";
import { isRecord } from "../../../base/json.ts";
import { durableTool } from "../../../tool/define.ts";
import { checkSchema } from "../check-schema.ts";
import type { CatalogueTool } from "./catalogue.ts";
import type { McpCallOptions, McpCallResult } from "./types.ts";

/** Runs a tool of a server. */
type RunTool = (tool: CatalogueTool, input: unknown, options: McpCallOptions) => Promise<McpCallResult>;

/** One server and its tools. */
export interface ToolSource {
  readonly serverId: string;
  readonly serverName: string;
  readonly tools: readonly CatalogueTool[];
  readonly run: RunTool;
}

/** A catalogue that stays the same is not converted again. */
const converted = new WeakMap<CatalogueTool, Schema<Record<string, unknown>>>();

/** What providers take: a longer name, or one with other letters, fails the whole request. */
const MAX_TOOL_NAME = 64;
const HASH_LENGTH = 6;

/** What models take. A request with anything else fails, and so would every later one of the conversation. */
const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;

type ModelOutput = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;
type ModelPart = Extract<ModelOutput, { type: "content" }>["value"][number];

/**
 * AI SDK tools for servers' tools. New objects each time; schemas live as long as the catalogue. Always in the same order,
 * whichever server answered first: a request that begins differently misses the provider's cache.
 * @param ids of all servers that the agent has, also of those that cannot be used now
 */
export function aiToolsOf(sources: readonly ToolSource[], ids: readonly string[] = []): Record<string, Tool> {
  const tools: Record<string, Tool> = {};
  const taken = new Set<string>();
  for (const { serverId, serverName, tools: list, run } of sorted(sources, (source) => source.serverId)) {
    for (const tool of sorted(list, (one) => one.name))
      tools[nameTool(serverId, tool.name, taken, ids)] = withOrigin(aiTool(tool, serverName, run), {
        kind: "mcp",
        name: serverName,
      });
  }
  return tools;
}

function sorted<T>(items: readonly T[], by: (item: T) => string): T[] {
  return items.toSorted((a, b) => (by(a) < by(b) ? -1 : 1));
}

/** Whether the server says that running a tool twice does what running it once does. */
export function isRepeatable({ annotations }: CatalogueTool): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

function aiTool(tool: CatalogueTool, serverName: string, run: RunTool): Tool {
  const made: Tool<Record<string, unknown>, McpCallResult> = {
    type: "dynamic",
    description: tool.description ?? tool.title ?? `The tool "${tool.name}" of ${serverName}.`,
    inputSchema: schemaOf(tool),
    async execute(input, { abortSignal }) {
      const result = await run(tool, input, abortSignal === undefined ? {} : { signal: abortSignal });
      if (result.isError === true) {
        throw new PerdureError("call_failed", textOf(result) || `The tool "${tool.name}" failed and did not say why.`);
      }
      return result;
    },
    toModelOutput: ({ output }) => toModelOutput(output),
  };
  return durableTool(made as Tool, { replay: isRepeatable(tool) ? "safe" : "never" });
}

function schemaOf(tool: CatalogueTool): Schema<Record<string, unknown>> {
  const kept = converted.get(tool);
  if (kept !== undefined) return kept;
  const { inputSchema } = tool;
  const made = toSchema<Record<string, unknown>>(inputSchema, {
    validate: (value) => {
      const fault = checkSchema(inputSchema, value);
      if (fault === undefined) return { success: true, value: value as Record<string, unknown> };
      return { success: false, error: new PerdureError("bad_input", `${fault}. Correct it and call the tool again.`) };
    },
  });
  converted.set(tool, made);
  return made;
}

/**
 * A tool name that every provider takes: `tool_<id>_<name>`, plus a hash where letters were replaced or dropped. The same tools
 * in the same order get the same names.
 * @param taken the names given so far; the new one is added.
 * @param others ids of the agent's other servers: a server cannot call a tool so that it looks like one of theirs
 */
export function nameTool(serverId: string, tool: string, taken: Set<string>, others: readonly string[] = []): string {
  const prefix = prefixOf(serverId);
  const whole = prefix + tool;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  const isTheirs = others.map(prefixOf).some((one) => one.length > prefix.length && plain.startsWith(one));
  const fits = plain === whole && plain.length <= MAX_TOOL_NAME && !isTheirs;
  let name = fits ? plain : withHash(isTheirs ? prefix : plain, `${serverId} ${tool}`);
  for (let n = 2; taken.has(name); n++) name = withHash(plain, `${serverId} ${tool} ${n}`);
  taken.add(name);
  return name;
}

function prefixOf(serverId: string): string {
  return `tool_${serverId.replaceAll("-", "")}_`;
}

function withHash(plain: string, text: string): string {
  return `${plain.slice(0, MAX_TOOL_NAME - HASH_LENGTH - 1)}_${hash(text)}`;
}

/** FNV-1a: only to tell names apart. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value.toString(36).padStart(HASH_LENGTH, "0").slice(-HASH_LENGTH);
}

/** What a model reads of a tool's answer: texts, and pictures as pictures; the rest is named. Takes anything: it may be cut. */
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

function textOf({ content }: McpCallResult): string {
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
