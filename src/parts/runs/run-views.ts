import { tryParseJson } from "../../base/json.ts";
import type { AgentRunRow, ListedAgentRun } from "../../store/agent-run.ts";
import type { AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";
import type {
  AgentToolDisplayMetadata,
  AgentToolLifecycleResult,
  AgentToolMilestone,
  AgentToolRunInfo,
  AgentToolTerminalStatus,
  DetachedAgentToolConfig,
  DetachedRunAgentToolResult,
  RunAgentToolResult,
} from "./types.ts";
import { cutText } from "../../message/cut-value.ts";
import { isToolPart, type UIMessage } from "../../message/types.ts";

/** A run for the hooks of the parent. */
export function toInfo(run: ListedAgentRun): AgentToolRunInfo {
  const source = notifySource(detachedOf(run));
  return {
    runId: run.runId,
    agentType: run.className,
    status: run.status,
    displayOrder: run.displayOrder ?? run.seq,
    startedAt: run.startedAt,
    ...(run.toolCallId !== null && { parentToolCallId: run.toolCallId }),
    ...(run.preview !== null && { inputPreview: tryParseJson(run.preview) }),
    ...(run.display !== null && { display: tryParseJson(run.display) as AgentToolDisplayMetadata }),
    ...(run.endedAt !== null && { completedAt: run.endedAt }),
    ...(source !== undefined && { notifySource: source }),
  };
}

/** How a run that has ended did so. */
export function toEnd(run: AgentRunRow): AgentToolLifecycleResult {
  const { summary, error, reason, childRunning } = run;
  return {
    status: run.status as AgentToolTerminalStatus,
    ...(summary !== null && { summary }),
    ...(error !== null && run.status !== "completed" && { error }),
    ...(reason !== null && { reason: reason as AgentToolInterruptReason }),
    ...(childRunning !== null && { childStillRunning: childRunning === 1 }),
  };
}

/** What `runAgentTool()` resolves with for a run that has ended. */
export function toResult<Output>(run: AgentRunRow): RunAgentToolResult<Output> {
  return {
    runId: run.runId,
    agentType: run.className,
    ...toEnd(run),
    ...(run.output !== null && { output: tryParseJson(run.output) as Output }),
  };
}

/** What a detached `runAgentTool()` resolves with. */
export function toDetached(run: AgentRunRow): DetachedRunAgentToolResult {
  const { runId, className, status, error } = run;
  return { runId, agentType: className, status, ...(error !== null && { error }) };
}

/** How the end of a run is delivered, and to which session. */
export interface Detached extends DetachedAgentToolConfig<Record<string, unknown>> {
  readonly session?: string;
}

/** How the end of a run is delivered, if nobody waits for it. */
export function detachedOf(run: ListedAgentRun): Detached | undefined {
  return run.detached === null ? undefined : (JSON.parse(run.detached) as Detached);
}

/** The session that a run is for; undefined: code asked for it outside turns, for all sessions. */
export function sessionOfRun(run: ListedAgentRun): string | undefined {
  return detachedOf(run)?.session ?? run.session ?? undefined;
}

function notifySource(config: DetachedAgentToolConfig<Record<string, unknown>> | undefined): string | undefined {
  return typeof config?.notify === "object" ? config.notify.source : undefined;
}

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
