import { expect, test } from "vitest";
import { turnRow } from "../../../test/chat/turn-row.ts";
import type { TurnRow } from "../../store/turn.ts";
import { nextMoves, suspects, type MoveFacts } from "./next-moves.ts";

const NOW = 1_000;

const turn = (fields: Partial<TurnRow>) => turnRow({ notBefore: NOW, ...fields });
const held = (fields: Partial<TurnRow> = {}) =>
  turn({ status: "held", trigger: "continuation", continuation: 1, ...fields });
const later = { notBefore: NOW + 50 };
const stopped = { cancelled: 1 } as const;

const FACTS: MoveFacts = {
  ...{ now: NOW, stopped: false, running: new Set<string>(), width: 1, alone: new Set<string>() },
  holds: () => "waiting",
};

/** What is done in one session, where turns run one after another. */
type TurnMove =
  | { readonly kind: "run"; readonly turn: TurnRow }
  | { readonly kind: "resume"; readonly turn: TurnRow }
  | { readonly kind: "settle"; readonly turn: TurnRow; readonly status: "aborted" | "skipped" }
  | { readonly kind: "wait"; readonly until: number | null };

function nextMove(open: readonly TurnRow[], { active, ...facts }: Partial<MoveFacts> & { active?: boolean }): TurnMove {
  const running = new Set(active === true ? open.slice(0, 1).map(({ session }) => session) : []);
  const { settle, start, until } = nextMoves(open, { ...FACTS, running, ...facts });
  const [ended, turn] = [settle[0], start[0]];
  if (ended !== undefined) return { kind: "settle", ...ended };
  if (turn !== undefined) return { kind: turn.status === "running" ? "resume" : "run", turn };
  return { kind: "wait", until };
}

interface Row {
  readonly name: string;
  readonly open: readonly TurnRow[];
  readonly facts?: Partial<MoveFacts> & { active?: boolean };
  /** The kind of the move, and the index of its turn or the time to wait for. */
  readonly move: readonly [kind: TurnMove["kind"], at: number | null];
}

const holds = (answer: ReturnType<MoveFacts["holds"]>) => ({ holds: () => answer });

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
  {
    name: "a cut turn goes before a continuation that is older and ready",
    open: [held(), turn({ status: "running", attempts: 1 })],
    facts: holds("ready"),
    move: ["resume", 1],
  },
  { name: "one that nobody took is a turn like any other", open: [turn({ steer: 1 }), turn({})], move: ["run", 0] },
  { name: "moved ones run where they were moved", open: [turn({ position: 1 }), turn({ seq: 1 })], move: ["run", 0] },
  {
    name: "a submission waits for its place like any other",
    open: [turn({}), turn({ trigger: "submission" })],
    move: ["run", 0],
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
    name: "one that was asked to go on has nothing left to go on with",
    open: [turn({ continuation: 1 }), turn({})],
    facts: holds("moot"),
    move: ["settle", 0],
  },
  {
    name: "nothing left to go on with, whenever it was due",
    open: [held(later)],
    facts: holds("moot"),
    move: ["settle", 0],
  },
];

test.each(table)("$name", ({ open, facts, move: [kind, at] }) => {
  const move = nextMove(open, facts ?? {});
  expect([move.kind, move.kind === "wait" ? move.until : open.indexOf(move.turn)]).toEqual([kind, at]);
});

test("a cancelled turn is aborted, one that has become moot is skipped", () => {
  const facts = holds("moot");
  expect(nextMove([turn(stopped)], facts)).toMatchObject({ kind: "settle", status: "aborted" });
  expect(nextMove([held()], facts)).toMatchObject({ kind: "settle", status: "skipped" });
});

// Every pair of turns, in every state, under all facts: what must hold whatever else is true.

const triggers = ["submit", "regenerate", "continuation", "server", "submission"] as const;
const states = (["held", "accepted", "running"] as const).flatMap((status) =>
  [0, 1].flatMap((cancelled) =>
    [NOW - 1, NOW, NOW + 50].flatMap((notBefore) =>
      (status === "accepted" ? [0, 1] : [0]).map((steer) => ({ status, cancelled, notBefore, steer })),
    ),
  ),
) as readonly Pick<TurnRow, "status" | "cancelled" | "notBefore" | "steer">[];
const pairs = states.flatMap((first, i) =>
  [undefined, ...states].map((second, j) => {
    const trigger = triggers[(i + j) % triggers.length] ?? "submit";
    const rows = second === undefined ? [first] : [first, second];
    return rows.map((fields) => turn({ trigger, attempts: fields.status === "running" ? 1 : 0, ...fields }));
  }),
);
const allFacts = [false, true].flatMap((active) =>
  [false, true].flatMap((stopped) =>
    (["ready", "waiting", "moot"] as const).map((answer) => ({ now: NOW, active, stopped, holds: () => answer })),
  ),
);

