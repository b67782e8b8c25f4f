import { errorText } from "../base/error.ts";
import type { WorkContext } from "./work.ts";

/** How a call ended. */
export type Outcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** One call of a callback and what to do with its end. */
interface CallbackRun {
  /** Which turn it comes of, as it is stored. */
  readonly cause: string | null;
  /** Calls it. May throw, may return a promise. */
  call(): unknown;
  /** Writes the end. Runs in a transaction; if that fails it runs again later. */
  store(outcome: Outcome): void;
  /** The end is stored. Must not throw. Not called after a halt. */
  stored(outcome: Outcome): void;
}

/** How long to wait before a write that the store refused (a full disk) is tried again. */
export const STORE_RETRY_MS = 1000;

/**
 * Runs a callback and stores its end. If it returns plainly, its writes and its end are one transaction: it takes effect once,
 * and a throw undoes it. A promise's writes before the first `await` are committed, its end when it settles. Writes nothing after
 * `halted()`. Never throws.
 */
export function runCallback(context: WorkContext, halted: () => boolean, run: CallbackRun): void {
  const { host } = context;
  // A transaction may not return a promise, so it leaves by this variable.
  let pending: Promise<unknown> | undefined;
  let value: unknown;
  try {
    host.tx(() => {
      // Whoever happened to start it, their turn, fiber, request and identity are not its own.
      value = host.context.run(context.carry(run.cause), () => run.call());
      if (isPromiseLike(value)) pending = Promise.resolve(value);
      else if (!halted()) run.store({ ok: true, value });
    });
  } catch (error) {
    // If it returned a promise and then the commit failed, the call goes on, but its writes are undone.
    pending?.catch(() => undefined);
    settle(context, halted, run, { ok: false, error });
    return;
  }
  if (pending === undefined) {
    if (!halted()) run.stored({ ok: true, value });
    return;
  }
  if (halted()) return void pending.catch(() => undefined);
  const settled = pending.then(
    (result): Outcome => ({ ok: true, value: result }),
    (error: unknown): Outcome => ({ ok: false, error }),
  );
  void host.keepAwake(settled.then((outcome) => settle(context, halted, run, outcome)));
}

function settle(context: WorkContext, halted: () => boolean, run: CallbackRun, outcome: Outcome): void {
  insist(
    context,
    halted,
    () => run.store(outcome),
    (written) => {
      if (written) run.stored(outcome);
    },
  );
}

/** Retries `write` in a transaction until it commits, then `then(true)`; `then(false)` if the life ends first. Never throws. */
export function insist(
  context: WorkContext,
  halted: () => boolean,
  write: () => void,
  then: (written: boolean) => void,
): void {
  if (halted()) return then(false);
  try {
    context.host.tx(write);
  } catch (error) {
    if (halted()) return then(false);
    reportStoreFailure(context, error);
    const again = new Promise<void>((resolve) => void context.host.clock.after(STORE_RETRY_MS, resolve));
    void context.host.keepAwake(again.then(() => insist(context, halted, write, then)));
    return;
  }
  then(true);
}

/** Says that the store refused a write of background work. */
export function reportStoreFailure(context: WorkContext, error: unknown): void {
  const stage = "background work";
  context.host.emit("agent:failed", { stage, error: errorText(error) });
  context.host.report(error, { stage });
}

/** The values that travel with asynchronous calls: an object with any keys; `fiber` is ours. */
export function contextValues(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
