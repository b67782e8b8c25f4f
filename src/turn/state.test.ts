import { expect, test } from "vitest";
import { turnRow } from "../../test/chat/turn-row.ts";
import type { TurnRow } from "../store/turn.ts";
import { nextTurnMove, type TurnFacts, type TurnMove } from "./state.ts";

const NOW = 1_000;

const turn = (fields: Partial<TurnRow>) => turnRow({ notBefore: NOW, ...fields });
const held = (fields: Partial<TurnRow> = {}) =>
  turn({ status: "held", trigger: "continuation", continuation: 1, ...fields });
const later = { notBefore: NOW + 50 };
const stopped = { cancelled: 1 } as const;

interface Row {
  readonly name: string;
  readonly open: readonly TurnRow[];
  readonly facts?: Partial<TurnFacts>;
  /** The kind of the move, and the index of its turn or the time to wait for. */
  readonly move: readonly [kind: TurnMove["kind"], at: number | null];
}

const holds = (answer: ReturnType<TurnFacts["holds"]>) => ({ holds: () => answer });

const table: readonly Row[] = [
  { name: "nothing is open", open: [], move: ["wait", null] },
  { name: "the oldest runs first", open: [turn({}), turn({})], move: ["run", 0] },
  { name: "one at a time", open: [turn({})], facts: { active: true }, move: ["wait", null] },
  { name: "nothing new once stopped", open: [turn({})], facts: { stopped: true }, move: ["wait", null] },
  {
    name: "cut turns are not resumed once stopped",
    open: [turn({ status: "running" })],
    facts: { stopped: true },
    move: ["wait", null],
  },
  {
    name: "a cut turn goes before those that wait",
    open: [turn({ status: "running", attempts: 1 }), turn({})],
    move: ["resume", 0],
  },
  { name: "a cut turn does not wait for its time", open: [turn({ status: "running", ...later })], move: ["resume", 0] },
  { name: "due exactly now", open: [turn({ notBefore: NOW })], move: ["run", 0] },
  { name: "not due yet", open: [turn(later)], move: ["wait", NOW + 50] },
  { name: "one that is not due holds up those behind it", open: [turn(later), turn({})], move: ["wait", NOW + 50] },
  { name: "a cancelled one that never ran ends", open: [turn(stopped), turn({})], move: ["settle", 0] },
  { name: "a cancelled one ends before its time", open: [turn({ ...stopped, ...later })], move: ["settle", 0] },
  {
    name: "a cancelled one that was cut ends where its log is read",
    open: [turn({ ...stopped, status: "running" })],
    move: ["resume", 0],
  },
  { name: "a cancelled one that is held ends", open: [held(stopped)], facts: holds("ready"), move: ["settle", 0] },
  {
    name: "a cancelled one ends while another runs",
    open: [turn({ status: "running" }), turn(stopped)],
    facts: { active: true },
    move: ["settle", 1],
  },
  {
    name: "a cancelled one ends although nothing new begins",
    open: [turn(stopped)],
    facts: { stopped: true },
    move: ["settle", 0],
  },
  {
    name: "the running one is not ended from here",
    open: [turn({ status: "running", ...stopped })],
    facts: { active: true },
    move: ["wait", null],
  },
  { name: "all answers are there", open: [held()], facts: holds("ready"), move: ["run", 0] },
  {
    name: "all answers are there, more may come",
    open: [held(later)],
    facts: holds("ready"),
    move: ["wait", NOW + 50],
  },
  { name: "answers are missing", open: [held()], facts: holds("waiting"), move: ["wait", null] },
  { name: "one that lacks answers gives way", open: [held(), turn({})], facts: holds("waiting"), move: ["run", 1] },
  {
    name: "one that gathers answers gives way",
    open: [held(later), turn({})],
    facts: holds("ready"),
    move: ["run", 1],
  },
  {
    name: "one that gathers answers is waited for at last",
    open: [held(later), turn({ notBefore: NOW + 80 })],
    facts: holds("ready"),
    move: ["wait", NOW + 50],
  },
  { name: "nothing left to go on with", open: [held()], facts: holds("moot"), move: ["settle", 0] },
  {
    name: "nothing left to go on with, whenever it was due",
    open: [held(later)],
    facts: holds("moot"),
    move: ["settle", 0],
  },
];

test.each(table)("$name", ({ open, facts, move: [kind, at] }) => {
  const move = nextTurnMove(open, { now: NOW, active: false, stopped: false, holds: () => "waiting", ...facts });
  expect([move.kind, move.kind === "wait" ? move.until : open.indexOf(move.turn)]).toEqual([kind, at]);
});

test("a cancelled turn is aborted, one that has become moot is skipped", () => {
  const facts: TurnFacts = { now: NOW, active: false, stopped: false, holds: () => "moot" };
  expect(nextTurnMove([turn(stopped)], facts)).toMatchObject({ kind: "settle", status: "aborted" });
  expect(nextTurnMove([held()], facts)).toMatchObject({ kind: "settle", status: "skipped" });
});
