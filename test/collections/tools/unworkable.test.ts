import { toolDefinition } from "@tanstack/ai";
import { createToolExecutionEffect, openLocalLog } from "perdure/collections";
import { expect, test } from "vitest";
import { add, openCalls, waiting } from "./calls.ts";

test("what cannot work is said at once", () => {
  const { calls } = openCalls(openLocalLog());
  const base = { query: waiting(calls), tools: [add] };
  expect(() =>
    createToolExecutionEffect({
      query: (q) => q.from({ c: q.from({ c: calls }) }),
      tools: [add],
      implementations: { add: () => ({ sum: 1 }) },
    }),
  ).toThrow(/Nobody would write the results/);
  expect(() =>
    // @ts-expect-error the implementation is missing on purpose
    createToolExecutionEffect({ ...base, collection: calls, implementations: {} }),
  ).toThrow(/The tool "add" has no implementation/);
});

test("a tool that needs approval, and nobody to ask: the executor says so", async () => {
  const { calls } = openCalls(openLocalLog());
  const problems: Error[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    collection: calls,
    tools: [toolDefinition({ name: "pay", description: "Pays.", needsApproval: true })],
    implementations: { pay: () => "paid" },
    onProblem: (error) => void problems.push(error),
  });
  expect(problems).toMatchObject([{ code: "bad_config", message: expect.stringContaining('"pay" needs approval') }]);
  await effect.dispose();
});
