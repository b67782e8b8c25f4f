import type { Sql } from "../port.ts";

/** A message on the way up that is pinned, or up to which a compaction counts. */
export interface MarkedMessage {
  readonly seq: number;
  readonly id: string;
  readonly pinned: 0 | 1;
}

/** Such messages from `seq` up towards the first, newest first. No further than `limit` messages. */
export function markedUp(db: Sql, seq: number, limit: number): MarkedMessage[] {
  return db.sql<MarkedMessage & Record<string, string | number>>(
    `WITH RECURSIVE path (at, depth) AS (
       SELECT ?, 0
       UNION ALL
       SELECT m.parent, depth + 1 FROM path JOIN perdure_message AS m ON m.seq = path.at
       WHERE m.parent IS NOT NULL AND depth + 1 < ?
     )
     SELECT seq, id, pinned FROM path JOIN perdure_message ON seq = path.at
     WHERE pinned = 1 OR seq IN (SELECT c.at FROM perdure_compaction AS c WHERE c.status = 'done')
     ORDER BY depth`,
    seq,
    limit,
  );
}
