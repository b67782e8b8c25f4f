import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import { dropDeliveries, nameDelivery, openBoundDelivery, settleDelivery } from "./delivery.ts";
import { countChunks } from "./stream.ts";
import { dropSubmissions, settleSubmission, startSubmission } from "./submission.ts";
import { tryParseJson } from "../base/json.ts";

/**
 * `perdure_turn`: every turn asked for, from acceptance to end; the inbox, the turn under way and the last outcomes are the same
 * rows in different states (see `turn/engine/next-moves.ts`).
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

/** What a turn needs to be steered with, and to be moved while it waits. */
export const turnInboxSchema: readonly string[] = [
  "ALTER TABLE perdure_turn ADD COLUMN steer INTEGER NOT NULL DEFAULT 0",
  "ALTER TABLE perdure_turn ADD COLUMN receipt TEXT",
  "ALTER TABLE perdure_turn ADD COLUMN position INTEGER",
  "CREATE INDEX perdure_turn_steer ON perdure_turn (seq) WHERE steer = 1 AND status = 'accepted'",
];

/** Which conversation a turn belongs to. */
export const turnSessionSchema: readonly string[] = [
  "ALTER TABLE perdure_turn ADD COLUMN session TEXT NOT NULL DEFAULT 'main'",
];

/** For whom a turn is run. */
export const turnIdentitySchema: readonly string[] = ["ALTER TABLE perdure_turn ADD COLUMN identity TEXT"];

/** How far a turn has come, and what it has noted for the case that it is cut off. */
export const turnProgressSchema: readonly string[] = [
  "ALTER TABLE perdure_turn ADD COLUMN progress INTEGER NOT NULL DEFAULT 0",
  "ALTER TABLE perdure_turn ADD COLUMN progress_at INTEGER",
  "ALTER TABLE perdure_turn ADD COLUMN stuck INTEGER NOT NULL DEFAULT 0",
  "ALTER TABLE perdure_turn ADD COLUMN stash TEXT",
];

/** Which turn it comes of. A step of its own: there are tables from before. */
export const turnCauseSchema: readonly string[] = ["ALTER TABLE perdure_turn ADD COLUMN cause TEXT"];

/** Turns are looked for by their session, which has many that have ended. */
export const turnsOfSessionSchema: readonly string[] = [
  "CREATE INDEX perdure_turn_session ON perdure_turn (session, seq)",
];

/** Where a turn is. `held` waits for tool answers; `accepted` for its place in the queue. */
export type TurnStatus = "held" | "accepted" | "running" | "completed" | "error" | "aborted" | "skipped";
/** What asked for it. */
export type TurnTrigger = "submit" | "regenerate" | "continuation" | "server" | "submission";

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
  /** The turn that runs may take its messages, instead of it having a turn of its own. */
  readonly steer: 0 | 1;
  /** Where its messages were taken to, as JSON. */
  readonly receipt: string | null;
  /** Its place among the turns that wait, if it was moved; else `seq` is. */
  readonly position: number | null;
  /** The conversation that it belongs to. */
  readonly session: string;
  /** Who wrote the message that began it, as JSON; null when the app did not say. */
  readonly identity: string | null;
  /** When it was last carried on with something new to show; null: it was never carried on. */
  readonly progressAt: number | null;
  /** Attempts in a row that brought nothing new. */
  readonly stuck: number;
  /** What its code has noted, as JSON. */
  readonly stash: string | null;
  /** Which turn it comes of, as JSON; null: somebody has asked for it. */
  readonly cause: string | null;
}

/** What is needed to accept a turn. */
type NewTurn = Pick<
  TurnRow,
  "id" | "trigger" | "continuation" | "messageIds" | "body" | "clientTools" | "notBefore" | "createdAt" | "session"
> & {
  readonly status: "held" | "accepted";
  readonly steer?: 0 | 1;
  readonly identity?: string | null;
  readonly cause?: string | null;
};

/** The messages that a turn is about. None, where what is stored cannot be read: nothing else may fail because of it. */
export function messageIdsOf({ messageIds }: Pick<TurnRow, "messageIds">): string[] {
  const ids = tryParseJson(messageIds);
  return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
}

const turns = tableOf<TurnRow>()(
  "perdure_turn",
  "seq id status trigger continuation messageIds answerId baseParts body clientTools notBefore attempts cancelled error",
  "createdAt startedAt steer receipt position session identity progressAt stuck stash cause",
);

