import { cutText } from "../../message/cut-value.ts";
import { isToolPart, type UIMessage } from "../../message/types.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, AgentToolRunInfo } from "./types.ts";

/** The longest summary of a run, in bytes. */
const MAX_SUMMARY_BYTES = 500;

/** The text of the last answer. */
export function lastText(messages: readonly UIMessage[]): string {
  const answer = messages.findLast(({ role }) => role === "assistant");
  // What an answer says between its tool calls is thinking aloud; what it says last is the result. One that was cut off
  // and carried on says it in several parts.
  let last = "";
  let called = true;
  for (const part of answer?.parts ?? []) {
    if (isToolPart(part)) called = true;
    if (part.type !== "text" || part.text === "") continue;
    last = called ? part.text : last + part.text;
    called = false;
  }
  return last;
}

export function summaryOf(text: string): string {
  return cutText(text.trim(), MAX_SUMMARY_BYTES);
}

/** What the model reads of a background run that has ended. */
export function describeCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string {
  const name = run.display?.name ?? run.agentType;
  if (result.status === "completed") {
    return `The background work of ${name} is done.${result.summary ? ` It says:\n\n${result.summary}` : ""}`;
  }
  const how = { error: "failed", aborted: "was stopped", interrupted: "was given up" }[result.status];
  return `The background work of ${name} ${how}.${result.error ? ` Reason: ${result.error}` : ""}`;
}

/** What is said of a milestone. */
export function describeMilestone(run: AgentToolRunInfo, { name }: AgentToolMilestone): string {
  return `${run.display?.name ?? run.agentType} has reached: ${name}.`;
}
