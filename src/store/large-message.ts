import type { Sql } from "../port.ts";

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
