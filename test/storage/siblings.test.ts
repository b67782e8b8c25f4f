// Answers that were given anew stay beside each other; what stands before them is there once.
import { expect, test } from "vitest";
import { openOnDisk } from "./on-disk.ts";

const BEFORE = 50;
const AGAIN = 40;
const ANSWER = "words ".repeat(600);
/** What a message has around its text: its row, its index entries, the page that it does not fill. */
const AROUND = 2_048;

test("an answer given anew costs one answer more, whatever was said before", { timeout: 60_000 }, async () => {
  const once = openOnDisk(() => ANSWER);
  const often = openOnDisk(() => ANSWER);
  const questions = Array.from({ length: BEFORE }, (_, n) => `Question ${n}?`);
  for (const agent of [once, often]) await agent.ask(...questions);
  for (let n = 0; n < AGAIN; n++) await often.again();
  const [small, large] = [await once.left(), await often.left()];
  expect(small.rows.perdure_message).toBe(2 * BEFORE);
  expect(large.rows.perdure_message).toBe(2 * BEFORE + AGAIN);
  expect(large.rows).not.toHaveProperty("perdure_stream");
  const used = (left: { fileBytes: number; freeBytes: number }) => left.fileBytes - left.freeBytes;
  expect(used(large) - used(small)).toBeLessThan(AGAIN * (ANSWER.length + AROUND));
});
