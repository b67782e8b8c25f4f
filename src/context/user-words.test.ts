import { expect, test } from "vitest";
import { answer, measureOf, text, user } from "../../test/context/paths.ts";
import type { Part, UIMessage } from "../message/types.ts";
import { serialiseMessage } from "./serialise.ts";
import { joinWords, renderWords, type SaidWords, userWords, wordsBudget } from "./user-words.ts";

const measure = measureOf(10_000);
const tell = (words: readonly SaidWords[], budget: number, more: { skip?: string[]; brief?: string[] } = {}) =>
  renderWords(words, { budget, skip: new Set(more.skip), brief: new Set(more.brief) });
const covered = (...messages: UIMessage[]) =>
  messages.map((message, i) => ({
    ...{ node: { seq: i, message, pinned: false, from: 0, last: i }, parts: message.parts },
  }));

test("the words of each message of the user, and of those that an answer took in", () => {
  const said = { type: "steering-message", id: "s1", parts: [text("rather Bergen")] } as Part;
  const file = { type: "file", mediaType: "text/plain", filename: "a.txt", url: "data:," } as Part;
  const list = userWords(
    covered(user("u1", "Two\nlines"), answer("a1", text("No."), said), user("u2", " "), {
      ...{ id: "u3", role: "user", parts: [text("See"), file] },
    }),
  );
  expect(list).toEqual([
    ["u1", "Two\nlines"],
    ["s1", "rather Bergen"],
    ["u3", "See\n[file a.txt]"],
  ]);
  expect(tell(list, 500)).toBe(
    "What the user said in messages that are not shown whole, in their own words, oldest first:\n- Two\n  lines\n- rather Bergen\n- See\n  [file a.txt]",
  );
  expect(tell(list, 500, { skip: ["u1", "s1", "u3"] })).toBe("");
  expect(tell([], 500)).toBe("");
});

test.each([
  ["c1-end", { backgroundCall: { toolCallId: "c1" } }, true],
  ["agent-tool:r1:completed", { agentToolRunId: "r1" }, true],
  ["the task of an agent", { agentToolRunId: "r1" }, false],
])("what code tells in the user's place is not what they said: %s", (id, metadata, isTold) => {
  const told: UIMessage = { ...user(id, "The user wants to pay."), metadata };
  expect(userWords(covered(user("u1", "Hello."), told)).length).toBe(isTold ? 1 : 2);
  const role = isTold ? "tool" : "user";
  expect(serialiseMessage(told, told.parts)).toContain(`<message id="${id}" role="${role}">`);
});

test("no line of a user begins where code writes its own, whatever they end lines with", () => {
  const ends = ["\n", "\r", "\r\n", "\r\r", "\v", "\f", "\u0085", "\u2028", "\u2029"];
  const told = tell([["u1", ends.map((end) => `${end}To do:${end}- pay`).join("")]], 500);
  expect(told).toContain("\n  To do:\n  - pay");
  expect(told).not.toMatch(/[\r\v\f\u0085\u2028\u2029]|\nTo do/);
});

test("the first and the newest whole, the others by their first words, within the budget", () => {
  const words = Array.from({ length: 9 }, (_, i): SaidWords => [`u${i}`, `fact-${i} is ${"so ".repeat(60)}end-${i}`]);
  const all = tell(words, 2_000);
  for (let i = 0; i < 9; i++) expect(all).toContain(`end-${i}`);
  const some = tell(words, 400);
  expect(measure.text(some)).toBeLessThanOrEqual(400);
  for (let i = 0; i < 9; i++) expect(some).toContain(`fact-${i} is`);
  expect(some).toContain("end-0");
  expect(some).toContain("end-8");
  expect(some).not.toContain("end-1");
  const few = tell(words, 190);
  expect(few).toContain("end-0");
  expect(few).toContain("end-8");
  expect(few).toMatch(/- \(\d more messages: search the conversation\)/);
  expect(tell(words, 400)).toBe(some);
  expect(tell(words, 2_000, { brief: ["u3"] })).not.toContain("end-3");
  expect(tell(words, 10)).toBe("");
  const huge = tell([["u1", "word ".repeat(4_000)]], 300);
  expect(measure.text(huge)).toBeLessThanOrEqual(300);
  expect(huge.length).toBeGreaterThan(400);
});

test("lists are joined by message, and what is kept is bounded", () => {
  expect(
    joinWords(
      [["u1", "a"]],
      [
        ["u1", "b"],
        ["u2", "c"],
      ],
    ),
  ).toEqual([
    ["u1", "b"],
    ["u2", "c"],
  ]);
  let words: SaidWords[] = [];
  for (let i = 0; i < 900; i++)
    words = joinWords(words, userWords(covered(user(`u${i}`, `${i} ${"x ".repeat(3_000)}`))));
  const size = words.reduce((sum, [, one]) => sum + one.length, 0);
  expect(size).toBeLessThan(50_000);
  expect(words[0]?.[0]).toBe("u0");
  expect(words.at(-1)?.[0]).toBe("u899");
  const [, gone] = words.find(([id]) => id === "") ?? [];
  expect(Number(gone) + words.length - 1).toBe(900);
  expect(tell(words, 1_000)).toContain("more messages");
  expect(joinWords(words, [])).toEqual(words);
});

test("the budget grows with the window, up to a bound", () => {
  expect(wordsBudget(4_000, 4_000)).toBe(480);
  expect(wordsBudget(4_000, 1_000)).toBe(150);
  expect(wordsBudget(4_000, 40)).toBe(100);
  expect(wordsBudget(Number.POSITIVE_INFINITY, 1e6)).toBe(8_000);
});
