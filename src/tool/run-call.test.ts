import { jsonSchema, type ModelMessage, type Tool, tool } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { PerdureError } from "../base/error.ts";
import { type ManualClock, manualClock } from "perdure/testing";
import { durableTool } from "./define.ts";
import { type CallContext, type CallOutcome, checkInput, runCall, type RunCallOptions } from "./runner.ts";
import type { ToolStep } from "./step.ts";

const messages: ModelMessage[] = [{ role: "user", content: "hi" }];

interface Stage {
  readonly clock: ManualClock;
  readonly abort: AbortController;
  readonly shown: unknown[];
  readonly kept: string[];
  run(tool: Tool, input?: unknown, options?: RunCallOptions, over?: Partial<CallContext>): Promise<CallOutcome>;
}

function stage(): Stage {
  const clock = manualClock();
  const abort = new AbortController();
  const shown: unknown[] = [];
  const kept: string[] = [];
  const context: CallContext = {
    messages,
    abortSignal: abort.signal,
    idempotencyKey: "key-1",
    clock,
    runtimeContext: { user: "ada" },
    progress: (output) => void shown.push(output),
    keep: async (text) => `kept-${kept.push(text) - 1}`,
  };
  return {
    clock,
    abort,
    shown,
    kept,
    run: (given, input = {}, options, over) =>
      runCall(given, { toolCallId: "c1", toolName: "t", input }, { ...context, ...over }, options),
  };
}

/** A tool with any `execute`, as JavaScript would pass it. */
function toolOf(execute: (input: unknown, options: { abortSignal?: AbortSignal }) => unknown): Tool {
  return tool({
    inputSchema: jsonSchema<unknown>({ type: "object" }),
    execute: (input, options) => execute(input, options),
  });
}

const never = () => new Promise<never>(() => {});
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("the tool gets its input and everything that belongs to the call", async () => {
  const at = stage();
  let given: unknown[] = [];
  const outcome = await at.run(
    toolOf((...args) => {
      given = args;
      return { ok: true };
    }),
    { a: 1 },
  );
  expect(outcome).toEqual({ kind: "output", output: { ok: true } });
  expect(given).toEqual([
    { a: 1 },
    {
      toolCallId: "c1",
      messages,
      abortSignal: expect.any(AbortSignal) as AbortSignal,
      idempotencyKey: "key-1",
      step: expect.any(Function) as ToolStep,
      context: { user: "ada" },
      experimental_context: { user: "ada" },
    },
  ]);
  expect((given[1] as { abortSignal: AbortSignal }).abortSignal).not.toBe(at.abort.signal);
  expect(at.clock.pending()).toBe(0);
});

test.each<[string, (value: unknown) => unknown]>([
  ["returned", (value) => value],
  ["promised", async (value) => value],
])("a value that is %s is the output", async (_name, give) => {
  expect(await stage().run(toolOf(() => give("x")))).toEqual({ kind: "output", output: "x" });
  expect(await stage().run(toolOf(() => give(undefined)))).toEqual({ kind: "output", output: null });
});

test("each value of a stream is progress and the last is the output, as in the AI SDK", async () => {
  async function* count() {
    yield { n: 1 };
    await Promise.resolve();
    yield { n: 2 };
    yield { n: 3 };
  }
  for (const start of [() => count(), async () => count()]) {
    const at = stage();
    expect(await at.run(toolOf(start))).toEqual({ kind: "output", output: { n: 3 } });
    expect(at.shown).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  }
  const at = stage();
  expect(await at.run(toolOf(async function* () {}))).toEqual({ kind: "output", output: null });
  expect(at.shown).toEqual([]);
});

test("a stream that fails is an error, whatever it had shown", async () => {
  const at = stage();
  const outcome = await at.run(
    toolOf(async function* () {
      yield 1;
      throw new Error("half way");
    }),
  );
  expect(outcome).toEqual({ kind: "error", errorText: "half way", error: new Error("half way") });
  expect(at.shown).toEqual([1]);
});

