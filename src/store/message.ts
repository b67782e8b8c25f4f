import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/** `perdure_message`: all that was said in an agent, one tree. `body` is the whole message as JSON. */
export const messageSchema: readonly string[] = [
  `CREATE TABLE perdure_message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT`,
];

/** Messages were one list before. The text is last: SQLite reads rows from their start, and walks must not read texts. */
export const messageTreeSchema: readonly string[] = [
  `CREATE TABLE perdure_message_tree (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL DEFAULT 'main',
    parent INTEGER,
    role TEXT NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT`,
  `INSERT INTO perdure_message_tree (seq, id, session, parent, role, created_at, body)
   SELECT seq, id, 'main', lag(seq) OVER (ORDER BY seq), role, created_at, body FROM perdure_message`,
  "DROP TABLE perdure_message",
  "ALTER TABLE perdure_message_tree RENAME TO perdure_message",
  "CREATE INDEX perdure_message_parent ON perdure_message (parent)",
];

/** Who wrote a user's message, or for whom an answer was written, as JSON. Behind the text: it is read on demand only. */
export const messageIdentitySchema: readonly string[] = ["ALTER TABLE perdure_message ADD COLUMN identity TEXT"];

/** One stored message and its place in the tree. */
export interface MessageRow {
  /** Given by the store, rising. */
  readonly seq: number;
  readonly id: string;
  /** The session that it was said in. Forks of that session show it too. */
  readonly session: string;
  /** The `seq` of the message before it; null for the first of a conversation. */
  readonly parent: number | null;
  readonly role: string;
  readonly body: string;
  readonly pinned: 0 | 1;
  readonly createdAt: number;
}

/** A place in the tree, without the message. */
export type MessagePlace = Pick<MessageRow, "seq" | "id" | "parent" | "role">;

const messages = tableOf<MessageRow>()("perdure_message", "seq id session parent role body pinned createdAt");

export function readMessage(db: Sql, id: string): MessageRow | undefined {
  return messages.one(db, "id = ?", id);
}

export function seqOfMessage(db: Sql, id: string): number | undefined {
  return db.sql<{ seq: number }>("SELECT seq FROM perdure_message WHERE id = ?", id)[0]?.seq;
}

/** The number of the newest message. */
export function newestMessage(db: Sql): number {
  return db.sql<{ seq: number | null }>("SELECT max(seq) AS seq FROM perdure_message")[0]?.seq ?? 0;
}

export function readMessageAt(db: Sql, seq: number): MessageRow | undefined {
  return messages.one(db, "seq = ?", seq);
}

/** The way from a message up towards the first, at most so many. */
export const WAY_UP = `WITH RECURSIVE path (at, depth) AS (
    SELECT ?, 0
    UNION ALL
    SELECT m.parent, depth + 1 FROM path JOIN perdure_message AS m ON m.seq = path.at
    WHERE m.parent IS NOT NULL AND depth + 1 < ?
  )`;

/** The messages from `seq` up towards the first, newest first, at most `limit`. */
export function messagesUp(db: Sql, seq: number, limit: number): MessageRow[] {
  const query = `${WAY_UP} SELECT ${messages.columns} FROM path JOIN perdure_message ON seq = at ORDER BY depth`;
  return db.sql<MessageRow>(query, seq, limit);
}

/** Places from `seq` up towards the first, newest first, at most `limit`: what {@link messagesUp} says, without bodies. */
export function placesUp(db: Sql, seq: number, limit: number): MessagePlace[] {
  const query = `${WAY_UP} SELECT seq, id, parent, role FROM path JOIN perdure_message ON seq = at ORDER BY depth`;
  return db.sql<MessagePlace>(query, seq, limit);
}

/** Whether the message `above` is `seq` or stands before it. Costs the way between them. */
export function standsAbove(db: Sql, above: number, seq: number): boolean {
  // No message is older than its parent, but for those that were moved behind an answer: the way is walked to its end.
  const query = `WITH RECURSIVE path (at) AS (
      SELECT ?
      UNION ALL
      SELECT m.parent FROM path JOIN perdure_message AS m ON m.seq = path.at WHERE m.parent IS NOT NULL AND path.at <> ?
    ) SELECT 1 FROM path WHERE at = ? LIMIT 1`;
  return db.sql(query, seq, above, above).length > 0;
}

/** How many messages stand from `seq` up to the first. Costs the way. */
export function pathLength(db: Sql, seq: number): number {
  const query = `${WAY_UP} SELECT count(*) AS n FROM path JOIN perdure_message ON seq = at`;
  return db.sql<{ n: number }>(query, seq, Number.MAX_SAFE_INTEGER)[0]?.n ?? 0;
}

/** The messages right behind one, in the order in which they were said. */
export function messagesBehind(db: Sql, parent: number): MessageRow[] {
  return messages.select(db, "WHERE parent = ? ORDER BY seq", parent);
}

/** All messages, in the order in which they were said. */
export function allMessages(db: Sql): MessageRow[] {
  return messages.select(db, "ORDER BY seq");
}

