import type { ModelMessage, SystemModelMessage, ToolSet } from "ai";
import { aiSdk, hasAiSdk, loadAiSdk } from "../base/ai-sdk.ts";
import { unitsOfFile } from "./media-units.ts";
import { type CountText, Remembered, unitsOfJson, unitsOfText } from "./text-units.ts";

// A unit is about one token. What a model really makes of a text differs by model and script; `learned.ts` corrects it.

/** What a provider adds around each message. */
export const MESSAGE_UNITS = 4;
/** What a provider adds around each tool. */
export const TOOL_UNITS = 8;
/** What a provider adds around each tool call, and around each result: its id and its frame. */
export const CALL_UNITS = 8;
/** A schema that nobody can read yet. */
const UNKNOWN_SCHEMA_UNITS = 100;

/** One part of what a message says. */
export type ContentPart = Exclude<ModelMessage["content"], string>[number];
type ToolResultPart = Extract<ContentPart, { type: "tool-result" }>;
type Instructions = string | SystemModelMessage | readonly SystemModelMessage[];

const known = new Remembered<object>();

/** What a message weighs that is sent to a model. Remembered, so a message must not change after that. */
export function unitsOfMessage(message: ModelMessage, count: CountText = unitsOfText): number {
  return known.of(message, count, () => {
    const { content } = message;
    if (typeof content === "string") return MESSAGE_UNITS + count(content);
    let sum = MESSAGE_UNITS;
    for (const part of content) sum += unitsOfContentPart(part, count);
    return sum;
  });
}

export function unitsOfMessages(messages: readonly ModelMessage[], count: CountText = unitsOfText): number {
  let sum = 0;
  for (const message of messages) sum += unitsOfMessage(message, count);
  return sum;
}

/** What a part of a message weighs, without what is added around the message. */
export function unitsOfContentPart(part: ContentPart, count: CountText = unitsOfText): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return count(part.text);
    case "file":
    case "reasoning-file":
      return unitsOfFile(part.mediaType, part.data);
    case "image":
      return unitsOfFile(part.mediaType ?? "image", part.image);
    case "tool-call":
      return unitsOfCall(part.toolName, part.input, count);
    case "tool-result":
      return unitsOfResult(part.toolName, part.output, count);
    // The AI SDK keeps these to itself.
    case "tool-approval-request":
    case "tool-approval-response":
      return 0;
    default:
      return unitsOfJson(part, count);
  }
}

/** What a call of a tool weighs. */
export function unitsOfCall(name: string, input: unknown, count: CountText = unitsOfText): number {
  return CALL_UNITS + count(name) + unitsOfJson(input, count);
}

/** What the result of a tool weighs. It may hold pictures, whose bytes are not what they cost. */
export function unitsOfResult(name: string, output: ToolResultPart["output"], count: CountText = unitsOfText): number {
  return CALL_UNITS + count(name) + unitsOfOutput(output, count);
}

function unitsOfOutput(output: ToolResultPart["output"], count: CountText): number {
  if (output.type === "execution-denied") return count(output.reason ?? "");
  if (output.type !== "content") return unitsOfJson(output.value, count);
  let sum = 0;
  for (const item of output.value) {
    if (item.type === "text") sum += count(item.text);
    else if (item.type === "custom") sum += unitsOfJson(item, count);
    else {
      const { mediaType, data, url } = item as { mediaType?: string; data?: unknown; url?: unknown };
      sum += unitsOfFile(mediaType ?? (item.type.startsWith("image") ? "image" : undefined), data ?? url);
    }
  }
  return sum;
}

/** What the system prompt weighs. */
export function unitsOfInstructions(instructions: Instructions | undefined, count: CountText = unitsOfText): number {
  if (instructions === undefined || instructions === "") return 0;
  if (typeof instructions === "string") return MESSAGE_UNITS + count(instructions);
  let sum = 0;
  for (const one of isList(instructions) ? instructions : [instructions]) sum += unitsOfMessage(one, count);
  return sum;
}

/** What the tools of a request weigh: their names, descriptions and schemas are sent with each call. */
export function unitsOfTools(tools: ToolSet, count: CountText = unitsOfText): number {
  let sum = 0;
  for (const [name, tool] of Object.entries(tools)) sum += unitsOfTool(name, tool, count);
  return sum;
}

/** What a request weighs: all that is sent with it. */
export function unitsOfRequest(
  request: {
    readonly instructions: Instructions | undefined;
    readonly tools: ToolSet;
    readonly messages: readonly ModelMessage[];
  },
  count: CountText = unitsOfText,
): number {
  const { instructions, tools, messages } = request;
  return unitsOfInstructions(instructions, count) + unitsOfTools(tools, count) + unitsOfMessages(messages, count);
}

/** What one tool weighs. Its schema is looked at once. */
export function unitsOfTool(name: string, tool: ToolSet[string], count: CountText = unitsOfText): number {
  const { type, description, inputSchema, args } = tool as {
    type?: unknown;
    description?: unknown;
    inputSchema?: unknown;
    args?: unknown;
  };
  const own = TOOL_UNITS + count(name) + (typeof description === "string" ? count(description) : 0);
  // The provider knows the schemas of its own tools.
  if (type === "provider") return own + unitsOfJson(args ?? {}, count);
  return own + (isObject(inputSchema) ? known.of(inputSchema, count, () => unitsOfSchema(inputSchema, count)) : 0);
}

function unitsOfSchema(schema: object, count: CountText): number {
  try {
    const read = ({ asSchema }: ReturnType<typeof aiSdk>): unknown => asSchema(schema as never).jsonSchema;
    const json = hasAiSdk() ? read(aiSdk()) : loadAiSdk().then(read);
    if (!isObject(json) || !("then" in json)) return unitsOfJson(json, count);
    void Promise.resolve(json).then(
      (shown) => known.set(schema, count, unitsOfJson(shown, count)),
      () => {},
    );
  } catch {
    // A schema that cannot be shown to a model fails the call, not the count.
  }
  return UNKNOWN_SCHEMA_UNITS;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isList(value: SystemModelMessage | readonly SystemModelMessage[]): value is readonly SystemModelMessage[] {
  return Array.isArray(value);
}
