import { expect, test } from "vitest";
import { newBuilder, toMessage } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import { isAwaitingAnswer, toolParts } from "../message/types.ts";
import type { OverBudget } from "../ledger/ledger.ts";
import { BUDGET_TOOL, budgetQuestion, budgetText, budgetTextAbove } from "./budget-question.ts";

const over: OverBudget = {
  ok: false,
  waits: false,
  kind: "soft",
  over: "session",
  what: "cost",
  used: 1.25,
  limit: 1,
  needed: 0.5,
};

test("the question is a step of its own with a call that waits for a person", () => {
  const builder = newBuilder("m");
  for (const chunk of budgetQuestion("q1", over)) applyChunk(builder, chunk);
  const message = toMessage(builder);
  expect(message.parts.map(({ type }) => type)).toEqual(["step-start", "dynamic-tool"]);
  const [question] = toolParts(message);
  expect(question).toMatchObject({
    toolName: BUDGET_TOOL,
    toolCallId: "q1",
    state: "approval-requested",
    approval: { id: "q1" },
    input: { scope: "session", what: "cost", used: 1.25, limit: 1 },
  });
  expect(question !== undefined && isAwaitingAnswer(question)).toBe(true);
});

test("the text says whose budget it is, and how much of it is used, in its own unit", () => {
  expect(budgetText(over)).toContain(
    "The budget of this session does not allow another step ($1.2500 of $1.0000 used).",
  );
  expect(budgetText({ ...over, over: "turn", what: "tokens", used: 900.4, limit: 1000, needed: 200 })).toContain(
    "The budget of this turn does not allow another step (900 tokens of 1000 tokens used: the next call may need 200 tokens).",
  );
});

test("for a budget of an agent above it names the agent, and tells a person's limit from a hard one", () => {
  expect(budgetTextAbove({ ...over, kind: "hard" }, 'Talk "one"')).toBe(
    'The session budget of Talk "one", which pays for this work, does not allow another step ($1.2500 of $1.0000 used). The work stops here.',
  );
  expect(budgetTextAbove(over, 'Talk "one"')).toContain("has reached the point from which a person has to agree");
});
