import type { Sql } from "../port.ts";
import { readLines, writeLines } from "./chunk-lines.ts";

/**
 * `perdure_stream`: chunks of streams whose answer is not settled, a row per flush. `chunks` holds `count` chunks as lines
 * (chunk-lines.ts), numbered from `first`. A chunk too large for a row spans several; all but the last have `count` 0.
 */
export const streamSchema: readonly string[] = [
  `CREATE TABLE perdure_stream (
    seq INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    chunks TEXT NOT NULL
  ) STRICT`,
];

/** The most text in a row: some hosts refuse rows of 2 MB. */
const MAX_ROW_CHARS = 600_000;

/** Appends chunks, numbered from `first`. Chunks are JSON texts and hold no line breaks. */
export function appendChunks(db: Sql, turn: number, first: number, chunks: readonly string[]): void {
  const insert = (at: number, count: number, text: string) =>
    db.sql("INSERT INTO perdure_stream (turn, first, count, chunks) VALUES (?, ?, ?, ?)", turn, at, count, text);
  let at = first;
  let batch: string[] = [];
  let size = 0;
  const flush = () => {
    if (batch.length > 0) insert(at, batch.length, writeLines(batch));
    at += batch.length;
    batch = [];
    size = 0;
  };
  for (const chunk of chunks) {
    if (size + chunk.length > MAX_ROW_CHARS) flush();
    if (chunk.length > MAX_ROW_CHARS) {
      insertLarge(insert, at, chunk);
      at++;
      continue;
    }
    batch.push(chunk);
    size += chunk.length;
  }
  flush();
}

function insertLarge(insert: (at: number, count: number, text: string) => void, at: number, chunk: string): void {
  for (let i = 0; i < chunk.length;) {
    // Never between the halves of a surrogate pair: a lone one would not come back from SQLite.
    let end = Math.min(i + MAX_ROW_CHARS, chunk.length);
    if (end < chunk.length && isLowSurrogate(chunk.charCodeAt(end))) end--;
    insert(at, end === chunk.length ? 1 : 0, chunk.slice(i, end));
    i = end;
  }
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** The chunks of a turn in order, from number `from` on. */
export function readChunks(db: Sql, turn: number, from = 0): string[] {
  const rows = db.sql<{ first: number; count: number; chunks: string }>(
    "SELECT first, count, chunks FROM perdure_stream WHERE turn = ? AND first + max(count, 1) > ? ORDER BY seq",
    turn,
    from,
  );
  const chunks: string[] = [];
  let large = "";
  for (const row of rows) {
    if (row.count === 0) {
      large += row.chunks;
      continue;
    }
    const texts = large === "" ? readLines(row.chunks) : [large + row.chunks];
    large = "";
    for (const [i, text] of texts.entries()) if (row.first + i >= from) chunks.push(text);
  }
  return chunks;
}

/** Whether any turn has chunks stored. */
export function hasChunks(db: Sql): boolean {
  return db.sql("SELECT 1 FROM perdure_stream LIMIT 1").length > 0;
}

/** How many chunks a turn has stored. */
export function countChunks(db: Sql, turn: number): number {
  const query = "SELECT coalesce(max(first + count), 0) AS n FROM perdure_stream WHERE turn = ?";
  return db.sql<{ n: number }>(query, turn)[0]?.n ?? 0;
}

/** Turns whose chunks are kept: who asked for the work may come back to read how it went. */
const KEPT = "(SELECT json_extract(t.value, '$[0]') FROM perdure_run, json_each(perdure_run.turns) AS t)";

/** Whether {@link deleteChunks} leaves the chunks of a turn. */
export function keepsChunks(db: Sql, turn: number): boolean {
  return db.sql(`SELECT 1 WHERE ? IN ${KEPT}`, turn).length > 0;
}

/** Forgets the chunks of a turn, unless it was taken for a run. */
export function deleteChunks(db: Sql, turn: number): void {
  db.sql(`DELETE FROM perdure_stream WHERE turn = ? AND turn NOT IN ${KEPT}`, turn);
}

/** Forgets the chunks of turns of a session that have ended, and of those that are forgotten, unless they were taken for a run. */
export function deleteEndedChunks(db: Sql, session: string): void {
  db.sql(
    `DELETE FROM perdure_stream WHERE turn NOT IN ${KEPT} AND NOT EXISTS (SELECT 1 FROM perdure_turn
       WHERE seq = perdure_stream.turn AND (session <> ? OR status IN ('held', 'accepted', 'running')))`,
    session,
  );
}

/** Forgets the chunks of all turns of a session, and of those that are forgotten: nobody can ask for them any more. */
export function deleteChunksOf(db: Sql, session: string): void {
  db.sql("DELETE FROM perdure_stream WHERE turn NOT IN (SELECT seq FROM perdure_turn WHERE session <> ?)", session);
}