/** Whether anything was said behind a message, on whatever branch. */
export function hasBehind(db: Sql, seq: number): boolean {
  return messages.has(db, "parent = ?", seq);
}

/** The first messages of a session's conversations, in the order in which they were said. */
export function firstMessages(db: Sql, session: string): MessageRow[] {
  return messages.select(db, "WHERE parent IS NULL AND session = ? ORDER BY seq", session);
}

/** From `seq` down to the end, always to the message that was said last in this session. */
export function newestLeafUnder(db: Sql, seq: number, session: string): number {
  const [row] = db.sql<{ at: number }>(
    `WITH RECURSIVE path (at, depth) AS (
       SELECT ?, 0
       UNION ALL
       SELECT (SELECT max(seq) FROM perdure_message WHERE parent = path.at AND session = ?), depth + 1 FROM path
       WHERE EXISTS (SELECT 1 FROM perdure_message WHERE parent = path.at AND session = ?)
     ) SELECT at FROM path ORDER BY depth DESC LIMIT 1`,
    seq,
    session,
    session,
  );
  return row?.at ?? seq;
}

/** The roles of those of `ids` that are stored. */
export function rolesOf(db: Sql, ids: readonly string[]): Map<string, string> {
  const query = "SELECT m.id, m.role FROM json_each(?) AS asked JOIN perdure_message AS m ON m.id = asked.value";
  const rows = db.sql<{ id: string; role: string }>(query, JSON.stringify(ids));
  return new Map(rows.map(({ id, role }) => [id, role]));
}

/**
 * For each message that is not alone in its place: its siblings, itself included, in order. First messages have siblings in their
 * session and in `session` alone.
 */
export function siblingsOf(
  db: Sql,
  seqs: readonly number[],
  session: string,
): { of: number; seq: number; id: string; session: string }[] {
  return db.sql<{ of: number; seq: number; id: string; session: string }>(
    `SELECT m.seq AS "of", other.seq, other.id, other.session FROM json_each(?) AS asked
     JOIN perdure_message AS m ON m.seq = asked.value
     JOIN perdure_message AS other ON other.parent IS m.parent
       AND (m.parent IS NOT NULL OR other.session = m.session OR other.session = ?)
     WHERE EXISTS (SELECT 1 FROM perdure_message AS one WHERE one.parent IS m.parent AND one.seq <> m.seq
       AND (m.parent IS NOT NULL OR one.session = m.session OR one.session = ?))
     ORDER BY m.seq, other.seq`,
    ...[JSON.stringify(seqs), session, session],
  );
}

/** Adds a message behind `parent`. @returns its number. */
export function insertMessage(
  db: Sql,
  row: Pick<MessageRow, "id" | "session" | "parent" | "role" | "body" | "createdAt"> & {
    readonly identity?: string | null;
  },
): number {
  return messages.insert<{ seq: number }>(db, row, "RETURNING seq")[0]?.seq ?? 0;
}

/** Who wrote a message, or for whom; null when nobody knows, or it is not there. */
export function readMessageIdentity(db: Sql, id: string): string | null {
  const [row] = db.sql<{ identity: string | null }>("SELECT identity FROM perdure_message WHERE id = ?", id);
  return row?.identity ?? null;
}

/** @param identity undefined: as before. */
export function updateMessage(db: Sql, seq: number, role: string, body: string, identity?: string | null): void {
  messages.update(db, { role, body, ...{ identity } }, "seq = ?", seq);
}

/** Gives a message another id: its old one is for another version of it. */
export function renameMessage(db: Sql, seq: number, id: string, body: string): void {
  messages.update(db, { id, body }, "seq = ?", seq);
}

export function setParent(db: Sql, seq: number, parent: number | null): void {
  messages.update(db, { parent }, "seq = ?", seq);
}

/** Whose a message is: it is deleted with that session. */
export function setOwner(db: Sql, seq: number, session: string): void {
  messages.update(db, { session }, "seq = ?", seq);
}

export function setPinned(db: Sql, seq: number, pinned: boolean): void {
  messages.update(db, { pinned: pinned ? 1 : 0 }, "seq = ?", seq);
}

/** Deletes a message; what stood behind it now stands behind what stood before it, and who ended with it ends there. */
export function deleteMessage(db: Sql, seq: number, parent: number | null): void {
  db.sql("UPDATE perdure_message SET parent = ? WHERE parent = ?", parent, seq);
  db.sql("UPDATE perdure_session SET leaf = ? WHERE leaf = ?", parent, seq);
  db.sql("DELETE FROM perdure_message WHERE seq = ?", seq);
}

/** A message and all behind it. */
const BRANCH = `WITH RECURSIVE branch (at) AS (
    SELECT ? UNION ALL SELECT m.seq FROM branch JOIN perdure_message AS m ON m.parent = branch.at
  )`;

