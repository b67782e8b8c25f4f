import { and, eq, inArray, or } from "@tanstack/db";
import type { AnyTool } from "@tanstack/ai";
import { createApprovals } from "../approval/approvals.ts";
import type { Claims } from "../claim/claim.ts";
import type { ToolCallRecord } from "../contract.ts";
import { durableToolOf, makeDurableTool } from "../tool/durable-tool.ts";
import { createToolExecutionEffect } from "../tool/execution-effect.ts";
import type { ToolLike, ToolRun } from "../tool/tool-types.ts";
import type { AgentCollections } from "./agent-collections.ts";

/** The tools of an agent, and the end of what executes some of them. */
export interface ApprovalTools {
  readonly tools: readonly AnyTool[];
  dispose(): Promise<void>;
}

/**
 * Makes the tools that need approval durable: a call is a row, the answer is suspended, and nothing waits in memory
 * for a person. Those that have an implementation are executed here once they are allowed.
 */
export function approvalTools(
  agentName: string,
  tools: readonly AnyTool[],
  collections: AgentCollections,
  claims: Claims | undefined,
  onFailure: ((error: Error) => void) | undefined,
): ApprovalTools {
  const asking = tools.filter((tool) => tool.needsApproval === true && durableToolOf(tool) === undefined);
  const mine = asking.filter((tool) => tool.execute !== undefined);
  const made = tools.map((tool) =>
    asking.includes(tool)
      ? (makeDurableTool(tool as ToolLike, collections.toolCalls, { mode: "suspend" }) as AnyTool)
      : tool,
  );
  if (mine.length === 0) return { tools: made, dispose: async () => {} };
  const approvals = createApprovals({ events: collections.approvals });
  const { toolCalls, generations } = collections;
  const names = mine.map((tool) => tool.name);
  const effect = createToolExecutionEffect({
    query: (q) =>
      q
        .from({ call: toolCalls })
        .where(({ call }) =>
          and(inArray(call.name, names), or(eq(call.status, "pending"), eq(call.status, "executing"))),
        ),
    tools: mine as readonly ToolLike[],
    implementations: Object.fromEntries(mine.map((tool) => [tool.name, implementation(agentName, tool)])),
    collection: toolCalls,
    generations,
    approvals,
    ...(claims === undefined ? {} : { claims }),
    ...(onFailure === undefined ? {} : { onProblem: onFailure }),
  });
  return {
    tools: made,
    dispose: async () => {
      await effect.dispose();
      approvals.dispose();
    },
  };
}

/** A tool's own implementation, called as `chat()` calls it. */
function implementation(agentName: string, tool: AnyTool) {
  return async (args: unknown, run: ToolRun<ToolCallRecord>): Promise<unknown> =>
    tool.execute?.(args, {
      toolCallId: run.row.toolCallId,
      abortSignal: run.signal,
      context: { agentName, generationId: run.row.generationId, idempotencyKey: run.idempotencyKey },
      emitCustomEvent: () => {},
    }) as unknown;
}
