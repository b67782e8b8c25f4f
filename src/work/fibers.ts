import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { newId } from "../base/id.ts";
import {
  deleteSettledFibers,
  type FiberKind,
  type FiberRow,
  fiberTable,
  insertFiber,
  listFibers,
  readFiber,
} from "../store/fiber.ts";
import { contextValues, insist, type Outcome } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { DEFAULT_RECOVERY_MAX_AGE_MS, FiberRunner } from "./fiber-run.ts";
import type { FiberFact } from "./fiber-state.ts";
import {
  type FiberContext,
  type FiberInspection,
  type FiberRecoveryResult,
  type FiberStatus,
  parseRecoveryResult,
  type StartFiberResult,
  toInspection,
  toStoredStatuses,
} from "./fiber-view.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import type { WorkContext } from "./work.ts";

const spawnNames = namesOf<SpawnFiberOptions>()("maxRetries metadata idempotencyKey");
const startNames = namesOf<StartFiberOptions>()("fiberId idempotencyKey metadata waitForCompletion");

/** Durable functions outside a turn. `fiber-state.ts` describes their life. */
export class Fibers extends DueWork<string> {
  readonly #runner: FiberRunner;
  readonly #recoveryMaxAgeMs: number;

  constructor(context: WorkContext, options: FibersOptions = {}) {
    super(context);
    this.#recoveryMaxAgeMs = options.recoveryMaxAgeMs ?? DEFAULT_RECOVERY_MAX_AGE_MS;
    if (!Number.isFinite(this.#recoveryMaxAgeMs) || this.#recoveryMaxAgeMs < 0) {
      throw new PerdureError(
        "bad_config",
        "fiberRecoveryMaxAgeMs must be a number of milliseconds, or 0 for no limit.",
      );
    }
    this.#runner = new FiberRunner(context, () => this.halted);
  }

  protected takeOver(): void {
    this.#runner.adoptOrphans();
  }

  protected waiting(limit: number) {
    return fiberTable.waiting(this.context.host, limit);
  }

  protected override halting(reason: unknown): void {
    this.#runner.halt(reason);
  }

  /**
   * Runs `fn` as a fiber and resolves with its value. After a crash before it returns or throws, `onFiberRecovered` is called.
   * @throws what `fn` throws; PerdureError `host_stopped`, `bad_input`
   */
  async runFiber<T>(name: string, fn: (ctx: FiberContext) => T | Promise<T>): Promise<T> {
    this.#refuseClosureWhenStopped();
    const { row } = this.#accept("run", name, {});
    const outcome = await this.#begin(row, fn);
    if (outcome === undefined) {
      throw new PerdureError(
        "bad_state",
        `The fiber "${name}" never started: it was cancelled, or the transaction that started it was undone.`,
      );
    }
    if (!outcome.ok) throw outcome.error;
    if (!this.halted) await this.context.host.durable();
    // The value is what `fn` returned; only its type got lost on the way.
    return outcome.value as T;
  }

  /**
   * Stores a fiber that calls `agent[method](payload, ctx)` and starts it soon; committed when this returns its id. After a crash
   * it runs again by itself, with its last checkpoint in `ctx.snapshot`.
   * @throws PerdureError `not_found` (the method), `bad_input`, `bad_config`, `limit`
   */
  spawnFiber(method: string, payload?: unknown, options: SpawnFiberOptions = {}): string {
    refuseUnknown(options, spawnNames, "spawnFiber()");
    if (typeof method !== "string" || this.context.method(method) === undefined) {
      throw new PerdureError("not_found", `There is no method "${String(method)}" to run as a fiber on this agent.`);
    }
    const { maxRetries = DEFAULT_MAX_RETRIES, metadata, idempotencyKey } = options;
    const at = this.context.host.clock.now();
    const { row } = this.#accept("spawn", method, { payload, maxRetries, metadata, idempotencyKey, at });
    this.runSoon();
    return row.id;
  }

  /**
   * Accepts `fn` as a fiber with a record that stays, to be found, cancelled and waited for. Resolves once that survives. A throw
   * ends it as `error`; after a crash, `onFiberRecovered` decides. @throws PerdureError `host_stopped`, `bad_input`, `limit`
   */
  async startFiber(
    name: string,
    fn: (ctx: FiberContext) => unknown,
    options: StartFiberOptions = {},
  ): Promise<StartFiberResult> {
    refuseUnknown(options, startNames, "startFiber()");
    this.#refuseClosureWhenStopped();
    const { fiberId, idempotencyKey, metadata, waitForCompletion } = options;
    const { row, accepted } = this.#accept("start", name, { id: fiberId, idempotencyKey, metadata });
    if (accepted) void this.#begin(row, fn);
    await this.context.host.durable();
    if (waitForCompletion === true) await this.#runner.whenSettled(row.id);
    return { accepted, ...toInspection(this.context.host, readFiber(this.context.host, row.id) ?? row) };
  }

  /** Replaces the checkpoint of the fiber that this code runs in. @throws PerdureError `bad_state` outside one */
  stash(data: unknown): void {
    const { fiber } = contextValues(this.context.host.context.get());
    if (fiber === undefined) {
      throw new PerdureError("bad_state", "There is no fiber to stash for. Call this inside a fiber's function.");
    }
    // Only `FiberRunner` puts a value under this key.
    (fiber as FiberContext).stash(data);
  }

  inspectFiber(id: string): FiberInspection | null {
    const row = readFiber(this.context.host, id);
    return row === undefined ? null : toInspection(this.context.host, row);
  }

  inspectFiberByKey(key: string): FiberInspection | null {
    const row = fiberTable.find(this.context.host, "idempotencyKey", key);
    return row === undefined ? null : toInspection(this.context.host, row);
  }

  /** Matching fibers, newest first. */
  listFibers(options: ListFibersOptions = {}): FiberInspection[] {
    const { status, name, limit = DEFAULT_LIST_LIMIT } = options;
    const statuses = status === undefined ? undefined : toStoredStatuses(status);
    return listFibers(this.context.host, { statuses, name, limit }).map((row) => toInspection(this.context.host, row));
  }

  /** Ends a fiber as `aborted`, then tells its signal. False when it has ended before, or is not there. */
  async cancelFiber(id: string, reason?: string): Promise<boolean> {
    const moved = this.#move(id, { type: "cancelled", reason: reason ?? null });
    if (moved) this.#runner.abort(id, reason ?? null);
    await this.context.host.durable();
    return moved;
  }

  /** {@link Fibers.cancelFiber} by idempotency key. */
  async cancelFiberByKey(key: string, reason?: string): Promise<boolean> {
    const row = fiberTable.find(this.context.host, "idempotencyKey", key);
    return row === undefined ? false : this.cancelFiber(row.id, reason);
  }

  /** Says how an interrupted fiber ends. False: it is not interrupted, or unknown. @throws PerdureError `bad_input`, `limit` */
  async resolveFiber(id: string, result: FiberRecoveryResult): Promise<boolean> {
    const checked = parseRecoveryResult(result);
    if (checked === undefined) throw new PerdureError("bad_input", "Pass the status with which the fiber ends.");
    const moved = this.#move(id, { type: "resolved", result: checked });
    await this.context.host.durable();
    return moved;
  }

  /** Deletes the records of fibers that have ended. @returns how many @throws PerdureError `bad_input` */
  async deleteFibers(options: DeleteFibersOptions = {}): Promise<number> {
    const { status = DELETED_BY_DEFAULT, settledBefore, limit } = options;
    checkDeletable(status);
    const deleted = deleteSettledFibers(this.context.host, toStoredStatuses(status), settledBefore?.getTime(), limit);
    await this.context.host.durable();
    return deleted;
  }

  /** Takes over what an earlier life left behind and starts what is due. Once, at the start of a life. */
  recover(): void {
    this.runDue();
  }

  #refuseClosureWhenStopped(): void {
    if (!this.context.stopped() && !this.halted) return;
    throw new PerdureError("host_stopped", "The host is stopping, so no function can start. spawnFiber() still works.");
  }

