import { expect, test } from "vitest";
import { answer, measureOf, text, user } from "../../test/context/paths.ts";
import type { Part, UIMessage } from "../message/types.ts";
import { seeded } from "../../test/support/seeded.ts";
import { serialiseMessage } from "./serialise.ts";
import { joinCovered, joinWords, renderWords, type SaidWords, coveredWords, wordsBudget } from "./user-words.ts";

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
  const list = coveredWords(
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
  expect(coveredWords(covered(user("u1", "Hello."), told)).length).toBe(isTold ? 1 : 2);
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
    words = joinWords(words, coveredWords(covered(user(`u${i}`, `${i} ${"x ".repeat(3_000)}`))));
  const size = words.reduce((sum, [, one]) => sum + one.length, 0);
  expect(size).toBeLessThan(50_000);
  expect(words[0]?.[0]).toBe("u0");
  expect(words.at(-1)?.[0]).toBe("u899");
  const [, gone] = words.find(([id]) => id === "") ?? [];
  expect(Number(gone) + words.length - 1).toBe(900);
  expect(tell(words, 1_000)).toContain("more messages");
  expect(joinWords(words, [])).toEqual(words);
});

test("the budget grows with the window, up to a bound; in a small one, sentences that should not be lost have more", () => {
  expect(wordsBudget(4_000, 4_000)).toEqual({ budget: 480, most: 800 });
  expect(wordsBudget(4_000, 1_000)).toEqual({ budget: 150, most: 200 });
  expect(wordsBudget(4_000, 40)).toEqual({ budget: 100, most: 100 });
  expect(wordsBudget(100_000, 100_000)).toEqual({ budget: 8_000, most: 8_000 });
  expect(wordsBudget(Number.POSITIVE_INFINITY, 1e6)).toEqual({ budget: 8_000, most: 8_000 });
});

const filler = (i: number) => `${"well then let us see what comes of it ".repeat(4)}(${"so ".repeat(i % 3)}far).`;

test("sentences that nobody could guess come before the first words of others, the newest first", () => {
  const words = Array.from({ length: 40 }, (_, i): SaidWords => [
    `u${i}`,
    `${filler(i)} the berth is number ${700 + i}. ${filler(i)}`,
  ]);
  const told = tell(words, 420);
  expect(measure.text(told)).toBeLessThanOrEqual(420);
  const numbers = [...told.matchAll(/the berth is number (\d+)\./g)].map(([, number]) => Number(number));
  expect(numbers.length).toBeGreaterThan(20);
  // The first message stays, whatever else goes.
  expect(numbers.filter((number) => number !== 700)).toEqual(numbers.slice(-numbers.length + 1));
  expect(numbers.at(-1)).toBe(739);
  expect(tell(words, 420)).toBe(told);
});

test("what the summary says in the same words is not told again, and the same sentence only once", () => {
  const words: SaidWords[] = [
    ["u0", "Begin."],
    ["u1", `${filler(0)} Pay invoice 4711 to Ole. ${filler(1)}`],
    ["u2", `${filler(2)} The mast is 17 metres. ${filler(1)}`],
    ["u3", `${filler(1)} The mast is 17 metres. ${filler(1)}`],
    ["u4", "Go on."],
  ];
  const how = { budget: 110, skip: new Set<string>(), brief: new Set<string>() };
  const all = renderWords(words, how);
  expect(all.match(/The mast is 17 metres\./g)?.length).toBe(1);
  expect(all).toContain("Pay invoice 4711 to Ole.");
  const rest = renderWords(words, { ...how, summary: "## Goal\nThey will pay invoice 4711 to Ole tomorrow." });
  expect(rest).toContain("The mast is 17 metres.");
  expect(rest).not.toContain("4711");
  // The number alone, somewhere else, says something else.
  expect(renderWords(words, { ...how, summary: "## Goal\nCall 4711 at noon." })).toContain("4711");
});

