import type { ContextView } from "../context/view.ts";
import type { Sql } from "../port.ts";
import { type CompactionRow, listCompactions } from "../store/compaction.ts";
import { readMessageAt } from "../store/message.ts";
import { findOnPath } from "../store/search.ts";
import { readSession } from "../store/session.ts";
import type { CompactionInfo } from "../wire/session-types.ts";

/** How many are looked through. */
const MAX_LISTED = 500;
/** How far up a session is looked through. */
const MAX_WAY = 100_000;

/** A row as it is told. */
export function toInfo(db: Sql, row: CompactionRow, inEffect: boolean): CompactionInfo {
  const { id, session, kind, status, trigger, parts, summary, carried, focus, model } = row;
  const { tokensBefore, tokensAfter, leftOut, error, createdAt, endedAt } = row;
  return {
    ...{ id, session, kind, status, trigger, parts, summary, carried, focus, model, inEffect },
    ...{ messageId: readMessageAt(db, row.at)?.id ?? null },
    ...{ tokensBefore, tokensAfter, leftOut, error, createdAt, endedAt },
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
