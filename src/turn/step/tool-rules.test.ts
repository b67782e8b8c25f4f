import { jsonSchema, type ModelMessage, type Tool, tool, type ToolApprovalStatus } from "ai";
import { expect, test } from "vitest";
import { ToolRunner } from "../../tool/runner.ts";
import type { TurnConfig } from "./config.ts";
import { rulesOf } from "./tool-rules.ts";

const call = { toolCallId: "c1", toolName: "pay", input: { amount: 5 } };
const messages: ModelMessage[] = [{ role: "user", content: "Pay." }];
const context = { user: "u" };
const ASK = { kind: "ask", reason: undefined };
const FREE = { kind: "run", input: call.input };

function pay(needs?: unknown): Tool {
  const made = tool({ inputSchema: jsonSchema<{ amount: number }>({ type: "object" }), execute: () => "paid" });
  return needs === undefined ? made : Object.assign(made, { needsApproval: needs });
}

function judge(toolApproval: TurnConfig["toolApproval"], own: Tool, toolName = call.toolName) {
  const run = {
    turn: { tools: { pay: own }, config: { toolApproval } },
    ...{ context, called: 1, signal: new AbortController().signal, active: {} },
    parts: { host: {} },
    asked: { policy: {}, silent: {}, failed: () => {} },
  } as unknown as Parameters<typeof rulesOf>[0];
  return new ToolRunner(rulesOf(run)).judge({ ...call, toolName, tool: own }, messages, false);
}

test("a tool that asks for nothing is free", async () => {
  expect(await judge(undefined, pay())).toEqual(FREE);
  expect(await judge({}, pay(false))).toEqual(FREE);
});

test("a tool's own wish is asked for, with the input and what was said", async () => {
  expect(await judge(undefined, pay(true))).toEqual(ASK);
  const asked: unknown[] = [];
  const own = (...args: unknown[]) => {
    asked.push(args);
    return Promise.resolve(true);
  };
  expect(await judge(undefined, pay(own))).toEqual(ASK);
  expect(asked).toEqual([[{ amount: 5 }, { toolCallId: "c1", messages, context, experimental_context: context }]]);
});

test.each([
  ["approved", FREE],
  ["denied", { kind: "refuse", reason: undefined }],
  ["user-approval", ASK],
  [{ type: "approved" }, FREE],
  [
    { type: "denied", reason: "Too much." },
    { kind: "refuse", reason: "Too much." },
  ],
  [
    { type: "user-approval", reason: "Is it yours?" },
    { kind: "ask", reason: "Is it yours?" },
  ],
] as const)("the turn's word %j goes before the tool's", async (status, need) => {
  for (const own of [pay(true), pay()]) {
    expect(await judge({ pay: status }, own)).toEqual(need);
    expect(await judge({ pay: () => Promise.resolve(status) }, own)).toEqual(need);
    expect(await judge(() => status, own)).toEqual(need);
  }
});

test.each([undefined, null, "not-applicable", { type: "not-applicable" }])(
  "where the turn says %j, the tool has the word",
  async (said) => {
    const status = said as ToolApprovalStatus;
    for (const [own, need] of [
      [pay(true), ASK],
      [pay(), FREE],
    ] as const) {
      expect(await judge({ pay: status }, own)).toEqual(need);
      expect(await judge({ pay: () => status }, own)).toEqual(need);
      expect(await judge(() => status, own)).toEqual(need);
    }
  },
);

test("the turn's functions see the call", async () => {
  const seen: unknown[] = [];
  await judge({ pay: (...args) => void seen.push(args) }, pay());
  expect(seen).toMatchObject([[{ amount: 5 }, { toolCallId: "c1", messages, runtimeContext: context }]]);
  seen.length = 0;
  await judge((options) => void seen.push(options), pay());
  expect(seen).toMatchObject([
    {
      toolCall: { type: "tool-call", toolCallId: "c1", toolName: "pay", input: { amount: 5 } },
      messages,
      runtimeContext: context,
    },
  ]);
});

test("a tool is looked up by its own name only", async () => {
  expect(await judge({ pay: "approved" }, pay(true), "constructor")).toEqual(ASK);
});

test("what is not a no is a wish to ask", async () => {
  expect(
    await judge(
      undefined,
      pay(() => 1),
    ),
  ).toEqual(ASK);
  expect(
    await judge(
      undefined,
      pay(() => null),
    ),
  ).toEqual(ASK);
});

test("a text is the question; an empty one asks without words", async () => {
  const asked = (words: string) =>
    judge(
      undefined,
      pay(() => words),
    );
  expect(await asked("Pay?")).toEqual({ ...ASK, reason: "Pay?", summary: "Pay?" });
  expect(await asked(" ")).toEqual(ASK);
  expect(await asked("")).toEqual(ASK);
});

test("a call that cannot be judged does not run", async () => {
  const fail = () => Promise.reject(new Error("no rules"));
  await expect(judge(undefined, pay(fail))).rejects.toThrow("no rules");
  await expect(judge({ pay: fail }, pay())).rejects.toThrow("no rules");
  await expect(judge(fail, pay())).rejects.toThrow("no rules");
});
