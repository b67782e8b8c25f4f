import { PerdureError } from "../base/error.ts";
import type { FiberStatus } from "./fiber-view.ts";

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
export interface NewFiberOptions {
  readonly id?: string;
  readonly idempotencyKey?: string;
  readonly metadata?: Record<string, unknown>;
  readonly payload?: unknown;
  readonly maxRetries?: number;
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
