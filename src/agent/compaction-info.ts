import type { ContextView } from "../context/view.ts";
import type { Sql } from "../port.ts";
import {
  type CompactionKind,
  type CompactionRow,
  type CompactionStatus,
  type CompactionTrigger,
  listCompactions,
} from "../store/compaction.ts";
import { readMessageAt } from "../store/message.ts";
import { findOnPath } from "../store/search.ts";
import { readSession } from "../store/session.ts";

/** A compaction, as it is told. */
export interface CompactionInfo {
  readonly id: string;
  /** The session that it was made in. Others that go through its message have it too. */
  readonly session: string;
  readonly kind: CompactionKind;
  readonly status: CompactionStatus;
  readonly trigger: CompactionTrigger;
  /** The newest message that it covers; null when that is gone. */
  readonly messageId: string | null;
  /** How many parts of it are covered; null: all. */
  readonly parts: number | null;
  /** Whether the model reads it now. */
  readonly inEffect: boolean;
  readonly summary: string | null;
  /** What code put below the summary. */
  readonly carried: string | null;
  readonly focus: string | null;
  readonly model: string | null;
  readonly tokensBefore: number;
  readonly tokensAfter: number | null;
  /** Why it came to nothing. */
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** How many are looked through. */
const MAX_LISTED = 500;
/** How far up a session is looked through. */
const MAX_WAY = 100_000;

/** A row as it is told. */
export function toInfo(db: Sql, row: CompactionRow, inEffect: boolean): CompactionInfo {
  const { id, session, kind, status, trigger, parts, summary, carried, focus, model } = row;
  const { tokensBefore, tokensAfter, error, createdAt, endedAt } = row;
  return {
    ...{ id, session, kind, status, trigger, parts, summary, carried, focus, model, inEffect },
    ...{ messageId: readMessageAt(db, row.at)?.id ?? null },
    ...{ tokensBefore, tokensAfter, error, createdAt, endedAt },
  };
}

/** The compactions of messages that a session goes through, newest first. */
export function compactionsOn(db: Sql, session: string, shown: () => ContextView, limit: number): CompactionInfo[] {
  const leaf = readSession(db, session)?.leaf ?? null;
  const rows = listCompactions(db, {}, MAX_LISTED);
  if (leaf === null || rows.length === 0) return [];
  const ats = [...new Set(rows.map(({ at }) => at))];
  const onPath = new Set(findOnPath(db, leaf, ats, MAX_WAY).found);
  const view = shown();
  const seqs = new Set(view.nodes.flatMap(({ seq, last }) => [seq, last]));
  const counts = ({ status, kind, seq, at }: CompactionRow) =>
    status === "done" && (kind === "prune" ? seqs.has(at) : seq === view.compaction?.seq);
  const found = rows.filter(({ at, session: of }) => onPath.has(at) || (of === session && at === 0));
  return found.slice(0, limit).map((row) => toInfo(db, row, counts(row)));
}