/** What is wrong with a move, if anything is. */
function fault(open: readonly TurnRow[], facts: (typeof allFacts)[number], move: TurnMove): string | undefined {
  const unwanted = open.filter((row) => row.cancelled === 1 && row.status !== "running");
  if (unwanted.length > 0) {
    const right = move.kind === "settle" && move.status === "aborted" && move.turn === unwanted[0];
    return right ? undefined : "what was stopped before it began does not end at once";
  }
  if (facts.active || facts.stopped) return move.kind === "wait" && move.until === null ? undefined : "work is begun";
  const cut = open.find((row) => row.status === "running");
  if (cut !== undefined)
    return move.kind === "resume" && move.turn === cut ? undefined : "a cut turn is not carried on";
  const answer = facts.holds();
  const startable = open.filter((row) => row.status === "accepted" || answer === "ready");
  if (move.kind === "resume") return "there is nothing to resume";
  if (move.kind === "settle") {
    const right = move.status === "skipped" && move.turn.status === "held" && answer === "moot";
    return right ? undefined : "a turn ends that nobody stopped";
  }
  const firstInput = open.find((row) => row.status === "accepted");
  const due = startable.filter((row) => row.notBefore <= NOW);
  if (move.kind === "run") {
    if (!due.includes(move.turn)) return "a turn runs that may not";
    const passed = open.slice(0, open.indexOf(move.turn)).filter((row) => row.status === "accepted");
    return passed.length === 0 ? undefined : "input is overtaken";
  }
  if (firstInput !== undefined && firstInput.notBefore <= NOW) return "input that is due waits";
  if (open[0] !== undefined && due.includes(open[0])) return "the first is due and waits";
  // Behind input that is not due nothing is looked at.
  const seen = firstInput === undefined ? startable : startable.slice(0, startable.indexOf(firstInput) + 1);
  const times = seen.map((row) => row.notBefore);
  const until = times.length === 0 ? null : Math.min(...times);
  return move.until === until ? undefined : `waits until ${move.until}, not ${until}`;
}

test("all states under all facts", () => {
  const faults: string[] = [];
  for (const open of pairs) {
    for (const facts of allFacts) {
      const found = fault(open, facts, nextMove(open, facts));
      const { active, stopped } = facts;
      if (found !== undefined)
        faults.push(`${found}: ${JSON.stringify({ open, active, stopped, holds: facts.holds() })}`);
    }
  }
  expect(pairs.length * allFacts.length).toBeGreaterThan(6_000);
  expect(faults).toEqual([]);
});

// Several sessions

const of = (session: string, fields: Partial<TurnRow> = {}) =>
  turn({ session, id: `${session}-${fields.seq ?? 0}`, ...fields });
const cut = (session: string, attempts: number) => of(session, { status: "running", attempts });
const started = (open: readonly TurnRow[], facts: Partial<MoveFacts> = {}) =>
  nextMoves(open, { ...FACTS, width: 8, ...facts }).start.map(({ id }) => id);

test("the first of each session starts, and no second one of any", () => {
  const open = [of("a", { seq: 1 }), of("a", { seq: 2 }), of("b", { seq: 3 }), of("c", { seq: 4 })];
  expect(started(open)).toEqual(["a-1", "b-3", "c-4"]);
  expect(started(open, { running: new Set(["a"]) })).toEqual(["b-3", "c-4"]);
});

test("as many run as may, in the order of their places", () => {
  const open = [of("a"), of("b"), of("c"), of("d")];
  expect(started(open, { width: 2 })).toEqual(["a-0", "b-0"]);
  expect(started(open, { width: 2, running: new Set(["d"]) })).toEqual(["a-0"]);
  expect(started(open, { width: 2, running: new Set(["c", "d"]) })).toEqual([]);
  expect(started(open, { width: 0 })).toEqual([]);
});

test("what was cut goes before what waits elsewhere", () => {
  expect(started([of("a"), cut("b", 1), of("c")], { width: 2 })).toEqual(["b-0", "a-0"]);
});

test("one that is not due holds up only its own session, and the earliest is waited for", () => {
  const open = [of("a", { ...later, seq: 1 }), of("a", { seq: 2 }), of("b"), of("c", { notBefore: NOW + 20 })];
  expect(nextMoves(open, { ...FACTS, width: 8 })).toMatchObject({ start: [{ id: "b-0" }], until: NOW + 20 });
  const running = new Set(["b", "c"]);
  expect(nextMoves(open, { ...FACTS, width: 8, running })).toMatchObject({ start: [], until: NOW + 50 });
});

test("what one session has nothing left to go on with ends, and what is next in each is asked for again", () => {
  const open = [held({ session: "a" }), of("a"), held({ session: "b" }), of("c")];
  const { settle } = nextMoves(open, { ...FACTS, width: 8, ...holds("moot") });
  expect(settle.map(({ turn: { session }, status }) => [session, status])).toEqual([
    ["a", "skipped"],
    ["b", "skipped"],
  ]);
});

test("what may have ended the lives before goes on alone, the most often tried first, and nothing starts beside it", () => {
  const open = [cut("a", 3), cut("b", 4), cut("c", 2), of("d")];
  const alone = suspects(open);
  expect([...alone]).toEqual(["a-0", "b-0"]);
  expect(started(open, { alone })).toEqual(["b-0"]);
  // Not while anything else runs, and nothing while it does.
  expect(started(open, { alone, running: new Set(["d"]) })).toEqual([]);
  expect(started(open, { alone, running: new Set(["b"]) })).toEqual([]);
  expect(started([cut("a", 3), cut("c", 2), of("d")], { alone })).toEqual(["a-0"]);
  expect(started([cut("c", 2), of("d")], { alone })).toEqual(["c-0", "d-0"]);
});

test("a turn that was tried often in this life has ended none", () => {
  expect(started([cut("a", 7), of("b")])).toEqual(["a-0", "b-0"]);
});