/** Deletes a message and all behind it, unless a session ends there. @returns what is gone. */
export function deleteBranch(db: Sql, seq: number): { id: string; seq: number; role: string }[] {
  const used = db.sql(`${BRANCH} SELECT 1 FROM perdure_session WHERE leaf IN (SELECT at FROM branch) LIMIT 1`, seq);
  if (used.length > 0) return [];
  return db.sql<{ id: string; seq: number; role: string }>(
    `${BRANCH} DELETE FROM perdure_message WHERE seq IN (SELECT at FROM branch) RETURNING id, seq, role`,
    seq,
  );
}

/** What one session said in a message and all behind it belongs to another from now on. */
export function giveBranch(db: Sql, seq: number, from: string, to: string): void {
  const change = "UPDATE perdure_message SET session = ? WHERE session = ? AND seq IN (SELECT at FROM branch)";
  db.sql(`${BRANCH} ${change}`, seq, to, from);
}

/**
 * Deletes a session's messages that no other session shows; a message on another's path stays and belongs to that session from
 * then on. Returns the ids that are gone, with their roles.
 */
export function deleteSessionMessages(db: Sql, session: string): { id: string; seq: number; role: string }[] {
  giveAwayMessages(db, [session]);
  return db.sql<{ id: string; seq: number; role: string }>(
    "DELETE FROM perdure_message WHERE session = ? RETURNING id, seq, role",
    session,
  );
}

/** What others than some sessions show, up to the first messages, and by whom: from their leaves and from their own messages. */
export const KEPT_BY_OTHERS = `WITH RECURSIVE kept (seq, owner) AS (
    SELECT leaf, coalesce(view_of, id) FROM perdure_session
    WHERE leaf IS NOT NULL AND coalesce(view_of, id) NOT IN (SELECT value FROM json_each(?))
    UNION
    SELECT parent, session FROM perdure_message
    WHERE parent IS NOT NULL AND session NOT IN (SELECT value FROM json_each(?))
    UNION
    SELECT m.parent, kept.owner FROM kept JOIN perdure_message AS m ON m.seq = kept.seq WHERE m.parent IS NOT NULL
  )`;

/** Gives what others show of these sessions to one of those. */
export function giveAwayMessages(db: Sql, sessions: readonly string[]): void {
  const list = JSON.stringify(sessions);
  const shown = `${KEPT_BY_OTHERS} SELECT m.seq, min(owner) AS owner FROM kept
    JOIN perdure_message AS m ON m.seq = kept.seq WHERE m.session IN (SELECT value FROM json_each(?)) GROUP BY m.seq`;
  for (const { seq, owner } of db.sql<{ seq: number; owner: string }>(shown, list, list, list))
    setOwner(db, seq, owner);
}

/** A message on the way up that is pinned, or up to which a compaction counts. */
export interface MarkedMessage {
  readonly seq: number;
  readonly id: string;
  readonly pinned: 0 | 1;
}

/** Such messages from `seq` up towards the first, newest first. No further than `limit` messages. */
export function markedUp(db: Sql, seq: number, limit: number): MarkedMessage[] {
  return db.sql<MarkedMessage>(
    `${WAY_UP} SELECT seq, id, pinned FROM path JOIN perdure_message ON seq = path.at
     WHERE pinned = 1 OR seq IN (SELECT c.at FROM perdure_compaction AS c WHERE c.status = 'done')
     ORDER BY depth`,
    seq,
    limit,
  );
}

/** A stretch of a conversation, looked through for messages that are large. */
interface LargeMessages {
  /** The `seq` of the newest that was looked at; null when there was none. */
  readonly newest: number | null;
  /** The large ones, oldest first. */
  readonly seqs: readonly number[];
}

/**
 * Messages of at least `bytes` from `leaf` upwards, but for the newest `skip`, up to `until` (which is not one of them)
 * or `limit` messages. Reads no bodies.
 */
export function largeMessagesUp(
  db: Sql,
  leaf: number,
  range: { readonly skip: number; readonly until: number | null; readonly limit: number; readonly bytes: number },
): LargeMessages {
  const rows = db.sql<{ seq: number; depth: number; size: number }>(
    `WITH RECURSIVE path (at, depth) AS (
       SELECT ?, 0
       UNION ALL
       SELECT m.parent, depth + 1 FROM path JOIN perdure_message AS m ON m.seq = path.at
       WHERE m.parent IS NOT NULL AND m.parent IS NOT ? AND depth + 1 < ?
     )
     SELECT seq, depth, octet_length(body) AS size FROM path JOIN perdure_message ON seq = at
     WHERE depth = ? OR (depth > ? AND octet_length(body) >= ?) ORDER BY depth DESC`,
    leaf,
    range.until,
    range.skip + range.limit,
    range.skip,
    range.skip,
    range.bytes,
  );
  // What was looked at before may be the leaf itself, or stand within the newest: the conversation was cut.
  if (leaf === range.until) return { newest: null, seqs: [] };
  const newest = rows.find(({ depth }) => depth === range.skip)?.seq ?? null;
  return { newest, seqs: rows.filter(({ size }) => size >= range.bytes).map(({ seq }) => seq) };
}
