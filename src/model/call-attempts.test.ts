import { expect, test } from "vitest";
import { nextAttempt, type AttemptFact, type AttemptPolicy } from "./call.ts";
import type { ChatErrorClassification } from "../store/usage.ts";

const T = 1_700_000_000_000;

function fact(outcome: AttemptFact["outcome"], more: Partial<AttemptFact> = {}): AttemptFact {
  return { model: 0, outcome, errorClass: null, retryAfterMs: null, settledAt: T, ...more };
}

function failed(errorClass: ChatErrorClassification | null, more: Partial<AttemptFact> = {}): AttemptFact {
  return fact("error", { errorClass, ...more });
}

const call = (model: number, notBefore = 0) => ({ kind: "call", model, notBefore });
const end = (errorClass: ChatErrorClassification) => ({ kind: "end", errorClass });
const one: AttemptPolicy = { models: 1 };
const two: AttemptPolicy = { models: 2 };

test("a step begins with the first model, at once", () => {
  expect(nextAttempt([], one)).toEqual(call(0));
});

test("what was cut is tried again at once, however often, and is no retry", () => {
  expect(nextAttempt([fact("cut")], one)).toEqual(call(0));
  expect(
    nextAttempt(
      Array.from({ length: 9 }, () => fact("cut")),
      one,
    ),
  ).toEqual(call(0));
  expect(nextAttempt([fact("cut", { model: 1 })], two)).toEqual(call(1));
  expect(nextAttempt([failed("transient"), fact("cut")], one)).toEqual(call(0));
  expect(nextAttempt([failed("transient"), fact("cut"), failed("transient")], one)).toEqual(call(0, T + 2000));
  const used = [failed("transient"), fact("cut"), failed("transient"), fact("cut"), failed("transient")];
  expect(nextAttempt(used, one)).toEqual(end("transient"));
});

test.each(["rate_limit", "transient"] as const)("%s: waits twice as long each time, then the next model", (kind) => {
  const facts: AttemptFact[] = [failed(kind)];
  expect(nextAttempt(facts, two)).toEqual(call(0, T + 1000));
  facts.push(failed(kind, { settledAt: T + 5000 }));
  expect(nextAttempt(facts, two)).toEqual(call(0, T + 7000));
  facts.push(failed(kind));
  expect(nextAttempt(facts, two)).toEqual(call(1));
  // The next model has its own tries, and its own waits.
  facts.push(failed(kind, { model: 1 }));
  expect(nextAttempt(facts, two)).toEqual(call(1, T + 1000));
  facts.push(failed(kind, { model: 1 }), failed(kind, { model: 1 }));
  expect(nextAttempt(facts, two)).toEqual(end(kind));
});

test.each(["rate_limit", "transient"] as const)("%s: waits as long as the provider asks, within bounds", (kind) => {
  const asked = (retryAfterMs: number) => [failed(kind, { retryAfterMs })];
  expect(nextAttempt(asked(34_000), one)).toEqual(call(0, T + 34_000));
  expect(nextAttempt(asked(60_000), one)).toEqual(call(0, T + 60_000));
  expect(nextAttempt(asked(0), one)).toEqual(call(0, T));
  expect(nextAttempt(asked(-5), one)).toEqual(call(0, T));
  expect(nextAttempt(asked(60_001), two)).toEqual(call(1));
  expect(nextAttempt(asked(60_001), one)).toEqual(end(kind));
  expect(nextAttempt([failed(kind), failed(kind), ...asked(1)], one)).toEqual(end(kind));
});

test("unknown: once more, then the next model", () => {
  for (const kind of ["unknown", null] as const) {
    expect(nextAttempt([failed(kind)], two)).toEqual(call(0, T + 1000));
    expect(nextAttempt([failed(kind), failed(kind)], two)).toEqual(call(1));
    expect(nextAttempt([failed(kind), failed(kind)], one)).toEqual(end("unknown"));
    expect(nextAttempt([failed(kind)], { models: 1, maxRetries: 0 })).toEqual(end("unknown"));
  }
  expect(nextAttempt([failed("transient"), failed("unknown")], two)).toEqual(call(0, T + 2000));
});

