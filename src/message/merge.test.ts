import { expect, test } from "vitest";
import { mergeMessages } from "./merge.ts";
import { asPart } from "./types.ts";
import type { Part, ToolPart, ToolState, UIMessage } from "./types.ts";

const user = (id: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text: id }] });
const answer = (id: string, ...parts: Part[]): UIMessage => ({ id, role: "assistant", parts });
const text = (value: string): Part => ({ type: "text", text: value });
const tool = (id: string, state: ToolState, fields: Partial<ToolPart> = {}): Part =>
  asPart({ type: "tool-t", toolCallId: id, state, input: { q: 1 }, ...fields });
const done = tool("c", "output-available", { output: 42 });

test("new messages are added, equal ones skipped, other ones updated, none removed", () => {
  const stored = [user("u1"), answer("a1", text("old")), user("u2")];
  const changed = answer("a1", text("new"));
  expect(mergeMessages(stored, [user("u1"), changed, answer("a9", text("more"))])).toEqual({
    add: [answer("a9", text("more"))],
    update: [changed],
  });
  expect(mergeMessages(stored, [])).toEqual({ add: [], update: [] });
});

test("equal texts are matched with rows of their own, in order, and an exact id first", () => {
  const stored = [answer("s1", text("ok")), answer("s2", text("ok"))];
  expect(mergeMessages(stored, [answer("x", text("ok")), answer("y", text("ok"))])).toEqual({ add: [], update: [] });
  expect(mergeMessages(stored, [answer("x", text("ok")), answer("s1", text("ok"))])).toEqual({ add: [], update: [] });
  const third = answer("z", text("ok"));
  expect(mergeMessages(stored, [answer("x", text("ok")), answer("y", text("ok")), third]).add).toEqual([third]);
});

test("a copy under another id is matched by its call and takes the stored id", () => {
  const copy = answer("client", tool("c", "output-available", { output: 42 }), text("more"));
  expect(mergeMessages([answer("a1", done)], [copy])).toEqual({ add: [], update: [{ ...copy, id: "a1" }] });
});

test("a shared call id with another tool or input is another call", () => {
  const stored = [answer("a1", done)];
  for (const part of [
    tool("c", "output-available", { output: 1, input: { q: 2 } }),
    asPart({ type: "tool-u", toolCallId: "c", state: "output-available", input: { q: 1 }, output: 1 }),
  ]) {
    expect(mergeMessages(stored, [answer("b", part)]).add).toHaveLength(1);
  }
});

test.each<[ToolState, Partial<ToolPart>]>([
  ["output-available", { output: 42 }],
  ["output-error", { errorText: "no" }],
  ["output-denied", { approval: { id: "ap", approved: false } }],
])("a call that ended as %s stays so against a stale copy", (state, result) => {
  const ended = answer("a1", tool("c", state, result));
  for (const stale of ["input-available", "approval-requested", "approval-responded"] as const) {
    const incoming = answer("a1", tool("c", stale), text("more"));
    expect(mergeMessages([ended], [incoming]).update).toEqual([answer("a1", tool("c", state, result), text("more"))]);
    expect(
      mergeMessages([ended], [answer("a1", tool("c", stale, { output: "stray", errorText: "stray" }))]).update,
    ).toEqual([]);
  }
});

test("an early copy of a settled answer is left out unless it is the last message", () => {
  const stored = [answer("a1", done), user("u2")];
  const stale = answer("optimistic", { type: "step-start" }, tool("c", "input-available"));
  expect(mergeMessages(stored, [answer("a1", done), stale, user("u2")])).toEqual({ add: [], update: [] });
  expect(mergeMessages(stored, [answer("a1", done), stale]).add).toEqual([stale]);
  const more = answer("optimistic", tool("c", "input-available"), text("new words"));
  expect(mergeMessages(stored, [answer("a1", done), more, user("u2")]).add).toEqual([more]);
});
