import { expect, test } from "vitest";
import { builderFrom, type MessageBuilder, newBuilder } from "../../message/builder.ts";
import { applyChunk } from "../../message/fold.ts";
import type { Part, UIMessageChunk } from "../../message/types.ts";
import { hasPartial, lastCalls, partialText, settledParts, stepsOf } from "./answer.ts";
import { budgetQuestion } from "../../model/budget-question.ts";

const step: UIMessageChunk = { type: "start-step" };
const start = (id: string): UIMessageChunk => ({ type: "text-start", id });
const say = (words: string): UIMessageChunk => ({ type: "text-delta", id: "t", delta: words });
const stop: UIMessageChunk = { type: "text-end", id: "t" };
const begin = (toolCallId: string): UIMessageChunk => ({ type: "tool-input-start", toolCallId, toolName: "look" });
const call = (toolCallId: string): UIMessageChunk => ({
  type: "tool-input-available",
  toolCallId,
  toolName: "look",
  input: {},
});
const result = (toolCallId: string): UIMessageChunk => ({ type: "tool-output-available", toolCallId, output: 1 });
const steer: UIMessageChunk = { type: "steering-message", id: "u2", parts: [{ type: "text", text: "Shorter!" }] };

function build(...chunks: UIMessageChunk[]): MessageBuilder {
  return add(newBuilder("m"), ...chunks);
}

/** An answer that goes on with what an earlier turn has left. */
function goOn(before: MessageBuilder, ...chunks: UIMessageChunk[]): MessageBuilder {
  return add(builderFrom({ id: "m", role: "assistant", parts: before.parts }), ...chunks);
}

function add(builder: MessageBuilder, ...chunks: UIMessageChunk[]): MessageBuilder {
  for (const chunk of chunks) applyChunk(builder, chunk);
  return builder;
}

const text = (words: string): Part => ({ type: "text", text: words });
const begun: Part = { type: "step-start" };
const names = (builder: MessageBuilder, called: number): string[] =>
  lastCalls(builder, called).map((part) => part.toolCallId);

test("an answer falls into its steps", () => {
  expect(stepsOf([])).toEqual([]);
  expect(stepsOf([begun])).toEqual([[]]);
  expect(stepsOf([begun, text("a"), text("b"), begun, begun, text("c")])).toEqual([
    [text("a"), text("b")],
    [],
    [text("c")],
  ]);
});

test("what comes before the first step belongs to it, and to a step of its own when there is none", () => {
  expect(stepsOf([text("a"), begun, text("b"), begun, text("c")])).toEqual([[text("a"), text("b")], [text("c")]]);
  expect(stepsOf([text("a"), text("b")])).toEqual([[text("a"), text("b")]]);
});

test("the calls of the last settled step are there to be answered", () => {
  const builder = build(step, call("c1"), result("c1"), step, call("c2"), say("…"), call("c3"));
  expect(names(builder, 2)).toEqual(["c2", "c3"]);
  expect(names(build(step, say("Hello")), 1)).toEqual([]);
  expect(names(build(), 0)).toEqual([]);
});

test("the calls of a model call that was cut are not", () => {
  const builder = build(step, call("c1"), result("c1"), step, call("c2"), begin("c3"));
  expect(names(builder, 1)).toEqual(["c1"]);
  expect(names(builder, 0)).toEqual([]);
});

test("a provider answers its own calls", () => {
  const search: UIMessageChunk = {
    type: "tool-input-available",
    toolCallId: "s",
    toolName: "search",
    input: {},
    providerExecuted: true,
  };
  expect(names(build(step, search, call("c")), 1)).toEqual(["c"]);
});

test("a turn that goes on begins with the calls that were left", () => {
  const left = build(step, call("c1"), result("c1"), step, call("c2"));
  expect(names(goOn(left), 0)).toEqual(["c2"]);
  // Its own first model call was cut: what it had asked for is not to be run.
  expect(names(goOn(left, step, call("c3")), 0)).toEqual(["c2"]);
  expect(names(goOn(left, step, call("c3")), 1)).toEqual(["c3"]);
});

test("the question about the budget is waited for, though no model call has brought it", () => {
  const question = budgetQuestion("q", {
    ok: false,
    waits: false,
    kind: "soft",
    over: "turn",
    what: "tokens",
    used: 9,
    limit: 8,
    needed: 2,
  });
  expect(names(build(step, call("c"), result("c"), ...question), 1)).toEqual(["q"]);
  expect(names(goOn(build(step, say("Hm"), stop, ...question)), 0)).toEqual(["q"]);
});

test("a part without a step is as good as one in a step", () => {
  const old = builderFrom({ id: "m", role: "assistant", parts: build(call("c")).parts });
  expect(names(old, 0)).toEqual(["c"]);
});

test("what is settled ends where the step under way begins", () => {
  const builder = build(step, start("t"), say("One"), stop, step, start("t"), say("Tw"));
  expect(settledParts(builder, 1).map((part) => part.type)).toEqual(["step-start", "text"]);
  expect(settledParts(builder, 0)).toEqual([]);
  expect(settledParts(builder, 2)).toHaveLength(4);
  expect(settledParts(builder, 7)).toHaveLength(4);
});

test("what was said to the answer between two steps is settled, also in front of the first", () => {
  const builder = build(steer, step, say("One"), stop, steer, step, say("Tw"));
  expect(settledParts(builder, 0).map((part) => part.type)).toEqual(["steering-message"]);
  expect(settledParts(builder, 1).map((part) => part.type)).toEqual([
    "steering-message",
    "step-start",
    "text",
    "steering-message",
  ]);
});

test("what was there before the turn is not the turn's", () => {
  const left = build(step, say("One"), stop, step, say("Two"), stop);
  expect(settledParts(goOn(left), 0)).toEqual([]);
  expect(settledParts(goOn(left, step, say("Three"), stop), 1).map((part) => part.type)).toEqual([
    "step-start",
    "text",
  ]);
  expect(hasPartial(goOn(left), 0)).toBe(false);
  expect(partialText(goOn(left), 0)).toBe("");
});

test("a step that has brought something was cut; one that has only begun has nothing to go on from", () => {
  expect(hasPartial(build(step), 0)).toBe(false);
  expect(hasPartial(build(step, say("One"), stop), 1)).toBe(false);
  expect(hasPartial(build(step, say("One"), stop, step), 1)).toBe(false);
  expect(hasPartial(build(step, say("One"), stop, steer, step), 1)).toBe(false);
  expect(hasPartial(build(step, say("One"), stop, step, start("t")), 1)).toBe(true);
  expect(hasPartial(build(step, begin("c")), 0)).toBe(true);
  expect(hasPartial(goOn(build(step, say("One"), stop), step, say("Tw")), 0)).toBe(true);
});

test("the text to go on from is all text of the step under way", () => {
  const builder = build(step, say("One. "), stop, step, say("Two. "), stop, start("t"), say("Th"));
  expect(partialText(builder, 1)).toBe("Two. Th");
  expect(partialText(builder, 2)).toBe("");
});

test("with a call that has no result there is none: a model could not go on from that", () => {
  expect(partialText(build(step, say("Hm"), stop, begin("c")), 0)).toBe("");
  expect(partialText(build(step, say("Hm"), stop, call("c")), 0)).toBe("");
  expect(partialText(build(step, say("Hm"), stop, call("c"), result("c")), 0)).toBe("Hm");
});
