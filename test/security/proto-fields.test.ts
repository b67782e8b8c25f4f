// One rule for a field called `__proto__`, however a tool is called.
import type { DurableExecutionOptions } from "perdure";
import { scriptedModel } from "perdure/testing";
import { createExecuteTool } from "perdure/tools";
import { expect, test } from "vitest";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";

const WORDS = "__proto__";
const odd = (text: string) => JSON.parse(text) as Record<string, unknown>;

async function calling(toolName: string, input: unknown, give: () => unknown = () => "given") {
  const got: unknown[] = [];
  const keys: string[] = [];
  const look = serverTool(async (given, { idempotencyKey = "", step }: DurableExecutionOptions) => {
    got.push(given);
    keys.push(idempotencyKey);
    return given.stepped === true ? step?.("one", give) : give();
  });
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName, input, toolCallId: "c1" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look, execute: createExecuteTool({ tools: { look } }) };
        }
      },
  );
  await kit.ask("Look.");
  return { got, keys, output: JSON.stringify(outputsSent(model, 1).c1) };
}

test("an input with __proto__ never reaches a tool, called directly or from code, and the model reads why", async () => {
  const direct = await calling("look", odd('{"a":{"__proto__":{"admin":true}}}'));
  const code = `try { await tools.look(JSON.parse('{"a":{"__proto__":{"admin":true}}}')); } catch (e) { return e.message; }`;
  const nested = await calling("execute", { code });
  for (const { got, output } of [direct, nested]) {
    expect(got).toEqual([]);
    expect(output).toMatch(/__proto__|prototype/);
  }
  expect(({} as { admin?: boolean }).admin).toBeUndefined();
});

test("an output with __proto__ is an error that says so, given directly, from a step, and to code", async () => {
  const give = () => odd('{"list":[{"__proto__":{"admin":true}}]}');
  const direct = await calling("look", {}, give);
  const stepped = await calling("look", { stepped: true }, give);
  const nested = await calling(
    "execute",
    { code: "try { return await tools.look({}); } catch (e) { return e.message; }" },
    give,
  );
  const returned = await calling("execute", { code: `return JSON.parse('{"__proto__":1}')` });
  for (const { output } of [direct, stepped, nested, returned]) expect(output).toContain(WORDS);
});

test("a model cannot name a call so that it has the key of a call inside of another one", async () => {
  const keys: string[] = [];
  const look = serverTool((_input, { idempotencyKey = "" }: DurableExecutionOptions) => void keys.push(idempotencyKey));
  const model = scriptedModel(({ step }) =>
    step === 0
      ? {
          toolCalls: [
            { toolName: "execute", input: { code: "await tools.look({}); await tools.look({});" }, toolCallId: "c1" },
            ...["c1/0", "c1/1", "c1/2"].map((toolCallId) => ({ toolName: "look", input: {}, toolCallId })),
          ],
        }
      : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look, execute: createExecuteTool({ tools: { look } }) };
        }
      },
  );
  await kit.ask("Look.");
  expect(keys).toHaveLength(5);
  expect(new Set(keys).size).toBe(5);
});
