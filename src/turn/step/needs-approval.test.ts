import { jsonSchema, type ModelMessage, type Tool, tool, type ToolApprovalStatus } from "ai";
import { expect, test } from "vitest";
import type { ToolPart } from "../../message/types.ts";
import type { TurnConfig } from "./config.ts";
import { needsApproval } from "./needs-approval.ts";
import type { PreparedTurn } from "./plan.ts";

const part: ToolPart = { type: "tool-pay", toolCallId: "c1", state: "input-available", input: { amount: 5 } };
const messages: ModelMessage[] = [{ role: "user", content: "Pay." }];
const context = { user: "u" };
const ASK = { denied: false, reason: undefined };

function pay(needs?: unknown): Tool {
  const made = tool({ inputSchema: jsonSchema<{ amount: number }>({ type: "object" }), execute: () => "paid" });
  return needs === undefined ? made : Object.assign(made, { needsApproval: needs });
}

function judge(toolApproval: TurnConfig["toolApproval"], own: Tool, call = part) {
  const config: TurnConfig = toolApproval === undefined ? {} : { toolApproval };
  const turn: PreparedTurn = {
    models: [],
    instructions: undefined,
    tools: { pay: own },
    messages: undefined,
    maxSteps: 1,
    stopWhen: [],
    sendReasoning: true,
    config,
  };
  const desk = { hooks: { failed: () => {} } };
  return needsApproval({ turn, context, options: {}, desk }, call, own, messages);
}

test("a tool that asks for nothing is free", async () => {
  expect(await judge(undefined, pay())).toBe("free");
  expect(await judge({}, pay(false))).toBe("free");
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
  ["approved", "free"],
  ["denied", { denied: true, reason: undefined }],
  ["user-approval", ASK],
  [{ type: "approved" }, "free"],
  [
    { type: "denied", reason: "Too much." },
    { denied: true, reason: "Too much." },
  ],
  [
    { type: "user-approval", reason: "Is it yours?" },
    { denied: false, reason: "Is it yours?" },
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
      [pay(), "free"],
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
  const odd: ToolPart = { ...part, type: "tool-constructor" };
  expect(await judge({ pay: "approved" }, pay(true), odd)).toEqual(ASK);
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
