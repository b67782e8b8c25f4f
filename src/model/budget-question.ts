import { BUDGET_TOOL } from "../message/told-line.ts";
import type { UIMessageChunk } from "../message/types.ts";
import type { OverBudget } from "../ledger/ledger.ts";

/* A soft limit asks a person whether to go on, as a call that needs approval: any client can show it. No model sees it. */
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
  return (
    `The budget of this ${over.over} does not allow another step (${amounts(over)}). ` +
    "The answer is paused here; it can be continued once the budget is raised."
  );
}

/** What is read when it is a limit, soft or hard, of an agent that asked for the work. */
export function budgetTextAbove(over: OverBudget, agent: string): string {
  const whose = `The ${over.over} budget of ${agent}, which pays for this work,`;
  if (over.kind === "soft") {
    return `${whose} has reached the point from which a person has to agree (${amounts(over)}). The work stops here.`;
  }
  return `${whose} does not allow another step (${amounts(over)}). The work stops here.`;
}

function amounts({ what, used, limit, needed }: OverBudget): string {
  const amount = (value: number) => (what === "cost" ? `$${value.toFixed(4)}` : `${Math.round(value)} tokens`);
  const why = used < limit ? `: the next call may need ${amount(needed)}` : "";
  return `${amount(used)} of ${amount(limit)} used${why}`;
}
