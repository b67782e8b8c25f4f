import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_file`: workspace entries, each for the versions from `since` up to, not including, `until`; current ones have
 * {@link LIVE}. `until` leads the key, so the current tree is together, in path order, and history can be cut off without an
 * index.
 */
export const fileSchema: readonly string[] = [
  `CREATE TABLE perdure_file (
    ns TEXT NOT NULL,
    until INTEGER NOT NULL,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    target TEXT,
    hash TEXT,
    content BLOB,
    PRIMARY KEY (ns, until, parent, name)
  ) STRICT, WITHOUT ROWID`,
];

/** `until` of what no version has ended. */
export const LIVE = Number.MAX_SAFE_INTEGER;

export type FileKind = "file" | "directory" | "symlink";

/** An entry without what it holds. */
export interface FileMeta {
  readonly parent: string;
  readonly name: string;
  readonly since: number;
  readonly kind: FileKind;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
  /** Of a symlink. */
  readonly target: string | null;
  /** Of a file whose bytes are in `perdure_file_body` or elsewhere. */
  readonly hash: string | null;
}

/** An entry. */
export interface FileRow extends FileMeta {
  /** The bytes of a small file. */
  readonly content: Uint8Array | null;
}

/** Where an entry is, and what it refers to. */
export type FilePlace = Pick<FileMeta, "parent" | "name" | "hash">;

/** Where in the tree: everything below `dir`, or a piece of it. */
interface Below {
  readonly dir: string;
  /** Only what comes behind this entry. */
  readonly after?: { readonly parent: string; readonly name: string };
  readonly limit: number;
}

const metas = tableOf<FileMeta>()("perdure_file", "parent name since kind mode size mtime target hash");
const files = tableOf<FileRow>()("perdure_file", "parent name since kind mode size mtime target hash content");
const IS_LIVE = `ns = ? AND until = ${LIVE}`;

/** An entry of now. */
export function readFileRow(db: Sql, ns: string, parent: string, name: string): FileRow | undefined {
  return files.one(db, `${IS_LIVE} AND parent = ? AND name = ?`, ns, parent, name);
}

/** What a directory holds now, by name. */
export function filesIn(db: Sql, ns: string, parent: string, limit: number, offset: number): FileMeta[] {
  return metas.select(
    db,
    `WHERE ${IS_LIVE} AND parent = ? ORDER BY name LIMIT (SELECT ?) OFFSET (SELECT ?)`,
    ns,
    parent,
    limit,
    offset,
  );
}

export function countFilesIn(db: Sql, ns: string, parent: string): number {
  return files.count(db, `${IS_LIVE} AND parent = ?`, ns, parent);
}

/** What is below a directory now, at any depth: each directory's entries together. */
export function filesBelow(db: Sql, ns: string, { dir, after, limit }: Below): FileMeta[] {
  const [first, end] = subtree(dir);
  // No name is empty: the first of them is behind this.
  const from = after ?? { parent: dir, name: "" };
  const rest = `WHERE ${IS_LIVE} AND (parent, name) > (?, ?) AND parent < ? AND (parent = ? OR parent >= ?)
    ORDER BY parent, name LIMIT (SELECT ?)`;
  return metas.select(db, rest, ns, from.parent, from.name, end, dir, first, limit);
}

/** Writes an entry of now; one that stands there is replaced. */
export function putFileRow(db: Sql, ns: string, row: FileRow): void {
  files.put(db, { ...row, ...{ ns, until: LIVE } }, "(ns, until, parent, name)");
}

/** An entry of now becomes one of the past, which ended with version `until`. */
export function closeFileRow(db: Sql, ns: string, parent: string, name: string, until: number): void {
  db.sql(`UPDATE perdure_file SET until = ? WHERE ${IS_LIVE} AND parent = ? AND name = ?`, until, ns, parent, name);
}

/** Deletes an entry of now, of which the past knows nothing. */
export function deleteFileRow(db: Sql, ns: string, parent: string, name: string): void {
  files.delete(db, `${IS_LIVE} AND parent = ? AND name = ?`, ns, parent, name);
}

/** Entries of now that were not as they are at `point` become entries of the past, which ended with version `until`. */
export function closeFilesSince(db: Sql, ns: string, point: number, until: number): FilePlace[] {
  const change = `UPDATE perdure_file SET until = ? WHERE ${IS_LIVE} AND since > ? RETURNING parent, name, hash`;
  return db.sql<FilePlace>(change, until, ns, point);
}

/** Entries of `point` that were replaced or deleted since are entries of now again, from version `since` on. */
export function reviveFiles(db: Sql, ns: string, point: number, since: number): FilePlace[] {
  return db.sql<FilePlace>(
    `INSERT INTO perdure_file (ns, until, parent, name, since, kind, mode, size, mtime, target, hash, content)
     SELECT ns, ${LIVE}, parent, name, ?, kind, mode, size, mtime, target, hash, content FROM perdure_file
     WHERE ns = ? AND until > ? AND until < ${LIVE} AND since <= ? RETURNING parent, name, hash`,
    ...[since, ns, point, point],
  );
}

/** The entries of `point` that are others, or not there, at `other`. */
export function filesOnlyAt(db: Sql, ns: string, point: number, other: number): FileRow[] {
  const rest = "WHERE ns = ? AND until > ? AND since <= ? AND NOT (until > ? AND since <= ?) ORDER BY parent, name";
  return files.select(db, rest, ns, point, point, other, other);
}

/** Deletes past entries that only one point needed: begun after the point before, ended before the next. Returns their bodies. */
export function deleteFilesOf(db: Sql, ns: string, around: { before: number; point: number; after: number }): string[] {
  return hashesOf(
    db.sql<{ hash: string | null }>(
      `DELETE FROM perdure_file WHERE ns = ? AND until > ? AND until <= ? AND until < ${LIVE} AND since > ? AND since <= ?
       RETURNING hash`,
      ...[ns, around.point, around.after, around.before, around.point],
    ),
  );
}

/** Deletes everything of a namespace, its past included. @returns the bodies that were referred to */
export function deleteFilesIn(db: Sql, ns: string): string[] {
  return hashesOf(db.sql<{ hash: string | null }>("DELETE FROM perdure_file WHERE ns = ? RETURNING hash", ns));
}

/** How much there is now. */
export function countFiles(db: Sql, ns: string): { kind: FileKind; n: number; bytes: number }[] {
  return db.sql<{ kind: FileKind; n: number; bytes: number }>(
    `SELECT kind, count(*) AS n, sum(size) AS bytes FROM perdure_file WHERE ${IS_LIVE} GROUP BY kind`,
    ns,
  );
}

/** The parents that begin with `dir/`, as a range; of the root, all of them. */
function subtree(dir: string): [first: string, end: string] {
  // "0" is what comes behind "/".
  return dir === "/" ? ["/", "0"] : [`${dir}/`, `${dir}0`];
}

function hashesOf(rows: readonly { readonly hash: string | null }[]): string[] {
  return rows.flatMap(({ hash }) => hash ?? []);
}
