import { expect, test } from "vitest";
import { turnRow } from "../../../test/chat/turn-row.ts";
import type { TurnStatus, TurnTrigger } from "../../store/turn.ts";
import type { MessageConcurrency } from "../policy.ts";
import { admitMessage } from "./accept.ts";

const NOW = 5_000;

const turn = (id: string, status: TurnStatus, trigger: TurnTrigger = "submit") => turnRow({ id, status, trigger });

const running = turn("running", "running");
const waiting = turn("waiting", "accepted");
const open = [running, waiting, turn("again", "accepted", "regenerate"), turn("cron", "accepted", "server")];
const all: readonly MessageConcurrency[] = [
  "queue",
  "latest",
  "merge",
  "drop",
  "debounce",
  { strategy: "debounce", debounceMs: 9 },
  "steer",
];

const accepted = { kind: "accept", skip: [], notBefore: NOW, merge: false, steer: false };

test.each(all)("%j: the first message is taken as it comes", (policy) => {
  expect(admitMessage(policy, [], NOW)).toEqual(accepted);
});

test.each(all)("%j: a continuation that waits for answers is not in the way", (policy) => {
  expect(admitMessage(policy, [turn("held", "held", "continuation")], NOW)).toEqual(accepted);
});

test("queue: behind everything that is there", () => {
  expect(admitMessage("queue", open, NOW)).toEqual(accepted);
});

test("drop: refused, whether a turn runs or waits", () => {
  expect(admitMessage("drop", [running], NOW)).toEqual({ kind: "refuse" });
  expect(admitMessage("drop", [waiting], NOW)).toEqual({ kind: "refuse" });
});

test("latest, merge and debounce pass over messages that wait, never a running turn or what nobody typed", () => {
  expect(admitMessage("latest", open, NOW)).toEqual({ ...accepted, skip: [waiting] });
  expect(admitMessage("merge", open, NOW)).toEqual({ ...accepted, skip: [waiting], merge: true });
  expect(admitMessage("debounce", open, NOW)).toEqual({ ...accepted, skip: [waiting], notBefore: NOW + 750 });
});

test("steer: for the turn that runs to take in; with none running it queues. Nothing is passed over", () => {
  expect(admitMessage("steer", open, NOW)).toEqual({ ...accepted, steer: true });
  expect(admitMessage("steer", [waiting], NOW)).toEqual(accepted);
});

test.each([
  [120, 120],
  [0, 0],
  [-1, 750],
  [Number.NaN, 750],
  [Number.POSITIVE_INFINITY, 750],
  [undefined, 750],
])("debounceMs %s waits for %i ms", (debounceMs, ms) => {
  expect(admitMessage({ strategy: "debounce", debounceMs }, open, NOW)).toMatchObject({ notBefore: NOW + ms });
});

test("a policy that does not exist is an error that names it", () => {
  const wrong = "newest" as MessageConcurrency;
  expect(() => admitMessage(wrong, open, NOW)).toThrow(/"newest".*queue, latest, merge, drop, debounce or steer/);
});