test("previews are snapshots within the limits, and one that cannot be shown costs nothing", async () => {
  const at = stage();
  const long = "x".repeat(60_000);
  const outcome = await at.run(
    toolOf(async function* () {
      const list: unknown[] = [1];
      yield list;
      list.push(2);
      yield list;
      yield () => "not JSON";
      yield long;
    }),
  );
  expect(at.shown.slice(0, 2)).toEqual([[1], [1, 2]]);
  expect(at.shown[2]).toContain("left out");
  expect(at.shown).toHaveLength(3);
  expect(outcome).toMatchObject({ kind: "output", output: expect.stringContaining("kept-0") as string });
  const deaf = await at.run(
    toolOf(async function* () {
      yield 1;
    }),
    {},
    {},
    {
      progress() {
        throw new Error("gone");
      },
    },
  );
  expect(deaf).toEqual({ kind: "output", output: 1 });
});

class Broken extends Error {
  override get message(): string {
    throw new Error("again");
  }
}

test.each<[string, unknown, string]>([
  ["an error", new TypeError("no such file"), "no such file"],
  ["an error without words", new RangeError(), "RangeError"],
  ["a text", "plain", "plain"],
  ["an error of another realm", { name: "Error", message: "from the sandbox", stack: "at x" }, "from the sandbox"],
  ["nothing", undefined, "Unknown error occurred"],
  ["a number", 7, "Unknown error occurred"],
  ["an error that throws", new Broken(), "Unknown error occurred"],
])("what a tool throws is its message and no stack, and itself for hooks: %s", async (_name, thrown, errorText) => {
  const throwing = toolOf(() => {
    throw thrown;
  });
  const rejecting = toolOf(() => Promise.reject(thrown as Error));
  for (const bad of [throwing, rejecting]) {
    const outcome = await stage().run(bad);
    expect(outcome).toMatchObject({ kind: "error", errorText });
    expect("error" in outcome && outcome.error).toBe(thrown);
  }
});

test("a long message is cut", async () => {
  const outcome = await stage().run(toolOf(() => Promise.reject(new Error("e".repeat(100_000)))));
  if (outcome.kind !== "error") throw new Error("It must fail.");
  expect(outcome.errorText.length).toBeLessThan(6_000);
  expect(outcome.errorText).toContain("100000 characters in all");
});

test("a tool that cannot run here says so", async () => {
  const asked = tool({ inputSchema: z.object({}), outputSchema: z.string() });
  expect(await stage().run(asked)).toEqual({
    kind: "error",
    errorText: 'The tool "t" cannot be run here: it has no execute.',
    error: expect.any(PerdureError) as PerdureError,
  });
});

test("after its timeout the call fails, its signal aborts, and a late result is ignored", async () => {
  const at = stage();
  const late = Promise.withResolvers<string>();
  let signal: AbortSignal | undefined;
  const slow = durableTool(
    toolOf((_input, options) => {
      signal = options.abortSignal;
      return late.promise;
    }),
    { timeoutMs: 5_000 },
  );
  const outcome = at.run(slow);
  let done = false;
  void outcome.then(() => (done = true));
  await at.clock.advance(4_999);
  expect([done, signal?.aborted]).toEqual([false, false]);
  await at.clock.advance(1);
  expect(await outcome).toEqual({
    kind: "error",
    errorText: 'The tool "t" did not finish within 5000 ms and was stopped.',
    error: expect.any(PerdureError) as PerdureError,
  });
  expect(signal?.aborted).toBe(true);
  expect(PerdureError.is(signal?.reason, "timeout")).toBe(true);
  late.reject(new Error("too late"));
  await settled();
});

test("a call that ends in time leaves no timer and no listener, and its signal is never aborted", async () => {
  const at = stage();
  let signal: AbortSignal | undefined;
  await at.run(
    durableTool(
      toolOf((_input, options) => void (signal = options.abortSignal)),
      { timeoutMs: 10 },
    ),
  );
  expect(at.clock.pending()).toBe(0);
  at.abort.abort();
  await at.clock.advance(100);
  expect(signal?.aborted).toBe(false);
});

test("an abort of the turn ends the call at once, also when the tool does not listen", async () => {
  const at = stage();
  let signal: AbortSignal | undefined;
  const reason = new Error("stop");
  const outcome = at.run(
    toolOf((_input, options) => {
      signal = options.abortSignal;
      return never();
    }),
  );
  await settled();
  at.abort.abort(reason);
  expect(await outcome).toEqual({ kind: "aborted" });
  expect(signal?.reason).toBe(reason);
});

