import type { Sql, SqlValue } from "../port.ts";
import { deleteCells, readCell, writeCell } from "./cell.ts";
import { WAY_UP } from "./message.ts";

/**
 * `perdure_search`: the words of messages, by `seq`. No migration: tables and triggers exist from an agent's first search on. The
 * text itself is not stored again. `said` has what was written, `done` what tools were given and returned, both as words with
 * spaces between (`session/words.ts`), so SQLite need not know any language.
 */
const schema: readonly string[] = [
  "CREATE VIRTUAL TABLE perdure_search USING fts5 (said, done, content='', contentless_delete=1, tokenize='ascii')",
  // Whoever changes or deletes a message need not know of the index.
  `CREATE TRIGGER perdure_search_changed AFTER UPDATE OF body ON perdure_message
   WHEN new.seq <= (SELECT CAST(value AS INTEGER) FROM perdure_cell WHERE key = 'search:upto')
   BEGIN INSERT OR IGNORE INTO perdure_cell (key, value) VALUES ('search:stale:' || new.seq, ''); END`,
  `CREATE TRIGGER perdure_search_deleted AFTER DELETE ON perdure_message
   BEGIN
     DELETE FROM perdure_search WHERE rowid = old.seq;
     DELETE FROM perdure_cell WHERE key = 'search:stale:' || old.seq;
   END`,
];

/** Which words there are, and in how many messages: what FTS5 knows anyway. Nothing is stored for it. */
const wordsSchema = "CREATE VIRTUAL TABLE perdure_search_word USING fts5vocab (perdure_search, row)";

/** Another number whenever the same text makes other words: then the index is made anew. */
const VERSION = "1";
const VERSION_KEY = "search:version";
const WORDS_KEY = "search:words";
const UPTO_KEY = "search:upto";
const STALE_PREFIX = "search:stale:";

/** How much what was said counts beside what tools did. */
const SAID_WEIGHT = 1;
const DONE_WEIGHT = 0.4;
/** How much more the newest message counts than the oldest with the same words. */
const NEWNESS = 0.3;

/** A message that matches. */
export interface SearchMatch {
  readonly seq: number;
  /** Lower is better. */
  readonly score: number;
}

/** What to look for, and where to go on. */
interface SearchFilter {
  readonly role?: string | undefined;
  /** Only messages of before this time, in milliseconds since the epoch. */
  readonly before?: number | undefined;
  readonly limit: number;
  readonly skip: number;
}

/** A message that is not in the index as it is now. */
interface Unindexed {
  readonly seq: number;
  /** Bytes of its body. */
  readonly size: number;
}

/** Whether anybody has searched yet. */
function hasSearchIndex(db: Sql): boolean {
  return readCell(db, VERSION_KEY) !== undefined;
}

/** Makes the index, empty, unless it is there; one of an older version is replaced. */
export function prepareSearchIndex(db: Sql): void {
  const version = readCell(db, VERSION_KEY);
  if (version === VERSION && readCell(db, WORDS_KEY) !== undefined) return;
  db.tx(() => {
    if (version !== VERSION) {
      if (version !== undefined) dropSearchIndex(db);
      for (const statement of schema) db.sql(statement);
      writeCell(db, UPTO_KEY, "0");
      writeCell(db, VERSION_KEY, VERSION);
    }
    db.sql(wordsSchema);
    writeCell(db, WORDS_KEY, "1");
  });
}

/** Forgets the index; the next search makes it anew. */
function dropSearchIndex(db: Sql): void {
  db.sql("DROP TRIGGER IF EXISTS perdure_search_changed");
  db.sql("DROP TRIGGER IF EXISTS perdure_search_deleted");
  db.sql("DROP TABLE IF EXISTS perdure_search_word");
  db.sql("DROP TABLE IF EXISTS perdure_search");
  deleteCells(db, "search:");
}

/** The next messages to index, oldest first: those that changed, then those that came since. */
export function unindexedMessages(db: Sql, limit: number): Unindexed[] {
  return db.sql<Unindexed>(
    `SELECT seq, octet_length(body) AS size FROM perdure_cell
     JOIN perdure_message ON seq = CAST(substr(key, ?) AS INTEGER)
     WHERE key >= ? AND key < ?
     UNION ALL
     SELECT * FROM (
       SELECT seq, octet_length(body) AS size FROM perdure_message
       WHERE seq > (SELECT CAST(value AS INTEGER) FROM perdure_cell WHERE key = ?) ORDER BY seq LIMIT (SELECT ?))
     LIMIT (SELECT ?)`,
    ...[STALE_PREFIX.length + 1, STALE_PREFIX, `${STALE_PREFIX}:`, UPTO_KEY, limit, limit],
  );
}

