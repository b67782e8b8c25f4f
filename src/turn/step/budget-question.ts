import { BUDGET_TOOL } from "../../context/budget-tool.ts";
import type { UIMessageChunk } from "../../message/types.ts";
import type { OverBudget } from "../../session/ledger.ts";

/*
 * A soft limit was reached: a person is asked whether to go on. It is asked like a tool call that needs approval, so
 * every client can show it and answer it. The model never sees it.
 */
export { BUDGET_TOOL };

/** What the question is about. */
export function budgetInput({ over, used, limit, what }: OverBudget) {
  return { scope: over, used, limit, what };
}

/** The question as chunks of the answer. */
export function budgetQuestion(toolCallId: string, over: OverBudget): UIMessageChunk[] {
  const input = budgetInput(over);
  return [
    { type: "start-step" },
    { type: "tool-input-available", toolCallId, toolName: BUDGET_TOOL, input, dynamic: true },
    { type: "tool-approval-request", approvalId: toolCallId, toolCallId },
  ];
}

/** What the user reads when a hard limit is reached. What was said so far stays, and can be gone on with. */
export function budgetText(over: OverBudget): string {
  const amount = (value: number) => (over.what === "cost" ? `$${value.toFixed(4)}` : `${Math.round(value)} tokens`);
  const used = `${amount(over.used)} of ${amount(over.limit)} used`;
  const why = over.used < over.limit ? `: the next call may need ${amount(over.needed)}` : "";
  return (
    `The budget of this ${over.over} does not allow another step (${used}${why}). ` +
    "The answer is paused here; it can be continued once the budget is raised."
  );
}
