import { expect, test } from "vitest";
import type { FiberKind } from "../store/fiber.ts";
import { type FiberFact, type FiberState, nextFiberMove } from "./fiber-state.ts";

const counts = (kind: FiberKind, more: { attempts?: number; starts?: number } = {}) => ({
  kind,
  name: "work",
  attempts: 0,
  starts: 0,
  maxRetries: 2,
  ...more,
});
const pending = (kind: FiberKind, more = {}): FiberState => ({ ...counts(kind, more), phase: "pending" });
const running = (kind: FiberKind, more = {}): FiberState => ({ ...counts(kind, more), phase: "running" });
const recovering = (kind: FiberKind, more = {}): FiberState => ({
  ...counts(kind, more),
  phase: "recovering",
  interruptedAt: 0,
});
const interrupted = (kind: FiberKind, hookDue: boolean, more: object = {}): FiberState => ({
  ...counts(kind),
  phase: "interrupted",
  hookDue,
  missing: false,
  ...more,
});
const threw: FiberFact = { type: "threw", error: "no", backOffMs: 5 };
const due: FiberFact = { type: "due", hasMethod: true };
const hookThrew = (now: number, maxAgeMs: number): FiberFact => ({ type: "hook_threw", error: "no", now, maxAgeMs });

test("nothing leaves a settled state", () => {
  const facts: FiberFact[] = [
    due,
    { type: "returned" },
    threw,
    { type: "cancelled", reason: null },
    { type: "orphaned", hasMethod: true },
    { type: "hook_returned", result: undefined },
    hookThrew(0, 0),
    { type: "resolved", result: { status: "completed" } },
  ];
  for (const fact of facts) expect(nextFiberMove({ phase: "settled" }, fact)).toEqual({ type: "stay" });
});

test("due: pending starts; a spawn fiber without its method is parked", () => {
  expect(nextFiberMove(pending("start"), due)).toEqual({ type: "start", cut: false });
  expect(nextFiberMove(pending("spawn", { starts: 2, attempts: 1 }), due)).toEqual({ type: "start", cut: true });
  expect(nextFiberMove(pending("spawn", { starts: 2, attempts: 2 }), due)).toEqual({ type: "start", cut: false });
  expect(nextFiberMove(pending("spawn"), { type: "due", hasMethod: false }).type).toBe("park");
  expect(nextFiberMove(running("spawn"), due)).toEqual({ type: "stay" });
});

test("due: cut too often ends it", () => {
  expect(nextFiberMove(pending("spawn", { starts: 9 }), due).type).toBe("start");
  expect(nextFiberMove(pending("spawn", { starts: 10 }), due)).toMatchObject({
    type: "settle",
    result: { status: "error" },
  });
  expect(nextFiberMove(interrupted("run", true, { starts: 9 }), due)).toEqual({ type: "hook" });
  expect(nextFiberMove(interrupted("run", true, { starts: 10 }), due)).toMatchObject({
    type: "settle",
    result: { status: "interrupted" },
  });
  expect(nextFiberMove(interrupted("start", false), due)).toEqual({ type: "stay" });
});

test("the end of the function", () => {
  expect(nextFiberMove(running("spawn"), { type: "returned" })).toEqual({
    type: "settle",
    result: { status: "completed" },
  });
  expect(nextFiberMove(running("run"), { type: "returned" })).toEqual({ type: "forget", status: "completed" });
  expect(nextFiberMove(running("spawn", { attempts: 1 }), threw)).toEqual({ type: "wait", delayMs: 5, error: "no" });
  expect(nextFiberMove(running("spawn", { attempts: 2 }), threw)).toEqual({
    type: "settle",
    result: { status: "error", error: "no" },
  });
  for (const state of [pending("spawn"), interrupted("start", true), recovering("start")]) {
    expect(nextFiberMove(state, { type: "returned" })).toEqual({ type: "stay" });
    expect(nextFiberMove(state, threw)).toEqual({ type: "stay" });
  }
});

test("cancel settles whatever has not settled", () => {
  const aborted = { type: "settle", result: { status: "aborted", reason: "why" } };
  for (const state of [pending("spawn"), running("start"), interrupted("start", true), recovering("start")]) {
    expect(nextFiberMove(state, { type: "cancelled", reason: "why" })).toEqual(aborted);
  }
  expect(nextFiberMove(running("run"), { type: "cancelled", reason: null })).toEqual({
    type: "forget",
    status: "aborted",
  });
});

test("orphaned: spawn waits again, closures wait for the hook", () => {
  const orphaned = (hasMethod: boolean): FiberFact => ({ type: "orphaned", hasMethod });
  expect(nextFiberMove(running("spawn"), orphaned(true))).toEqual({ type: "wait", delayMs: 0 });
  for (const kind of ["run", "start"] as const) {
    expect(nextFiberMove(running(kind), orphaned(false))).toEqual({ type: "await_hook", hookInMs: 0, fresh: true });
    expect(nextFiberMove(pending(kind), orphaned(false))).toEqual({ type: "await_hook", hookInMs: 0, fresh: true });
    expect(nextFiberMove(recovering(kind), orphaned(false))).toEqual({ type: "await_hook", hookInMs: 0, fresh: false });
  }
  const parked = interrupted("spawn", false, { missing: true });
  expect(nextFiberMove(parked, orphaned(false))).toEqual({ type: "stay" });
  expect(nextFiberMove(parked, orphaned(true))).toEqual({ type: "wait", delayMs: 0 });
  expect(nextFiberMove(interrupted("start", false), orphaned(true))).toEqual({ type: "stay" });
});

test("the hook's answer, and its throws", () => {
  const answer: FiberFact = { type: "hook_returned", result: { status: "completed" } };
  expect(nextFiberMove(recovering("start"), answer)).toEqual({ type: "settle", result: { status: "completed" } });
  expect(nextFiberMove(recovering("start"), { type: "hook_returned", result: undefined })).toEqual({
    type: "settle",
    result: { status: "interrupted" },
  });
  expect(nextFiberMove(recovering("run"), answer)).toEqual({ type: "forget", status: "completed" });
  expect(nextFiberMove(interrupted("start", true), answer)).toEqual({ type: "stay" });
  const waits = [0, 1, 5, 9, 50].map((attempts) => nextFiberMove(recovering("run", { attempts }), hookThrew(1, 0)));
  expect(waits.map((move) => (move.type === "await_hook" ? move.hookInMs : move.type))).toEqual([
    1000, 2000, 32_000, 300_000, 300_000,
  ]);
  // A run fiber that is too old is kept as well.
  expect(nextFiberMove(recovering("run"), hookThrew(100, 100))).toEqual({
    type: "settle",
    result: { status: "interrupted", reason: "no" },
  });
});

test("only an interrupted fiber is resolved from outside", () => {
  const resolved: FiberFact = { type: "resolved", result: { status: "error", error: "x" } };
  const settled = { type: "settle", result: { status: "error", error: "x" } };
  expect(nextFiberMove(interrupted("start", false), resolved)).toEqual(settled);
  expect(nextFiberMove(recovering("start"), resolved)).toEqual(settled);
  expect(nextFiberMove(running("start"), resolved)).toEqual({ type: "stay" });
  expect(nextFiberMove(pending("spawn"), resolved)).toEqual({ type: "stay" });
});
