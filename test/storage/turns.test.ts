// What many turns leave on the disk, and that a turn writes no more when there were many before it.
import { expect, test } from "vitest";
import { openOnDisk } from "./on-disk.ts";

const TURNS = 2_000;
const WINDOW = 100;
/** A question and an answer of some 30 letters each, with all that is kept of a turn. */
const FILE_BYTES_PER_TURN = 2_048;
const WRITTEN_BYTES_PER_TURN = 120_000;
/** Of these 16,000 are for the answer. What does not fit is summarised now and then. */
const WINDOW_TOKENS = 24_000;

test("2,000 short turns stay under 2 KiB of file each", { timeout: 120_000 }, async () => {
  const agent = openOnDisk(({ index }) => `Answer number ${index}, as short as that.`, WINDOW_TOKENS);
  const questions = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `Question number ${from + n}, is it?`);
  const ask = async (from: number, count: number) => {
    const before = agent.written();
    await agent.ask(...questions(from, count));
    const after = agent.written();
    return { bytes: (after.bytes - before.bytes) / count, commits: (after.commits - before.commits) / count };
  };
  await ask(0, WINDOW);
  const early = await ask(WINDOW, WINDOW);
  await ask(2 * WINDOW, TURNS - 3 * WINDOW);
  const late = await ask(TURNS - WINDOW, WINDOW);
  expect(late.commits).toBeLessThan(early.commits * 1.1);
  expect(late.bytes).toBeLessThan(early.bytes * 1.5);
  expect(late.bytes).toBeLessThan(WRITTEN_BYTES_PER_TURN);

  const { fileBytes, rows } = await agent.left();
  expect(rows.perdure_message).toBe(2 * TURNS);
  expect(rows.perdure_compaction).toBeGreaterThan(1);
  expect(rows).not.toHaveProperty("perdure_stream");
  // Turns that are over are kept for a while only.
  expect(rows.perdure_turn).toBeLessThan(WINDOW);
  expect(fileBytes / TURNS).toBeLessThan(FILE_BYTES_PER_TURN);
});
