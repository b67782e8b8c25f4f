import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { FrameTurns } from "./frame-turns.ts";

const source = () => {
  const log: string[] = [];
  return { log, pause: () => log.push("pause"), resume: () => log.push("resume") };
};

/** Takes longer than a turn. */
function busy(): void {
  const begun = performance.now();
  while (performance.now() - begun < 20);
}

test("frames are handed over at once while there is time", () => {
  const turns = new FrameTurns();
  const done: number[] = [];
  for (const n of [1, 2, 3]) turns.take(source(), () => done.push(n));
  expect(done).toEqual([1, 2, 3]);
});

test("behind long work frames wait, their sockets are not read, and others have their turn in between", async () => {
  const turns = new FrameTurns();
  const [a, b] = [source(), source()];
  const done: string[] = [];
  turns.take(a, busy);
  for (const n of [1, 2]) turns.take(a, () => done.push(`a${n}`));
  for (const n of [1, 2]) turns.take(b, () => done.push(`b${n}`));
  expect(done).toEqual([]);
  expect([a.log, b.log]).toEqual([["pause"], ["pause"]]);
  while (done.length < 4) await nextTurn();
  // By turns, and each in its order.
  expect(done).toEqual(["a1", "b1", "a2", "b2"]);
  expect([a.log, b.log]).toEqual([
    ["pause", "resume"],
    ["pause", "resume"],
  ]);
});

test("of many long works one is done in each turn of the process", async () => {
  const turns = new FrameTurns();
  const one = source();
  let done = 0;
  let others = 0;
  const look = () => {
    others++;
    if (done < 5) setImmediate(look);
  };
  setImmediate(look);
  for (let n = 0; n < 5; n++)
    turns.take(one, () => {
      busy();
      done++;
    });
  while (done < 5) await nextTurn();
  expect(others).toBeGreaterThanOrEqual(4);
});
