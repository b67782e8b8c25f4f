import { isRecord } from "../base/json.ts";
import type { UIMessage } from "./types.ts";

/** The name of the question whether to go on over a budget. It looks like a call of a tool, but no model asks for it. */
export const BUDGET_TOOL = "continue_over_budget";

/** The name under which the message about the end of a call in the background says which call it was. */
export const BACKGROUND_METADATA = "backgroundCall";

/**
 * Whether a message stands in the user's place and tells what a tool said, or another agent that nobody waited for: these
 * are not the user's words. The task of an agent that works for another is no such message.
 */
export function isToldByCode({ id, role, metadata }: Pick<UIMessage, "id" | "role" | "metadata">): boolean {
  if (role !== "user" || !isRecord(metadata)) return false;
  const { agentToolRunId: run } = metadata;
  return BACKGROUND_METADATA in metadata || (typeof run === "string" && id.startsWith(`agent-tool:${run}:`));
}
