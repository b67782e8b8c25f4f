import { generationClaimId, toolClaimId } from "../claim/claim.ts";
import type { Claims } from "../claim/claim.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";
import { changeOrphan } from "./orphan.ts";
import type { OrphanChange, OrphanTest, RecoverableRow } from "./orphan.ts";

const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_ATTEMPTS = 3;

/** A row of an answer, as far as recovery looks at it. */
export interface RecoverableGeneration extends RecoverableRow {
  /** The claim that its run is under, and that claim's fence: with claims they tell whether it still runs. */
  runner?: string;
  fence?: number;
}

/** What becomes of an answer that was cut off: `failed`, or `pending` once more, as often as attempts are left. */
export type GenerationPolicy = "fail" | "retry";

/** What {@link recoverOrphanedOperations} looks at. */
export interface RecoveryOptions<TGeneration extends RecoverableGeneration, TToolCall extends RecoverableRow> {
  readonly generations?: RowCollection<TGeneration>;
  readonly toolCalls?: RowCollection<TToolCall>;
  /**
   * With claims (of the same log) a row is an orphan when its claim is free or has expired: no clock is asked, and a
   * slow worker that lives is never disturbed. All workers must then work under claims.
   */
  readonly claims?: Claims;
  /**
   * Without claims: a row is an orphan when its `updatedAt` is older than that, by this machine's clock. Choose it
   * longer than the longest work. Default 300,000 (5 minutes).
   */
  readonly timeoutMs?: number;
  /** How often work is begun before it is `failed` for good. Default 3. */
  readonly maxAttempts?: number;
  /**
   * Default `fail`: what was stored of the answer stays to be shown, and whoever wants it asks again under a new id.
   * `retry` is for generations that can go on or begin again under their id. A function must not throw.
   */
  readonly generationPolicy?: GenerationPolicy | ((row: TGeneration) => GenerationPolicy);
  /** Default {@link toolClaimId} of the row's id. */
  readonly toolClaimId?: (row: TToolCall) => string;
  /** Default: the row's `runner`, or else {@link generationClaimId} of its id. */
  readonly generationClaimId?: (row: TGeneration) => string;
  /** Milliseconds since the epoch. For tests. */
  readonly now?: () => number;
}

/** One row that was recovered by this call. */
export interface Recovered {
  readonly id: string;
  readonly to: "pending" | "failed";
  /** The row's `attempt` behind it. */
  readonly attempt: number;
  readonly reason: string;
}

/** What was done. Rows that another process recovered at the same time are not in it. */
export interface RecoveryReport {
  readonly generations: readonly Recovered[];
  readonly toolCalls: readonly Recovered[];
}

/**
 * Finds work that was begun and that nobody does any more, and puts it back: answers that are `generating` become
 * `failed` (or `pending`, by policy), tool calls that are `executing` become `pending` with one more attempt, or
 * `failed` after the last. Call it at the start of a worker, and every now and then. All writes are conditional, so
 * any number of processes may call it at once: each orphan is recovered, and counted, once (on collections that are
 * on no log: with one process).
 * @throws PerdureError `bad_config` when claims and collections are of different logs; or what the log throws: what
 *   was not reached is left for the next call.
 */
export async function recoverOrphanedOperations<
  TGeneration extends RecoverableGeneration = RecoverableGeneration,
  TToolCall extends RecoverableRow = RecoverableRow,
>(options: RecoveryOptions<TGeneration, TToolCall>): Promise<RecoveryReport> {
  const { claims, timeoutMs = DEFAULT_TIMEOUT_MS, maxAttempts = DEFAULT_ATTEMPTS, now = Date.now } = options;
  const test: OrphanTest = { timeoutMs, now, ...(claims === undefined ? {} : { claims }) };
  await claims?.ready;
  const policy = (row: TGeneration) =>
    typeof options.generationPolicy === "function" ? options.generationPolicy(row) : options.generationPolicy;
  return {
    generations: await recoverAll(options.generations, "generating", test, (row) => ({
      claim: {
        id: options.generationClaimId?.(row) ?? row.runner ?? generationClaimId(row.id),
        fence: row.fence,
      },
      // Answers count their tries from 1, calls those that are over.
      first: 1,
      triesLeft: policy(row) === "retry" ? maxAttempts - (row.attempt ?? 1) : 0,
    })),
    toolCalls: await recoverAll(options.toolCalls, "executing", test, (row) => ({
      claim: { id: options.toolClaimId?.(row) ?? toolClaimId(row.id), fence: undefined },
      first: 0,
      triesLeft: maxAttempts - (row.attempt ?? 0) - 1,
    })),
  };
}

interface Judged {
  readonly claim: { readonly id: string; readonly fence: number | undefined };
  readonly first: number;
  readonly triesLeft: number;
}

async function recoverAll<TRow extends RecoverableRow>(
  collection: RowCollection<TRow> | undefined,
  status: string,
  test: OrphanTest,
  judge: (row: TRow) => Judged,
): Promise<Recovered[]> {
  if (collection === undefined) return [];
  const rows = rowsOf(collection);
  await rows.ready();
  const recovered: Recovered[] = [];
  for (const row of rows.all()) {
    if (row.status !== status) continue;
    const { claim, first, triesLeft } = judge(row);
    let done: Recovered | undefined;
    const change: OrphanChange = (draft, why, last) => {
      const to = triesLeft > 0 && !last ? "pending" : "failed";
      const attempt = (draft.attempt ?? first) + (to === "pending" || first === 0 ? 1 : 0);
      const reason = `Left behind as "${status}": ${why}.`;
      draft.status = to;
      draft.attempt = attempt;
      draft.updatedAt = new Date(test.now()).toISOString();
      if (to === "failed") draft.error = reason;
      done = { id: row.id, to, attempt, reason };
    };
    if ((await changeOrphan(rows, row, test, claim, change)) && done !== undefined) recovered.push(done);
  }
  return recovered;
}