/** What a list shows of a turn. */
export type TurnLine = Pick<
  TurnRow,
  "seq" | "id" | "status" | "trigger" | "session" | "attempts" | "error" | "createdAt" | "startedAt"
> & { readonly settledAt: number | null };

const turnLines = tableOf<TurnLine>()(
  "perdure_turn",
  "seq id status trigger session attempts error createdAt startedAt settledAt",
);

const OPEN = "('held', 'accepted', 'running')";

/** Turns that wait run in this order. No two have the same: moving only exchanges places. */
const PLACE = "coalesce(position, seq)";

/** Whether a turn has not ended. */
export function isOpen({ status }: Pick<TurnRow, "status">): boolean {
  return status === "held" || status === "accepted" || status === "running";
}

/** Turns that have not ended, in the order in which they run: the oldest first, unless they were moved. */
export function openTurns(db: Sql): TurnRow[] {
  return turns.select(db, `WHERE status IN ${OPEN} ORDER BY ${PLACE}`);
}

/** How many turns have not ended. */
export function countOpenTurns(db: Sql): number {
  return turns.count(db, `status IN ${OPEN}`);
}

/** Turns of the same session behind one that never began, whatever became of them but being taken, in their order. */
export function turnsBehind(db: Sql, { seq, session }: Pick<TurnRow, "seq" | "session">): TurnRow[] {
  const behind = `${PLACE} > (SELECT ${PLACE} FROM perdure_turn WHERE seq = ?)`;
  const rest = `WHERE session = ? AND attempts = 0 AND status <> 'completed' AND ${behind} ORDER BY ${PLACE}`;
  return turns.select(db, rest, session, seq);
}

/** Turns of a session that have begun or were taken by another, whether they run or have ended. */
export function begunTurns(db: Sql, session: string): TurnRow[] {
  return turns.select(db, "WHERE session = ? AND (attempts > 0 OR receipt IS NOT NULL)", session);
}

/** All remembered turns, except skipped ones, of sessions in which one waits, in the order of acceptance. */
export function turnsNotSkipped(db: Sql): TurnRow[] {
  const waiting = "SELECT session FROM perdure_turn WHERE status IN ('held', 'accepted')";
  return turns.select(db, `WHERE status <> 'skipped' AND session IN (${waiting}) ORDER BY seq`);
}

/** Turns of a session that wait and whose messages the running turn may take, in their order. */
export function steeringTurns(db: Sql, session: string): TurnRow[] {
  const where = "steer = 1 AND status = 'accepted' AND attempts = 0 AND cancelled = 0 AND session = ?";
  return turns.select(db, `WHERE ${where} ORDER BY ${PLACE}`, session);
}

/** The newest turns that are remembered, open ones too. */
export function newestTurns(db: Sql, limit: number): TurnLine[] {
  return turnLines.select(db, "ORDER BY seq DESC LIMIT (SELECT ?)", limit);
}

/** The turns of a session that have begun and ended, in the order in which they were accepted. */
export function answeredTurns(db: Sql, session: string): TurnRow[] {
  return turns.select(db, `WHERE session = ? AND attempts > 0 AND status NOT IN ${OPEN} ORDER BY seq`, session);
}

export function readTurn(db: Sql, id: string): TurnRow | undefined {
  return turns.one(db, "id = ?", id);
}

/** The last turn of a session, in the order in which they run, that was neither passed over nor taken by another. */
export function newestTurn(db: Sql, session: string): TurnRow | undefined {
  const rest = `WHERE status <> 'skipped' AND receipt IS NULL AND session = ? ORDER BY ${PLACE} DESC LIMIT 1`;
  return turns.select(db, rest, session)[0];
}

/** The messages that turns of a session were asked with, as far back as turns are kept. */
export function namedMessages(db: Sql, session: string): Set<string> {
  const rows = db.sql<{ id: string }>(
    "SELECT DISTINCT named.value AS id FROM perdure_turn, json_each(message_ids) AS named WHERE session = ?",
    session,
  );
  return new Set(rows.map(({ id }) => id));
}

/** @throws PerdureError `sql_failed` when the id is taken. */
export function insertTurn(db: Sql, turn: NewTurn): TurnRow {
  const row = turns.add(db, turn);
  const isByCode = row.trigger === "server" || row.trigger === "submission";
  if (isByCode && row.continuation === 0) openBoundDelivery(db, row);
  return row;
}

/** A held turn waits no longer. */
export function releaseTurn(db: Sql, seq: number, body: string | null, clientTools: string | null): void {
  turns.update(db, { status: "accepted", body, clientTools }, "seq = ?", seq);
}

