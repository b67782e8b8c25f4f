import { expect, test } from "vitest";
import { takeChunk } from "./admit.ts";
import { newBuilder, toMessage } from "./builder.ts";
import {
  applyToolApproval,
  applyToolApprovalLive,
  applyToolResult,
  applyToolResultLive,
  batchState,
  DENIED_TEXT,
} from "./tool-answer.ts";
import { asPart } from "./types.ts";
import type { Part, ToolPart, ToolState, UIMessage } from "./types.ts";

const tool = (state: ToolState, fields: Partial<ToolPart> = {}): Part =>
  asPart({ type: "tool-t", toolCallId: "c", state, input: { a: 1 }, ...fields });
const message = (...parts: Part[]): UIMessage => ({
  id: "a",
  role: "assistant",
  parts: [{ type: "text", text: "x" }, ...parts],
});
const states: ToolState[] = [
  "input-streaming",
  "input-available",
  "approval-requested",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
];

const waiting: ToolState[] = ["input-available", "approval-requested", "approval-responded"];
const unasked: ToolState[] = ["input-available", "approval-requested"];

test.each(waiting)("a result is taken by a call in state %s", (state) => {
  const before = message(tool(state));
  const after = applyToolResult(before, { toolCallId: "c", output: { lat: 1 } });
  expect(after.changed).toBe(true);
  expect(after.message.parts[1]).toEqual(tool("output-available", { output: { lat: 1 }, preliminary: false }));
  expect(before).toEqual(message(tool(state)));
});

test.each(states.filter((state) => !waiting.includes(state)))("a result is ignored by a call in state %s", (state) => {
  const before = message(tool(state));
  const after = applyToolResult(before, { toolCallId: "c", output: { lat: 1 } });
  expect(after.changed).toBe(false);
  expect(after.message).toBe(before);
});

test("the first result wins, the same and another one come too late", () => {
  const first = applyToolResult(message(tool("input-available")), { toolCallId: "c", output: 1 }).message;
  for (const late of [{ output: 1 }, { output: 2 }, { state: "output-error" as const, errorText: "x" }]) {
    expect(applyToolResult(first, { toolCallId: "c", ...late })).toEqual({ message: first, changed: false });
  }
});

test("an error has its text or the default one, and no output", () => {
  const before = message(tool("input-available"));
  expect(
    applyToolResult(before, { toolCallId: "c", state: "output-error", errorText: "no", output: "stray" }).message
      .parts[1],
  ).toEqual(tool("output-error", { errorText: "no" }));
  expect(applyToolResult(before, { toolCallId: "c", state: "output-error" }).message.parts[1]).toMatchObject({
    errorText: DENIED_TEXT,
  });
});

test("a result without output is null, an unknown call is no change", () => {
  const before = message(tool("input-available"));
  expect(applyToolResult(before, { toolCallId: "c" }).message.parts[1]).toMatchObject({
    state: "output-available",
    output: null,
  });
  expect(applyToolResult(before, { toolCallId: "other", output: 1 })).toEqual({ message: before, changed: false });
});

test("of a call that was stored twice, the copy that waits is answered", () => {
  const done = tool("output-available", { output: "first" });
  const after = applyToolResult(message(done, tool("input-available")), { toolCallId: "c", output: "second" });
  expect(after.message.parts.slice(1)).toEqual([
    done,
    tool("output-available", { output: "second", preliminary: false }),
  ]);
});

test.each([true, false])("the answer %s to a question is taken once", (approved) => {
  const end: ToolState = approved ? "approval-responded" : "output-denied";
  const asked = message(tool("approval-requested", { approval: { id: "ap", descriptor: 1 } }));
  const after = applyToolApproval(asked, { toolCallId: "c", approved });
  expect(after.message.parts[1]).toEqual(tool(end, { approval: { id: "ap", descriptor: 1, approved } }));
  expect(applyToolApproval(after.message, { toolCallId: "c", approved: !approved }).changed).toBe(false);
  // Without a question the call's id stands for it.
  const early = applyToolApproval(message(tool("input-available")), { toolCallId: "c", approved });
  expect(early.message.parts[1]).toEqual(tool(end, { approval: { id: "c", approved } }));
});

test.each(states.filter((state) => !unasked.includes(state)))("an approval is ignored in state %s", (state) => {
  const before = message(tool(state));
  expect(applyToolApproval(before, { toolCallId: "c", approved: true })).toEqual({ message: before, changed: false });
  expect(applyToolApproval(before, { toolCallId: "other", approved: true }).message).toBe(before);
});

test("an answer to another question is ignored, a reason is kept", () => {
  const before = message(tool("approval-requested", { approval: { id: "ap" } }));
  expect(applyToolApproval(before, { toolCallId: "c", approved: true, approvalId: "older" }).changed).toBe(false);
  const after = applyToolApproval(before, { toolCallId: "c", approved: false, approvalId: "ap", reason: "no" });
  expect(after.message.parts[1]).toMatchObject({
    state: "output-denied",
    approval: { id: "ap", approved: false, reason: "no" },
  });
  const given = applyToolApproval(message(tool("input-available")), {
    toolCallId: "c",
    approved: true,
    approvalId: "new",
  });
  expect(given.message.parts[1]).toMatchObject({ approval: { id: "new", approved: true } });
});

test("a batch waits while some of its calls are answered and some are not", () => {
  const dynamic = asPart({
    type: "dynamic-tool",
    toolName: "d",
    toolCallId: "d",
    state: "output-available",
    input: {},
    output: 1,
  });
  expect(batchState(message())).toEqual({ answered: 0, waiting: 0 });
  expect(batchState(message(tool("input-available")))).toEqual({ answered: 0, waiting: 1 });
  expect(batchState(message(dynamic, tool("input-available")))).toEqual({ answered: 1, waiting: 1 });
  expect(batchState(message(dynamic, tool("approval-requested")))).toEqual({ answered: 1, waiting: 1 });
  expect(batchState(message(dynamic, tool("approval-responded")))).toEqual({ answered: 2, waiting: 0 });
  expect(batchState(message(dynamic, tool("output-error"), tool("output-denied")))).toEqual({
    answered: 3,
    waiting: 0,
  });
  expect(batchState(message(dynamic, tool("input-available", { providerExecuted: true }))).waiting).toBe(0);
});

test("an answer that comes while the message is written is kept against what the stream says after it", () => {
  const builder = newBuilder("m");
  for (const toolCallId of ["c", "d"]) {
    takeChunk(builder, { type: "tool-input-available", toolCallId, toolName: "t", input: {} });
    takeChunk(builder, { type: "tool-approval-request", toolCallId, approvalId: `ap-${toolCallId}` });
  }
  expect(applyToolResultLive(builder, { toolCallId: "c", output: 1 })).toBe(true);
  expect(applyToolResultLive(builder, { toolCallId: "c", output: 2 })).toBe(false);
  expect(applyToolResultLive(builder, { toolCallId: "unknown", output: 2 })).toBe(false);
  expect(applyToolApprovalLive(builder, { toolCallId: "d", approved: true })).toBe(true);
  expect(takeChunk(builder, { type: "tool-output-available", toolCallId: "c", output: 3 })).toEqual([]);
  expect(takeChunk(builder, { type: "tool-approval-response", approvalId: "ap-d", approved: false })).toEqual([]);
  expect(takeChunk(builder, { type: "tool-output-available", toolCallId: "d", output: 4 })).toHaveLength(1);
  expect(toMessage(builder).parts).toMatchObject([
    { toolCallId: "c", output: 1 },
    { toolCallId: "d", output: 4, approval: { id: "ap-d", approved: true } },
  ]);
});
