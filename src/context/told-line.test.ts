import { expect, test } from "vitest";
import { renderCarried } from "./carried.ts";
import { isToldIn } from "../message/told-line.ts";
import type { Part, UIMessage } from "../message/types.ts";

const call = (toolCallId: string, input: unknown): Part =>
  ({ type: "tool-work", toolCallId, state: "output-available", input, output: "x" }) as Part;
const said = (...parts: Part[]): UIMessage => ({ id: "m", role: "assistant", parts });
const text = (words: string): Part => ({ type: "text", text: words });
const carried = renderCarried(
  {
    background: [{ call: "c1", tool: "work", input: { of: "secret" } }],
    approvals: [{ call: "c2", tool: "work", input: {} }],
    queued: [{ id: "q", text: "Two\n\nlines" }],
  },
  "What the user said:\n- ok",
);

test.each<[string, UIMessage, UIMessage | undefined, boolean]>([
  ["a call that goes on", said(call("c1", 1)), undefined, true],
  ["one that waits for a person", said(text("I ask."), call("c2", 1)), undefined, true],
  ["another call", said(call("c", 1)), undefined, false],
  ["a message that waits", said(text("Two lines")), undefined, true],
  ["the same words of a message that is covered", said(text("ok")), undefined, false],
  ["a message that says the same since", said(text("Two lines")), said(text("Two  lines")), false],
  ["a message that says something else", said(text("Two lines")), said(text("One")), true],
  ["a call that stays as it is", said(call("c1", 1)), said(text("New."), call("c1", 1)), false],
  ["a call with another input", said(call("c1", 1)), said(call("c1", 2)), true],
])("what is told below a summary is found again: %s", (_, before, now, isTold) => {
  expect(isToldIn(carried, before, now)).toBe(isTold);
});