/** Puts the words of a message into the index, instead of those that it had. */
export function indexMessage(db: Sql, seq: number, words: { readonly said: string; readonly done: string }): void {
  db.sql("DELETE FROM perdure_search WHERE rowid = ?", seq);
  db.sql("INSERT INTO perdure_search (rowid, said, done) VALUES (?, ?, ?)", seq, words.said, words.done);
  db.sql("DELETE FROM perdure_cell WHERE key = ?", STALE_PREFIX + seq);
  const upto = "UPDATE perdure_cell SET value = CAST(? AS INTEGER) WHERE key = ? AND CAST(value AS INTEGER) < ?";
  db.sql(upto, seq, UPTO_KEY, seq);
}

/** A word of the index, and in how many messages it is. */
interface IndexedWord {
  readonly term: string;
  readonly doc: number;
}

/** Words of the index from `from` to `to`, both included, in the order of their letters. */
export function indexedWords(db: Sql, from: string, to: string, limit: number): IndexedWord[] {
  const query = "SELECT term, doc FROM perdure_search_word WHERE term >= ? AND term <= ? LIMIT (SELECT ?)";
  return db.sql<{ term: string; doc: number }>(query, from, to, limit);
}

/** The messages that match and stand behind `after` up to `upto`, the newest first. @param match an expression of FTS5. */
export function newestMatches(
  db: Sql,
  match: string,
  { after, upto, ...filter }: Omit<SearchFilter, "skip"> & { readonly after: number; readonly upto: number },
): SearchMatch[] {
  const { conditions, args } = conditionsOf(match, filter);
  return db.sql<SearchMatch>(
    `SELECT rowid AS seq, 0 AS score FROM perdure_search WHERE ${conditions.join(" AND ")} AND rowid > ? AND rowid <= ?
     ORDER BY rowid DESC LIMIT (SELECT ?)`,
    ...[...args, after, upto, filter.limit],
  );
}

function conditionsOf(
  match: string,
  { role, before }: Pick<SearchFilter, "role" | "before">,
): { readonly conditions: string[]; readonly args: SqlValue[] } {
  const conditions = ["perdure_search MATCH ?"];
  const args: SqlValue[] = [match];
  const of = (column: string) => `(SELECT ${column} FROM perdure_message WHERE seq = perdure_search.rowid)`;
  if (role !== undefined) {
    conditions.push(`${of("role")} = ?`);
    args.push(role);
  }
  if (before !== undefined) {
    conditions.push(`${of("created_at")} < ?`);
    args.push(before);
  }
  return { conditions, args };
}

/** The messages that match, the best first. Looks at all of them. @param match an expression of FTS5. */
export function searchMessages(db: Sql, match: string, filter: SearchFilter): SearchMatch[] {
  const { conditions, args } = conditionsOf(match, filter);
  return db.sql<SearchMatch>(
    `SELECT rowid AS seq, bm25(perdure_search, ?, ?)
       * (1 + ? * rowid / (SELECT max(seq) FROM perdure_message)) AS score
     FROM perdure_search WHERE ${conditions.join(" AND ")} ORDER BY score, rowid DESC LIMIT (SELECT ?) OFFSET (SELECT ?)`,
    ...[SAID_WEIGHT, DONE_WEIGHT, NEWNESS, ...args, filter.limit, filter.skip],
  );
}

/** A piece of the way from a message up to the first. */
interface PathPiece {
  /** Those that were asked for and stand on it. */
  readonly found: readonly number[];
  /** Where the next piece begins; null at the end. */
  readonly next: number | null;
}

/** Which of `seqs` stand on the way from `from` upwards, within `limit` messages. */
export function findOnPath(db: Sql, from: number, seqs: readonly number[], limit: number): PathPiece {
  const query = `${WAY_UP} SELECT at, depth FROM path WHERE depth = ? OR at IN (SELECT value FROM json_each(?))`;
  const rows = db.sql<{ at: number; depth: number }>(query, from, limit + 1, limit, JSON.stringify(seqs));
  const next = rows.find(({ depth }) => depth === limit)?.at ?? null;
  return { found: rows.filter(({ depth }) => depth < limit).map(({ at }) => at), next };
}

/** Whether one of `seqs` stands on the way from `from` upwards, within `limit` messages. Costs the way to the nearest. */
export function isOnPath(db: Sql, from: number, seqs: readonly number[], limit: number): boolean {
  const query = `${WAY_UP} SELECT 1 FROM path WHERE at IN (SELECT value FROM json_each(?)) LIMIT 1`;
  return db.sql(query, from, limit, JSON.stringify(seqs)).length > 0;
}

/** How many messages have words in the index. */
export function countSearchRows(db: Sql, seqs: readonly number[]): number {
  if (!hasSearchIndex(db)) return 0;
  const query = "SELECT count(*) AS n FROM perdure_search_docsize WHERE id IN (SELECT value FROM json_each(?))";
  return db.sql<{ n: number }>(query, JSON.stringify(seqs))[0]?.n ?? 0;
}

/** Lets the index forget the words of messages that are gone; until then they are only passed over. Costs its size. */
export function compactSearchIndex(db: Sql): void {
  if (hasSearchIndex(db)) db.sql("INSERT INTO perdure_search (perdure_search) VALUES ('optimize')");
}
