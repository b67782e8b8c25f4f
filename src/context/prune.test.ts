import { expect, test } from "vitest";
import { answer, called, measureOf, text, user } from "../../test/context/paths.ts";
import type { UIMessage } from "../message/types.ts";
import { planPrune } from "./prune.ts";
import { callKey, type ContextView } from "./view.ts";

const measure = measureOf(200_000);
const long = (tokens: number) => "abc ".repeat(tokens);
const never = () => false;

function viewOf(...messages: UIMessage[]): ContextView {
  const nodes = messages.map((message, i) => ({ seq: i + 1, message, pinned: false, from: 0, last: i + 1 }));
  return { compaction: undefined, pinned: [], nodes, cleared: new Set(), unloaded: new Map() };
}

/** Turns that each read this many tokens, the oldest first. */
const turns = (...sizes: number[]) =>
  viewOf(
    ...sizes.flatMap((size, i) => [
      user(`u${i}`, "read"),
      answer(`a${i}`, called(i % 2 === 0 ? "read" : "search", `c${i}`, long(size))),
    ]),
  );
const calls = (view: ContextView, keep: (tool: string) => boolean = never) =>
  planPrune(view, measure, keep)?.calls.map(([, id]) => id);

test("old outputs beyond 40,000 tokens go; the last two turns never do", () => {
  const view = turns(25_000, 25_000, 25_000, 25_000, 90_000, 90_000);
  expect(calls(view)).toEqual(["c0", "c1", "c2"]);
  expect(planPrune(view, measure, never)).toMatchObject({ at: 6, tokens: 75_000 });
});

test("nothing is done for less than 20,000 tokens", () => {
  expect(calls(turns(15_000, 40_000, 1, 1))).toBeUndefined();
  expect(calls(turns(25_000, 40_000, 1, 1))).toEqual(["c0"]);
});

test("tools can keep their outputs, and what is cleared is not cleared again", () => {
  const view = turns(30_000, 30_000, 41_000, 0, 1, 1);
  expect(calls(view)).toEqual(["c0", "c1", "c2"]);
  expect(calls(view, (tool) => tool === "search")).toEqual(["c0", "c2"]);
  expect(calls({ ...view, cleared: new Set([callKey(2, "c0"), callKey(6, "c2")]) })).toBeUndefined();
});

test("short outputs, texts and errors stay", () => {
  const view = viewOf(
    user("u0", long(90_000)),
    answer("a0", text(long(90_000)), {
      ...{ type: "tool-read", toolCallId: "e", state: "output-error", input: {}, errorText: long(90_000) },
    } as never),
    user("u1", "x"),
    user("u2", "x"),
  );
  expect(calls(view)).toBeUndefined();
});
