import type { Identity } from "../../base/identity.ts";
import type { UIMessage } from "../../message/types.ts";
import { Agent } from "../agent.ts";
import type { ChildRuns } from "./child-runs.ts";
import { describeCompletion, describeMilestone, lastText, summaryOf } from "./describe.ts";
import type {
  AgentToolChunk,
  AgentToolLifecycleResult,
  AgentToolListener,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolRequest,
  AgentToolRunInfo,
  AgentToolRunInspection,
} from "./types.ts";

/** The work that an agent does for the one above it. */
export const childRuns: unique symbol = Symbol("perdure.child-runs");

/** What an agent has that others give work to: how it reads what is asked for, and what it gives back. */
export abstract class ChildAgent<Env extends object, State, Props extends object> extends Agent<Env, State, Props> {
  /** @internal */
  abstract get [childRuns](): ChildRuns;

  /** What the parent asks for, as the message that the turn answers. Default: a text as it is, other input as JSON. */
  formatAgentToolInput(input: unknown, _request: { readonly runId: string }): string | UIMessage {
    return typeof input === "string" ? input : JSON.stringify(input, null, 2);
  }

  /** What the parent gets. Default: the text of the last answer. May return a promise; what it throws fails the run. */
  getAgentToolOutput(_request: AgentToolRequest, messages: readonly UIMessage[]): unknown {
    return lastText(messages);
  }

  /** What clients of the parent read when the run is done. Default: the output, if it is text, shortened. */
  getAgentToolSummary(_request: AgentToolRequest, output: unknown, messages: readonly UIMessage[]): string {
    return summaryOf(typeof output === "string" ? output : lastText(messages));
  }

  /** What the model reads when a detached run has ended; an empty text: nothing is said. */
  formatDetachedCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string {
    return describeCompletion(run, result);
  }

  /** What is said when a detached run reaches a milestone; an empty text: nothing is said. */
  formatDetachedMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string {
    return describeMilestone(run, milestone);
  }

  /**
   * Reports how far the run is that this is called in; does nothing outside of one. Clients of the parent see it at
   * once, at most every 200 ms. With a `milestone` it is stored and shown to every client that comes. `persist` keeps
   * `data` with the last report. @throws PerdureError `bad_input`
   */
  async reportProgress(progress: AgentToolProgress, options: { persist?: boolean } = {}): Promise<void> {
    this[childRuns].report(progress, options.persist ?? false);
  }

  /** Accepts a run of the parent, once per id. Called by the parent, which says for whom. */
  startAgentToolRun(
    input: unknown,
    run: { readonly runId: string; readonly identity?: Identity; readonly lineage?: string | null },
  ): AgentToolRunInspection {
    return this[childRuns].start(input, run);
  }

  /** Stops a run of the parent for good. Called by the parent. */
  cancelAgentToolRun(runId: string, reason?: string): void {
    this[childRuns].cancel(runId, reason);
  }

  /** A run that this agent does for its parent; null when it knows of none. */
  inspectAgentToolRun(runId: string): AgentToolRunInspection | null {
    return this[childRuns].inspect(runId);
  }

  /** What a run has said so far. */
  getAgentToolChunks(runId: string, options: { from?: number } = {}): AgentToolChunk[] {
    return this[childRuns].chunks(runId, options.from ?? 0);
  }

  /** Follows a run to its end: what it said, then what it says. Called by the parent. */
  tailAgentToolRun(
    runId: string,
    options: { readonly from?: number; readonly listener: AgentToolListener },
  ): Promise<AgentToolRunInspection | null> {
    return this[childRuns].tail(runId, options.from ?? 0, options.listener);
  }
}
