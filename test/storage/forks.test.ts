// A session that is forked from another one shares what was said before.
import { expect, test } from "vitest";
import { openOnDisk } from "./on-disk.ts";

const TURNS = 40;
const FORKS = 100;
const ANSWER = "words ".repeat(600);
/** A session's row. */
const FILE_BYTES_PER_FORK = 1_024;
/** A commit of a page or two; the conversation has a hundred times as much. */
const WRITTEN_BYTES_PER_FORK = 10_000;

test("a hundred forks of a conversation copy none of it, and deleting them deletes none of it", async () => {
  const once = openOnDisk(() => ANSWER);
  const often = openOnDisk(() => ANSWER);
  const questions = Array.from({ length: TURNS }, (_, n) => `Question ${n}?`);
  for (const agent of [once, often]) await agent.ask(...questions);
  const before = often.written().bytes;
  const forks = await often.fork(FORKS);
  expect((often.written().bytes - before) / FORKS).toBeLessThan(WRITTEN_BYTES_PER_FORK);
  await often.forget(forks.slice(1));
  const [small, large] = [await once.left(), await often.left()];
  expect(large.rows.perdure_message).toBe(small.rows.perdure_message);
  expect(large.rows.perdure_session).toBe((small.rows.perdure_session ?? 0) + 1);
  expect(large.fileBytes).toBeLessThan(small.fileBytes + FORKS * FILE_BYTES_PER_FORK);
});
