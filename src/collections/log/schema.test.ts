import { chat, convertSchemaToJsonSchema, toolDefinition } from "@tanstack/ai";
import { createCollection, eq } from "@tanstack/db";
import { expect, test } from "vitest";
import { z } from "zod";
import { scriptedText } from "../../testing/index.ts";
import type { ToolCallRecord } from "../contract.ts";
import { createToolExecutionEffect, logCollectionOptions, makeDurableTool, openLocalLog } from "../index.ts";
import { checkOnly, checkValue } from "./schema.ts";

const Wish = z.object({ at: z.string().transform((text) => text.length), times: z.number().default(2) });

test("a checking schema is the same to a model, refuses the same, and changes nothing", async () => {
  const checking = checkOnly(Wish) as typeof Wish;
  const own = z.object({ name: z.string() });
  expect(convertSchemaToJsonSchema(checkOnly(own) as typeof own)).toEqual(convertSchemaToJsonSchema(own));
  expect(await checkValue(checking, { at: "noon" }, "x")).toEqual({ at: "noon" });
  expect(await checkValue(Wish, { at: "noon" }, "x")).toEqual({ at: 4, times: 2 });
  await expect(checkValue(checking, { at: 1, times: "x" }, "The arguments are wrong")).rejects.toMatchObject({
    code: "bad_input",
    message: expect.stringMatching(/^The arguments are wrong: at: .+; times: .+\.$/),
  });
});

test("what cannot check is left alone", async () => {
  const json = { type: "object" };
  expect(checkOnly(json)).toBe(json);
  expect(checkOnly(undefined)).toBeUndefined();
  expect(await checkValue(json, 1, "x")).toBe(1);
  const slow = {
    "~standard": { version: 1, vendor: "t", validate: async (value: unknown) => ({ value: [value] }) },
  };
  expect(await checkValue(slow, 1, "x")).toEqual([1]);
  expect(await checkValue(checkOnly(slow), 1, "x")).toBe(1);
});

test("a row keeps what the model gave; the tool gets what the schema makes of it, once", async () => {
  const tool = toolDefinition({ name: "wish", description: "Wishes.", inputSchema: Wish });
  const calls = createCollection(
    logCollectionOptions<ToolCallRecord>({ log: openLocalLog(), name: "calls", getKey: (row) => row.id }),
  );
  const got: unknown[] = [];
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    tools: [tool],
    collection: calls,
    implementations: { wish: (args) => got.push(args) },
  });
  const adapter = scriptedText([{ toolCalls: [{ name: "wish", input: { at: "noon" }, id: "c1" }] }, "Done."]);
  const tools = [makeDurableTool(tool, calls)];
  const messages = [{ role: "user" as const, content: "hi" }];
  for await (const _ of chat({ adapter, messages, tools, context: { generationId: "g" } })) void _;
  expect(got).toEqual([{ at: 4, times: 2 }]);
  expect(calls.get("g:c1")).toMatchObject({ args: { at: "noon" }, status: "completed", result: 1 });
  await effect.dispose();
});
