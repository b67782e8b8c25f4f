// Tokens, overflow and pruning. Written after the samples on compression and on counting tokens; a comment says what had
// to be written otherwise.
import { estimateTokens, isOverflow, PRUNE_MINIMUM, PRUNE_PROTECT } from "perdure/context";
import { expect, test } from "vitest";
import { long, openSmall, shown } from "../../context/compacting.ts";
import { answer, called, user } from "../../context/paths.ts";

test("token estimate: about four characters of English are one", () => {
  // `Token.estimate`. Rounded up, and other scripts count by what they really are.
  expect(estimateTokens("hello world")).toBe(3);
  expect(estimateTokens("")).toBe(0);
  expect(estimateTokens("世界")).toBe(2);
});

test("overflow: what went in, what was cached and what came out, against the window without the answer", () => {
  const tokens = { input: 100_000, output: 10_000, cache: { read: 5_000, write: 0 } };
  expect(isOverflow({ tokens, model: { limit: { context: 100_000, output: 5_000 } } })).toBe(true);
  expect(isOverflow({ tokens, model: { limit: { context: 1_000_000, output: 5_000 } } })).toBe(false);
  expect(isOverflow({ tokens, model: { limit: { context: 0, output: 0 } } })).toBe(false);
  // The same by the names of `modelLimits`.
  expect(isOverflow({ tokens, limits: { window: 120_000, output: 8_000 } })).toBe(true);
  // What is written to the cache was sent too, so it counts; at least 16,000 are set aside for the answer.
  const cached = { input: 0, output: 0, cache: { read: 0, write: 90_000 } };
  expect(isOverflow({ tokens: cached, model: { limit: { context: 100_000, output: 5_000 } } })).toBe(true);
});

test("overflow: the class can leave all of it to the app", async () => {
  // `Flag.OPENCODE_DISABLE_AUTOCOMPACT` is a setting of the class: `contextOverflow = false`.
  const kit = await openSmall({ settings: { contextOverflow: false } });
  for (let i = 0; i < 5; i++) await kit.ask(long(`question ${i}`, 1_000));
  expect(kit.summaries()).toEqual([]);
  expect(shown(kit.turns().at(-1))).toContain("question 0 abc");
});

test("prune: from the newest up, two turns and 40,000 tokens of outputs stay; the rest is marked, not deleted", async () => {
  expect([PRUNE_PROTECT, PRUNE_MINIMUM]).toEqual([40_000, 20_000]);
  const kit = await openSmall({ settings: { modelLimits: { "scripted/*": { window: 1_000_000 } } } });
  const agent = await kit.agent();
  for (let i = 0; i < 6; i++) {
    const parts = [called("read", `c${i}`, long(`book-${i}`, 15_000), { book: i })];
    await agent.addMessages([user(`u${i}`, "read on"), answer(`a${i}`, ...parts)]);
  }
  // `prune({ sessionID })`; the mark is a row beside the messages and no field in a part, so that it can be undone.
  const made = await agent.prune({ session: "main" });
  expect(made).toMatchObject({ kind: "prune", status: "done", trigger: "manual", inEffect: true });
  await kit.ask("What is in them?");
  const request = shown(kit.turns().at(-1));
  for (const gone of [0, 1]) expect(request).not.toContain(`book-${gone} abc`);
  for (const kept of [2, 3, 4, 5]) expect(request).toContain(`book-${kept} abc`);
  expect(JSON.stringify(agent.session.getHistory())).toContain("book-0 abc");
  // For less than 20,000 nothing is done.
  expect(await agent.prune()).toBeUndefined();
  await agent.undoCompaction(made?.id ?? "");
  await kit.ask("And now?");
  expect(shown(kit.turns().at(-1))).toContain("book-0 abc");
});

test("prune stops at a summary", async () => {
  const kit = await openSmall({ settings: { modelLimits: { "scripted/*": { window: 1_000_000 } } } });
  const agent = await kit.agent();
  const read = (i: number) => [
    user(`u${i}`, "read"),
    answer(`a${i}`, called("read", `c${i}`, long(`book-${i}`, 15_000))),
  ];
  await agent.addMessages([0, 1, 2, 3, 4, 5].flatMap(read));
  await agent.compact();
  expect(await agent.prune()).toBeUndefined();
});

test("a step that is finished has its tokens: input, output, reasoning, cache read and written, and what it cost", async () => {
  // `StepFinishPart` is a row of the ledger: listed by `listUsage()`, summed by `usage()`, and what budgets go by.
  const kit = await openSmall({
    answer: () => ({
      text: "Done.",
      usage: {
        inputTokens: 1_000,
        outputTokens: 200,
        reasoningTokens: 50,
        cachedInputTokens: 600,
        cacheWriteTokens: 100,
      },
    }),
    extend: (Base) =>
      class extends Base {
        override prices = { "scripted/*": { input: 1, output: 2 } };
      },
  });
  await kit.ask("go");
  const [{ input, output, reasoning, cacheRead, cacheWrite, cost, status } = {}] = (await kit.agent()).listUsage();
  expect({ input, output, reasoning, cacheRead, cacheWrite, status }).toEqual({
    ...{ input: 1_000, output: 200, reasoning: 50, cacheRead: 600, cacheWrite: 100, status: "ok" },
  });
  expect(cost).toBeGreaterThan(0);
  // There `input` is what was not cached; here it is all that went in.
  const count = { input: 300, output: 200, cache: { read: 600, write: 100 } };
  expect(isOverflow({ tokens: count, limits: { window: 2_000 } })).toBe(true);
});
