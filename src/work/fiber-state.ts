import { backOff } from "../base/time.ts";
import type { FiberKind } from "../store/fiber.ts";
import type { FiberRecoveryResult } from "./fiber-view.ts";
import { MAX_INTERRUPTIONS } from "./work.ts";

/*
 * The life of a fiber
 *
 * A fiber is one row. There are three kinds. A `spawn` fiber names a method, so any life of the agent can run
 * it. A `run` or `start` fiber is a closure: it dies with the process, and all that is left is its row, for
 * which the hook `onFiberRecovered` may do something.
 *
 *   pending       Accepted, not running. A spawn fiber waits for its time: now, or the end of a back-off. A
 *                 closure waits only for the code that made it to give way.
 *   running       Its function is under way in this life.
 *   interrupted   A closure that an earlier life left behind. With a time, its hook is due then; without, the
 *                 hook has had its say and the row waits for a person (`resolveFiber`). Also a spawn fiber
 *                 whose method is not there: it has no time, and a later life that has the method takes it up.
 *   recovering    Its hook is under way in this life.
 *   settled       completed, aborted or error. Nothing leaves it.
 *
 * What moves it:
 *
 *   due            pending -> running, if the method is there. interrupted -> recovering.
 *   returned       running -> completed.
 *   threw          running -> pending with a back-off while a spawn fiber has retries left, else error.
 *   cancelled      anything not settled -> aborted, at once: the stored fact comes first and the signal after
 *                  it. What the function does from then on finds a settled row and changes nothing.
 *   orphaned       Said of each row by the first look of a new life. running or pending -> pending again
 *                  (spawn), interrupted (closures). recovering -> interrupted.
 *   hook_returned  recovering -> what the hook says, or interrupted without a time.
 *   hook_threw     recovering -> interrupted with a longer and longer back-off; without a time once too old.
 *   resolved       interrupted, recovering -> what the caller says.
 *
 * `run` fibers keep no record: where another would settle, their row goes. The exception is one whose hook
 * failed until it was too old: it stays to be seen.
 *
 * Starts are counted before the work and throws after it, so their difference is how often a process ended in
 * between. Beyond a bound that counts as the work's fault and ends it, so that a fiber that kills the process
 * cannot do so for ever. An interrupted closure counts its hook's starts and throws from zero.
 */
export type FiberState =
  | (FiberCounts & { readonly phase: "pending" })
  | (FiberCounts & { readonly phase: "running" })
  | (FiberCounts & { readonly phase: "recovering"; readonly interruptedAt: number })
  | (FiberCounts & { readonly phase: "interrupted"; readonly hookDue: boolean; readonly missing: boolean })
  | { readonly phase: "settled" };

interface FiberCounts {
  readonly kind: FiberKind;
  readonly name: string;
  readonly attempts: number;
  readonly starts: number;
  readonly maxRetries: number;
}

export type FiberFact =
  | { readonly type: "due"; readonly hasMethod: boolean }
  | { readonly type: "returned" }
  | { readonly type: "threw"; readonly error: string; readonly backOffMs: number }
  | { readonly type: "cancelled"; readonly reason: string | null }
  | { readonly type: "orphaned"; readonly hasMethod: boolean }
  | { readonly type: "hook_returned"; readonly result: FiberRecoveryResult | undefined }
  | { readonly type: "hook_threw"; readonly error: string; readonly now: number; readonly maxAgeMs: number }
  | { readonly type: "resolved"; readonly result: FiberRecoveryResult };

export type FiberMove =
  /** The fact says nothing to this state. */
  | { readonly type: "stay" }
  /** Run the method. `cut`: an earlier run of it was cut by the end of a process. */
  | { readonly type: "start"; readonly cut: boolean }
  /** Call the recovery hook. */
  | { readonly type: "hook" }
  /** Wait to be started in `delayMs`. With an error, that is a throw to count. */
  | { readonly type: "wait"; readonly delayMs: number; readonly error?: string }
  /** Wait for the hook in `hookInMs`. With an error, that is a throw to count. `fresh`: counts begin anew. */
  | { readonly type: "await_hook"; readonly hookInMs: number; readonly error?: string; readonly fresh: boolean }
  /** The method is not there: keep the row for a life that has it. */
  | { readonly type: "park"; readonly error: string }
  /** Write the end. */
  | { readonly type: "settle"; readonly result: FiberRecoveryResult }
  /** Delete the row of a `run` fiber. */
  | { readonly type: "forget"; readonly status: FiberRecoveryResult["status"] };

