import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import { type DamageTeller, readStoredList } from "./damaged.ts";
import type { CompactionKind, CompactionStatus, CompactionTrigger } from "../wire/session-types.ts";

/**
 * `perdure_compaction`: what the model reads instead of older messages, which stay unchanged. A row belongs to a message (`at`)
 * and holds for every conversation through it; only `done` rows count.
 */
export const compactionSchema: readonly string[] = [
  `CREATE TABLE perdure_compaction (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    parts INTEGER,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    trigger TEXT NOT NULL,
    turn INTEGER,
    step INTEGER,
    call TEXT,
    prior INTEGER,
    tokens_before INTEGER NOT NULL,
    tokens_after INTEGER,
    model TEXT,
    focus TEXT,
    error TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    pins TEXT NOT NULL DEFAULT '[]',
    calls TEXT NOT NULL DEFAULT '[]',
    files TEXT NOT NULL DEFAULT '[]',
    summary TEXT,
    carried TEXT
  ) STRICT`,
  "CREATE INDEX perdure_compaction_at ON perdure_compaction (at) WHERE status = 'done'",
];

/** What the user said in what is covered, and how much of that nobody has read. */
export const compactionWordsSchema: readonly string[] = [
  "ALTER TABLE perdure_compaction ADD COLUMN words TEXT NOT NULL DEFAULT '[]'",
  "ALTER TABLE perdure_compaction ADD COLUMN left_out INTEGER",
];

/** One compaction. */
export interface CompactionRow {
  readonly seq: number;
  readonly id: string;
  readonly session: string;
  /** The `seq` of the newest message that it covers, or of which it covers a part. */
  readonly at: number;
  /** How many parts of that message are covered; null: all of it. */
  readonly parts: number | null;
  readonly kind: CompactionKind;
  readonly status: CompactionStatus;
  readonly trigger: CompactionTrigger;
  /** The `seq` of the turn that it was made for. */
  readonly turn: number | null;
  /** How many model calls of that turn were settled then. */
  readonly step: number | null;
  /** The model call that was too long. */
  readonly call: string | null;
  /** The compaction that was in effect before: its summary is taken into this one. */
  readonly prior: number | null;
  readonly tokensBefore: number;
  readonly tokensAfter: number | null;
  readonly model: string | null;
  readonly focus: string | null;
  /** Why it came to nothing; of `truncate`, why there is no summary. */
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** Messages that it covers and that are shown whole all the same: a JSON list of their `seq`. */
  readonly pins: string;
  /** Of `prune`: the calls whose outputs are not shown, a JSON list of `[message seq, call id]`. */
  readonly calls: string;
  /** Files that were worked on, as JSON. */
  readonly files: string;
  readonly summary: string | null;
  /** What code says about the state of things, below the summary. */
  readonly carried: string | null;
  /** What the user said in all that is covered, as JSON: it is carried from compaction to compaction. */
  readonly words: string;
  /** How many of the messages that it covers nobody has read for it; null: none. */
  readonly leftOut: number | null;
}

/** What is known when it starts. */
export type NewCompaction = Pick<
  CompactionRow,
  "id" | "session" | "at" | "parts" | "kind" | "trigger" | "turn" | "step" | "call" | "prior" | "tokensBefore" | "model"
> &
  Pick<CompactionRow, "focus" | "createdAt">;

/** What is known when it is done. */
export type CompactionEnd = Pick<
  CompactionRow,
  "kind" | "at" | "parts" | "tokensAfter" | "pins" | "calls" | "files" | "summary" | "carried"
> & { readonly words?: string; readonly leftOut?: number | null; readonly error?: string | null };

const compactions = tableOf<CompactionRow>()(
  "perdure_compaction",
  "seq id session at parts kind status trigger turn step call prior tokensBefore tokensAfter model focus error createdAt",
  "endedAt pins calls files summary carried words leftOut",
);

/** Writes down that one is being made. @returns its number. */
export function startCompaction(db: Sql, row: NewCompaction): number {
  return compactions.insert<{ seq: number }>(db, { ...row, status: "started" }, "RETURNING seq")[0]?.seq ?? 0;
}

/** From now on it counts. One that has ended already stays as it is. */
export function finishCompaction(db: Sql, seq: number, end: CompactionEnd, now: number): void {
  compactions.update(db, { ...end, status: "done", endedAt: now }, "seq = ? AND status = 'started'", seq);
}

/** It came to nothing. What it would have said is kept, if there is any, for who looks into it. */
export function failCompaction(
  db: Sql,
  seq: number,
  why: { readonly error: string; readonly summary?: string | null; readonly tokensAfter?: number | null },
  now: number,
): void {
  compactions.update(db, { ...why, status: "failed", endedAt: now }, "seq = ? AND status = 'started'", seq);
}

