import { expect, test } from "vitest";
import { capsCost, checkBudget, checkBudgets } from "./budget.ts";
import type { Amount, Budget, BudgetState } from "./budget.ts";

const none: Amount = { tokens: 0, cost: 0 };
const state = (budget: Budget | undefined, used: Partial<Amount> = {}, grant?: Partial<Amount>): BudgetState => ({
  scope: "turn",
  budget,
  used: { ...none, ...used },
  grant: grant && { ...none, ...grant },
});
const tokens = (amount: number): Amount => ({ tokens: amount, cost: 0 });
const cost = (amount: number): Amount => ({ tokens: 0, cost: amount });

test("without limits everything fits", () => {
  expect(checkBudget({ tokens: 1e12, cost: 1e12 }, [])).toBe("ok");
  expect(checkBudget({ tokens: 1e12, cost: 1e12 }, [state(undefined), state({}), state({ soft: 0 })])).toBe("ok");
});

test("a call must fit at its worst, to the last token", () => {
  expect(checkBudget(tokens(40), [state({ maxTokens: 100 }, { tokens: 60 })])).toBe("ok");
  expect(checkBudget(tokens(41), [state({ maxTokens: 100 }, { tokens: 60 })])).toEqual({
    over: "turn",
    kind: "hard",
    what: "tokens",
    limit: 100,
    used: 60,
    needed: 41,
  });
  expect(checkBudget(tokens(0), [state({ maxTokens: 0 })])).toBe("ok");
  expect(checkBudget(tokens(1), [state({ maxTokens: 0 })])).toMatchObject({ kind: "hard" });
});

test("dollars do not fail for the way computers add", () => {
  expect(checkBudget(cost(0.1), [state({ maxCost: 0.3 }, { cost: 0.1 + 0.1 })])).toBe("ok");
  expect(checkBudget(cost(0.1 + 0.2), [state({ maxCost: 0.3 })])).toBe("ok");
  expect(checkBudget(cost(0.100000001), [state({ maxCost: 0.3 }, { cost: 0.2 })])).toMatchObject({
    kind: "hard",
    what: "cost",
    limit: 0.3,
  });
});

test("a grant raises the limit it names", () => {
  const budget = { maxTokens: 100, maxCost: 1 };
  expect(checkBudget(tokens(150), [state(budget, {}, { tokens: 50 })])).toBe("ok");
  expect(checkBudget(tokens(151), [state(budget, {}, { tokens: 50 })])).toMatchObject({ limit: 150 });
  expect(checkBudget(cost(2), [state(budget, {}, { tokens: 50 })])).toMatchObject({ what: "cost", limit: 1 });
});

test("the soft limit asks when it is reached, until somebody agreed", () => {
  const budget = { maxTokens: 100, soft: 0.8 };
  expect(checkBudget(tokens(20), [state(budget, { tokens: 79 })])).toBe("ok");
  expect(checkBudget(tokens(20), [state(budget, { tokens: 80 })])).toEqual({
    over: "turn",
    kind: "soft",
    what: "tokens",
    limit: 80,
    used: 80,
    needed: 20,
  });
  expect(checkBudget(tokens(20), [state(budget, { tokens: 80 }, {})])).toBe("ok");
  expect(checkBudget(tokens(20), [state(budget, { tokens: 100 }, { tokens: 50 })])).toBe("ok");
  expect(checkBudget(tokens(1), [state({ maxCost: 1, soft: 0 })])).toMatchObject({ kind: "soft", what: "cost" });
});

test("hard limits are told before soft ones, and the narrowest first", () => {
  const soft = { ...state({ maxTokens: 100, soft: 0.5 }, { tokens: 50 }), scope: "turn" } as const;
  const session = { ...state({ maxTokens: 100 }, { tokens: 100 }), scope: "session" } as const;
  const agent = { ...state({ maxTokens: 100 }, { tokens: 100 }), scope: "agent" } as const;
  expect(checkBudget(tokens(1), [soft, session, agent])).toMatchObject({ over: "session", kind: "hard" });
  expect(checkBudget(tokens(1), [soft])).toMatchObject({ over: "turn", kind: "soft" });
});

test("what is no budget is refused rather than taken for none", () => {
  for (const bad of [{ maxTokens: -1 }, { maxCost: Number.NaN }, { maxTokens: 1, soft: 2 }, { soft: -0.1 }]) {
    expect(() => checkBudgets({ session: bad })).toThrow(expect.objectContaining({ code: "bad_config" }));
  }
  checkBudgets({});
  checkBudgets({ turn: { maxTokens: 0 }, session: { maxCost: Infinity, soft: 1 }, agent: undefined });
});

test("only limits in dollars need prices", () => {
  expect(capsCost({ turn: { maxTokens: 1 }, session: {} })).toBe(false);
  expect(capsCost({ agent: { maxCost: 0 } })).toBe(true);
});