/** The wait after the first throw of a recovery hook; it doubles with each. */
const HOOK_BASE_MS = 1000;
/** No wait between two calls of a recovery hook is longer. */
const HOOK_MAX_MS = 5 * 60 * 1000;

const STAY: FiberMove = { type: "stay" };

/** What to do with a fiber in `state` now that `fact` holds. Pure; the essay above says why. */
export function nextFiberMove(state: FiberState, fact: FiberFact): FiberMove {
  if (state.phase === "settled") return STAY;
  switch (fact.type) {
    case "due":
      return whenDue(state, fact.hasMethod);
    case "returned":
      return state.phase === "running" ? settle(state, { status: "completed" }) : STAY;
    case "threw":
      if (state.phase !== "running") return STAY;
      return state.attempts < state.maxRetries
        ? { type: "wait", delayMs: fact.backOffMs, error: fact.error }
        : settle(state, { status: "error", error: fact.error });
    case "cancelled":
      return settle(state, { status: "aborted", reason: fact.reason ?? undefined });
    case "orphaned":
      return whenOrphaned(state, fact.hasMethod);
    case "hook_returned":
      return state.phase === "recovering" ? settle(state, fact.result ?? { status: "interrupted" }) : STAY;
    case "hook_threw": {
      if (state.phase !== "recovering") return STAY;
      const tooOld = fact.maxAgeMs > 0 && fact.now - state.interruptedAt >= fact.maxAgeMs;
      if (tooOld) return { type: "settle", result: { status: "interrupted", reason: fact.error } };
      const hookInMs = backOff(state.attempts + 1, HOOK_BASE_MS, HOOK_MAX_MS);
      return { type: "await_hook", hookInMs, error: fact.error, fresh: false };
    }
    case "resolved":
      return state.phase === "interrupted" || state.phase === "recovering"
        ? { type: "settle", result: fact.result }
        : STAY;
  }
}

function whenDue(state: Exclude<FiberState, { phase: "settled" }>, hasMethod: boolean): FiberMove {
  const cuts = state.starts - state.attempts;
  if (state.phase === "pending") {
    if (cuts >= MAX_INTERRUPTIONS) {
      const error = `The process ended ${cuts} times while "${state.name}" ran. It will not start again.`;
      return settle(state, { status: "error", error });
    }
    if (state.kind === "spawn" && !hasMethod) {
      const error = `There is no method "${state.name}" on this agent. The fiber goes on when a later version has it again.`;
      return { type: "park", error };
    }
    return { type: "start", cut: cuts > 0 };
  }
  if (state.phase !== "interrupted" || !state.hookDue) return STAY;
  if (cuts < MAX_INTERRUPTIONS) return { type: "hook" };
  const reason = `The process ended ${cuts} times while onFiberRecovered ran for "${state.name}". It is not called again.`;
  return { type: "settle", result: { status: "interrupted", reason } };
}

function whenOrphaned(state: Exclude<FiberState, { phase: "settled" }>, hasMethod: boolean): FiberMove {
  if (state.phase === "recovering") return { type: "await_hook", hookInMs: 0, fresh: false };
  if (state.phase === "interrupted") {
    return state.missing && hasMethod ? { type: "wait", delayMs: 0 } : STAY;
  }
  if (state.kind === "spawn") return { type: "wait", delayMs: 0 };
  return { type: "await_hook", hookInMs: 0, fresh: true };
}

function settle(state: FiberCounts, result: FiberRecoveryResult): FiberMove {
  return state.kind === "run" ? { type: "forget", status: result.status } : { type: "settle", result };
}
