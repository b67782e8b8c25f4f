import { jsonSchema } from "ai";
import { action, Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, outputsSent } from "../think/harness.ts";
test("an output that no row can hold", async () => {
  let ran = 0; let n = 0;
  const model = scriptedModel(({ prompt }) => prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "pay", input: { k: "1" }, toolCallId: `p${++n}` }] } : "Done.");
  const inputSchema = jsonSchema<{ k: string }>({ type: "object" });
  const kit = await openThink((Base) => class extends (Base as unknown as typeof Think) {
    override getModel() { return model; }
    override actionLedgerPendingRetryLeaseMs = 50;
    override getActions() { return { pay: action({ description: "Pays.", inputSchema, idempotencyKey: (i) => i.k, maxOutputChars: 5_000_000, maxOutputLines: 5_000_000, execute: () => { ran++; return { text: "x".repeat(2_500_000) }; } }) }; }
  });
  await kit.ask("go");
  const agent = await kit.agent();
  console.log(JSON.stringify(outputsSent(model, 1)).slice(0, 400), agent.listActions());
  await new Promise((r) => setTimeout(r, 100));
  await kit.ask("again");
  console.log("RAN", ran, JSON.stringify(outputsSent(model, model.calls.length - 1)).slice(0, 300), kit.takeErrors());
  expect(ran).toBe(1);
});
