import { errorText, PerdureError } from "../base/error.ts";
import { type FiberRow, fiberTable, orphanedFibers, readFiber } from "../store/fiber.ts";
import { contextValues, insist, type Outcome, runCallback } from "./callback.ts";
import { type FiberFact, type FiberMove, type FiberState, nextFiberMove } from "./fiber-state.ts";
import { type FiberContext, parseRecoveryResult, resultError, toRecoveryContext } from "./fiber-view.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import { backOffMs } from "./retry.ts";
import type { WorkContext } from "./work.ts";
import type { Sql } from "../port.ts";

/** The agent's method that is asked what to do about a closure that died with its process. */
const HOOK = "onFiberRecovered";

/** How long a recovery hook that throws is called again. */
export const DEFAULT_RECOVERY_MAX_AGE_MS = 24 * 60 * 60 * 1000;

interface Waiter {
  settled(): void;
  halted(reason: unknown): void;
}

/** Runs fibers whose row is `running`, stores how they end, and tells those who wait for it. */
export class FiberRunner {
  readonly #context: WorkContext;
  readonly halted: () => boolean;
  readonly #controllers = new Map<string, AbortController>();
  readonly #waiters = new Map<string, Set<Waiter>>();

  constructor(context: WorkContext, halted: () => boolean) {
    this.#context = context;
    this.halted = halted;
  }

  /** Writes what follows from a fact. Undefined when nothing follows, or the row has moved on since it was read. */
  move(row: FiberRow, fact: FiberFact): { readonly move: FiberMove; readonly row?: FiberRow } | undefined {
    const { host } = this.#context;
    const move = nextFiberMove(toFiberState(row), fact);
    const applied = applyFiberMove(host, row, move, host.clock.now());
    return applied === undefined ? undefined : { move, row: applied.row };
  }

