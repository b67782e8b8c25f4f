import type { ReasoningUIPart, TextUIPart, UIMessage, UIMessageChunk } from "ai";

export type { ReasoningUIPart, TextUIPart, UIMessage, UIMessageChunk };

/** One part of a message. */
export type Part = UIMessage["parts"][number];
export type Role = UIMessage["role"];
export type FinishReason = NonNullable<Extract<UIMessageChunk, { type: "finish" }>["finishReason"]>;
/** What a provider attached to a part, keyed by the provider's name. */
export type ProviderMetadata = NonNullable<TextUIPart["providerMetadata"]>;

/**
 * Where a tool call stands.
 *
 *     input-streaming → input-available → output-available | output-error
 *                             └→ approval-requested → approval-responded → output-available | output-error
 *                                                   └→ output-denied
 */
export type ToolState =
  | "input-streaming"
  | "input-available"
  | "approval-requested"
  | "approval-responded"
  | "output-available"
  | "output-error"
  | "output-denied";

export interface ToolApproval {
  id: string;
  approved?: boolean;
  reason?: string;
  descriptor?: unknown;
  requestReason?: string;
  isAutomatic?: boolean;
  signature?: string;
  inputSchemaInput?: unknown;
}

/** One flat view of every tool part, static (`tool-<name>`) or dynamic, whatever its state. */
export interface ToolPart {
  type: `tool-${string}` | "dynamic-tool";
  /** Only on `dynamic-tool` parts; use {@link toolName}. */
  toolName?: string;
  toolCallId: string;
  state: ToolState;
  input?: unknown;
  /** The text of an input that is still streaming. */
  rawInput?: unknown;
  /** `text` when the tool takes a plain string instead of an object. */
  inputEncoding?: "json" | "text";
  output?: unknown;
  errorText?: string;
  /** The output is not the last one. Such a call is not settled. */
  preliminary?: boolean;
  approval?: ToolApproval;
  providerExecuted?: boolean;
  callProviderMetadata?: ProviderMetadata;
  resultProviderMetadata?: ProviderMetadata;
  title?: string;
  toolMetadata?: unknown;
}

const toolStates: ReadonlySet<unknown> = new Set<ToolState>([
  "input-streaming",
  "input-available",
  "approval-requested",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
]);

/** Whether `type` is one that only tool parts have. Says nothing about the other fields. */
export function isToolType(type: string): boolean {
  return type === "dynamic-tool" || type.startsWith("tool-");
}

/** Whether `part` is a well-formed tool part: a name, a call id and a known state. */
export function isToolPart(part: { readonly type: string }): part is ToolPart {
  if (!isToolType(part.type)) return false;
  const tool: { type: string; toolCallId?: unknown; state?: unknown; toolName?: unknown } = part;
  if (typeof tool.toolCallId !== "string" || tool.toolCallId === "" || !toolStates.has(tool.state)) return false;
  return tool.type === "dynamic-tool"
    ? typeof tool.toolName === "string" && tool.toolName !== ""
    : tool.type !== "tool-";
}

/** The same object as a part of a message: the view and the AI SDK's union describe the same shapes. */
export function asPart(tool: ToolPart): Part {
  return tool as Part;
}

/** The tool's name, static or dynamic. */
export function toolName(part: ToolPart): string {
  return part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice("tool-".length);
}

/** Has its last word: output, error or denial. Such a part never changes again. */
export function isTerminal(part: ToolPart): boolean {
  if (part.state === "output-available") return part.preliminary !== true;
  return part.state === "output-error" || part.state === "output-denied";
}

/** The call is complete and has no result yet. */
export function isPending(part: ToolPart): boolean {
  return part.state === "input-available" || part.state === "approval-requested" || part.state === "approval-responded";
}

/** Somebody outside has to answer: a client that runs the tool, or a person who approves it. */
export function isAwaitingAnswer(part: ToolPart): boolean {
  if (part.state === "approval-requested") return true;
  return part.state === "input-available" && part.providerExecuted !== true;
}

/** Nobody outside has to answer any more: terminal, or the approval was given or refused. */
export function isAnswered(part: ToolPart): boolean {
  return part.state === "approval-responded" || isTerminal(part);
}

/** The well-formed tool parts of a message, in order. */
export function toolParts(message: UIMessage): ToolPart[] {
  const found: ToolPart[] = [];
  for (const part of message.parts) if (isToolPart(part)) found.push(part);
  return found;
}
