import { PerdureError } from "../../base/error.ts";
import type { Claims } from "../claim/claim.ts";
import type { RowCondition } from "../log/row-log.ts";
import type { Rows } from "../rows.ts";

/** What recovery needs to see of a row. Rows may have anything else. */
export interface RecoverableRow {
  id: string;
  status: string;
  /** ISO time of the last change of status. Without claims it is what tells that nobody works on the row. */
  updatedAt?: string;
  attempt?: number;
  error?: string;
}

/** How it is told that nobody works on a row. */
export interface OrphanTest {
  readonly claims?: Claims;
  readonly timeoutMs: number;
  now(): number;
}

/** Changes an orphan. `why`: for people. `last`: it was given up, there is no further try. */
export type OrphanChange = (draft: RecoverableRow, why: string, last: boolean) => void;

/**
 * Changes a row if nobody works on it. Of several processes that find the same orphan one changes it.
 * @returns whether this one did.
 */
export async function changeOrphan<TRow extends RecoverableRow>(
  rows: Rows<TRow>,
  row: TRow,
  test: OrphanTest,
  claim: { readonly id: string; readonly fence: number | undefined },
  change: OrphanChange,
): Promise<boolean> {
  const { claims } = test;
  const write = (why: string, when: readonly RowCondition[] = [], last = false) => {
    const judge = (draft: TRow) => sameRun(draft, row) && (change(draft, why, last), true);
    return rows.update(row.id, judge, { when });
  };
  if (claims === undefined) return isOld(row, test) && write(`no change for ${test.timeoutMs} ms`);
  requireSameLog(claims, rows);
  const view = claims.inspect(claim.id);
  if (view.state === "held") {
    // Its holder has changed hands since: what the row's worker would write is refused.
    const left = claim.fence !== undefined && claim.fence !== view.fence;
    return left && write(`"${view.owner}" has taken over from its worker`);
  }
  if (view.state === "dead") return write(`it was given up: ${view.error}`, [], true);
  return takeAndWrite(claims, claim.id, (when) => write("its worker has stopped", when));
}

/** Holding the claim, so that neither its last worker nor the next one can be writing at the same time. */
async function takeAndWrite(
  claims: Claims,
  claimId: string,
  write: (when: readonly RowCondition[]) => Promise<boolean>,
): Promise<boolean> {
  const { claim } = await claims.acquire(claimId, { maxAttempts: Number.POSITIVE_INFINITY });
  if (claim === undefined) return false;
  try {
    return await write([claim.condition()]);
  } finally {
    await claim.giveBack();
  }
}

function isOld(row: RecoverableRow, test: OrphanTest): boolean {
  // Without a time it is never old: nothing tells that it was left.
  return test.now() - Date.parse(row.updatedAt ?? "") > test.timeoutMs;
}

/** Whether a row is still the run that was looked at: somebody else may have recovered or finished it. */
function sameRun(now: RecoverableRow, seen: RecoverableRow): boolean {
  return now.status === seen.status && now.updatedAt === seen.updatedAt && now.attempt === seen.attempt;
}

function requireSameLog(claims: Claims, rows: { readonly log: unknown }): void {
  if (rows.log === claims.log) return;
  throw new PerdureError(
    "bad_config",
    "Claims judge only rows of their own log: give recoverOrphanedOperations collections and claims of the same log.",
  );
}