test("a tool that listens and throws is aborted, not failed", async () => {
  const at = stage();
  const outcome = at.run(
    toolOf(
      (_input, { abortSignal }) =>
        new Promise((_resolve, reject) => {
          abortSignal?.addEventListener("abort", () => reject(new Error("I was aborted")));
        }),
    ),
  );
  await settled();
  at.abort.abort();
  expect(await outcome).toEqual({ kind: "aborted" });
});

test("what a stopped stream yields is not shown, and it may clean up", async () => {
  const at = stage();
  const gate = Promise.withResolvers<void>();
  let cleaned = false;
  const outcome = at.run(
    toolOf(async function* () {
      try {
        yield 1;
        await gate.promise;
        yield 2;
        yield 3;
      } finally {
        cleaned = true;
      }
    }),
  );
  await settled();
  at.abort.abort();
  expect(await outcome).toEqual({ kind: "aborted" });
  gate.resolve();
  await settled();
  expect(at.shown).toEqual([1]);
  expect(cleaned).toBe(true);
});

test("in a turn that was stopped, nothing starts", async () => {
  const at = stage();
  let ran = 0;
  const counting = toolOf(() => ++ran);
  at.abort.abort();
  expect(await at.run(counting)).toEqual({ kind: "aborted" });
  const slowSchema = stage();
  const checking = slowSchema.run(
    Object.assign(
      toolOf(() => ++ran),
      { contextSchema: z.object({}) },
    ),
  );
  slowSchema.abort.abort();
  expect(await checking).toEqual({ kind: "aborted" });
  await settled();
  expect(ran).toBe(0);
});

test("a stored input is checked again only when asked, and the schema's transforms apply", async () => {
  const changed = tool({
    inputSchema: z.object({ to: z.string().transform((text) => text.toUpperCase()) }),
    execute: ({ to }) => to,
  });
  expect(await stage().run(changed, { to: "ada" })).toEqual({ kind: "output", output: "ada" });
  expect(await checkInput(changed, "t", { to: "ada" })).toEqual({ to: "ADA" });
  await expect(checkInput(changed, "t", { recipient: "ada" })).rejects.toThrow(
    /^The input of "t" does not fit its schema: [\s\S]*"to"/,
  );
});

test("a declared context is checked as in the AI SDK", async () => {
  const scoped = tool({
    inputSchema: z.object({}),
    contextSchema: z.object({ user: z.string() }),
    execute: (_input, { context }) => context.user,
  });
  expect(await stage().run(scoped)).toEqual({ kind: "output", output: "ada" });
  expect(await stage().run(scoped, {}, {}, { runtimeContext: {} })).toMatchObject({
    kind: "error",
    errorText: expect.stringContaining('The context of "t"') as string,
  });
});

test("outputs become plain JSON, or a clear error", async () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  expect(await stage().run(toolOf(() => ({ n: 1n, at: new Date(0), gone: undefined })))).toEqual({
    kind: "output",
    output: { n: "1", at: "1970-01-01T00:00:00.000Z" },
  });
  for (const bad of [cycle, () => 1, Symbol("s")]) {
    expect(await stage().run(toolOf(() => bad))).toEqual({
      kind: "error",
      errorText: expect.stringContaining('The output of "t" cannot be written as JSON') as string,
      error: expect.any(PerdureError) as PerdureError,
    });
  }
});

test("a long output is bounded by the tool's own limits and kept whole", async () => {
  const at = stage();
  const talkative = durableTool(
    toolOf(() => "one\ntwo\nthree\nfour\nfive"),
    { maxOutputLines: 3 },
  );
  expect(await at.run(talkative)).toMatchObject({
    output: "one\n[… 15 characters (3 lines) left out; the whole text is in kept-0 …]\nfive",
  });
  expect(at.kept).toEqual(["one\ntwo\nthree\nfour\nfive"]);
});

test("a stop while the whole is being kept takes the name, not the output", async () => {
  const at = stage();
  const outcome = at.run(
    toolOf(() => "x".repeat(60_000)),
    {},
    {},
    { keep: never },
  );
  await settled();
  at.abort.abort();
  expect(await outcome).toMatchObject({
    kind: "output",
    output: expect.stringContaining("the rest was not kept") as string,
  });
});

test("failing to keep does not fail the call", async () => {
  const outcome = await stage().run(
    toolOf(() => "x".repeat(60_000)),
    {},
    {},
    {
      keep: () => Promise.reject(new Error("disk full")),
    },
  );
  expect(outcome).toMatchObject({ kind: "output" });
});
