import { convertToModelMessages, generateText } from "ai";
import type { ModelMessage } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { closeStreaming, INTERRUPTED_TEXT, repairMessage } from "./repair.ts";
import { asPart, isTerminal, toolParts } from "./types.ts";
import type { Part, ToolPart, ToolState, UIMessage } from "./types.ts";

const user = (text: string): UIMessage => ({ id: `u-${text}`, role: "user", parts: [{ type: "text", text }] });
const answer = (...parts: Part[]): UIMessage => ({ id: "a", role: "assistant", parts });
const tool = (state: ToolState, fields: Partial<ToolPart> = {}): Part =>
  asPart({ type: "tool-t", toolCallId: "c", state, input: { a: 1 }, ...fields });
const broken = (value: object): Part => value as Part;
const states: ToolState[] = [
  "input-streaming",
  "input-available",
  "approval-requested",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
];

function repairParts(parts: Part[], options?: Parameters<typeof repairMessage>[1]): Part[] {
  return repairMessage(answer(...parts), options).parts;
}

test("a conversation that needs nothing is returned as it is", () => {
  const fine = [
    user("hi"),
    answer(
      { type: "step-start" },
      { type: "text", text: "x", state: "done" },
      tool("output-available", { output: 1 }),
      tool("output-denied", { toolCallId: "d", approval: { id: "ap", approved: false } }),
    ),
    user("next"),
  ];
  for (const message of fine) expect(repairMessage(message)).toBe(message);
});

test.each<ToolState>(["input-available", "approval-requested", "approval-responded"])(
  "a call left in state %s gets an error as its result",
  (state) => {
    expect(repairParts([tool(state)])).toEqual([tool("output-error", { errorText: INTERRUPTED_TEXT })]);
    expect(repairParts([tool(state)], { interruptedText: "cut" })).toEqual([
      tool("output-error", { errorText: "cut" }),
    ]);
  },
);

test("a call that was still being written keeps what there was of its input", () => {
  expect(repairParts([tool("input-streaming", { input: undefined, rawInput: '{"city":"Par' })])).toEqual([
    tool("output-error", { input: { city: "Par" }, errorText: INTERRUPTED_TEXT }),
  ]);
  expect(repairParts([tool("input-streaming", { input: undefined })])).toEqual([
    tool("output-error", { input: {}, errorText: INTERRUPTED_TEXT }),
  ]);
});

test("a preliminary output is not a result", () => {
  expect(repairParts([tool("output-available", { output: "50 %", preliminary: true })])).toEqual([
    tool("output-error", { errorText: INTERRUPTED_TEXT }),
  ]);
});

test("a refused call is denied, an approved one keeps the approval, a question without answer goes", () => {
  const no = { id: "ap", approved: false };
  expect(repairParts([tool("approval-responded", { approval: no })])).toEqual([
    tool("output-denied", { approval: no }),
  ]);
  const yes = { id: "ap", approved: true };
  expect(repairParts([tool("approval-responded", { approval: yes })])).toEqual([
    tool("output-error", { approval: yes, errorText: INTERRUPTED_TEXT }),
  ]);
  expect(repairParts([tool("approval-requested", { approval: { id: "ap" } })])).toEqual([
    tool("output-error", { errorText: INTERRUPTED_TEXT }),
  ]);
});

test("inputs that are no objects are put right, also of ended calls; text tools keep their text", () => {
  for (const input of [null, "", "x", [1], undefined])
    expect(repairParts([tool("output-available", { input, output: 1 })])).toEqual([
      tool("output-available", { input: {}, output: 1 }),
    ]);
  expect(repairParts([tool("output-error", { input: '{"a":2}', errorText: "x" })])).toEqual([
    tool("output-error", { input: { a: 2 }, errorText: "x" }),
  ]);
  const text = tool("output-available", { input: "print(1)", inputEncoding: "text", output: 1 });
  expect(repairParts([text])[0]).toBe(text);
});

