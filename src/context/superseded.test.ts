import { expect, test } from "vitest";
import { answer, called, measureOf, step, user } from "../../test/context/paths.ts";
import { asPart, type Part, toolParts, type UIMessage } from "../message/types.ts";
import { planSuperseded } from "./prune.ts";
import { findSuperseded, type OutputRules, type OutputSubject } from "./superseded.ts";
import { callKey, type ContextView } from "./view.ts";

const rules: OutputRules = {
  keepAlways: (tool) => tool === "rules",
  subjects: ({ input }) => (input as { on: readonly OutputSubject[] }).on,
};
const read = (id: string, ...on: OutputSubject[]) => called("read", id, id, { on });
const failed = (id: string, on: string) =>
  ({ type: "tool-read", toolCallId: id, state: "output-error", input: { on: [on] }, errorText: "no" }) as Part;

function viewOf(...messages: UIMessage[]): ContextView {
  const nodes = messages.map((message, i) => ({ seq: i + 1, message, pinned: false, from: 0, last: i + 1 }));
  return { compaction: undefined, pinned: [], nodes, cleared: new Set(), unloaded: new Map() };
}

/** Which call is replaced by which, as `old<new`. */
const found = (view: ContextView) =>
  findSuperseded(view, rules).map(({ part, newer }) => `${part.toolCallId}<${newer.map(({ call }) => call).join("+")}`);

const cases: [string, UIMessage[], string[]][] = [
  ["a newer output of the same", [answer("a", read("1", "x")), user("u", "go"), answer("b", read("2", "x"))], ["1<2"]],
  ["only the newest stays", [answer("a", read("1", "x"), step, read("2", "x"), step, read("3", "x"))], ["1<3", "2<3"]],
  ["another subject", [answer("a", read("1", "x"), step, read("2", "y"))], []],
  ["another tool", [answer("a", read("1", "x"), step, called("list", "2", "", { on: ["x"] }))], []],
  ["calls of one step", [answer("a", step, read("1", "x"), read("2", "x"))], []],
  ["two in one step, then one", [answer("a", read("1", "x"), read("2", "x"), step, read("3", "x"))], ["1<3", "2<3"]],
  ["one, then two in one step", [answer("a", read("1", "x"), step, read("2", "x"), read("3", "x"))], ["1<3"]],
  ["a newer one that failed", [answer("a", read("1", "x"), step, failed("2", "x"))], []],
  ["one that failed is no output", [answer("a", failed("1", "x"), step, read("2", "x"))], []],
  ["no subject", [answer("a", read("1"), step, read("2"))], []],
  ["some of its subjects", [answer("a", read("1", "x", "y"), step, read("2", "x"))], []],
  ["all, in two calls", [answer("a", read("1", "x", "y"), step, read("2", "x"), step, read("3", "y"))], ["1<2+3"]],
  ["more than its own", [answer("a", read("1", "x"), step, read("2", "x", "y"))], ["1<2"]],
  [
    "a tool that keeps",
    [answer("a", called("rules", "1", "", { on: ["x"] }), step, called("rules", "2", "", { on: ["x"] }))],
    [],
  ],
  ["a piece, by all of it", [answer("a", read("1", { of: "x", piece: "1-9" }), step, read("2", "x"))], ["1<2"]],
  [
    "a piece, by the same",
    [answer("a", read("1", { of: "x", piece: "1" }), step, read("2", { of: "x", piece: "1" }))],
    ["1<2"],
  ],
  [
    "a piece, by another",
    [answer("a", read("1", { of: "x", piece: "1" }), step, read("2", { of: "x", piece: "2" }))],
    [],
  ],
  ["all of it, by a piece", [answer("a", read("1", "x"), step, read("2", { of: "x", piece: "1" }))], []],
];

test.each(cases)("%s", (_what, messages, expected) => {
  expect(found(viewOf(...messages))).toEqual(expected);
});

test("what is pinned stays, and stands for others; what was left out stands for none", () => {
  const view = viewOf(answer("a", read("1", "x")), answer("b", read("2", "x")), answer("c", read("3", "y")));
  const pinned = (at: number) => ({ ...view, nodes: view.nodes.map((node, i) => ({ ...node, pinned: i === at })) });
  expect(found(pinned(0))).toEqual([]);
  expect(found(pinned(1))).toEqual(["1<2"]);
  expect(found({ ...view, cleared: new Set([callKey(2, "2")]) })).toEqual([]);
});

test("what a provider did by itself stays", () => {
  const [one] = toolParts(answer("a", read("1", "x")));
  if (one === undefined) throw new Error("no part");
  expect(found(viewOf(answer("a", asPart({ ...one, providerExecuted: true }), step, read("2", "x"))))).toEqual([]);
});

test("a plan counts where the newer output is, and only for what is worth it", () => {
  const long = (id: string, tokens: number) => called("read", id, "abc ".repeat(tokens), { on: ["x"] });
  const view = viewOf(
    answer("a", long("1", 700)),
    answer("b", long("2", 90)),
    user("u", "go"),
    answer("c", long("3", 5)),
  );
  expect(planSuperseded(view, measureOf(10_000), rules)).toMatchObject({ at: 4, calls: [[1, "1", [["c", "3"]]]] });
  expect(planSuperseded(view, measureOf(20_000), rules)).toBeUndefined();
});
