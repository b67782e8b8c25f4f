import { PerdureError } from "../base/error.ts";
import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import type { NamedBy } from "../wire/session-types.ts";
import { type DamageTeller, tellDamage } from "./damaged.ts";

/** Where an agent with one conversation kept what the last request brought along. */
export const chatContextSchema: readonly string[] = [
  "CREATE TABLE perdure_chat (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT, client_tools TEXT) STRICT",
];

/**
 * `perdure_session`: an agent's conversations, each a name for a leaf in the tree of messages. A row with `view_of` is one
 * client's own place in another session's tree; it is not listed.
 */
export const sessionSchema: readonly string[] = [
  `CREATE TABLE perdure_session (
    id TEXT PRIMARY KEY,
    name TEXT,
    named_by TEXT,
    leaf INTEGER,
    parent TEXT,
    fork_at INTEGER,
    view_of TEXT,
    subject TEXT,
    current INTEGER NOT NULL DEFAULT 0,
    body TEXT,
    client_tools TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `INSERT INTO perdure_session (id, leaf, current, body, client_tools, created_at, updated_at)
   SELECT 'main', max(seq), 1, (SELECT body FROM perdure_chat), (SELECT client_tools FROM perdure_chat),
     min(created_at), max(created_at)
   FROM perdure_message HAVING count(*) > 0`,
  "DROP TABLE perdure_chat",
];

/** One session. */
export interface SessionRow {
  readonly id: string;
  readonly name: string | null;
  readonly namedBy: NamedBy | null;
  /** The `seq` of its newest message; null when nothing was said. */
  readonly leaf: number | null;
  /** The session that it was forked from, and the message behind which. */
  readonly parent: string | null;
  readonly forkAt: number | null;
  readonly viewOf: string | null;
  readonly subject: string | null;
  readonly current: 0 | 1;
  /** What the last request brought along, as JSON, for turns that the server starts by itself. */
  readonly body: string | null;
  readonly clientTools: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The session that an agent begins with. */
export const MAIN_SESSION = "main";

const lines = tableOf<SessionLine>()(
  "perdure_session",
  "id name namedBy leaf parent forkAt viewOf subject current createdAt updatedAt",
);
const sessions = tableOf<SessionRow>()(
  "perdure_session",
  "id name namedBy leaf parent forkAt viewOf subject current createdAt updatedAt body clientTools",
);

export function readSession(db: Sql & Partial<DamageTeller>, id: string): SessionRow | undefined {
  return withOwner(db, sessions.one(db, "id = ?", id));
}

/** A session whose row names one that there is not, as that which it is a view of, stands for itself. */
function withOwner<Row extends SessionLine>(db: Sql & Partial<DamageTeller>, row: Row | undefined): Row | undefined {
  if (row === undefined || row.viewOf === null) return row;
  return isThere(db, row.id, row.viewOf) ? row : { ...row, viewOf: null };
}

function isThere(db: Sql & Partial<DamageTeller>, id: string, viewOf: string): boolean {
  if (sessions.has(db, "id = ?", viewOf)) return true;
  const { emit } = db;
  const missing = new PerdureError("not_found", `There is no session ${JSON.stringify(viewOf)}.`);
  if (emit !== undefined) tellDamage(db as DamageTeller, `what the session "${id}" is a view of`, missing);
  return false;
}

/** What a list shows of a session: without what requests brought along, which may be long. */
export type SessionLine = Omit<SessionRow, "body" | "clientTools">;

export function readSessionLine(db: Sql & Partial<DamageTeller>, id: string): SessionLine | undefined {
  return withOwner(db, lines.one(db, "id = ?", id));
}

/** The session that a view is of; of any other id, itself. */
export function ownerIdOf(db: Sql & Partial<DamageTeller>, id: string): string {
  const [row] = db.sql<{ owner: string | null }>("SELECT view_of AS owner FROM perdure_session WHERE id = ?", id);
  const owner = row?.owner ?? id;
  return owner === id || isThere(db, id, owner) ? owner : id;
}

/** A session; of a view, the one that it is of. */
export function readOwnerLine(db: Sql & Partial<DamageTeller>, id: string): SessionLine | undefined {
  const row = readSessionLine(db, id);
  return row === undefined || row.viewOf === null ? row : readSessionLine(db, row.viewOf);
}

/** The sessions that people see, the one that was used last first: those behind `after`, at most `limit`. */
export function listSessionLines(db: Sql, limit: number, after?: string): SessionLine[] {
  const order = "ORDER BY updated_at DESC, id DESC LIMIT (SELECT ?)";
  if (after === undefined) return lines.select(db, `WHERE view_of IS NULL ${order}`, limit);
  const behind = "(updated_at, id) < (SELECT updated_at, id FROM perdure_session WHERE id = ?)";
  return lines.select(db, `WHERE view_of IS NULL AND ${behind} ${order}`, after, limit);
}

/** Views of one session, the one that was used last first. */
export function viewsOf(db: Sql, id: string): SessionRow[] {
  return sessions.select(db, "WHERE view_of = ? ORDER BY updated_at DESC, id", id);
}

/** Where other sessions end, and whose their messages are; none if no session can have anything of another. */
export function otherLeaves(db: Sql, id: string): { owner: string; leaf: number }[] {
  return db.sql<{ owner: string; leaf: number }>(
    `SELECT coalesce(view_of, id) AS owner, leaf FROM perdure_session WHERE id <> ? AND leaf IS NOT NULL
     AND EXISTS (SELECT 1 FROM perdure_session WHERE parent IS NOT NULL OR view_of IS NOT NULL) ORDER BY id`,
    id,
  );
}

/** Sessions and views whose last message, or the one before it, names a tool call; views last. */
export function sessionsEndingWith(db: Sql, toolCallId: string): string[] {
  const needle = JSON.stringify(toolCallId);
  const rows = db.sql<{ id: string }>(
    `SELECT s.id FROM perdure_session AS s JOIN perdure_message AS m ON m.seq = s.leaf
     LEFT JOIN perdure_message AS before ON before.seq = m.parent
     WHERE instr(m.body, ?) > 0 OR instr(before.body, ?) > 0 ORDER BY s.view_of IS NOT NULL, s.id`,
    ...[needle, needle],
  );
  return rows.map(({ id }) => id);
}

/** The id of the session that those are in who name none. */
export function currentSession(db: Sql): string {
  return db.sql<{ id: string }>("SELECT id FROM perdure_session WHERE current = 1")[0]?.id ?? MAIN_SESSION;
}

/** What is needed to make a session. */
type NewSession = Pick<SessionRow, "id"> & Partial<Omit<SessionRow, "current" | "createdAt" | "updatedAt">>;

/** Makes a session; one of that id is left as it is. */
export function insertSession(db: Sql, row: NewSession, now: number): void {
  sessions.insert(db, { ...row, createdAt: now, updatedAt: now }, "ON CONFLICT (id) DO NOTHING");
}

/** Moves the leaf of a session, which is made if need be. */
export function setLeaf(db: Sql, id: string, leaf: number | null, now: number): void {
  const change = "ON CONFLICT (id) DO UPDATE SET leaf = excluded.leaf, updated_at = excluded.updated_at";
  sessions.insert(db, { id, leaf, createdAt: now, updatedAt: now }, change);
}

/** Nothing is left of what was said in a session: it and its views end nowhere, and it has nothing of any other. */
export function resetLeaves(db: Sql, id: string, now: number): void {
  const query = "UPDATE perdure_session SET leaf = NULL, fork_at = NULL, updated_at = ? WHERE id = ? OR view_of = ?";
  db.sql(query, now, id, id);
}

/** Makes one session the one of all who name none. */
export function setCurrent(db: Sql, id: string): void {
  db.sql("UPDATE perdure_session SET current = (id = ?) WHERE current = 1 OR id = ?", id, id);
}

export function setName(db: Sql, id: string, name: string, namedBy: NamedBy, now: number): void {
  sessions.update(db, { name, namedBy, updatedAt: now }, "id = ?", id);
}

/** The sessions that have this name, and have it from what was said. */
export function sessionsNamedAfter(db: Sql, name: string): Pick<SessionLine, "id" | "leaf">[] {
  return db.sql("SELECT id, leaf FROM perdure_session WHERE named_by = 'derived' AND name = ?", name);
}

/** Takes the name of a session away. */
export function unname(db: Sql, id: string): void {
  sessions.update(db, { name: null, namedBy: null }, "id = ?", id);
}

export function deleteSessionRow(db: Sql, id: string): void {
  sessions.delete(db, "id = ?", id);
}

/** What the last request of a session brought along, as JSON texts. */
type ChatContextRow = Pick<SessionRow, "body" | "clientTools">;

const contexts = tableOf<ChatContextRow>()("perdure_session", "body clientTools");

export function readChatContext(db: Sql, session: string): ChatContextRow {
  return contexts.one(db, "id = ?", session) ?? { body: null, clientTools: null };
}

export function writeChatContext(db: Sql, session: string, context: ChatContextRow, now: number): void {
  const { body, clientTools } = context;
  const change = "ON CONFLICT (id) DO UPDATE SET body = excluded.body, client_tools = excluded.client_tools";
  sessions.insert(db, { id: session, body, clientTools, createdAt: now, updatedAt: now }, change);
}