test.each(["fatal", "context_overflow"] as const)("%s: the next model at once", (kind) => {
  expect(nextAttempt([failed(kind, { retryAfterMs: 5 })], two)).toEqual(call(1));
  expect(nextAttempt([failed(kind), failed(kind, { model: 1 })], two)).toEqual(end(kind));
  expect(nextAttempt([failed(kind)], one)).toEqual(end(kind));
});

test("errors of all kinds count together, and the last one gives its name", () => {
  expect(nextAttempt([failed("transient"), failed("rate_limit"), failed("transient")], two)).toEqual(call(1));
  expect(nextAttempt([failed("fatal"), failed("rate_limit", { model: 1, retryAfterMs: 1e9 })], two)).toEqual(
    end("rate_limit"),
  );
});

test("models are taken in order and never gone back to", () => {
  const policy = { models: 3, maxRetries: 1, baseDelayMs: 10, maxDelayMs: 15 };
  const facts: AttemptFact[] = [];
  const called: number[] = [];
  for (;;) {
    const next = nextAttempt(facts, policy);
    if (next.kind === "end") break;
    called.push(next.model);
    facts.push(failed("transient", { model: next.model }));
  }
  expect(called).toEqual([0, 0, 1, 1, 2, 2]);
});

test("waits grow to the longest delay and no further", () => {
  const policy = { models: 1, maxRetries: 50, baseDelayMs: 100, maxDelayMs: 1000 };
  const waits = [1, 2, 3, 4, 5, 50].map((count) => {
    const next = nextAttempt(
      Array.from({ length: count }, () => failed("transient")),
      policy,
    );
    return next.kind === "call" ? next.notBefore - T : undefined;
  });
  expect(waits).toEqual([100, 200, 400, 800, 1000, 1000]);
});

test("an answer of no use is asked for again, and the count begins anew", () => {
  expect(nextAttempt([fact("ok")], one)).toEqual(call(0));
  const facts = [failed("transient"), failed("transient"), fact("ok"), failed("transient")];
  expect(nextAttempt(facts, one)).toEqual(call(0, T + 1000));
});

test("a list of models that became shorter", () => {
  expect(nextAttempt([fact("cut", { model: 4 })], two)).toEqual(call(1));
  expect(nextAttempt([failed("transient", { model: 4 })], two)).toEqual(end("transient"));
});

/** All that can happen in a step, with at most one cut: where it ended, and what had happened. */
function everySequence(policy: AttemptPolicy) {
  const kinds = ["rate_limit", "transient", "unknown", "fatal", "context_overflow", "cut"] as const;
  const ended: { readonly facts: readonly AttemptFact[]; readonly errorClass: ChatErrorClassification }[] = [];
  const visit = (facts: readonly AttemptFact[], mayBeCut: boolean): void => {
    const next = nextAttempt(facts, policy);
    if (next.kind === "end") {
      ended.push({ facts, errorClass: next.errorClass });
      return;
    }
    for (const kind of kinds) {
      if (kind !== "cut") visit([...facts, failed(kind, { model: next.model })], mayBeCut);
      else if (mayBeCut) visit([...facts, fact("cut", { model: next.model })], false);
    }
  };
  visit([], true);
  return ended;
}

test("every sequence ends, within its tries and in order, with the class of its last error", () => {
  const ended = everySequence({ models: 2, maxRetries: 2 });
  expect(ended.length).toBeGreaterThan(1000);
  for (const { facts, errorClass } of ended) {
    const errors = facts.filter(({ outcome }) => outcome === "error");
    expect(errorClass).toBe(errors.at(-1)?.errorClass);
    for (const model of [0, 1]) {
      const tries = errors.filter((error) => error.model === model).length;
      expect(tries).toBeGreaterThanOrEqual(1);
      expect(tries).toBeLessThanOrEqual(3);
    }
    const models = facts.map(({ model }) => model);
    expect(models).toEqual(models.toSorted());
  }
});

test("no model is a mistake", () => {
  expect(() => nextAttempt([], { models: 0 })).toThrow(expect.objectContaining({ code: "bad_config" }));
});
