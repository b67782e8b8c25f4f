import type { Sql, SqlValue } from "../port.ts";

/**
 * `perdure_turn`: every turn that was asked for, from its acceptance to its end; the inbox, the turn under
 * way and the last outcomes are the same rows in different states (see `turn/state.ts`).
 */
export const turnSchema: readonly string[] = [
  `CREATE TABLE perdure_turn (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    trigger TEXT NOT NULL,
    continuation INTEGER NOT NULL,
    message_ids TEXT NOT NULL,
    answer_id TEXT,
    base_parts INTEGER NOT NULL DEFAULT 0,
    body TEXT,
    client_tools TEXT,
    not_before INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    settled_at INTEGER
  ) STRICT`,
  "CREATE INDEX perdure_turn_open ON perdure_turn (seq) WHERE status IN ('held', 'accepted', 'running')",
];

/** Where a turn is. `held` waits for tool answers; `accepted` for its place in the queue. */
export type TurnStatus = "held" | "accepted" | "running" | "completed" | "error" | "aborted" | "skipped";
/** What asked for it. */
export type TurnTrigger = "submit" | "regenerate" | "continuation" | "server";

/** One turn. JSON columns are texts; times are milliseconds since the epoch. */
export interface TurnRow {
  readonly seq: number;
  readonly id: string;
  readonly status: TurnStatus;
  readonly trigger: TurnTrigger;
  /** Its answer goes on with the last assistant message. */
  readonly continuation: 0 | 1;
  /** Ids of the user messages that it answers, as JSON. */
  readonly messageIds: string;
  /** The id of the answer, once it is known. */
  readonly answerId: string | null;
  /** How many parts the answer had before this turn. */
  readonly baseParts: number;
  readonly body: string | null;
  readonly clientTools: string | null;
  /** Not started before this time. */
  readonly notBefore: number;
  /** How often it was started. */
  readonly attempts: number;
  readonly cancelled: 0 | 1;
  readonly error: string | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
}

/** What is needed to accept a turn. */
export type NewTurn = Pick<
  TurnRow,
  "id" | "trigger" | "continuation" | "messageIds" | "body" | "clientTools" | "notBefore" | "createdAt"
> & { readonly status: "held" | "accepted" };

const COLUMNS = `seq, id, status, trigger, continuation, message_ids AS messageIds, answer_id AS answerId,
  base_parts AS baseParts, body, client_tools AS clientTools, not_before AS notBefore, attempts, cancelled, error,
  created_at AS createdAt, started_at AS startedAt`;

function select(db: Sql, rest: string, ...args: SqlValue[]): TurnRow[] {
  return db.sql<TurnRow>(`SELECT ${COLUMNS} FROM perdure_turn ${rest}`, ...args);
}

/** Whether a turn has not ended. */
export function isOpen({ status }: Pick<TurnRow, "status">): boolean {
  return status === "held" || status === "accepted" || status === "running";
}

/** Turns that have not ended, oldest first. */
export function openTurns(db: Sql): TurnRow[] {
  return select(db, "WHERE status IN ('held', 'accepted', 'running') ORDER BY seq");
}

/** Turns behind one that never began, whatever became of them, oldest first. */
export function turnsBehind(db: Sql, seq: number): TurnRow[] {
  return select(db, "WHERE seq > ? AND attempts = 0 ORDER BY seq", seq);
}

export function readTurn(db: Sql, id: string): TurnRow | undefined {
  return select(db, "WHERE id = ?", id)[0];
}

/** The newest turn that was not passed over. */
export function newestTurn(db: Sql): TurnRow | undefined {
  return select(db, "WHERE status <> 'skipped' ORDER BY seq DESC LIMIT 1")[0];
}

/** @throws PerdureError `sql_failed` when the id is taken. */
export function insertTurn(db: Sql, turn: NewTurn): TurnRow {
  db.sql(
    `INSERT INTO perdure_turn (id, status, trigger, continuation, message_ids, body, client_tools, not_before, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    turn.id,
    turn.status,
    turn.trigger,
    turn.continuation,
    turn.messageIds,
    turn.body,
    turn.clientTools,
    turn.notBefore,
    turn.createdAt,
  );
  const row = readTurn(db, turn.id);
  if (row === undefined) throw new Error("A turn that was just inserted is not there.");
  return row;
}

/** A held turn waits no longer. */
export function releaseTurn(db: Sql, seq: number, body: string | null, clientTools: string | null): void {
  db.sql(
    "UPDATE perdure_turn SET status = 'accepted', body = ?, client_tools = ? WHERE seq = ?",
    body,
    clientTools,
    seq,
  );
}

/** Not before this time. */
export function postponeTurn(db: Sql, seq: number, notBefore: number): void {
  db.sql("UPDATE perdure_turn SET not_before = ? WHERE seq = ?", notBefore, seq);
}

/** Begins an attempt. Counted before it can cost anything. */
export function startTurn(db: Sql, seq: number, now: number): void {
  db.sql(
    "UPDATE perdure_turn SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, ?) WHERE seq = ?",
    now,
    seq,
  );
}

/** The answer has a name, and had this many parts before. */
export function nameAnswer(db: Sql, seq: number, answerId: string, baseParts: number): void {
  db.sql("UPDATE perdure_turn SET answer_id = ?, base_parts = ? WHERE seq = ?", answerId, baseParts, seq);
}

/** Stop was asked for. A fact of its own: it holds whatever becomes of the process. */
export function cancelTurn(db: Sql, seq: number): void {
  db.sql("UPDATE perdure_turn SET cancelled = 1 WHERE seq = ?", seq);
}

/** Ends a turn. @returns whether it was open. */
export function settleTurn(db: Sql, seq: number, status: TurnStatus, error: string | null, now: number): boolean {
  const rows = db.sql(
    `UPDATE perdure_turn SET status = ?, error = ?, settled_at = ?, body = NULL, client_tools = NULL
     WHERE seq = ? AND status IN ('held', 'accepted', 'running') RETURNING seq`,
    status,
    error,
    now,
    seq,
  );
  return rows.length > 0;
}

/** Forgets ended turns but the newest `keep`. */
export function trimTurns(db: Sql, keep: number): void {
  db.sql(
    `DELETE FROM perdure_turn WHERE status NOT IN ('held', 'accepted', 'running')
     AND seq <= (SELECT max(seq) FROM perdure_turn) - ?`,
    keep,
  );
}

export function deleteAllTurns(db: Sql): void {
  db.sql("DELETE FROM perdure_turn");
}