/** Not before this time. */
export function postponeTurn(db: Sql, seq: number, notBefore: number): void {
  turns.update(db, { notBefore }, "seq = ?", seq);
}

/** A turn means other messages than it did: the same ones, under other ids. */
export function setMessageIds(db: Sql, seq: number, messageIds: string): void {
  turns.update(db, { messageIds }, "seq = ?", seq);
}

/** Gives a turn that waits its place among the others that do, and the messages that are its own. */
export function placeTurn(db: Sql, seq: number, position: number, messageIds: string): void {
  turns.update(db, { position, messageIds }, "seq = ?", seq);
}

/** Somebody else has written what a turn answers. */
export function setTurnIdentity(db: Sql, seq: number, identity: string | null): void {
  turns.update(db, { identity }, "seq = ?", seq);
}

/** Begins an attempt, and the submission that it carries out. Counted before it can cost anything. */
export function startTurn(db: Sql, seq: number, now: number): void {
  const rows = db.sql<Pick<TurnRow, "id" | "trigger">>(
    `UPDATE perdure_turn SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, ?)
     WHERE seq = ? RETURNING id, trigger`,
    now,
    seq,
  );
  for (const { id, trigger } of rows) if (trigger === "submission") startSubmission(db, id, now);
}

/** Before a turn is carried on: whether the last attempt has stored anything new of the answer. */
export function noteProgress(db: Sql, seq: number, now: number): void {
  const chunks = countChunks(db, seq);
  db.sql(
    `UPDATE perdure_turn SET stuck = iif(chunks > progress, 0, stuck + 1),
       progress_at = iif(chunks > progress, now, coalesce(progress_at, now)), progress = max(progress, chunks)
     FROM (SELECT ? AS chunks, ? AS now) WHERE seq = ?`,
    chunks,
    now,
    seq,
  );
}

/** Replaces what a turn that runs has noted. @returns whether there is such a turn. */
export function stashTurn(db: Sql, id: string, stash: string): boolean {
  return turns.updated(db, { stash }, "id = ? AND status = 'running'", id);
}

/** The answer has a name, and had this many parts before. */
export function nameAnswer(db: Sql, seq: number, answerId: string, baseParts: number): void {
  turns.update(db, { answerId, baseParts }, "seq = ?", seq);
  nameDelivery(db, seq, answerId);
}

/** Stop was asked for. A fact of its own: it holds whatever becomes of the process. */
export function cancelTurn(db: Sql, seq: number): void {
  turns.update(db, { cancelled: 1 }, "seq = ?", seq);
}

/** Ends a turn whose messages, these, another one took. */
export function steerTurn(db: Sql, seq: number, messageIds: string, receipt: string, now: number): void {
  turns.update(db, { messageIds, receipt }, "seq = ?", seq);
  settleTurn(db, seq, "completed", null, now);
}

/** How a turn can end. */
type TurnEndStatus = Exclude<TurnStatus, "held" | "accepted" | "running">;

/**
 * Ends a turn, the submission that it carries out, and what is to be told of it at a messenger: `told`, by default how it ended.
 * @returns whether it was open
 */
export function settleTurn(
  db: Sql,
  seq: number,
  status: TurnEndStatus,
  error: string | null,
  now: number,
  told: TurnEndStatus | "interrupted" = status,
): boolean {
  const rows = db.sql<Pick<TurnRow, "id" | "trigger">>(
    `UPDATE perdure_turn SET status = ?, error = ?, settled_at = ?, body = NULL, client_tools = NULL, stash = NULL
     WHERE seq = ? AND status IN ${OPEN} RETURNING id, trigger`,
    status,
    error,
    now,
    seq,
  );
  for (const { id, trigger } of rows) {
    if (trigger === "submission") settleSubmission(db, id, status, error, now);
    settleDelivery(db, id, told);
  }
  return rows.length > 0;
}

/** Forgets ended turns of a session that are not among its newest `keep`. */
export function trimTurns(db: Sql, session: string, keep: number): void {
  const last = "SELECT seq FROM perdure_turn WHERE session = ? ORDER BY seq DESC LIMIT 1 OFFSET (SELECT ?)";
  turns.delete(db, `session = ? AND status NOT IN ${OPEN} AND seq <= (${last})`, session, session, keep);
}

/** Forgets every turn of a session. Submissions that were open have ended. */
export function deleteTurnsOf(db: Sql, session: string, now: number): void {
  dropSubmissions(db, session, now);
  dropDeliveries(db, session, now);
  turns.delete(db, "session = ?", session);
}
