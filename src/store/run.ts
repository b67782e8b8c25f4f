import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_run`: work that an agent does for its parent, as the agent knows it. `turns` lists its turns as JSON,
 * `[[seq, first chunk, id], …]`: a run's chunks are numbered across its turns, and kept as long as the row (see
 * `store/stream.ts`).
 */
export const runSchema: readonly string[] = [
  `CREATE TABLE perdure_run (
    run_id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    input TEXT NOT NULL,
    message_id TEXT,
    turns TEXT NOT NULL DEFAULT '[]',
    output TEXT,
    summary TEXT,
    error TEXT,
    reason TEXT,
    progress TEXT,
    milestones TEXT NOT NULL DEFAULT '[]',
    started_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT, WITHOUT ROWID`,
];

/** What a run comes of. */
export const runLineageSchema: readonly string[] = ["ALTER TABLE perdure_run ADD COLUMN lineage TEXT"];

/** Where a run is. */
type RunStatus = "running" | "completed" | "error" | "aborted";

/** One run. JSON columns are texts; times are milliseconds since the epoch. */
export interface RunRow {
  readonly runId: string;
  readonly status: RunStatus;
  /** What it was asked for, as JSON. */
  readonly input: string;
  /** The message that asked for it. */
  readonly messageId: string | null;
  /** The turns that it took: each turn's number, the number of its first chunk, and its id. */
  readonly turns: string;
  readonly output: string | null;
  readonly summary: string | null;
  readonly error: string | null;
  readonly reason: string | null;
  readonly progress: string | null;
  readonly milestones: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** What it comes of, as JSON; null where whoever asked did not say. */
  readonly lineage: string | null;
}

const runs = tableOf<RunRow>()(
  "perdure_run",
  "runId status input messageId turns output summary error reason progress milestones startedAt endedAt lineage",
);

/** What a new run needs. One that was stopped before it began has ended already. */
export type NewRun = Pick<
  RunRow,
  "runId" | "status" | "input" | "messageId" | "turns" | "error" | "startedAt" | "endedAt"
> & { readonly lineage?: string | null };

export function insertRun(db: Sql, run: NewRun): void {
  runs.insert(db, run);
}

export function readRun(db: Sql, runId: string): RunRow | undefined {
  return runs.one(db, "run_id = ?", runId);
}

/** Runs that have not ended. */
export function openRuns(db: Sql): RunRow[] {
  return runs.select(db, "WHERE status = 'running' ORDER BY started_at, run_id");
}

/** The run that the agent began last. */
export function lastRun(db: Sql): RunRow | undefined {
  return runs.select(db, "ORDER BY started_at DESC, run_id LIMIT 1")[0];
}

function tookTurn(place: string): string {
  return `EXISTS (SELECT 1 FROM json_each(perdure_run.turns) AS t WHERE json_extract(t.value, '${place}') = ?)`;
}

/** The run that a turn was taken for. */
export function runOfTurn(db: Sql, turn: number): RunRow | undefined {
  return runs.one(db, tookTurn("$[0]"), turn);
}

/** The same, by the turn's id: which is known for longer than the turn is. */
export function runOfTurnId(db: Sql, turnId: string): RunRow | undefined {
  return runs.one(db, tookTurn("$[2]"), turnId);
}

export function setRunTurns(db: Sql, runId: string, turns: string): void {
  runs.update(db, { turns }, "run_id = ?", runId);
}

export function endRun(
  db: Sql,
  runId: string,
  end: Pick<RunRow, "status" | "output" | "summary" | "error" | "endedAt">,
): void {
  runs.update(db, end, "run_id = ? AND status = 'running'", runId);
}

/** Notes why a run is about to end, for its end to say. */
export function setRunReason(db: Sql, runId: string, reason: string): void {
  runs.update(db, { reason }, "run_id = ? AND status = 'running'", runId);
}

export function setRunProgress(db: Sql, runId: string, progress: string): void {
  runs.update(db, { progress }, "run_id = ?", runId);
}

export function setRunMilestones(db: Sql, runId: string, milestones: string): void {
  runs.update(db, { milestones }, "run_id = ?", runId);
}
