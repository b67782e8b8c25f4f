import { errorText, PerdureError } from "../base/error.ts";
import type { FiberRow } from "../store/fiber.ts";
import { fiberTable, readFiber } from "../store/fiber.ts";
import type { Outcome } from "./callback.ts";
import { contextValues, insist } from "./callback.ts";
import { applyFiberMove, toFiberState } from "./fiber-move.ts";
import type { FiberFact, FiberMove } from "./fiber-state.ts";
import { nextFiberMove } from "./fiber-state.ts";
import type { FiberContext } from "./fiber-view.ts";
import { resultError } from "./fiber-view.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import { backOffMs } from "./retry.ts";
import type { WorkContext } from "./work.ts";

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

  /**
   * Runs `fn` as the fiber `row`, which is `running`. Resolves with how it ended once that is stored; never
   * rejects. Not in a transaction, so that each stash is a commit of its own.
   */
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
