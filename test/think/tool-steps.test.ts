import { jsonSchema, tool, type ToolSet } from "ai";
import { type DurableExecutionOptions, durableTool, runStep, type ToolStep, type ToolStepContext } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { createExecuteTool, park } from "perdure/tools";
import { expect, test } from "vitest";
import { INTERRUPTED_TEXT } from "../../src/message/repair.ts";
import { toolParts } from "../../src/message/types.ts";
import { until } from "../support/until.ts";
import { openThink } from "./harness.ts";

const callThenSay: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "work", input: {}, toolCallId: "c1" }] } : "done";
const inputSchema = jsonSchema<object>({ type: "object" });
type Execute = (options: DurableExecutionOptions & { readonly step: ToolStep }) => unknown;

/** An agent with one tool, which is given `step`. */
async function working(execute: Execute, wrap: (tools: ToolSet) => ToolSet = (tools) => tools, script = callThenSay) {
  const model = scriptedModel(script);
  const work = tool({
    inputSchema,
    execute: (_input, options: DurableExecutionOptions) => execute({ step: runStep, ...options }) as Promise<unknown>,
  });
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          return wrap({ work });
        }
      },
  );
  const part = async () => toolParts((await kit.last()) ?? { id: "", role: "assistant", parts: [] })[0];
  return Object.assign(kit, { part, steps: () => kit.rows("SELECT * FROM perdure_tool_step") });
}

test("a tool that was cut goes on behind its last step; the step that was cut runs again under its key", async () => {
  const ran: string[] = [];
  const keys: string[] = [];
  const kit = await working(async ({ step }) => {
    ran.push("begin");
    const fetched = await step("fetch", () => (ran.push("fetch"), { at: new Date(0), rows: 2 }));
    const charged = await step("charge", ({ idempotencyKey }: ToolStepContext) => {
      ran.push("charge");
      keys.push(idempotencyKey);
      return ran.filter((one) => one === "charge").length === 1 ? new Promise<string>(() => {}) : "charged";
    });
    return [fetched, charged, await step("nothing", () => void ran.push("nothing"))];
  });
  void kit.ask("Work.").catch(() => {});
  await until(() => ran.includes("charge"));
  expect(await kit.steps()).toMatchObject([{ tool_call_id: "c1", name: "fetch" }]);
  await kit.nextLife();
  await kit.stable();
  expect(ran).toEqual(["begin", "fetch", "charge", "begin", "charge", "nothing"]);
  const id = (await kit.last())?.id;
  expect(keys).toEqual([`${id}:c1#charge`, `${id}:c1#charge`]);
  expect(await kit.part()).toMatchObject({
    state: "output-available",
    output: [{ at: "1970-01-01T00:00:00.000Z", rows: 2 }, "charged", null],
  });
  expect(await kit.steps()).toEqual([]);
});

test("a tool that was cut before its first step is interrupted, as any that says nothing", async () => {
  let runs = 0;
  const kit = await working(async ({ step }) => {
    runs++;
    await new Promise<void>(() => {});
    return step("never", () => 1);
  });
  void kit.ask("Work.").catch(() => {});
  await until(() => runs === 1);
  await kit.nextLife();
  await kit.stable();
  expect(runs).toBe(1);
  expect(await kit.part()).toMatchObject({ state: "output-error", errorText: INTERRUPTED_TEXT });
});

test("what a step returns is JSON the first time too, and nothing stays nothing", async () => {
  const seen: unknown[] = [];
  const kit = await working(async ({ step }) => {
    seen.push(await step("map", () => new Map([["a", 1n]])));
    seen.push(await step("nothing", () => undefined));
    seen.push(await step("null", () => null));
  });
  await kit.ask("Work.");
  expect(seen).toEqual([{ a: "1" }, undefined, null]);
});

test.each<[string, (step: ToolStep) => Promise<unknown>, string]>([
  ["a name that is used twice", (step) => step("a", () => 1).then(() => step("a", () => 2)), '"a" was already used'],
  ["a name used twice side by side", (step) => Promise.all([step("a", () => 1), step("a", () => 2)]), "already used"],
  ["an empty name", (step) => step("", () => 1), "The name of a step must be a string"],
  ["a name that is none", (step) => step(7 as never, () => 1), "The name of a step must be a string"],
  ["too large a result", (step) => step("a", () => "x".repeat(300_000)), "Write it to a file"],
  ["a result that is no JSON", (step) => step("a", () => () => 1), "cannot be written as JSON"],
])("%s is refused with words", async (_name, use, words) => {
  const kit = await working(({ step }) => use(step));
  await kit.ask("Work.");
  expect(await kit.part()).toMatchObject({
    state: "output-error",
    errorText: expect.stringContaining(words) as string,
  });
  expect(await kit.steps()).toEqual([]);
});