test("the app may end a call in its own way; a bad end falls back", () => {
  const part = tool("input-available");
  const own = repairParts([part], {
    repairInterruptedToolPart: (call) => ({ ...call, state: "output-available", output: "from the app" }),
  });
  expect(own).toEqual([tool("output-available", { output: "from the app" })]);
  const fallback = [tool("output-error", { errorText: INTERRUPTED_TEXT })];
  expect(repairParts([part], { repairInterruptedToolPart: (call) => call })).toEqual(fallback);
  expect(repairParts([part], { repairInterruptedToolPart: () => undefined })).toEqual(fallback);
  expect(
    repairParts([part], {
      repairInterruptedToolPart: (call) => ({ ...call, toolCallId: "other", state: "output-denied" }),
    }),
  ).toEqual(fallback);
  const throws = () => {
    throw new Error("no");
  };
  expect(repairParts([part], { repairInterruptedToolPart: throws })).toEqual(fallback);
});

test("what waits for an answer can be kept", () => {
  const parts = [
    tool("input-available"),
    tool("approval-requested", { toolCallId: "d", approval: { id: "ap" } }),
    tool("approval-responded", { toolCallId: "e", approval: { id: "ap2", approved: true } }),
  ];
  const waiting = answer(...parts);
  expect(repairMessage(waiting, { keepPending: true })).toBe(waiting);
  expect(repairParts(parts).map((part) => "state" in part && part.state)).toEqual(Array(3).fill("output-error"));
  expect(repairParts([tool("input-streaming")], { keepPending: true })[0]).toMatchObject({ state: "output-error" });
});

test("open texts are closed", () => {
  const open = answer(
    { type: "text", text: "a", state: "streaming" },
    { type: "reasoning", text: "b", state: "streaming" },
    tool("input-available"),
  );
  expect(repairMessage(open).parts.slice(0, 2)).toEqual([
    { type: "text", text: "a", state: "done" },
    { type: "reasoning", text: "b", state: "done" },
  ]);
  expect(closeStreaming(open).parts).toEqual([...repairMessage(open).parts.slice(0, 2), tool("input-available")]);
  const closed = answer({ type: "text", text: "a" });
  expect(closeStreaming(closed)).toBe(closed);
});

test("what can be neither sent nor answered is left out", () => {
  expect(
    repairParts([
      broken({ type: "tool-t", state: "output-available" }),
      broken({ type: "tool-t", toolCallId: "c", state: "odd" }),
      broken({ type: "dynamic-tool", toolCallId: "c", state: "output-denied" }),
      broken({ type: "text" }),
      broken({ type: "reasoning-file", url: "::" }),
    ]),
  ).toEqual([]);
  expect(repairParts([broken({ type: "file", mediaType: "a/b", url: "not a url", filename: "f" })])).toEqual([
    { type: "text", text: "[The file f cannot be read.]", state: "done" },
  ]);
  const inner = { type: "text" as const, text: "wait" };
  expect(
    repairParts([broken({ type: "steering-message", id: "s", parts: [inner, null, { type: "file", url: 5 }] })]),
  ).toEqual([{ type: "steering-message", id: "s", parts: [inner] }]);
});

test("of a call that a step has twice, the one with a result is kept", () => {
  const done = tool("output-available", { output: 1 });
  expect(repairParts([tool("input-available"), done, tool("output-error", { errorText: "x" })])).toEqual([done]);
  expect(repairParts([done, { type: "step-start" }, done])).toEqual([done, { type: "step-start" }, done]);
});

// The property that counts: whatever was stored, the next request can be made.

let seed = 42;
function random(count: number): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
  return (seed >>> 8) % count;
}
function pick<T>(options: readonly T[]): T {
  return options[random(options.length)] as T;
}