  #move(id: string, fact: FiberFact): boolean {
    this.adopt();
    const row = readFiber(this.context.host, id);
    const moved = row && this.#runner.move(row, fact);
    if (row === undefined || moved === undefined) return false;
    this.#runner.tell(row, moved.move);
    this.changed();
    return true;
  }

  #accept(kind: FiberKind, name: string, options: NewFiberOptions): { row: FiberRow; accepted: boolean } {
    const { host } = this.context;
    checkNewFiber(name, options);
    this.adopt();
    const { id = newId(), idempotencyKey: key, maxRetries = 0 } = options;
    const same = (key === undefined ? undefined : fiberTable.find(host, "idempotencyKey", key)) ?? readFiber(host, id);
    if (same !== undefined) return { row: same, accepted: false };
    const row = insertFiber(host, {
      id,
      kind,
      name,
      idempotencyKey: key ?? null,
      payload: encodeJson(options.payload, `The payload for "${name}"`),
      metadata: encodeJson(options.metadata, "The metadata"),
      maxRetries,
      at: options.at ?? null,
      createdAt: host.clock.now(),
      cause: this.context.cause(),
    });
    this.changed();
    return { row, accepted: true };
  }

  /** Starts a closure once the code that made it has given way. Undefined when its row is gone by then. */
  async #begin(row: FiberRow, fn: (ctx: FiberContext) => unknown): Promise<Outcome | undefined> {
    this.begin(row.id);
    this.changed();
    try {
      // Not in the transaction of the caller, if there is one.
      await Promise.resolve();
      let started: FiberRow | undefined;
      const write = (): void => {
        started = this.#runner.move(row, { type: "due", hasMethod: true })?.row;
      };
      await new Promise<boolean>((resolve) => insist(this.context, this.#runner.halted, write, resolve));
      if (started === undefined) return undefined;
      this.context.host.emit("fiber:started", { id: row.id, name: row.name });
      return await this.#runner.execute(started, fn);
    } finally {
      this.end(row.id);
    }
  }

  protected start(id: string, ended: () => void): void {
    const { host } = this.context;
    const row = readFiber(host, id);
    const method = row === undefined ? undefined : this.context.method(row.name);
    const moved = row && this.#runner.move(row, { type: "due", hasMethod: method !== undefined });
    const started = moved?.row;
    if (row !== undefined) this.#runner.tell(row, moved?.move);
    if (started === undefined) return ended();
    if (moved?.move.type === "hook") return this.#runner.recover(started, this.#recoveryMaxAgeMs, ended);
    if (moved?.move.type !== "start" || method === undefined) return ended();
    const { name, starts: attempt } = started;
    host.emit("fiber:started", { id, name });
    if (moved.move.cut) host.emit("fiber:recovered", { id, name, attempt });
    const run = () => this.#runner.execute(started, (ctx) => method(decodeJson(started.payload), ctx));
    // Of whoever happened to start it nothing goes along.
    void host.context.run(this.context.carry(started.cause), run).then(ended);
  }
}