test("a step that failed may be tried again under its name", async () => {
  let tries = 0;
  const kit = await working(async ({ step }) => {
    const flaky = () => {
      if (++tries < 3) throw new Error("busy");
      return tries;
    };
    for (;;) {
      const value = await step("flaky", flaky).catch(() => undefined);
      if (value !== undefined) return value;
    }
  });
  await kit.ask("Work.");
  expect(await kit.part()).toMatchObject({ output: 3 });
});

test("a step that begins or ends after its call is refused, and nothing of it is stored", async () => {
  const [late, slow] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
  const ran: string[] = [];
  const refused: unknown[] = [];
  const kit = await working(({ step }) => {
    const inTime = step("slow", () => slow.promise);
    void inTime.catch((error: unknown) => refused.push(String(error)));
    void late.promise
      .then(() => step("late", () => ran.push("late")))
      .catch((error: unknown) => refused.push(String(error)));
    return "at once";
  });
  await kit.ask("Work.");
  slow.resolve();
  late.resolve("go");
  await until(() => refused.length === 2);
  expect(refused).toEqual([
    expect.stringContaining('The step "slow" was not stored: its call'),
    expect.stringContaining('The step "late" was not stored: its call'),
  ]);
  expect(ran).toEqual([]);
  expect(await kit.steps()).toEqual([]);
});

test("a tool that was stopped begins no further step", async () => {
  const ran: string[] = [];
  const ended = Promise.withResolvers<unknown>();
  const kit = await working(async ({ step }) => {
    await step("first", ({ signal }) => {
      ran.push("first");
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    }).catch(() => {});
    await step("second", () => ran.push("second")).catch((error: unknown) => ended.resolve(error));
  });
  const asking = kit.ask("Work.");
  await until(() => ran.length === 1);
  (await kit.agent()).abortAllRequests();
  expect(await asking).toMatchObject({ status: "aborted" });
  await ended.promise;
  expect(ran).toEqual(["first"]);
  expect(await kit.steps()).toEqual([]);
});

test("a call that parks keeps its steps until a person has answered", async () => {
  const ran: string[] = [];
  const kit = await working(async ({ step, resumed }) => {
    const quote = await step("quote", () => (ran.push("quote"), 42));
    if (resumed === undefined) return park({ tool: "book", input: {}, state: new Uint8Array() });
    return `booked for ${quote}`;
  });
  await kit.ask("Work.");
  await kit.nextLife();
  (await kit.agent()).answerApproval("c1", true);
  await kit.stable();
  expect(await kit.part()).toMatchObject({ output: "booked for 42" });
  expect(ran).toEqual(["quote"]);
});

test("steps go with the conversation, also while their call runs", async () => {
  let began = false;
  const kit = await working(async ({ step }) => {
    await step("one", () => 1);
    began = true;
    await new Promise<void>(() => {});
  });
  void kit.ask("Work.").catch(() => {});
  await until(() => began);
  expect(await kit.steps()).toHaveLength(1);
  const client = await kit.connect();
  client.clear();
  await client.flushed();
  expect(await kit.steps()).toEqual([]);
});

test("inside of another call, and where another engine runs the tool, steps run and nothing is stored", async () => {
  const keys: string[] = [];
  const kit = await working(
    ({ step }) => step("inner", ({ idempotencyKey }) => (keys.push(idempotencyKey), "in")),
    ({ work }) => ({ work: createExecuteTool({ tools: { inner: work } as ToolSet }) }),
    ({ step }) =>
      step === 0
        ? { toolCalls: [{ toolName: "work", input: { code: "return await tools.inner({})" }, toolCallId: "c1" }] }
        : "done",
  );
  await kit.ask("Work.");
  expect(JSON.stringify(await kit.part())).toContain('"in"');
  expect(keys).toEqual([`${(await kit.last())?.id}:c1/0#inner`]);
  expect(await runStep("any", () => 5)).toBe(5);
});

test("a tool with steps keeps what durableTool says of it", async () => {
  const kit = await working(
    async ({ step, abortSignal }) => {
      await step("quick", () => 1);
      await new Promise((resolve) => abortSignal?.addEventListener("abort", resolve));
    },
    ({ work }) => ({ work: durableTool(work as never, { timeoutMs: 20 }) }),
  );
  await kit.ask("Work.");
  expect(await kit.part()).toMatchObject({
    errorText: expect.stringContaining("did not finish within 20 ms") as string,
  });
  expect(await kit.steps()).toEqual([]);
});

test("steps of two calls never have the same key, whatever their ids and names are", async () => {
  const keys: string[] = [];
  const kit = await working(
    ({ step, toolCallId }) => {
      const name = toolCallId === "c1" ? "a#b" : "b";
      return step(name, ({ idempotencyKey }) => void keys.push(idempotencyKey));
    },
    undefined,
    ({ step }) =>
      step === 0
        ? { toolCalls: ["c1", "c1#a"].map((toolCallId) => ({ toolName: "work", input: {}, toolCallId })) }
        : "done",
  );
  await kit.ask("Work.");
  expect(new Set(keys).size).toBe(2);
});
