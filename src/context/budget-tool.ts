/** The name of the question whether to go on over a budget. It looks like a call of a tool, but no model asks for it. */
export const BUDGET_TOOL = "continue_over_budget";
