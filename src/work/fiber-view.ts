import { errorText, PerdureError } from "../base/error.ts";
import type { FiberKind, FiberRow, StoredFiberStatus } from "../store/fiber.ts";
import { type DamageTeller, readStored } from "../store/damaged.ts";
import { decodeJson } from "../base/json.ts";

/** Where a fiber is in its life. */
export type FiberStatus = Exclude<StoredFiberStatus, "recovering">;

/** What a fiber's function gets. */
export interface FiberContext {
  readonly id: string;
  readonly name: string;
  /** Aborts when the fiber is cancelled, and when this life of the agent ends. */
  readonly signal: AbortSignal;
  /** The last checkpoint of an earlier run, or null. */
  readonly snapshot: unknown;
  /** From 1; counts runs that threw and runs that the end of a process cut. */
  readonly attempt: number;
  /**
   * Replaces the checkpoint; committed when this returns.
   * @throws PerdureError `bad_input`, `limit` for data that cannot be stored, `bad_state` once the fiber has ended
   */
  stash(data: unknown): void;
}

/** One fiber as users see it. Times are milliseconds since the epoch. */
export interface FiberInspection {
  readonly fiberId: string;
  readonly name: string;
  /** `run`: runFiber, `spawn`: spawnFiber, `start`: startFiber. */
  readonly kind: FiberKind;
  readonly idempotencyKey?: string;
  readonly status: FiberStatus;
  /** The last checkpoint. */
  readonly snapshot?: unknown;
  /** What the function returned, if it can be stored as JSON. */
  readonly result?: unknown;
  readonly error?: string;
  readonly metadata?: Record<string, unknown>;
  /** Runs begun so far. */
  readonly attempt: number;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly settledAt?: number;
}

/** What `startFiber` resolves with. */
export interface StartFiberResult extends FiberInspection {
  /** False when a fiber with the same key or id was there already: that one is described. */
  readonly accepted: boolean;
}

/** What `onFiberRecovered` gets for a fiber whose function died with its process. */
export interface FiberRecoveryContext {
  readonly id: string;
  readonly name: string;
  readonly status: FiberStatus;
  readonly kind: FiberKind;
  readonly idempotencyKey?: string;
  readonly metadata: Record<string, unknown> | null;
  /** The last checkpoint, or null. */
  readonly snapshot: unknown;
  readonly createdAt: number;
  readonly recoveryReason: "interrupted";
  /** From 1; counts calls of the hook for this fiber. */
  readonly attempt: number;
}

/** How an interrupted fiber is to end. */
export type FiberRecoveryResult =
  | { readonly status: "completed"; readonly snapshot?: unknown; readonly metadata?: Record<string, unknown> }
  | { readonly status: "error"; readonly error?: unknown; readonly snapshot?: unknown }
  | { readonly status: "aborted"; readonly reason?: string; readonly snapshot?: unknown }
  | { readonly status: "interrupted"; readonly reason?: string; readonly snapshot?: unknown };

const RESULT_STATUSES: readonly unknown[] = ["completed", "error", "aborted", "interrupted"];

/** Checks what a hook or a caller handed in; nothing at all is fine. @throws PerdureError `bad_input` */
export function parseRecoveryResult(value: unknown): FiberRecoveryResult | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || !("status" in value) || !RESULT_STATUSES.includes(value.status)) {
    throw new PerdureError(
      "bad_input",
      'A fiber ends with { status: "completed" | "error" | "aborted" | "interrupted" }, or stays interrupted with nothing.',
    );
  }
  return value as FiberRecoveryResult;
}

/** The text that a result leaves in the row. */
export function resultError(result: FiberRecoveryResult): string | null {
  if (result.status === "completed") return null;
  if (result.status === "error") return result.error === undefined ? "Unknown error occurred" : errorText(result.error);
  return result.reason ?? null;
}

/** The row as users see it, without what cannot be read of it. */
export function toInspection(host: DamageTeller, row: FiberRow): FiberInspection {
  const read = (json: string | null, what: string) => readStored(host, json, `the ${what} of the fiber ${row.id}`);
  return {
    fiberId: row.id,
    name: row.name,
    kind: row.kind,
    idempotencyKey: row.idempotencyKey ?? undefined,
    status: toStatus(row.status),
    snapshot: read(row.snapshot, "checkpoint"),
    result: read(row.result, "result"),
    error: row.error ?? undefined,
    // Only objects are let in, by `acceptFiber`.
    metadata: read(row.metadata, "metadata") as Record<string, unknown> | undefined,
    attempt: row.starts,
    createdAt: row.createdAt,
    startedAt: row.startedAt ?? undefined,
    settledAt: row.settledAt ?? undefined,
  };
}

export function toRecoveryContext(row: FiberRow): FiberRecoveryContext {
  return {
    id: row.id,
    name: row.name,
    status: "interrupted",
    kind: row.kind,
    idempotencyKey: row.idempotencyKey ?? undefined,
    metadata: toMetadata(row) ?? null,
    snapshot: decodeJson(row.snapshot) ?? null,
    createdAt: row.createdAt,
    recoveryReason: "interrupted",
    attempt: row.starts,
  };
}

/** Stored statuses for which `status` stands. */
export function toStoredStatuses(status: FiberStatus | readonly FiberStatus[]): StoredFiberStatus[] {
  const statuses: readonly FiberStatus[] = typeof status === "string" ? [status] : status;
  return statuses.flatMap((one): StoredFiberStatus[] => (one === "interrupted" ? [one, "recovering"] : [one]));
}

function toStatus(status: StoredFiberStatus): FiberStatus {
  return status === "recovering" ? "interrupted" : status;
}

function toMetadata(row: FiberRow): Record<string, unknown> | undefined {
  // Only objects are let in, by `acceptFiber`.
  return decodeJson(row.metadata) as Record<string, unknown> | undefined;
}
