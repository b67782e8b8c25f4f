import { errorText, PerdureError } from "../../base/error.ts";
import { toolClaimId } from "../worker/claim.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import type { PumpOutcome } from "../worker/pump.ts";
import { settleUntold, tell, type CallItem, type CallParts } from "./call-parts.ts";
import { CallRun } from "./call-run.ts";
import { Holding } from "./holding.ts";
import { isSettled, touch, type CallRow } from "./call-row.ts";

/** Whether a row may be begun. With claims also one that another worker has begun: its claim decides. */
export function mayBegin(row: CallRow, withClaims: boolean): boolean {
  return !isSettled(row) && (withClaims || row.status !== "executing");
}

/**
 * Claims a call: `pending` → `executing`, so that of all who want it one begins. @returns how to go on when it was not
 * to be had. @throws when the claim could not be written; then nothing was begun.
 */
export async function takeCall<TRow extends object>(
  parts: CallParts<TRow>,
  item: CallItem<TRow>,
): Promise<CallRun<TRow> | PumpOutcome> {
  const { writer, reader, claims, callbacks } = parts;
  const { id, row, attempt } = item;
  if (writer === undefined) {
    await callbacks.onExecuting?.(row);
    return new CallRun(parts, item, new Holding({ id, writer, reader }), attempt + 1);
  }
  const taken = claims === undefined ? await claimRow(parts, item) : await acquire(parts, item);
  if (taken instanceof CallRun) await tell(parts, row, () => callbacks.onExecuting?.(row));
  return taken;
}

/** The row itself is the claim: its version decides. */
async function claimRow<TRow extends object>(
  parts: CallParts<TRow>,
  item: CallItem<TRow>,
): Promise<CallRun<TRow> | PumpOutcome> {
  const { writer, reader } = parts;
  const { id, attempt } = item;
  const at = writer?.unchanged(id);
  if (!(await begin(parts, item, attempt, at === undefined ? [] : [at]))) return { later: true };
  const holding = new Holding({ id, writer, reader, ...(at === undefined ? {} : { version: at.version + 1 }) });
  return new CallRun(parts, item, holding, attempt + 1);
}

async function acquire<TRow extends object>(
  parts: CallParts<TRow>,
  item: CallItem<TRow>,
): Promise<CallRun<TRow> | PumpOutcome> {
  const { writer, reader, claims, retry } = parts;
  const { id } = item;
  const got = await claims?.acquire(toolClaimId(id));
  if (got === undefined) return { later: true };
  // It may be given back long before it could be taken over.
  if (got.heldBy !== undefined) return { later: true, ms: got.retryInMs, orWake: true };
  if (got.dead !== undefined) return refuse(parts, item, "failed", new Error(got.dead.error));
  const { claim } = got;
  // Tries whose worker has died are counted by the claim, others by the row.
  const attempt = Math.max(item.attempt, claim.attempt - 1);
  if (retry?.maxAttempts !== undefined && attempt >= retry.maxAttempts) {
    await claim.release();
    return refuse(parts, item, "failed", wornOut(id, attempt));
  }
  let begun = false;
  try {
    begun = await begin(parts, item, attempt, [claim.condition()]);
  } finally {
    // Also when the write has failed: a claim that nobody works under would keep everybody else out.
    if (!begun) await claim.giveBack();
  }
  if (!begun) return { later: true };
  return new CallRun(parts, item, new Holding({ id, writer, reader, claim }), attempt + 1);
}

/** The error of a call that was tried as often as is allowed. */
export function wornOut(id: string, tries: number): PerdureError {
  return new PerdureError("limit", `The tool call "${id}" was given up after ${tries} tries.`);
}

/** @returns whether the row was free and is this process's now. */
async function begin<TRow extends object>(
  { writer, claims }: CallParts<TRow>,
  { id }: CallItem<TRow>,
  attempt: number,
  when: readonly RowCondition[],
): Promise<boolean> {
  const take = (draft: CallRow) => {
    if (!mayBegin(draft, claims !== undefined)) return false;
    draft.status = "executing";
    if (draft.attempt !== undefined) draft.attempt = attempt;
    touch(draft);
    return true;
  };
  return (await writer?.update(id, take, when.length === 0 ? {} : { when })) === true;
}

/** Settles a call that is not to be begun at all. */
export async function refuse<TRow extends object>(
  parts: CallParts<TRow>,
  { id, row }: CallItem<TRow>,
  status: "failed" | "cancelled",
  error: Error,
): Promise<PumpOutcome> {
  const { writer, callbacks } = parts;
  const callback = () => (status === "failed" ? callbacks.onError?.(row, error) : callbacks.onCancelled?.(row));
  if (writer === undefined) {
    const isTold = status === "failed" ? callbacks.onError !== undefined : callbacks.onCancelled !== undefined;
    if (isTold) await callback();
    else await settleUntold(parts, id, status, error);
    return "done";
  }
  const refused = await writer.update(id, (draft) => {
    if (!mayBegin(draft, parts.claims !== undefined)) return false;
    draft.status = status;
    draft.error = errorText(error);
    touch(draft);
    return true;
  });
  // Whoever was first tells of it.
  if (refused) await tell(parts, row, callback);
  return "done";
}