  /** Reports a move to subscribers and to those who wait for an end, once it is committed. */
  tell(row: FiberRow, move: FiberMove | undefined): void {
    if (move === undefined) return;
    this.#context.host.afterTx((committed) => {
      if (committed) this.#tellNow(row, move);
    });
  }

  #tellNow(row: FiberRow, move: FiberMove): void {
    const { emit } = this.#context.host;
    const { id, name } = row;
    if (move.type === "park") emit("fiber:method_missing", { id, name });
    if (move.type === "forget") emit("fiber:settled", { id, name, status: move.status });
    if (move.type === "settle") {
      emit("fiber:settled", { id, name, status: move.result.status, error: resultError(move.result) ?? undefined });
    }
    if (move.type !== "park" && move.type !== "forget" && move.type !== "settle") return;
    const waiters = this.#waiters.get(id);
    this.#waiters.delete(id);
    for (const waiter of waiters ?? []) waiter.settled();
  }

  /** Runs `fn` as a running fiber, outside a transaction. Resolves with its end once that is stored; never rejects. */
  execute(row: FiberRow, fn: (ctx: FiberContext) => unknown): Promise<Outcome> {
    const { host } = this.#context;
    const controller = new AbortController();
    this.#controllers.set(row.id, controller);
    const body = async () => {
      const fiber = this.#createContext(row, controller.signal);
      return host.context.run({ ...contextValues(host.context.get()), fiber }, () => fn(fiber));
    };
    const ended = body().then(
      (value): Outcome => ({ ok: true, value }),
      (error: unknown): Outcome => ({ ok: false, error }),
    );
    const stored = ended.then((outcome) => this.#settle(row, controller, outcome));
    return this.halted() ? stored : host.keepAwake(stored);
  }

  #settle(row: FiberRow, controller: AbortController, outcome: Outcome): Promise<Outcome> {
    const { host } = this.#context;
    const fact: FiberFact = outcome.ok
      ? { type: "returned" }
      : { type: "threw", error: errorText(outcome.error), backOffMs: backOffMs(row.attempts + 1, this.#context.retry) };
    const move = nextFiberMove(toFiberState(row), fact);
    const more = outcome.ok && row.kind !== "run" ? encodeResult(outcome.value) : {};
    // A cancel that came first has settled the row: then this changes nothing.
    let stored = false;
    const write = (): void => {
      stored = applyFiberMove(host, row, move, host.clock.now(), more) !== undefined;
    };
    return new Promise((resolve) => {
      insist(this.#context, this.halted, write, (written) => {
        if (this.#controllers.get(row.id) === controller) this.#controllers.delete(row.id);
        if (written && stored) this.tell(row, move);
        if (!outcome.ok && stored) host.report(outcome.error, { stage: `fiber ${row.name}` });
        resolve(outcome);
      });
    });
  }

  /** The first look of a new life: what was left running waits again, or waits for its hook. One transaction; starts nothing. */
  adoptOrphans(): void {
    const context = this.#context;
    const { host } = context;
    const ids = orphanedFibers(host);
    if (ids.length === 0) return;
    host.tx(() => {
      for (const id of ids) {
        const row = readFiber(host, id);
        if (row !== undefined) this.move(row, { type: "orphaned", hasMethod: context.method(row.name) !== undefined });
      }
    });
  }

  /** Calls the recovery hook, if the class has one, for a `recovering` row; stores what follows from it, then calls `ended`. */
  recover(row: FiberRow, maxAgeMs: number, ended: () => void): void {
    const context = this.#context;
    const { host } = context;
    const { id, name, starts: attempt } = row;
    let move: FiberMove | undefined;
    host.emit("fiber:recovered", { id, name, attempt });
    runCallback(context, this.halted, {
      cause: row.cause,
      call: () => context.method(HOOK)?.(toRecoveryContext(row)),
      store: (outcome) => {
        const threw = (error: unknown): FiberFact => {
          host.report(error, { stage: HOOK });
          return { type: "hook_threw", error: errorText(error), now: host.clock.now(), maxAgeMs };
        };
        let fact: FiberFact;
        try {
          fact = outcome.ok ? { type: "hook_returned", result: checkResult(outcome.value) } : threw(outcome.error);
        } catch (error) {
          fact = threw(error);
        }
        move = this.move(row, fact)?.move;
      },
      stored: () => {
        this.tell(row, move);
        ended();
      },
    });
  }

  /** Tells a fiber that runs now to stop, once it is certain that its row says so. */
  abort(id: string, reason: string | null): void {
    this.#context.host.afterTx((committed) => {
      if (!committed) return;
      this.#controllers.get(id)?.abort(new DOMException(reason ?? "The fiber was cancelled.", "AbortError"));
    });
  }

  /** Resolves when the fiber has ended, or is gone. @throws PerdureError `agent_gone` when this life ends first */
  async whenSettled(id: string): Promise<void> {
    const row = readFiber(this.#context.host, id);
    if (row === undefined || row.settledAt !== null) return;
    await new Promise<void>((resolve, reject) => {
      const waiters = this.#waiters.get(id) ?? new Set();
      this.#waiters.set(id, waiters.add({ settled: resolve, halted: reject }));
    });
  }

  halt(reason: unknown): void {
    for (const controller of this.#controllers.values()) controller.abort(reason);
    this.#controllers.clear();
    const error = new PerdureError("agent_gone", "This life of the agent ended before the fiber did.", {
      cause: reason,
    });
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.halted(error);
    this.#waiters.clear();
  }

  #createContext(row: FiberRow, signal: AbortSignal): FiberContext {
    return {
      id: row.id,
      name: row.name,
      signal,
      snapshot: decodeJson(row.snapshot) ?? null,
      attempt: row.starts,
      stash: (data) => {
        const snapshot = encodeJson(data, "The checkpoint");
        if (this.halted()) {
          throw new PerdureError("agent_gone", "This life of the agent has ended. The checkpoint was not stored.");
        }
        if (fiberTable.change(this.#context.host, row, { snapshot })) return;
        throw new PerdureError(
          "bad_state",
          `The fiber "${row.name}" has ended or was cancelled. The checkpoint was not stored.`,
        );
      },
    };
  }
}

/** The work is done, whatever it returned: a value that cannot be stored must not make it run again. */
function encodeResult(value: unknown): { result: string | null; error?: string } {
  try {
    return { result: encodeJson(value, "The result") };
  } catch (error) {
    return { result: null, error: errorText(error) };
  }
}

/** The state of a fiber as its row tells it. */
function toFiberState(row: FiberRow): FiberState {
  const { kind, name, attempts, starts, maxRetries } = row;
  const counts = { kind, name, attempts, starts, maxRetries };
  switch (row.status) {
    case "pending":
    case "running":
      return { ...counts, phase: row.status };
    case "recovering":
      return { ...counts, phase: row.status, interruptedAt: row.interruptedAt ?? row.createdAt };
    case "interrupted":
      return { ...counts, phase: row.status, hookDue: row.at !== null, missing: row.missing === 1 };
    case "completed":
    case "aborted":
    case "error":
      return { phase: "settled" };
  }
}

/**
 * Writes a move. @returns the row now, nothing in place of a deleted one; undefined, and writes nothing, when it had moved on.
 * @throws PerdureError `bad_input`, `limit` for a snapshot or metadata that cannot be stored
 */
function applyFiberMove(
  db: Sql,
  row: FiberRow,
  move: FiberMove,
  now: number,
  more: Partial<Pick<FiberRow, "result" | "error">> = {},
): { readonly row?: FiberRow } | undefined {
  if (move.type === "stay") return undefined;
  if (move.type === "forget") return fiberTable.remove(db, row) ? {} : undefined;
  const changes: Partial<FiberRow> = { ...toChanges(row, move, now), ...more };
  return fiberTable.change(db, row, changes) ? { row: { ...row, ...changes } } : undefined;
}

function toChanges(
  row: FiberRow,
  move: Exclude<FiberMove, { type: "stay" | "forget" }>,
  now: number,
): Partial<FiberRow> {
  switch (move.type) {
    case "start":
      return { status: "running", at: null, starts: row.starts + 1, startedAt: row.startedAt ?? now };
    case "hook":
      return { status: "recovering", at: null, starts: row.starts + 1 };
    case "wait":
      return {
        status: "pending",
        at: now + move.delayMs,
        attempts: row.attempts + (move.error === undefined ? 0 : 1),
        error: move.error ?? null,
        missing: 0,
        settledAt: null,
      };
    case "await_hook":
      return {
        status: "interrupted",
        at: now + move.hookInMs,
        attempts: move.fresh ? 0 : row.attempts + (move.error === undefined ? 0 : 1),
        starts: move.fresh ? 0 : row.starts,
        error: move.error ?? row.error,
        interruptedAt: row.interruptedAt ?? now,
      };
    case "park":
      return { status: "interrupted", at: null, missing: 1, error: move.error, settledAt: now };
    case "settle": {
      const { result } = move;
      return {
        status: result.status,
        at: null,
        missing: 0,
        error: resultError(result),
        settledAt: now,
        ...(result.snapshot === undefined ? {} : { snapshot: encodeJson(result.snapshot, "The snapshot") }),
        ...(result.status === "completed" && result.metadata !== undefined
          ? { metadata: encodeJson(result.metadata, "The metadata") }
          : {}),
      };
    }
  }
}

/** Refuses before anything is written what could not be written. */
function checkResult(value: unknown): ReturnType<typeof parseRecoveryResult> {
  const result = parseRecoveryResult(value);
  encodeJson(result?.snapshot, "The snapshot");
  if (result?.status === "completed") encodeJson(result.metadata, "The metadata");
  return result;
}