test("of answers the sentences that nobody could guess, also piece by piece, and none that are shown", () => {
  const words = coveredWords(covered(user("u1", "Look."), answer("a1", text("I look. The mast is 17 metres. Fine."))));
  const more = joinWords(words, coveredWords(covered(answer("a1", text("It is rotten at line 3. Hm.")))));
  expect(joinWords(more, words)).toEqual(more);
  expect(more.at(-1)).toEqual(["a1", "The mast is 17 metres.\nIt is rotten at line 3.", "answer"]);
  expect(tell(more, 500)).toContain(
    "not shown any more, word for word, oldest first:\n- The mast is 17 metres.\n- It is rotten",
  );
  expect(tell(more, 500, { brief: ["a1"] })).not.toContain("mast");
  expect(tell([["u1", "Look."]], 500)).not.toContain("assistant");
});

test("a message that is kept in part keeps the sentences that nobody could guess", () => {
  let words: SaidWords[] = [];
  for (let i = 0; i < 60; i++) {
    const letter = `${filler(i)} The berth is number ${700 + i}. ${filler(i).repeat(20)}`;
    words = joinWords(words, coveredWords(covered(user(`u${i}`, letter))));
  }
  expect(words.reduce((sum, [, one]) => sum + one.length, 0)).toBeLessThanOrEqual(48_000);
  for (let i = 0; i < 60; i++) expect(words[i]?.[1]).toContain(`The berth is number ${700 + i}.`);
});

test("among many sentences with numbers, the one of each message that says most comes first, of answers too", () => {
  // Pages that somebody pastes, with one thing in each that matters.
  const page = (i: number) =>
    [`Ask Ada Byron for berth ${i} at pier P-${i}.`, ...Array.from({ length: 30 }, (_, n) => `Then ${n} of them came.`)]
      .toSorted((a, b) => ((a.length * 7 + i) % 11) - ((b.length * 7 + i) % 11))
      .join(" ");
  const many = Array.from({ length: 160 }, (_, i) => i);
  const messages = many.flatMap((i) => [user(`u${i}`, page(i)), answer(`a${i}`, text(page(1_000 + i)))]);
  let kept: SaidWords[] = [];
  for (let i = 0; i < messages.length; i += 80)
    kept = joinWords(kept, coveredWords(covered(...messages.slice(i, i + 80))));
  const lost = many.filter((i) => !kept.some(([, words]) => words.includes(`pier P-${i}.`)));
  expect(lost).toEqual([]);
  const told = tell(kept, 6_000);
  expect(measure.text(told)).toBeLessThanOrEqual(6_000);
  expect(many.filter((i) => told.includes(`pier P-${i}.`)).length).toBe(many.length);
  expect(many.filter((i) => told.includes(`pier P-${1_000 + i}.`)).length).toBeGreaterThan(80);
});

test("of a long conversation the same words are kept when the oldest are only counted", () => {
  const below = seeded(7);
  const random = () => below(1_000) / 1_000;
  const one = (i: number): UIMessage => {
    const length = 1 + Math.floor(random() * random() * 60);
    const words = `${random() < 0.5 ? `Berth ${i}` : "It"} is ${"so ".repeat(length)}long. ${random() < 0.3 ? "Never ask Ada Byron. " : ""}`;
    const kind = random();
    if (kind < 0.05) return user(`u${i}`, " ");
    if (kind < 0.1) return { ...user(`u${i}`, words), metadata: { agentToolRunId: "r1" } };
    if (kind < 0.15)
      return answer(`u${i}`, text(words), { type: "steering-message", id: `s${i}`, parts: [text(words)] } as Part);
    return kind < 0.6 ? user(`u${i}`, words.repeat(1 + Math.floor(random() * 3))) : answer(`u${i}`, text(words));
  };
  for (let round = 0; round < 3; round++) {
    let kept: SaidWords[] = [];
    let at = 0;
    for (const count of [10, 1_800, 1, 900, 1_500]) {
      const messages = Array.from({ length: count }, () => one(at++));
      // Sometimes an answer was covered in part before, or words were told before.
      if (round % 3 === 1) messages.unshift(answer(kept.at(-1)?.[0] ?? "x", text("It is pier 7. So it is.")));
      if (round % 3 === 2) messages.push(user(kept[0]?.[0] ?? "x", "Once more, at 9."));
      const list = covered(...messages);
      const whole = joinWords(kept, coveredWords(list));
      expect(joinCovered(kept, list)).toEqual(whole);
      kept = whole;
    }
    expect(Number(kept.find(([id]) => id === "")?.[1])).toBeGreaterThan(1_000);
  }
});
