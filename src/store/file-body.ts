import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_file_body`: contents too large for a file's own row, by SHA-256. Row -1 counts the entries that refer to it; the bytes
 * are in rows 0, 1, … or, where `large` is 1, outside the database.
 */
export const fileBodySchema: readonly string[] = [
  `CREATE TABLE perdure_file_body (
    ns TEXT NOT NULL,
    hash TEXT NOT NULL,
    n INTEGER NOT NULL,
    refs INTEGER,
    large INTEGER,
    bytes BLOB,
    PRIMARY KEY (ns, hash, n)
  ) STRICT, WITHOUT ROWID`,
];

/** The row that counts. */
const HEAD = -1;

/** Whether there is such a body, and where its bytes are. */
interface BodyHead {
  readonly refs: number;
  readonly large: number;
}

const heads = tableOf<BodyHead>()("perdure_file_body", "refs large");
const IS_HEAD = `ns = ? AND hash = ? AND n = ${HEAD}`;

export function readBodyHead(db: Sql, ns: string, hash: string): BodyHead | undefined {
  return heads.one(db, IS_HEAD, ns, hash);
}

/** The bytes in their pieces, in order. Empty for a large one. */
export function readBodyChunks(db: Sql, ns: string, hash: string): Uint8Array[] {
  const query = "SELECT bytes FROM perdure_file_body WHERE ns = ? AND hash = ? AND n >= 0 ORDER BY n";
  return db.sql<{ bytes: Uint8Array }>(query, ns, hash).map(({ bytes }) => bytes);
}

/** One more entry refers to a body. @returns false when there is none */
export function addBodyRef(db: Sql, ns: string, hash: string): boolean {
  return db.sql(`UPDATE perdure_file_body SET refs = refs + 1 WHERE ${IS_HEAD} RETURNING n`, ns, hash).length > 0;
}

/** A new body that one entry refers to. @param chunks `undefined`: the bytes are outside of the database */
export function insertBody(db: Sql, ns: string, hash: string, chunks: readonly Uint8Array[] | undefined): void {
  heads.insert(db, { ...{ ns, hash, n: HEAD }, refs: 1, large: chunks === undefined ? 1 : 0 });
  for (const [n, bytes] of (chunks ?? []).entries())
    db.sql("INSERT INTO perdure_file_body (ns, hash, n, bytes) VALUES (?, ?, ?, ?)", ns, hash, n, bytes);
}

/** One entry less refers to a body; without any it is deleted. @returns whether bytes outside of the database are left */
export function dropBodyRef(db: Sql, ns: string, hash: string): boolean {
  const change = `UPDATE perdure_file_body SET refs = refs - 1 WHERE ${IS_HEAD} RETURNING refs, large`;
  const [head] = db.sql<BodyHead>(change, ns, hash);
  if (head === undefined || head.refs > 0) return false;
  heads.delete(db, "ns = ? AND hash = ?", ns, hash);
  return head.large === 1;
}
