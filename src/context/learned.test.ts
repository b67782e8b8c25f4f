import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import type { Sql, SqlRow, SqlValue } from "../port.ts";
import type { Usage } from "../ledger/token-usage.ts";
import { listCells, writeCell } from "../store/cell.ts";
import { correctFactor, LearnedFactors, NOTHING_LEARNED, readLearned, writeLearned } from "./learned.ts";
import { unitsOfText } from "./text-units.ts";

const MODEL = "openai.responses/gpt-5";
const used = (input: number, more: Partial<Usage> = {}): Usage => ({
  ...{ input, output: 100, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
  ...more,
});
const call = (ratio: number) => ({ units: 10_000, usage: used(10_000 * ratio) });

/** Counts what is asked of a database. */
function counted(db: Sql): { readonly db: Sql; readonly counts: { reads: number; writes: number } } {
  const counts = { reads: 0, writes: 0 };
  const sql = <T = SqlRow>(query: string, ...values: SqlValue[]): T[] => {
    if (query.startsWith("SELECT")) counts.reads++;
    else counts.writes++;
    return db.sql<T>(query, ...values);
  };
  return { db: { ...db, sql }, counts };
}

test("the first call says it, later ones move it", () => {
  const first = correctFactor(NOTHING_LEARNED, call(1.4));
  expect(first).toEqual({ factor: 1.4, samples: 1 });
  const second = correctFactor(first, call(1.2));
  expect(second.factor).toBeCloseTo(1.3);
  let now = second;
  for (let index = 0; index < 12; index++) now = correctFactor(now, call(0.8));
  expect(now.factor).toBeCloseTo(0.8, 1);
});

test("one call out of many does not turn it over", () => {
  const before = { factor: 1, samples: 50 };
  const after = correctFactor(before, call(2));
  expect(after.factor).toBeGreaterThan(1.1);
  expect(after.factor).toBeLessThan(1.4);
});

test("it stays between a half and two", () => {
  let now = NOTHING_LEARNED;
  for (let index = 0; index < 20; index++) now = correctFactor(now, call(3.9));
  expect(now.factor).toBe(2);
  for (let index = 0; index < 40; index++) now = correctFactor(now, call(0.3));
  expect(now.factor).toBeCloseTo(0.5, 5);
  expect(now.factor).toBeGreaterThanOrEqual(0.5);
});

test.each([
  ["no usage", 10_000, undefined],
  ["no input", 10_000, used(0)],
  ["what is no number", 10_000, used(Number.NaN)],
  ["an endless number", 10_000, used(Number.POSITIVE_INFINITY)],
  ["less than nothing", 10_000, used(-5)],
  ["only what was not cached", 10_000, used(12)],
  ["the sum of many calls", 10_000, used(500_000)],
  ["a request that is too short to tell", 20, used(400)],
  ["a request without a size", Number.NaN, used(10_000)],
  ["an empty request", 0, used(10_000)],
])("%s teaches nothing", (_name, units, usage) => {
  const before = { factor: 1.3, samples: 4 };
  expect(correctFactor(before, { units, usage })).toBe(before);
});

test("cached input is part of the input and not counted twice", () => {
  const usage = used(11_000, { cacheRead: 9_000, cacheWrite: 1_000 });
  expect(correctFactor(NOTHING_LEARNED, { units: 10_000, usage }).factor).toBeCloseTo(1.1);
});

test("what was learned is there after a restart, for each model by itself", async () => {
  const { host } = await probeHost();
  const first = new LearnedFactors(host);
  expect(first.of(MODEL)).toBe(1);
  expect(first.learn(MODEL, call(1.5))).toBe(1.5);
  first.learn("anthropic/claude", call(1.25));
  const second = new LearnedFactors(host);
  expect(second.of(MODEL)).toBe(1.5);
  expect(second.of("anthropic/claude")).toBe(1.25);
  expect(second.of("other/model")).toBe(1);
  expect(listCells(host, "learned:").map(({ key }) => key)).toEqual([`learned:anthropic/claude`, `learned:${MODEL}`]);
});

test("it reads a model's row once, and writes only when the factor has moved", async () => {
  const { host } = await probeHost();
  const { db, counts } = counted(host);
  const learned = new LearnedFactors(db);
  learned.learn(MODEL, call(1.5));
  expect(counts).toEqual({ reads: 1, writes: 1 });
  for (let index = 0; index < 100; index++) {
    learned.learn(MODEL, call(index % 2 === 0 ? 1.51 : 1.49));
    learned.of(MODEL);
  }
  expect(counts).toEqual({ reads: 1, writes: 1 });
  // Slow steps are not lost: they are added up until they are worth it.
  for (let index = 0; index < 20; index++) learned.learn(MODEL, call(1.6));
  expect(counts.reads).toBe(1);
  expect(counts.writes).toBeGreaterThan(1);
  expect(counts.writes).toBeLessThan(6);
  expect(readLearned(host, MODEL).factor).toBeCloseTo(learned.of(MODEL), 1);
});

test("what cannot be read is not known", async () => {
  const { host } = await probeHost();
  for (const value of ["", "much", "1.5", "0 3", "-1 3", "NaN 1", "1.5 0"]) {
    writeCell(host, `learned:${MODEL}`, value);
    expect(readLearned(host, MODEL)).toEqual(NOTHING_LEARNED);
  }
  writeLearned(host, MODEL, { factor: 1.23456, samples: 7 });
  expect(readLearned(host, MODEL)).toEqual({ factor: 1.2346, samples: 7 });
  writeCell(host, `learned:${MODEL}`, "50 3");
  expect(readLearned(host, MODEL).factor).toBe(2);
});

/** Models that count differently: tokens for a character of each script. */
const tokenizers = {
  "large vocabulary": { wide: 0.68, ascii: 0.24 },
  "older vocabulary": { wide: 1.25, ascii: 0.25 },
  "small vocabulary": { wide: 1.7, ascii: 0.3 },
};

const texts = [
  "请帮我检查这份租赁合同，特别是关于押金退还和提前解约的条款。我希望知道有没有对租客不利的地方。",
  "この関数は入力された文字列を解析して、エラーがあれば行番号と一緒に返します。テストを書いてください。",
  "어제 회의에서 결정된 내용을 요약해서 팀 전체에 보낼 이메일 초안을 작성해 주세요. 마감일도 꼭 넣어 주세요.",
  "运行 `npm run build` 之后出现了错误：Cannot find module './config'。请看一下 tsconfig.json 的 paths 设置。",
];

test.each(Object.entries(tokenizers))("text in Chinese, Japanese and Korean is within 15 %% (%s)", (_name, by) => {
  const tokensOf = (text: string) => {
    let sum = 0;
    for (const char of text) sum += char.charCodeAt(0) < 0x80 ? by.ascii : by.wide;
    return Math.round(sum);
  };
  let learned = NOTHING_LEARNED;
  let sent = "";
  for (let turn = 0; turn < 8; turn++) {
    sent += (texts[turn % texts.length] ?? "").repeat(12);
    learned = correctFactor(learned, { units: unitsOfText(sent), usage: used(tokensOf(sent)) });
  }
  for (const text of texts) {
    const long = text.repeat(30);
    const real = tokensOf(long);
    expect(Math.abs(learned.factor * unitsOfText(long) - real) / real).toBeLessThan(0.15);
  }
});
