import { expect, test } from "vitest";
import { nextStep, type StepFacts, type StepMove } from "./run-steps.ts";
import type { CallStanding } from "./tool-calls.ts";

const STANDINGS: readonly CallStanding[] = ["settled", "ready", "waiting"];
const BOTH = [false, true];

/** Every list of up to `size` standings, in every order. */
function callLists(size: number): CallStanding[][] {
  if (size === 0) return [[]];
  const shorter = callLists(size - 1);
  const longest = shorter.filter((list) => list.length === size - 1);
  return [...shorter, ...longest.flatMap((rest) => STANDINGS.map((one) => [one, ...rest]))];
}

function* allFacts(): Generator<StepFacts> {
  for (const called of [0, 1, 2, 3])
    for (const maxSteps of [1, 2, 3])
      for (const calls of callLists(3))
        for (const stop of BOTH)
          for (const steered of BOTH)
            for (const refused of BOTH) yield { called, maxSteps, calls, stop, steered, refused };
}

const states = [...allFacts()];

/** The states whose move breaks a rule. */
function breaks(rule: (facts: StepFacts, move: StepMove) => boolean): StepFacts[] {
  return states.filter((facts) => !rule(facts, nextStep(facts)));
}

test("all states are looked at once", () => {
  const lists = 1 + 3 + 9 + 27;
  expect(states).toHaveLength(4 * 3 * lists * 8);
  expect(new Set(states.map((facts) => JSON.stringify(facts))).size).toBe(states.length);
});

test("what is ready runs first, then what others have to do is waited for, and nothing else is done meanwhile", () => {
  expect(breaks(({ calls }, move) => (move.kind === "run") === calls.includes("ready"))).toEqual([]);
  expect(
    breaks(({ calls }, move) => (move.kind === "wait") === (calls.includes("waiting") && !calls.includes("ready"))),
  ).toEqual([]);
});

test("the model is called only when every call has its end", () => {
  expect(breaks(({ calls }, move) => move.kind !== "call" || calls.every((call) => call === "settled"))).toEqual([]);
});

test("a turn is done only when nothing is left to run or to wait for", () => {
  expect(breaks(({ calls }, move) => move.kind !== "done" || calls.every((call) => call === "settled"))).toEqual([]);
});

test("the step of a call is the number of those before it, and never beyond the limit", () => {
  expect(
    breaks(({ called, maxSteps }, move) => move.kind !== "call" || (move.step === called && move.step < maxSteps)),
  ).toEqual([]);
});

test("a turn that has not asked its model does so before it ends, unless a person refused", () => {
  expect(
    breaks(({ called, refused }, move) => called > 0 || move.kind !== "done" || (refused && move.why === "refused")),
  ).toEqual([]);
});

test("each end has its reason", () => {
  expect(breaks(({ refused }, move) => move.kind !== "done" || (move.why === "refused") === refused)).toEqual([]);
  expect(breaks(({ stop }, move) => move.kind !== "done" || move.why !== "stopped" || stop)).toEqual([]);
  expect(
    breaks(
      ({ calls, steered }, move) => move.kind !== "done" || move.why !== "answered" || (calls.length === 0 && !steered),
    ),
  ).toEqual([]);
  expect(
    breaks(
      ({ called, maxSteps, calls, steered }, move) =>
        move.kind !== "done" || move.why !== "steps" || (called >= maxSteps && (calls.length > 0 || steered)),
    ),
  ).toEqual([]);
});

test("the same facts give the same move, in whatever order the calls are, and are left as they were", () => {
  const freeze = (facts: StepFacts): StepFacts => Object.freeze({ ...facts, calls: Object.freeze([...facts.calls]) });
  expect(breaks((facts, move) => JSON.stringify(nextStep(freeze(facts))) === JSON.stringify(move))).toEqual([]);
  expect(
    breaks((facts, move) => {
      const turned = { ...facts, calls: facts.calls.toReversed() };
      return JSON.stringify(nextStep(turned)) === JSON.stringify(move);
    }),
  ).toEqual([]);
});

test("a turn comes to its end, whatever its calls do and its conditions say", () => {
  for (const facts of states) {
    let { called, calls } = facts;
    let calledNow = 0;
    for (let moves = 0; ; moves++) {
      expect(moves).toBeLessThan(20);
      const move = nextStep({ ...facts, called, calls });
      if (move.kind === "done" || move.kind === "wait") break;
      if (move.kind === "call") {
        called += 1;
        calledNow += 1;
        calls = ["ready", "settled"];
      } else {
        calls = calls.map((call) => (call === "ready" ? "settled" : call));
      }
    }
    expect(calledNow).toBeLessThanOrEqual(facts.maxSteps);
  }
});

const none = { calls: [], stop: false, steered: false, refused: false };
const examples: readonly [string, Partial<StepFacts>, StepMove][] = [
  ["a new turn asks the model", { called: 0 }, { kind: "call", step: 0 }],
  ["a text is an answer", { called: 1 }, { kind: "done", why: "answered" }],
  ["a call that may run is run", { called: 1, calls: ["settled", "ready"] }, { kind: "run" }],
  ["what can run does not wait for a person", { called: 1, calls: ["waiting", "ready"] }, { kind: "run" }],
  ["then the person is waited for", { called: 1, calls: ["waiting", "settled"] }, { kind: "wait" }],
  ["the model reads its results", { called: 1, calls: ["settled"] }, { kind: "call", step: 1 }],
  ["up to the limit", { called: 3, calls: ["settled"] }, { kind: "done", why: "steps" }],
  ["what was said meanwhile is read", { called: 1, steered: true }, { kind: "call", step: 1 }],
  ["but not beyond the limit", { called: 3, steered: true }, { kind: "done", why: "steps" }],
  ["an answer at the limit is an answer", { called: 3 }, { kind: "done", why: "answered" }],
  ["a condition ends it", { called: 1, calls: ["settled"], stop: true }, { kind: "done", why: "stopped" }],
  ["but never in front of a call that was begun", { called: 1, calls: ["ready"], stop: true }, { kind: "run" }],
  ["a turn that goes on after an approval runs the call", { called: 0, calls: ["ready"] }, { kind: "run" }],
  ["and then asks the model", { called: 0, calls: ["settled"] }, { kind: "call", step: 0 }],
  ["a condition is not asked before that", { called: 0, calls: ["settled"], stop: true }, { kind: "call", step: 0 }],
  ["a refused budget ends it", { called: 0, calls: ["settled"], refused: true }, { kind: "done", why: "refused" }],
];

test.each(examples)("%s", (_name, facts, move) => {
  expect(nextStep({ called: 0, maxSteps: 3, ...none, ...facts })).toEqual(move);
});
