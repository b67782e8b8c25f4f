import type { Sql } from "../port.ts";
import { deleteLostToolSteps } from "./tool-step.ts";
import { deleteActionsOf } from "./action.ts";
import { deleteCell } from "./cell.ts";
import { boundKey, eraseDeliveries } from "./delivery.ts";
import { deleteLostFrames, deleteMessageFrames } from "./frame.ts";
import { KEPT_BY_OTHERS } from "./message.ts";

/*
 * What must go when a session, or a subject's data, is erased: all that other tables hold of its messages and turns. Ids and
 * numbers come as JSON lists: there may be many.
 */

/** The sessions that hold a subject's data, without views. */
export function sessionsOfSubject(db: Sql, subject: string): string[] {
  const query = "SELECT id FROM perdure_session WHERE subject = ? AND view_of IS NULL ORDER BY id";
  return db.sql<{ id: string }>(query, subject).map(({ id }) => id);
}

/** All whose data is here. */
export function subjectsIn(db: Sql): string[] {
  const rows = db.sql<{ subject: string }>(
    `SELECT subject FROM perdure_session WHERE subject IS NOT NULL
     UNION SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.metadata.subject') END AS subject
     FROM perdure_message WHERE instr(body, '"subject"') > 0 AND subject IS NOT NULL`,
  );
  return rows.map(({ subject }) => subject).filter((subject) => typeof subject === "string");
}

/** Messages between two numbers whose metadata says that they are a subject's. */
export function messagesOfSubject(db: Sql, subject: string, after: number, upto: number): number[] {
  const rows = db.sql<{ seq: number }>(
    `SELECT seq FROM perdure_message WHERE seq > ? AND seq <= ? AND instr(body, '"subject"') > 0
     AND CASE WHEN json_valid(body) THEN json_extract(body, '$.metadata.subject') END = ? ORDER BY seq`,
    after,
    upto,
    subject,
  );
  return rows.map(({ seq }) => seq);
}

/** What was said in some sessions. */
interface OwnMessages {
  /** Shown by no other session. */
  readonly own: readonly number[];
  /** Shown by others too: by which, and how many. */
  readonly shared: readonly { readonly session: string; readonly count: number }[];
}

/** What was said in these sessions, by who else shows it. */
export function messagesOfSessions(db: Sql, sessions: readonly string[]): OwnMessages {
  const list = JSON.stringify(sessions);
  const own = db.sql<{ seq: number }>(
    `${KEPT_BY_OTHERS} SELECT seq FROM perdure_message WHERE session IN (SELECT value FROM json_each(?))
     AND seq NOT IN (SELECT seq FROM kept) ORDER BY seq`,
    ...[list, list, list],
  );
  const shared = db.sql<{ session: string; count: number }>(
    `${KEPT_BY_OTHERS} SELECT owner AS session, count(*) AS count FROM kept JOIN perdure_message AS m ON m.seq = kept.seq
     WHERE m.session IN (SELECT value FROM json_each(?)) GROUP BY owner ORDER BY owner`,
    ...[list, list, list],
  );
  return { own: own.map(({ seq }) => seq), shared };
}

/** Bodies of messages behind a number, oldest first. */
export function bodiesAfter(db: Sql, after: number, limit: number): { seq: number; id: string; body: string }[] {
  const query = "SELECT seq, id, body FROM perdure_message WHERE seq > ? ORDER BY seq LIMIT (SELECT ?)";
  return db.sql<{ seq: number; id: string; body: string }>(query, after, limit);
}

/** Bodies of these messages. */
export function bodiesOf(db: Sql, seqs: readonly number[]): { seq: number; id: string; body: string }[] {
  return db.sql<{ seq: number; id: string; body: string }>(
    "SELECT seq, id, body FROM perdure_message WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq",
    JSON.stringify(seqs),
  );
}

/** Deletes messages that nothing stands behind but others of them. */
export function deleteMessages(db: Sql, seqs: readonly number[]): void {
  db.sql("DELETE FROM perdure_message WHERE seq IN (SELECT value FROM json_each(?))", JSON.stringify(seqs));
}

/** An answer to this message stays, but not for whom it was written. */
export function forgetWhoAsked(db: Sql, seq: number): void {
  db.sql("UPDATE perdure_message SET identity = NULL WHERE role = 'assistant' AND parent = ?", seq);
}

/** Which rows of other tables belong to what is erased. */
interface ErasedKeys {
  readonly sessions: readonly string[];
  /** Messages of other sessions. */
  readonly single: readonly number[];
  readonly messageIds: readonly string[];
  readonly toolCallIds: readonly string[];
}

/** How many rows of each kind were deleted. */
interface ErasedRows {
  readonly turns: number;
  readonly streamChunks: number;
  readonly submissions: number;
  readonly toolCalls: number;
  readonly compactions: number;
  readonly usageCalls: number;
  /** What actions returned. One that is called again with the same key runs again. */
  readonly actions: number;
  /** What was delivered, or had to be, at messengers. */
  readonly deliveries: number;
  /** Work that was given to children for it. */
  readonly runs: readonly { readonly runId: string; readonly className: string }[];
}

/** Whether a turn of these sessions has not ended. */
export function hasOpenTurns(db: Sql, sessions: readonly string[]): boolean {
  const query = `SELECT 1 FROM perdure_turn WHERE status IN ('held', 'accepted', 'running')
    AND session IN (SELECT value FROM json_each(?)) LIMIT 1`;
  return db.sql(query, JSON.stringify(sessions)).length > 0;
}

