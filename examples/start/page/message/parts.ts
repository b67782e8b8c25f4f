import { getToolPartState, type UseAgentChat } from "perdure/react";

/** A message as the hook gives it. */
export type ChatMessage = UseAgentChat["messages"][number];
export type Part = ChatMessage["parts"][number];
export type FilePart = Extract<Part, { type: "file" }>;
export type ToolLike = Extract<Part, { toolCallId: string }>;

/** Where a tool call stands, as the page tells it. `stopped`: nobody works on it any more. */
export type CallState = "running" | "waiting" | "done" | "failed" | "denied" | "stopped";

/** All that was written in a message. */
export function textOf(message: ChatMessage): string {
  return message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

export function filesOf(message: ChatMessage): FilePart[] {
  return message.parts.filter((part) => part.type === "file");
}

export function isTool(part: Part): part is ToolLike {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

/** `tool-weather` is `weather`. */
export function toolNameOf(part: ToolLike): string {
  return part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
}

/** @param live the message may still change by itself. */
export function callStateOf(part: ToolLike, live: boolean): CallState {
  switch (getToolPartState(part)) {
    case "waiting-approval":
      return "waiting";
    case "complete":
      return "done";
    case "error":
      return "failed";
    case "denied":
      return "denied";
    case "loading":
    case "streaming":
    case "approved":
      return live ? "running" : "stopped";
  }
}

/** Whether a message has anything to show yet. */
export function hasContent(message: ChatMessage): boolean {
  return message.parts.some((part) => {
    if (part.type === "text" || part.type === "reasoning") return part.text.trim() !== "";
    return part.type === "file" || part.type === "source-url" || isTool(part);
  });
}

/** Whether a message was written by another agent: the task of a helper, or the report of one. */
export function isOfAgent({ role, metadata }: ChatMessage): boolean {
  return role === "user" && typeof metadata === "object" && metadata !== null && "agentToolRunId" in metadata;
}

/** Tool calls that stand together, or one other part. */
export interface PartGroup {
  /** Where in the message it begins. */
  readonly first: number;
  readonly calls: readonly ToolLike[];
  readonly part?: Part;
}

/** The parts of an answer, with tool calls that follow each other in one group. */
export function groupsOf(parts: readonly Part[]): PartGroup[] {
  const groups: { first: number; calls: ToolLike[]; part?: Part }[] = [];
  for (const [first, part] of parts.entries()) {
    const last = groups.at(-1);
    if (!isTool(part)) groups.push({ first, calls: [], part });
    else if (last !== undefined && last.part === undefined) last.calls.push(part);
    else groups.push({ first, calls: [part] });
  }
  return groups;
}
