import { isToolPart, type Part } from "../message/types.ts";

/** Where a tool call stands, in words for a user interface. */
export type ToolPartState = "loading" | "streaming" | "waiting-approval" | "approved" | "complete" | "error" | "denied";

/** What to show of a tool call. `loading` for a part that is none. */
export function getToolPartState(part: Part): ToolPartState {
  if (!isToolPart(part)) return "loading";
  switch (part.state) {
    case "input-streaming":
      return "streaming";
    case "input-available":
      return "loading";
    case "approval-requested":
      return "waiting-approval";
    case "approval-responded":
      return part.approval?.approved === false ? "denied" : "approved";
    case "output-available":
      return "complete";
    case "output-error":
      return "error";
    case "output-denied":
      return "denied";
  }
}

/** The id of the call; `""` for a part that is none. */
export function getToolCallId(part: Part): string {
  return isToolPart(part) ? part.toolCallId : "";
}

/** What the tool was called with, as far as it is known. */
export function getToolInput(part: Part): unknown {
  return isToolPart(part) ? part.input : undefined;
}

/** What the tool returned; undefined until it has. */
export function getToolOutput(part: Part): unknown {
  return isToolPart(part) ? part.output : undefined;
}

/** The question for approval of the call, answered or not. */
export function getToolApproval(part: Part): { id: string; approved?: boolean } | undefined {
  return isToolPart(part) ? part.approval : undefined;
}
