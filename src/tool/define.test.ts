import { type InferToolInput, type InferToolOutput, tool } from "ai";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  DEFAULT_OUTPUT_CHARS,
  DEFAULT_OUTPUT_LINES,
  type DurableExecutionOptions,
  durableTool,
  type DurableToolOptions,
  toolOptionsOf,
} from "./define.ts";

const plain = () =>
  tool({
    description: "adds",
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: async ({ a, b }) => ({ sum: a + b }),
  });

const DEFAULTS = {
  replay: "never",
  timeoutMs: undefined,
  maxOutputLines: DEFAULT_OUTPUT_LINES,
  maxOutputChars: DEFAULT_OUTPUT_CHARS,
  keep: undefined,
};

test("a plain tool, and what is no tool at all, has the defaults", () => {
  expect([DEFAULT_OUTPUT_LINES, DEFAULT_OUTPUT_CHARS]).toEqual([2_000, 50_000]);
  for (const value of [plain(), undefined, null, 7, "tool", {}, []]) expect(toolOptionsOf(value)).toEqual(DEFAULTS);
});

test("options are found on the tool, on a spread of it and under an overridden execute", () => {
  const options: DurableToolOptions = {
    replay: "safe",
    timeoutMs: 5,
    maxOutputLines: 10,
    maxOutputChars: 20,
    keep: "always",
  };
  const durable = durableTool(plain(), options);
  expect(toolOptionsOf(durable)).toEqual(options);
  expect(toolOptionsOf({ ...durable })).toEqual(options);
  expect(toolOptionsOf({ ...durable, execute: undefined })).toEqual(options);
  expect(toolOptionsOf(durableTool(plain(), { timeoutMs: 5 }))).toEqual({ ...DEFAULTS, timeoutMs: 5 });
});

test("a rule on approvals takes the place of the tool's own; a text asks, an empty one too", async () => {
  const ruleOf = (needsApproval: DurableToolOptions["needsApproval"]): unknown =>
    durableTool({ ...plain(), needsApproval: false }, { needsApproval }).needsApproval;
  expect([true, false, "Add?", ""].map(ruleOf)).toEqual([true, false, "Add?", true]);
  const said = async (words: string | boolean) => {
    const rule = ruleOf(() => words) as () => Promise<unknown>;
    return rule();
  };
  expect([await said("Add?"), await said(""), await said(false)]).toEqual(["Add?", true, false]);
  expect(ruleOf(undefined)).toBe(false);
});

test("the tool that was given stays as it was, and the copy is the same tool", () => {
  const before = plain();
  const fields = { ...before };
  const durable = durableTool(before, { replay: "safe" });
  expect(toolOptionsOf(before)).toEqual(DEFAULTS);
  expect({ ...before }).toEqual(fields);
  expect(Object.keys(durable)).toEqual(Object.keys(before));
  expect(durable.execute).toBe(before.execute);
  expect(durable.inputSchema).toBe(before.inputSchema);
});

test("a second call adds to the first, and undefined takes nothing away", () => {
  const durable = durableTool(durableTool(plain(), { replay: "safe", timeoutMs: 5 }), {
    timeoutMs: 9,
    replay: undefined,
  });
  expect(toolOptionsOf(durable)).toMatchObject({ replay: "safe", timeoutMs: 9 });
});

test("a tool that is an instance of a class keeps its methods", () => {
  class Counting {
    readonly inputSchema = z.object({});
    calls = 0;
    execute(): number {
      return ++this.calls;
    }
  }
  const durable = durableTool(new Counting(), { replay: "safe" });
  expect(durable).toBeInstanceOf(Counting);
  expect(durable.execute()).toBe(1);
});

test.each<[string, object]>([
  ["replay", { replay: "always" }],
  ["keep", { keep: true }],
  ["timeoutMs", { timeoutMs: 0 }],
  ["timeoutMs", { timeoutMs: Number.POSITIVE_INFINITY }],
  ["maxOutputLines", { maxOutputLines: -1 }],
  ["maxOutputChars", { maxOutputChars: Number.NaN }],
  ["maxOutputChars", { maxOutputChars: "50" }],
])("%s that cannot work is refused: %o", (name, options) => {
  expect(() => durableTool(plain(), options)).toThrow(
    expect.objectContaining({ code: "bad_config", message: expect.stringContaining(name) as string }),
  );
});

test("the inferred types stay, and execute may take the key", () => {
  const durable = durableTool(plain(), { replay: "safe" });
  expectTypeOf<InferToolInput<typeof durable>>().toEqualTypeOf<{ a: number; b: number }>();
  expectTypeOf<InferToolOutput<typeof durable>>().toEqualTypeOf<{ sum: number }>();
  const keyed = durableTool(
    tool({
      inputSchema: z.object({ to: z.string() }),
      execute: async ({ to }, { idempotencyKey, abortSignal }: DurableExecutionOptions) => {
        expectTypeOf(idempotencyKey).toEqualTypeOf<string | undefined>();
        expectTypeOf(abortSignal).toEqualTypeOf<AbortSignal | undefined>();
        return `${to} ${idempotencyKey}`;
      },
    }),
    { replay: "safe" },
  );
  expectTypeOf<InferToolInput<typeof keyed>>().toEqualTypeOf<{ to: string }>();
  expect(toolOptionsOf(keyed).replay).toBe("safe");
});
