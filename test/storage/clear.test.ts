// What a conversation took on the disk is free again when it is forgotten, and used by the next one.
import { expect, test } from "vitest";
import { openOnDisk } from "./on-disk.ts";

const TURNS = 40;
const ANSWER = "words ".repeat(1_000);
const questions = Array.from({ length: TURNS }, (_, n) => `Question ${n}?`);
const TEXT_BYTES = TURNS * ANSWER.length;

test("a conversation that was forgotten gives its room back", async () => {
  const agent = openOnDisk(() => ANSWER);
  await agent.ask(...questions);
  await agent.clear();
  const { rows, freeBytes } = await agent.left();
  for (const table of ["perdure_message", "perdure_stream", "perdure_turn"]) expect(rows).not.toHaveProperty(table);
  expect(freeBytes).toBeGreaterThan(TEXT_BYTES);
});

test("the file does not grow with conversations that are forgotten", { timeout: 60_000 }, async () => {
  const once = openOnDisk(() => ANSWER);
  await once.ask(...questions);
  const often = openOnDisk(() => ANSWER);
  for (let round = 0; round < 3; round++) {
    if (round > 0) await often.clear();
    await often.ask(...questions);
  }
  const [small, large] = [await once.left(), await often.left()];
  expect(large.rows.perdure_message).toBe(small.rows.perdure_message);
  // The ledger of model calls is kept: what was paid for does not depend on what is remembered.
  expect(large.fileBytes).toBeLessThan(small.fileBytes * 1.3);
});