/** Those that an earlier life left under way have come to nothing. @returns how many. */
export function failOpenCompactions(db: Sql, error: string, now: number): number {
  const open = compactions.count(db, "status = 'started'");
  compactions.update(db, { error, status: "failed", endedAt: now }, "status = 'started'");
  return open;
}

/** It counts no more. */
export function undoCompaction(db: Sql, seq: number): void {
  compactions.update(db, { status: "undone" }, "seq = ? AND status = 'done'", seq);
}

/** What was left out counts again: the summary that had replaced it is undone. One that says nothing any more does not. */
export function redoTruncation(db: Sql, seq: number): void {
  const where = "seq = ? AND status = 'undone' AND kind = 'truncate' AND summary IS NOT NULL";
  compactions.update(db, { status: "done" }, where, seq);
}

/** It counts no more, and what it said is gone; the row says why. */
export function dropCompaction(db: Sql, seq: number, why: string): void {
  db.sql(
    `UPDATE perdure_compaction SET error = CASE status WHEN 'done' THEN ? ELSE error END, summary = NULL, carried = NULL,
       files = '[]', words = '[]', status = CASE status WHEN 'done' THEN 'undone' ELSE status END WHERE seq = ?`,
    why,
    seq,
  );
}

/** The messages that are shown whole; undefined where that cannot be read, which is said once. */
export function pinsOf(host: DamageTeller, { seq, pins }: Pick<CompactionRow, "seq" | "pins">): number[] | undefined {
  return readStoredList(host, pins, `the pins of compaction ${seq}`, (one): one is number => Number.isSafeInteger(one));
}

export function setCompactionPins(db: Sql, seq: number, pins: readonly number[]): void {
  compactions.update(db, { pins: JSON.stringify(pins) }, "seq = ?", seq);
}

export function readCompaction(db: Sql, id: string): CompactionRow | undefined {
  return compactions.one(db, "id = ?", id);
}

export function readCompactionAt(db: Sql, seq: number): CompactionRow | undefined {
  return compactions.one(db, "seq = ?", seq);
}

/** Those of these messages that count, the newest last. */
export function doneAt(db: Sql, seqs: readonly number[]): CompactionRow[] {
  if (seqs.length === 0) return [];
  const rest = "WHERE status = 'done' AND at IN (SELECT value FROM json_each(?)) ORDER BY seq";
  return compactions.select(db, rest, JSON.stringify(seqs));
}

/** The messages that have any that counts, in no order. Reads the index alone. */
export function compactedMessages(db: Sql): number[] {
  return db.sql<{ at: number }>("SELECT at FROM perdure_compaction WHERE status = 'done'").map(({ at }) => at);
}

/** What was made for one turn, oldest first. */
export function compactionsOfTurn(db: Sql, turn: number): CompactionRow[] {
  return compactions.select(db, "WHERE turn = ? ORDER BY seq", turn);
}

/** Newest first; `before` is the `seq` of the last one of the page before. */
export function listCompactions(
  db: Sql,
  filter: { readonly session?: string | undefined; readonly before?: number | undefined },
  limit: number,
): CompactionRow[] {
  const before = filter.before ?? Number.MAX_SAFE_INTEGER;
  const session = filter.session ?? null;
  const rest = "WHERE seq < ? AND session = coalesce(?, session) ORDER BY seq DESC LIMIT (SELECT ?)";
  return compactions.select(db, rest, before, session, limit);
}

/** A message goes, and what stood for it and all before it counts from the next one on, of which nothing is covered. */
export function moveCompactions(db: Sql, at: number, next: number): void {
  compactions.update(db, { at: next, parts: 0 }, "at = ? AND status = 'done' AND kind <> 'prune'", at);
}

/** Deletes those whose message is gone. @returns how many. */
export function deleteStrayCompactions(db: Sql): number {
  return compactions.deleted(db, "NOT EXISTS (SELECT 1 FROM perdure_message WHERE seq = at)");
}

/** Deletes those that failed, but for the ones among the newest `keep` rows. */
export function forgetFailedCompactions(db: Sql, keep: number): void {
  compactions.delete(db, "status = 'failed' AND seq <= (SELECT max(seq) FROM perdure_compaction) - ?", keep);
}

/** Deletes a compaction for good, with all that it says. */
export function deleteCompaction(db: Sql, seq: number): void {
  compactions.delete(db, "seq = ?", seq);
}

/** All rows but those that failed: for who has to find what tells of a message. Without their texts. */
export function compactionPlaces(db: Sql): Pick<CompactionRow, "seq" | "at" | "pins">[] {
  return db.sql("SELECT seq, at, pins FROM perdure_compaction ORDER BY seq");
}
