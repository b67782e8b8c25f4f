// What a long answer writes to the disk while it streams, and that nothing is left of the stream.
import { expect, test } from "vitest";
import { openOnDisk } from "./on-disk.ts";

const MEGABYTE = 1_000_000;
const DELTAS = 4_000;
/** 16 KB. */
const deltas = Array.from({ length: DELTAS }, (_, n) => `${String(n % 1_000).padStart(3, "0")} `);
const TEXT = deltas.join("");

test.each([
  ["all at once", 0],
  ["1 ms apart", 1],
  ["2 ms apart", 2],
])("16 KB in 4,000 deltas, %s, write less than a megabyte", async (_name, delayMs) => {
  const agent = openOnDisk([{ text: deltas, delayMs }]);
  await agent.ask("Go on.");
  expect(await agent.lastText()).toBe(TEXT);
  const { bytes, commits } = agent.written();
  expect(commits).toBeGreaterThan(delayMs === 0 ? 5 : 50);
  // At least the answer itself, or nothing was counted.
  expect(bytes).toBeGreaterThan(TEXT.length);
  expect(bytes).toBeLessThan(MEGABYTE);
  expect((await agent.left()).rows).not.toHaveProperty("perdure_stream");
});

test("a slow answer is not committed word by word", async () => {
  const PACE_MS = 20;
  const agent = openOnDisk([{ text: deltas, delayMs: PACE_MS }]);
  await agent.ask("Go on.");
  expect(await agent.lastText()).toBe(TEXT);
  // A commit for every 100 ms, and some at the beginning, when words come at once.
  const { commits, bytes } = agent.written();
  expect(commits).toBeLessThan((DELTAS * PACE_MS) / 100 + 100);
  expect(bytes).toBeLessThan(4 * MEGABYTE);
});
