import { expect, test } from "vitest";
import { answer, called, measureOf, step, text, user } from "../../test/context/paths.ts";
import type { Part, UIMessage } from "../message/types.ts";
import { cutAt, findCut, stepBounds, tailBudget } from "./cut.ts";
import type { ContextView } from "./view.ts";

const measure = measureOf(10_000);
/** About this many tokens. */
const words = (tokens: number) => "abc ".repeat(tokens);

function viewOf(...messages: UIMessage[]): ContextView {
  const nodes = messages.map((message, i) => ({ seq: i + 1, message, pinned: false, from: 0, last: i + 1 }));
  return { compaction: undefined, pinned: [], nodes, cleared: new Set(), unloaded: new Map() };
}

const ids = (cut: ReturnType<typeof findCut>) => cut?.covered.map(({ node }) => node.message.id);

test("the cut is between messages, with what fits behind it", () => {
  const view = viewOf(
    user("u1", words(300)),
    answer("a1", text(words(300))),
    user("u2", words(300)),
    answer("a2", text(words(300))),
    user("u3", words(300)),
  );
  const cut = findCut(view, measure, 1_000);
  expect(ids(cut)).toEqual(["u1", "a1"]);
  expect(cut).toMatchObject({ at: 2, parts: null, pins: [] });
  expect(cut?.rest.map(({ seq }) => seq)).toEqual([3, 4, 5]);
  expect(findCut(view, measure, 100_000)).toBeUndefined();
});

test("the user's last message stays, however small the tail", () => {
  const view = viewOf(user("u1", words(300)), answer("a1", text(words(300))), user("u2", words(900)));
  expect(ids(findCut(view, measure, 10))).toEqual(["u1", "a1"]);
});

test("so it does when it is long by itself, and nothing was answered yet", () => {
  const view = viewOf(user("u1", words(300)), answer("a1", text(words(300))), user("u2", words(9_000)));
  expect(ids(findCut(view, measure, 2_500, true))).toEqual(["u1", "a1"]);
  expect(findCut(viewOf(user("u1", words(9_000))), measure, 2_500, true)).toBeUndefined();
});

test("a last turn of a bearable size stays whole", () => {
  const steps = [step, called("read", "c1", words(900)), step, called("read", "c2", words(900)), step, text("done")];
  const view = viewOf(user("u1", words(300)), answer("a1", text("ok")), user("u2", "go"), answer("a2", ...steps));
  expect(ids(findCut(view, measure, 500))).toEqual(["u1", "a1"]);
});

test("a giant turn is cut between two steps, and the user's message is shown all the same", () => {
  const parts: Part[] = [1, 2, 3, 4, 5].flatMap((n) => [step, called("read", `c${n}`, words(2_000))]);
  const view = viewOf(user("u1", "the task"), answer("a1", ...parts));
  const cut = findCut(view, measure, 2_500, true);
  expect(cut).toMatchObject({ at: 2, parts: 8 });
  expect(cut?.pins.map(({ message }) => message.id)).toEqual(["u1"]);
  expect(cut?.covered.map(({ parts: covered }) => covered.length)).toEqual([1, 8]);
  expect(cut?.rest).toMatchObject([{ seq: 2, from: 8 }]);
});

test("an answer that was split before can be split again, and the user's message still stays", () => {
  const parts: Part[] = [1, 2, 3, 4, 5].flatMap((n) => [step, called("read", `c${n}`, words(2_000))]);
  const view = viewOf(answer("a1", ...parts));
  const asked = { seq: 9, message: user("u0", "the task"), pinned: false };
  const split: ContextView = { ...view, pinned: [asked], nodes: view.nodes.map((node) => ({ ...node, from: 4 })) };
  const cut = findCut(split, measure, 2_500, true);
  expect(cut).toMatchObject({ at: 1, parts: 8 });
  expect(cut?.covered.map(({ parts: covered }) => covered.length)).toEqual([4]);
  expect(cut?.pins).toEqual([asked]);
});

test("a last step that is too long by itself is covered while the answer is written, and kept when it is not", () => {
  const giant = answer("a1", step, text("first"), step, called("read", "c1", words(9_000)));
  const view = viewOf(user("u1", "go"), giant);
  expect(findCut(view, measure, 2_500, true)).toMatchObject({ at: 2, parts: 4, rest: [{ from: 4 }] });
  expect(findCut(view, measure, 2_500, false)).toMatchObject({ at: 2, parts: 2 });
});

test("a call that waits is never covered", () => {
  const waiting = { type: "tool-ask", toolCallId: "w", state: "input-available", input: {} } as Part;
  const view = viewOf(
    user("u1", words(300)),
    answer("a1", step, text(words(300)), step, waiting),
    user("u2", words(300)),
    answer("a2", text(words(300))),
    user("u3", "x"),
  );
  expect(findCut(view, measure, 10)).toMatchObject({ at: 2, parts: 2 });
  const first = viewOf(answer("a1", step, waiting), user("u2", words(300)), user("u3", words(100)));
  expect(findCut(first, measure, 10)).toBeUndefined();
});

test("pinned messages that are covered are named, with those from before", () => {
  const view = viewOf(user("u1", words(300)), answer("a1", text(words(300))), user("u2", words(300)), user("u3", "x"));
  const before = { seq: 99, message: user("u0", "keep"), pinned: true };
  const unpinned = { seq: 98, message: user("ux", "no more"), pinned: false };
  const nodes = view.nodes.map((node) => (node.seq === 2 ? { ...node, pinned: true } : node));
  const cut = findCut({ ...view, nodes, pinned: [unpinned, before] }, measure, 100);
  expect(cut?.pins.map(({ message }) => message.id)).toEqual(["u0", "a1"]);
});

test("what was said to a step goes with it", () => {
  const said = { type: "steering-message", id: "u2", parts: [] } as Part;
  expect(stepBounds(answer("a", step, text("x"), said, step, text("y"), step))).toEqual([2, 5]);
  expect(stepBounds(answer("a", said, step, text("x")))).toEqual([]);
});

test("a message that an answer took in is covered with what stands before it", () => {
  const view = viewOf(user("u1", words(300)), answer("a1", text(words(300))), user("u3", "x"));
  const nodes = view.nodes.map((node) => (node.seq === 2 ? { ...node, last: 77 } : node));
  expect(findCut({ ...view, nodes }, measure, 10)).toMatchObject({ at: 77, parts: null });
  expect(cutAt({ ...view, nodes }, 77, null)).toMatchObject({ at: 77 });
});

test("a cut at a place that is known", () => {
  const view = viewOf(user("u1", "a"), answer("a1", step, text("x"), step, text("y")), user("u2", "b"));
  expect(ids(cutAt(view, 2, null))).toEqual(["u1", "a1"]);
  expect(cutAt(view, 2, 2)).toMatchObject({ at: 2, parts: 2, rest: [{ from: 2 }, { from: 0 }] });
  expect(cutAt(view, 2, 9)).toBeUndefined();
  expect(cutAt(view, 8, null)).toBeUndefined();
});

test("how much is kept: 20,000 tokens, a quarter of the window, and less of a short conversation", () => {
  expect(tailBudget(200_000, 180_000)).toBe(20_000);
  expect(tailBudget(40_000, 40_000)).toBe(10_000);
  expect(tailBudget(200_000, 10_000)).toBe(3_000);
});
