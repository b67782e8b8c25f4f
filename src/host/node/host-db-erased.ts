import { createHash } from "node:crypto";
import type Database from "better-sqlite3";

/** Something that was deleted for good. */
export interface Erasure {
  /** The SHA-256 of the agent's id. */
  readonly agent: string;
  /** `agent`: all of it; else a session or a subject, by the SHA-256 of its name: `session:…`, `subject:…`. */
  readonly scope: string;
  /** How much had been written to the host's database by then. */
  readonly seq: number;
}

/** What was deleted from a directory for good: a copy of an agent from before must not bring it back. It holds no names. */
export interface Erasures {
  /** Notes it, in the caller's commit. */
  add(id: string, scope: string, seq: number): void;
  /** All of them that were noted behind a number. */
  since(seq: number): Erasure[];
  /** What was erased of one agent behind a number. */
  of(id: string, seq: number): Erasure[];
}

/** How an agent stands in the list of erasures. */
function digestOfId(id: string): string {
  return createHash("sha256").update(id).digest("hex");
}

/** The list of erasures in the host's own database. One row for each thing, however often it was erased. */
export function erasuresIn(db: Database.Database): Erasures {
  db.exec(`
    CREATE TABLE IF NOT EXISTS erased (
      agent TEXT NOT NULL, scope TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (agent, scope)
    ) STRICT, WITHOUT ROWID
  `);
  const add = db.prepare("INSERT OR REPLACE INTO erased (agent, scope, seq) VALUES (?, ?, ?)");
  const since = db.prepare<[number], Erasure>("SELECT agent, scope, seq FROM erased WHERE seq > ? ORDER BY seq");
  const of = db.prepare<[string, number], Erasure>(
    "SELECT agent, scope, seq FROM erased WHERE agent = ? AND seq > ? ORDER BY seq",
  );
  return {
    add: (id, scope, seq) => void add.run(digestOfId(id), scope, seq),
    since: (seq) => since.all(seq),
    of: (id, seq) => of.all(digestOfId(id), seq),
  };
}
