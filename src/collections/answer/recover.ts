import { PerdureError } from "../../base/error.ts";
import type { GenerationContract } from "../contract.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { generationClaimId, toolClaimId, type Claims } from "../worker/claim.ts";

/** What should become of work that a process left behind, by its state. {@link recoverOrphanedOperations} uses this table. */
export interface Classification {
  /** `maybe`: by policy, and by how often it was tried. */
  readonly resumable: "yes" | "maybe" | "no";
  /**
   * - `pick-up`: nothing to do, whoever works on such rows takes it up.
   * - `leave`: somebody works on it.
   * - `await-tools`: it goes on when its tool calls have their results.
   * - `retry-or-fail`: back to `pending` with one more attempt, or `failed`.
   * - `show-partial`: what was stored of it can be shown; it cannot go on from there.
   * - `none`: it is over.
   */
  readonly action: "pick-up" | "leave" | "await-tools" | "retry-or-fail" | "show-partial" | "none";
}

const OVER: Classification = { resumable: "no", action: "none" };

/** Where an answer can go from here. `orphaned`: nobody works on it. `chunks`: how many of them are stored. */
export function classifyGeneration(
  row: { readonly status: string },
  known: { readonly orphaned?: boolean; readonly chunks?: number } = {},
): Classification {
  switch (row.status) {
    case "pending":
      return { resumable: "yes", action: "pick-up" };
    case "generating":
      return known.orphaned === true
        ? { resumable: "maybe", action: "retry-or-fail" }
        : { resumable: "no", action: "leave" };
    case "suspended":
      return { resumable: "yes", action: "await-tools" };
    case "failed":
    case "cancelled":
      return (known.chunks ?? 0) > 0 ? { resumable: "no", action: "show-partial" } : OVER;
    default:
      return OVER;
  }
}

/** Where a tool call can go from here. `orphaned`: nobody works on it. */
export function classifyToolCall(
  row: { readonly status: string },
  known: { readonly orphaned?: boolean } = {},
): Classification {
  switch (row.status) {
    case "pending":
      return { resumable: "yes", action: "pick-up" };
    case "executing":
      return known.orphaned === true
        ? { resumable: "maybe", action: "retry-or-fail" }
        : { resumable: "no", action: "leave" };
    default:
      return OVER;
  }
}

/** What recovery needs to see of a row. Rows may have anything else. */
interface RecoverableRow {
  id: string;
  status: string;
  /** ISO time of the last change of status. Without claims it is what tells that nobody works on the row. */
  updatedAt?: string;
  attempt?: number;
  error?: string;
}

/** How it is told that nobody works on a row. */
interface OrphanTest {
  readonly claims?: Claims;
  readonly timeoutMs: number;
  now(): number;
}

/** Changes an orphan. `why`: for people. `last`: it was given up, there is no further try. */
type OrphanChange = (draft: RecoverableRow, why: string, last: boolean) => void;

/** Changes a row if nobody works on it. Returns whether this process did: of several that find an orphan, one does. */
async function changeOrphan<TRow extends RecoverableRow>(
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

const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_ATTEMPTS = 3;

/** A row of an answer, as far as recovery looks at it. */
interface RecoverableGeneration extends RecoverableRow {
  /** The claim that its run is under, and that claim's fence: with claims they tell whether it still runs. */
  runner?: string;
  fence?: number;
}

/** What becomes of an answer that was cut off: `failed`, or `pending` once more, as often as attempts are left. */
type GenerationPolicy = "fail" | "retry";

interface RecoveryOptions<TGeneration extends RecoverableGeneration, TToolCall extends RecoverableRow> {
  readonly generations?: RowCollection<TGeneration>;
  readonly toolCalls?: RowCollection<TToolCall>;
  /**
   * With claims (of the same log) a row is an orphan when its claim is free or expired: no clock is involved, and a slow but live
   * worker is never disturbed. All workers must then use claims.
   */
  readonly claims?: Claims;
  /**
   * Without claims: how old `updatedAt` must be, by this machine's clock, for a row to be an orphan. Choose it longer than the
   * longest work. Default 300,000 (5 minutes).
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
 * Finds work that was begun and abandoned, and puts it back: `generating` answers become `failed` (or `pending`, by policy);
 * `executing` tool calls become `pending` with one more attempt, or `failed` after the last. Call it when a worker starts, and
 * now and then. All writes are conditional, so any number of processes may call it at once, and each orphan is recovered and
 * counted once (without a log: run it in one process only).
 * @throws PerdureError `bad_config` when claims and collections are of different logs; or what the log throws, leaving the rest
 *   for the next call.
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

interface ResumableGeneration extends GenerationContract {
  resumeFromToolIndex?: number;
  error?: string;
  updatedAt?: string;
}

interface ChainedToolCall {
  id: string;
  generationId: string;
  status: string;
}

/** What {@link resumeToolChain} found. */
export interface ResumedToolChain {
  /** Whether the answer is `pending` again because of this call. */
  readonly resumed: boolean;
  /** The calls that have their result. */
  readonly completed: readonly string[];
  /** The calls that have none: `pending`, `executing` or `failed`. */
  readonly open: readonly string[];
}

const RESUMABLE: ReadonlySet<string> = new Set(["generating", "suspended", "failed"]);

/**
 * Lets an answer that was cut off among its tool calls go on: it becomes `pending`, and `resumeFromToolIndex` says how many calls
 * have results, which are kept. Leaves alone an answer without calls, and one that is `pending`, `completed` or `cancelled`. A
 * `generating` one is taken as cut off, so call this for orphans only (see `recoverOrphanedOperations`). Of several concurrent
 * callers, one resumes.
 */
export async function resumeToolChain<TGeneration extends ResumableGeneration, TToolCall extends ChainedToolCall>(
  generationId: string,
  options: { readonly generations: RowCollection<TGeneration>; readonly toolCalls: RowCollection<TToolCall> },
): Promise<ResumedToolChain> {
  const generations = rowsOf(options.generations);
  const toolCalls = rowsOf(options.toolCalls);
  await Promise.all([generations.ready(), toolCalls.ready()]);
  const calls = toolCalls.all().filter((call) => call.generationId === generationId && call.status !== "cancelled");
  const completed = calls.filter(({ status }) => status === "completed").map(({ id }) => id);
  const open = calls.filter(({ status }) => status !== "completed").map(({ id }) => id);
  if (calls.length === 0) return { resumed: false, completed, open };
  const seen = generations.get(generationId);
  const resume = (draft: ResumableGeneration) => {
    if (!RESUMABLE.has(draft.status) || draft.status !== seen?.status) return false;
    draft.status = "pending";
    draft.resumeFromToolIndex = completed.length;
    draft.updatedAt = new Date().toISOString();
    delete draft.error;
    return true;
  };
  return { resumed: await generations.update(generationId, resume), completed, open };
}