/** Deletes all that is known of the turns of sessions, and of messages, but for the messages themselves. */
export function deleteTraces(db: Sql, keys: ErasedKeys): ErasedRows {
  const sessions = JSON.stringify(keys.sessions);
  const messageIds = JSON.stringify(keys.messageIds);
  const calls = JSON.stringify(keys.toolCallIds);
  const inList = "IN (SELECT value FROM json_each(?))";
  const turnRows = db.sql<{ id: string; seq: number }>(
    `SELECT id, seq FROM perdure_turn WHERE session ${inList}
     UNION
     SELECT turn_id, turn_seq FROM perdure_usage WHERE session ${inList} AND turn_id IS NOT NULL AND turn_seq IS NOT NULL`,
    ...[sessions, sessions],
  );
  const turnIds = JSON.stringify(turnRows.map(({ id }) => id));
  const turnSeqs = JSON.stringify(turnRows.map(({ seq }) => seq));
  const submissions = db.sql(
    `DELETE FROM perdure_submission WHERE turn_id ${inList} OR EXISTS (
       SELECT 1 FROM json_each(messages) AS one WHERE json_extract(one.value, '$.id') ${inList}) RETURNING seq`,
    ...[turnIds, messageIds],
  );
  const toolCalls = db.sql(
    `DELETE FROM perdure_tool_call WHERE message_id ${inList} OR turn_id ${inList} RETURNING seq`,
    ...[messageIds, turnIds],
  );
  deleteLostToolSteps(db);
  const compactions = db.sql(
    `DELETE FROM perdure_compaction WHERE session ${inList} OR turn ${inList}
     OR NOT EXISTS (SELECT 1 FROM perdure_message WHERE seq = at) RETURNING seq`,
    ...[sessions, turnSeqs],
  );
  // Some providers number calls anew in each answer: where the turn is not known any more, a call that other messages
  // have too may be theirs.
  const runs = db.sql<{ runId: string; className: string }>(
    `DELETE FROM perdure_agent_run WHERE (turn_id ${inList} AND (tool_call_id IS NULL OR tool_call_id ${inList}))
       OR (tool_call_id ${inList} AND (turn_id IS NULL OR turn_id NOT IN (SELECT id FROM perdure_turn))
         AND NOT EXISTS (SELECT 1 FROM perdure_message
           WHERE role = 'assistant' AND instr(body, json_quote(tool_call_id)) > 0))
     RETURNING run_id AS runId, class_name AS className`,
    ...[turnIds, calls, calls],
  );
  const done = db.sql<{ turns: string }>(
    `DELETE FROM perdure_run WHERE message_id ${inList} OR EXISTS (
       SELECT 1 FROM json_each(perdure_run.turns) AS t WHERE json_extract(t.value, '$[2]') ${inList}) RETURNING turns`,
    ...[messageIds, turnIds],
  );
  // The chunks of a run outlive the rows of its turns.
  const ofRuns = done.flatMap(({ turns }) => (JSON.parse(turns) as [number][]).map(([seq]) => seq));
  const streams = JSON.stringify([...turnRows.map(({ seq }) => seq), ...ofRuns]);
  const [chunks] = db.sql<{ n: number }>(
    `SELECT coalesce(sum(count), 0) AS n FROM perdure_stream WHERE turn ${inList}`,
    streams,
  );
  db.sql(`DELETE FROM perdure_stream WHERE turn ${inList}`, streams);
  const usage = db.sql(`DELETE FROM perdure_usage WHERE session ${inList} RETURNING seq`, sessions);
  // What was said in one session and is erased may have been shown in another.
  deleteMessageFrames(db, keys.single.length > 0 ? undefined : keys.sessions);
  deleteLostFrames(db);
  db.sql(`DELETE FROM perdure_usage_total WHERE scope = 'turn' AND key ${inList}`, turnIds);
  const turns = db.sql(`DELETE FROM perdure_turn WHERE session ${inList} RETURNING seq`, sessions);
  // What stays of turns that answered erased messages does not say whose they were.
  db.sql(
    `UPDATE perdure_turn SET identity = NULL WHERE identity IS NOT NULL
     AND EXISTS (SELECT 1 FROM json_each(message_ids) AS named WHERE named.value ${inList})`,
    messageIds,
  );
  for (const session of keys.sessions) deleteCell(db, boundKey(session));
  return {
    actions: deleteActionsOf(db, keys.sessions),
    deliveries: eraseDeliveries(db, sessions, messageIds, turnIds),
    turns: turns.length,
    streamChunks: chunks?.n ?? 0,
    submissions: submissions.length,
    toolCalls: toolCalls.length,
    compactions: compactions.length,
    usageCalls: usage.length,
    runs: runs.map(({ runId, className }) => ({ runId, className })),
  };
}

/** Whether a text stands in any row but those of messages, and those that only say what files there are. */
export function isNamedBesideMessages(db: Sql, text: string): boolean {
  const has = (column: string) => `instr(coalesce(${column}, ''), ?) > 0`;
  const query = `SELECT 1 WHERE
    EXISTS (SELECT 1 FROM perdure_compaction WHERE ${has("summary")} OR ${has("carried")} OR ${has("words")})
    OR EXISTS (SELECT 1 FROM perdure_cell WHERE ${has("value")}
      AND key NOT LIKE 'file:%' AND key NOT LIKE 'erase:%' AND key NOT LIKE 'receipt:%')
    OR EXISTS (SELECT 1 FROM perdure_submission WHERE ${has("messages")} OR ${has("edited")})
    OR EXISTS (SELECT 1 FROM perdure_agent_run WHERE ${has("input")} OR ${has("output")})
    OR EXISTS (SELECT 1 FROM perdure_stream WHERE ${has("chunks")})
    OR EXISTS (SELECT 1 FROM perdure_state WHERE ${has("value")})`;
  return db.sql(query, ...Array.from({ length: query.split("?").length - 1 }, () => text)).length > 0;
}