export interface FibersOptions {
  /** How long a recovery hook that throws is called again; 0: for ever. A day by default. */
  readonly recoveryMaxAgeMs?: number;
}

/** How `spawnFiber` runs a method. */
export interface SpawnFiberOptions {
  /** Tries after the first one that threw. 3 by default. */
  readonly maxRetries?: number;
  readonly metadata?: Record<string, unknown>;
  /** A fiber with this key that is already there is returned instead. */
  readonly idempotencyKey?: string;
}

/** How `startFiber` keeps its ledger. */
export interface StartFiberOptions {
  /** Random by default. */
  readonly fiberId?: string;
  /** A fiber with this key that is already there is returned instead. */
  readonly idempotencyKey?: string;
  readonly metadata?: Record<string, unknown>;
  /** Resolve only when the fiber has ended. */
  readonly waitForCompletion?: boolean;
}

/** Which fibers to list. */
export interface ListFibersOptions {
  readonly status?: FiberStatus | readonly FiberStatus[];
  readonly name?: string;
  /** 100 by default. */
  readonly limit?: number;
}

/** Which settled fibers to delete. */
export interface DeleteFibersOptions {
  /** Settled ones by default, without those that are interrupted. */
  readonly status?: FiberStatus | readonly FiberStatus[];
  readonly settledBefore?: Date;
  /** All by default. */
  readonly limit?: number;
}

/** Retries of a spawned fiber when nothing else is said. */
export const DEFAULT_MAX_RETRIES = 3;
/** Fibers in one list when nothing else is said. */
export const DEFAULT_LIST_LIMIT = 100;
/** What `deleteFibers` deletes when nothing else is said. */
export const DELETED_BY_DEFAULT: readonly FiberStatus[] = ["completed", "aborted", "error"];
const DELETABLE: readonly FiberStatus[] = [...DELETED_BY_DEFAULT, "interrupted"];

/** What a row of any kind is made from. */
export interface NewFiberOptions extends SpawnFiberOptions {
  readonly id?: string;
  readonly payload?: unknown;
  readonly at?: number;
}

/** @throws PerdureError `bad_input`, `bad_config` */
export function checkNewFiber(name: string, options: NewFiberOptions): void {
  for (const [what, value] of Object.entries({ name, fiberId: options.id, idempotencyKey: options.idempotencyKey })) {
    if (value === undefined && what !== "name") continue;
    if (typeof value !== "string" || value === "") {
      throw new PerdureError("bad_input", `The ${what} of a fiber must be a non-empty string.`);
    }
  }
  const { metadata, maxRetries } = options;
  if (metadata !== undefined && (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))) {
    throw new PerdureError("bad_input", "The metadata of a fiber must be an object.");
  }
  if (maxRetries !== undefined && (!Number.isSafeInteger(maxRetries) || maxRetries < 0)) {
    throw new PerdureError("bad_config", `maxRetries must be a whole number of at least 0, not ${String(maxRetries)}.`);
  }
}

/** @throws PerdureError `bad_input` for a status that no deletable fiber has */
export function checkDeletable(status: FiberStatus | readonly FiberStatus[]): void {
  for (const one of typeof status === "string" ? [status] : status) {
    if (DELETABLE.includes(one)) continue;
    throw new PerdureError("bad_input", `A fiber that is ${String(one)} cannot be deleted. Cancel it first.`);
  }
}
