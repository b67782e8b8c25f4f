import type { Sql, SqlValue } from "../port.ts";
import { tableOf } from "./table.ts";

/** `perdure_agent_run`: the work that an agent gave to its children, as the agent knows it. One row per run. */
export const agentRunSchema: readonly string[] = [
  `CREATE TABLE perdure_agent_run (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    class_name TEXT NOT NULL,
    status TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    turn_id TEXT,
    tool_call_id TEXT,
    input TEXT NOT NULL,
    preview TEXT,
    display TEXT,
    display_order INTEGER,
    delivery TEXT NOT NULL,
    detached TEXT,
    told TEXT NOT NULL DEFAULT '[]',
    output TEXT,
    summary TEXT,
    error TEXT,
    reason TEXT,
    child_running INTEGER,
    chunks INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT`,
];

/** For whom a run is done. */
export const agentRunIdentitySchema: readonly string[] = ["ALTER TABLE perdure_agent_run ADD COLUMN identity TEXT"];

/** What a run comes of, for bounds on how many come of one another. */
export const agentRunLineageSchema: readonly string[] = ["ALTER TABLE perdure_agent_run ADD COLUMN lineage TEXT"];

/** The conversation whose turn asked for a run. */
export const agentRunSessionSchema: readonly string[] = [
  "ALTER TABLE perdure_agent_run ADD COLUMN session TEXT",
  `UPDATE perdure_agent_run SET session = (SELECT session FROM perdure_turn WHERE id = turn_id)`,
];

/** Where a run is. Only `running` is not an end; `interrupted` may still be followed by another one. */
export type AgentRunStatus = "running" | "completed" | "error" | "aborted" | "interrupted";

/** One run. JSON columns are texts; times are milliseconds since the epoch. */
export interface AgentRunRow {
  readonly seq: number;
  readonly runId: string;
  readonly className: string;
  readonly status: AgentRunStatus;
  /** Whether it is to be stopped, stored before the child is told. */
  readonly cancelled: 0 | 1;
  /** The turn that waits for it; null for a run that no turn waits for. */
  readonly turnId: string | null;
  readonly toolCallId: string | null;
  readonly input: string;
  readonly preview: string | null;
  readonly display: string | null;
  readonly displayOrder: number | null;
  /** Whether clients get all that the child says, or only how it ends. */
  readonly delivery: "full" | "terminal";
  /** How its end is delivered when nobody waits for it, as JSON. */
  readonly detached: string | null;
  /** Milestones that were passed on to the conversation, as JSON. */
  readonly told: string;
  readonly output: string | null;
  readonly summary: string | null;
  readonly error: string | null;
  readonly reason: string | null;
  readonly childRunning: 0 | 1 | null;
  /** How many chunks the child stored, once it has ended. */
  readonly chunks: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** For whom it is done, as JSON: who the turn is for that asked for it. */
  readonly identity: string | null;
  /** What it comes of, as JSON; null for a run of before this was stored. */
  readonly lineage: string | null;
  /** The conversation whose turn asked for it; null: code asked for it outside of turns. */
  readonly session: string | null;
}

/** A run without what it was asked for and what it brought, which may be long. */
export type ListedAgentRun = Omit<AgentRunRow, "input" | "output">;

/** What a new run needs. */
export type NewAgentRun = Omit<
  AgentRunRow,
  "seq" | "cancelled" | "told" | "identity" | "lineage" | "session" | keyof AgentRunEnd
> &
  Partial<Pick<AgentRunRow, "identity" | "lineage" | "session">>;

/** How a run ended. */
export type AgentRunEnd = Pick<
  AgentRunRow,
  "output" | "summary" | "error" | "reason" | "childRunning" | "chunks" | "endedAt"
> & { readonly status: Exclude<AgentRunStatus, "running"> };

const listed = tableOf<ListedAgentRun>()(
  "perdure_agent_run",
  "seq runId className status cancelled turnId toolCallId preview display displayOrder delivery detached told summary",
  "error reason childRunning chunks startedAt endedAt identity lineage session",
);
const COLUMNS = `${listed.columns}, input, output`;

function select(db: Sql, rest: string, ...args: SqlValue[]): AgentRunRow[] {
  return db.sql<AgentRunRow>(`SELECT ${COLUMNS} FROM perdure_agent_run ${rest}`, ...args);
}

export function insertAgentRun(db: Sql, run: NewAgentRun): void {
  listed.insert(db, { ...run, status: "running" });
}

export function readAgentRun(db: Sql, runId: string): AgentRunRow | undefined {
  return select(db, "WHERE run_id = ?", runId)[0];
}

/** All runs that are kept, oldest first. */
export function listAgentRuns(db: Sql): ListedAgentRun[] {
  return listed.select(db, "ORDER BY seq");
}

/** Runs that have not ended, oldest first. */
export function openAgentRuns(db: Sql): AgentRunRow[] {
  return select(db, "WHERE status = 'running' ORDER BY seq");
}

export function countOpenAgentRuns(db: Sql): number {
  return listed.count(db, "status = 'running'");
}

export function cancelAgentRun(db: Sql, runId: string, reason: string | null): void {
  db.sql(
    "UPDATE perdure_agent_run SET cancelled = 1, error = coalesce(error, ?) WHERE run_id = ? AND status = 'running'",
    reason,
    runId,
  );
}

export function endAgentRun(db: Sql, runId: string, end: AgentRunEnd): void {
  listed.update(db, end, "run_id = ?", runId);
}

/** A run that was given up is followed again, for this turn. */
export function reopenAgentRun(db: Sql, runId: string, turnId: string | null): void {
  const open = { status: "running", error: null, reason: null, childRunning: null, endedAt: null } as const;
  listed.update(db, { ...open, turnId }, "run_id = ?", runId);
}

/** Notes which milestones were passed on, as JSON. */
export function tellAgentRun(db: Sql, runId: string, told: string): void {
  listed.update(db, { told }, "run_id = ?", runId);
}

export function deleteAgentRun(db: Sql, runId: string): void {
  listed.delete(db, "run_id = ?", runId);
}
