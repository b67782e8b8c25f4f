import { expect, test } from "vitest";
import type { ChatMessage } from "../message/parts.ts";
import { Stretches } from "./stretches.ts";

const made = new Map<number, ChatMessage>();

function message(at: number): ChatMessage {
  const known = made.get(at) ?? { id: `m${at}`, role: "user", parts: [] };
  made.set(at, known);
  return known;
}

function range(from: number, to: number): ChatMessage[] {
  return Array.from({ length: to - from }, (_, at) => message(from + at));
}

const ids = (all: readonly ChatMessage[]) => all.map(({ id }) => id);

test("nothing is lost, and no stretch is longer than a screen", () => {
  const stretches = new Stretches().split(range(0, 100));
  expect(stretches.flatMap(({ messages }) => ids(messages))).toEqual(ids(range(0, 100)));
  for (const { messages } of stretches) expect(messages.length).toBeLessThanOrEqual(12);
});

test("older messages come into stretches of their own; those that were there stay the same objects", () => {
  const stretches = new Stretches();
  const before = stretches.split(range(60, 100));
  const after = stretches.split(range(20, 100));
  expect(after.slice(-before.length)).toEqual(before);
  for (const [at, stretch] of before.entries()) expect(after[after.length - before.length + at]).toBe(stretch);
  expect(new Set(after.map(({ key }) => key)).size).toBe(after.length);
});

test("new messages fill the last stretch, and only that one changes", () => {
  const stretches = new Stretches();
  const before = stretches.split(range(0, 15));
  const after = stretches.split(range(0, 17));
  expect(after.length).toBe(before.length);
  expect(after[0]).toBe(before[0]);
  expect(ids(after[1]?.messages ?? [])).toEqual(ids(range(12, 17)));
});

test("another branch takes the place of a part; messages in another order still have keys of their own", () => {
  const stretches = new Stretches();
  stretches.split(range(0, 30));
  const other = [...range(0, 10), ...range(200, 230)];
  expect(stretches.split(other).flatMap(({ messages }) => ids(messages))).toEqual(ids(other));
  const mixed = [message(0), message(220), message(1), message(221), message(2)];
  const cut = stretches.split(mixed);
  expect(cut.flatMap(({ messages }) => ids(messages))).toEqual(ids(mixed));
  expect(new Set(cut.map(({ key }) => key)).size).toBe(cut.length);
});
