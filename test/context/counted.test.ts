// Texts are counted as the app does it, a counter that fails changes nothing, and providers correct both.
import type { TextCounter } from "perdure/context";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { openSmall } from "./compacting.ts";

const words: TextCounter = (text) => text.split(/\s+/).filter((word) => word !== "").length;
/** About 1,000 tokens by their length. */
const LONG_WORDS = "abcdefghijklmnopqrstuvwxyzabcdefghijklm ".repeat(100);
const SHORT_WORDS = "a ".repeat(2_000);

/** A provider that counts nothing. */
const uncounted = () => ({ text: "Yes.", usage: { inputTokens: 0, outputTokens: 0 } });

async function held(text: string, turns: number, counter?: () => TextCounter | undefined, answer = uncounted) {
  const asked: string[] = [];
  const kit = await openSmall({
    answer,
    extend: (Base) =>
      class extends Base {
        override countTokens(model: string) {
          asked.push(model);
          return counter?.();
        }
      },
  });
  for (let turn = 1; turn <= turns; turn++) {
    expect(await kit.ask(`${turn} ${text}`)).toMatchObject({ status: "completed" });
  }
  const compactions = (await kit.compactions()).map(({ status, trigger, turn: at }) => ({ status, trigger, at }));
  const { used, estimated } = await (await kit.agent()).contextReport();
  const learned = await kit.rows<{ key: string; value: string }>(
    "SELECT key, value FROM perdure_cell WHERE key LIKE 'learned:%'",
  );
  return { compactions, asked, used, estimated, learned };
}

test.each([
  ["long words fit that the estimate takes for more", LONG_WORDS, 5, 0],
  ["short words do not fit that the estimate takes for less", SHORT_WORDS, 3, 1],
])("a counter of words decides when a conversation is compacted: %s", async (_name, text, turns, compacted) => {
  const counted = await held(text, turns, () => words);
  expect(counted.compactions).toHaveLength(compacted);
  expect(counted.asked.every((model) => model.startsWith("scripted/"))).toBe(true);
  const estimated = await held(text, turns);
  expect(estimated.compactions.length > 0).toBe(compacted === 0);
});

test("where texts are estimated, what the provider counts is learned for each kind of text", async () => {
  const { learned } = await held(LONG_WORDS, 3, undefined, () => ({
    ...{ text: "Yes.", usage: { inputTokens: 1_300, outputTokens: 1 } },
  }));
  expect(learned).toEqual([
    { key: expect.stringMatching(/^learned:scripted\//), value: expect.stringMatching(/^[\d.]+ 3( -?[\d.e-]+){20}$/) },
  ]);
});

test("what the provider counts corrects the counter too, in a row of its own", async () => {
  const { compactions, learned } = await held(
    SHORT_WORDS,
    3,
    () => words,
    () => ({
      ...{ text: "Yes.", usage: { inputTokens: 1_200, outputTokens: 1 } },
    }),
  );
  // Counted alone, it would not have fitted.
  expect(compactions).toEqual([]);
  expect(learned).toEqual([{ key: expect.stringMatching(/^learned:counted:scripted\//), value: expect.any(String) }]);
  expect(Number.parseFloat(learned[0]?.value ?? "")).toBeLessThan(0.7);
});

test.each([
  [
    "throws",
    (): TextCounter => () => {
      throw new Error("no vocabulary");
    },
    "no vocabulary",
  ],
  ["is no counter", (): TextCounter => () => Number.NaN, "returned NaN"],
  [
    "cannot be had",
    () => {
      throw new Error("no tokenizer");
    },
    "no tokenizer",
  ],
])("one that %s changes nothing but that it is told", async (_name, counter, error) => {
  const failures: unknown[] = [];
  onTestFinished(subscribe("chat:counter:failed", ({ payload }) => void failures.push(payload)));
  const failing = await held(LONG_WORDS, 5, counter);
  expect(failures).toEqual([{ model: expect.stringMatching(/^scripted\//), error: expect.stringContaining(error) }]);
  const without = await held(LONG_WORDS, 5);
  expect(without.compactions.length).toBeGreaterThan(0);
  expect({ ...failing, asked: [] }).toEqual({ ...without, asked: [] });
});
