import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { writeCell } from "../store/cell.ts";
import { countKinds, kindsOf, type KindUnits } from "./learned.ts";
import { correctFactor, type Learned, LearnedFactors, NOTHING_LEARNED, readLearned } from "./learned.ts";
import { unitsOfText } from "./text-units.ts";
import { unitsOfRequest } from "./units.ts";

const MODEL = "a/b";
const KINDS = ["text", "wide", "data", "rest"] as const;
type Rates = Readonly<Record<(typeof KINDS)[number], number>>;

const sumOf = (units: KindUnits) => KINDS.reduce((sum, kind) => sum + units[kind], 0);
const tokensOf = (units: KindUnits, rates: Rates) => KINDS.reduce((sum, kind) => sum + rates[kind] * units[kind], 0);
const used = (input: number) => ({ input, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 });

function byKinds({ kinds }: Learned, units: KindUnits): number {
  return KINDS.reduce((sum, kind, index) => sum + (kinds?.factors[index] ?? 1) * units[kind], 0);
}

/** The same numbers for the same seed. */
function dice(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

/** How wrong it is about what is said next, after some answers, on average: with kinds, and with one factor. */
function errors(rates: Rates, answers: number) {
  const sum = { kinds: 0, one: 0 };
  for (let seed = 1; seed <= 20; seed++) {
    const roll = dice(seed);
    let learned = NOTHING_LEARNED;
    let sent: KindUnits = { text: 500, wide: 0, data: 800, rest: 50 };
    // A conversation in which each turn is mostly of one kind.
    const next = (): KindUnits => {
      const main = Math.floor(3 * roll());
      const size = (kind: number) => (kind === main ? 2_000 : 200) * roll();
      return { text: size(0), wide: size(1), data: size(2), rest: 20 };
    };
    for (let answer = 0; answer < answers; answer++) {
      const more = next();
      sent = {
        ...{ text: sent.text + more.text, wide: sent.wide + more.wide },
        ...{ data: sent.data + more.data, rest: sent.rest + more.rest },
      };
      const counted = tokensOf(sent, rates) * (0.99 + 0.02 * roll());
      learned = correctFactor(learned, { units: sumOf(sent), kinds: sent, usage: used(counted) });
    }
    for (let times = 0; times < 10; times++) {
      const more = next();
      const real = tokensOf(more, rates);
      sum.kinds += Math.abs(byKinds(learned, more) - real) / real;
      sum.one += Math.abs(learned.factor * sumOf(more) - real) / real;
    }
  }
  return { kinds: sum.kinds / 200, one: sum.one / 200 };
}

test("where kinds differ, what comes next is known better than by one factor", () => {
  const rates = { text: 1, wide: 1.5, data: 0.8, rest: 1 };
  const after = (answers: number) => errors(rates, answers);
  expect(after(8).kinds).toBeLessThan(0.6 * after(8).one);
  expect(after(20).kinds).toBeLessThan(0.35 * after(20).one);
  expect(after(20).one).toBeGreaterThan(0.1);
});

test.each([0.7, 1, 1.3])("where they do not, it is known as well (%s)", (rate) => {
  const { kinds, one } = errors({ text: rate, wide: rate, data: rate, rest: rate }, 20);
  expect(kinds).toBeLessThan(0.03);
  expect(one).toBeLessThan(0.03);
});

test("thousands of calls of one mix leave it able to learn, and sane", () => {
  const even = { text: 4_000, wide: 2_000, data: 3_000, rest: 1_000 };
  const wide = { text: 500, wide: 9_000, data: 400, rest: 100 };
  const learn = (before: Learned, kinds: KindUnits, ratio: number) =>
    correctFactor(before, { units: 10_000, kinds, usage: used(10_000 * ratio) });
  let learned = NOTHING_LEARNED;
  for (let index = 0; index < 3_000; index++) learned = learn(learned, even, index % 2 === 0 ? 1.09 : 1.11);
  expect(Math.abs(byKinds(learned, even) / 11_000 - 1)).toBeLessThan(0.03);
  for (let index = 0; index < 8; index++) learned = learn(learned, wide, 1.5);
  expect(Math.abs(byKinds(learned, wide) / 15_000 - 1)).toBeLessThan(0.03);
  for (const [index, row] of (learned.kinds?.spread ?? []).entries()) {
    expect(row[index]).toBeGreaterThan(0);
    expect(Math.max(...row.map(Math.abs))).toBeLessThanOrEqual(0.51);
  }
});

test("what a request is made of", () => {
  const messages = [
    { role: "user" as const, content: "abcd天气" },
    {
      role: "assistant" as const,
      content: [{ type: "tool-call" as const, toolCallId: "1", toolName: "read", input: { path: "気" } }],
    },
  ];
  const weigh = (count: typeof unitsOfText) => unitsOfRequest({ instructions: "efgh", tools: {}, messages }, count);
  const kinds = kindsOf(weigh);
  expect(kinds).toEqual({ text: 3, wide: 3, data: unitsOfText('{"path":""}'), rest: 20 });
  expect(sumOf(kinds)).toBe(weigh(unitsOfText));
  expect(weigh(countKinds([2, 3, 4, 1]))).toBe(6 + 9 + 4 * kinds.data + 20);
});

test("kinds are kept in the model's row, and rows from before count", async () => {
  const { host } = await probeHost();
  writeCell(host, `learned:${MODEL}`, "1.2000 5");
  const first = new LearnedFactors(host);
  expect([first.of(MODEL), first.countOf(MODEL)]).toEqual([1.2, unitsOfText]);
  const wide = { text: 0, wide: 9_000, data: 0, rest: 1_000 };
  const text = { text: 9_000, wide: 0, data: 0, rest: 1_000 };
  for (let index = 0; index < 6; index++) {
    first.learn(MODEL, { units: 10_000, kinds: wide, usage: used(15_000) });
    first.learn(MODEL, { units: 10_000, kinds: text, usage: used(10_000) });
  }
  for (const learned of [first, new LearnedFactors(host)]) {
    const tokens = (said: string) => learned.of(MODEL) * learned.countOf(MODEL)(said);
    expect(tokens("天".repeat(1_000)) / 1_000).toBeCloseTo(1.5, 0);
    expect(tokens("天".repeat(1_000)) / tokens("abcd".repeat(1_000))).toBeGreaterThan(1.3);
  }
  expect(readLearned(host, MODEL).kinds?.factors).toHaveLength(4);
  for (const value of ["1.2000 5 1 2", "1.2000 5 1 much 1 1", "1.2000 5 1 -1 1 1"]) {
    writeCell(host, `learned:${MODEL}`, value);
    expect(readLearned(host, MODEL)).toEqual({ factor: 1.2, samples: 5 });
  }
});

test("a small difference is none: nothing is weighed anew for it", async () => {
  const { host } = await probeHost();
  const learned = new LearnedFactors(host);
  const kinds = { text: 5_000, wide: 0, data: 4_000, rest: 1_000 };
  for (let index = 0; index < 20; index++) {
    learned.learn(MODEL, { units: 10_000, kinds, usage: used(index % 2 === 0 ? 11_000 : 11_300) });
  }
  expect(learned.countOf(MODEL)).toBe(unitsOfText);
});