function randomPart(): Part {
  const kind = random(10);
  if (kind < 5) {
    return broken({
      type: pick(["tool-t", "tool-u", "dynamic-tool", "tool-"]),
      toolName: pick(["d", undefined]),
      toolCallId: pick(["c1", "c2", "c3", "c4", undefined]),
      state: pick([...states, "unknown"]),
      input: pick<unknown>([{}, { a: 1 }, null, "x", '{"b":2}', [1], undefined]),
      output: pick<unknown>([undefined, "text", { ok: true }, null]),
      errorText: pick([undefined, "failed"]),
      preliminary: pick([undefined, true, false]),
      providerExecuted: pick([undefined, false, true]),
      approval: pick([
        undefined,
        { id: `ap${random(1e6)}` },
        { id: `ap${random(1e6)}`, approved: true },
        { id: `ap${random(1e6)}`, approved: false },
      ]),
    });
  }
  return pick<Part>([
    { type: "step-start" },
    { type: "text", text: "words", state: "streaming" },
    { type: "reasoning", text: "hm", state: "done" },
    { type: "file", mediaType: "text/plain", url: "data:text/plain,x" },
    broken({ type: "file", mediaType: "text/plain", url: "relative/path" }),
    broken({ type: "text", text: 5 }),
    broken({ type: "from-the-future" }),
    { type: "data-x", data: 1 },
    { type: "source-url", sourceId: "s", url: "https://x.test" },
    { type: "steering-message", id: "s", parts: [{ type: "text", text: "wait" }] },
  ]);
}

function randomTranscript(): UIMessage[] {
  const messages: UIMessage[] = [];
  for (let turn = 0; turn <= random(4); turn++) {
    messages.push(user(`turn ${turn}`));
    messages.push({ id: `a${turn}`, role: "assistant", parts: Array.from({ length: random(8) }, randomPart) });
  }
  return random(2) === 0 ? messages : [...messages, user("last")];
}

/** Calls without a result, and results without a call. A provider's own call may end with an answer to its question. */
function orphans(messages: ModelMessage[]): string[] {
  const open: string[] = [];
  const bad: string[] = [];
  const asked = new Map<string, string>();
  for (const message of messages) {
    if (message.role === "user") bad.push(...open.splice(0));
    if (typeof message.content === "string") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") open.push(part.toolCallId);
      if (part.type === "tool-approval-request") asked.set(part.approvalId, part.toolCallId);
      if (part.type === "tool-approval-response" && part.providerExecuted === true && !part.approved) {
        const at = open.indexOf(asked.get(part.approvalId) ?? "");
        if (at >= 0) open.splice(at, 1);
      }
      if (part.type !== "tool-result") continue;
      const at = open.indexOf(part.toolCallId);
      if (at < 0) bad.push(part.toolCallId);
      else open.splice(at, 1);
    }
  }
  return [...bad, ...open];
}

test("after repair every transcript can be sent, and repairing again changes nothing", async () => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const model = new MockLanguageModelV4({
    doGenerate: async () => ({
      content: [{ type: "text", text: "ok" }],
      finishReason: { unified: "stop", raw: "stop" },
      usage,
      warnings: [],
    }),
  });
  for (let round = 0; round < 300; round++) {
    const before = randomTranscript();
    const copy = structuredClone(before);
    const repaired = before.map((message) => repairMessage(message));
    expect(before).toEqual(copy);
    for (const message of repaired) expect(repairMessage(message)).toBe(message);
    expect(repaired.flatMap(toolParts).every(isTerminal)).toBe(true);
    const messages = await convertToModelMessages(repaired);
    expect(orphans(messages), JSON.stringify(before)).toEqual([]);
    expect((await generateText({ model, messages })).text, JSON.stringify(before)).toBe("ok");
  }
});

test("without repair the same transcripts cannot be sent, so the check above can fail", async () => {
  const messages = await convertToModelMessages([user("hi"), answer(tool("input-available")), user("next")]);
  expect(orphans(messages)).toEqual(["c"]);
});
