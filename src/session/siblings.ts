import type { Sql } from "../port.ts";
import { type MessageRow, newestLeafUnder, readMessage, siblingsOf, standsAbove } from "../store/message.ts";
import { readSessionLine, type SessionLine } from "../store/session.ts";

type Said = Pick<MessageRow, "seq" | "session">;

/** Whether a session has a message: said there, on its path, or there when it was forked; not what its origin said later. */
export function hasMessage(db: Sql, session: SessionLine, said: Said): boolean {
  const owner = session.viewOf === null ? session : readSessionLine(db, session.viewOf);
  if (said.session === (owner?.id ?? session.id)) return true;
  const ends = [session.leaf, owner?.leaf ?? null, owner?.forkAt ?? null];
  return ends.some((end) => end !== null && standsAbove(db, said.seq, end));
}

/** The newest message of a session under one, always along what was said there last. */
export function newestLeafIn(db: Sql, session: SessionLine, seq: number): number {
  const owner = session.viewOf === null ? session : (readSessionLine(db, session.viewOf) ?? session);
  const leaf = newestLeafUnder(db, seq, owner.id);
  // A fork has the way to where it began, though others said that.
  if (owner.forkAt === null || !standsAbove(db, leaf, owner.forkAt)) return leaf;
  return newestLeafUnder(db, owner.forkAt, owner.id);
}

/** {@link hasMessage} by ids. A message that is not there may be said anywhere. */
export function isSaidIn(db: Sql, session: string, messageId: string): boolean {
  const said = readMessage(db, messageId);
  if (said === undefined) return true;
  const line = readSessionLine(db, session);
  return line !== undefined && hasMessage(db, line, said);
}

/** For each of these messages of a session that is not the only one of its place there: all of them, in order. */
export function siblingsIn(
  db: Sql,
  session: SessionLine,
  seqs: readonly number[],
): { readonly of: number; readonly seq: number; readonly id: string }[] {
  const found = seqs.length === 0 ? [] : siblingsOf(db, seqs, session.viewOf ?? session.id);
  const own = found.filter((row) => row.seq === row.of || hasMessage(db, session, row));
  const counts = new Map<number, number>();
  for (const row of own) counts.set(row.of, (counts.get(row.of) ?? 0) + 1);
  return own.filter((row) => (counts.get(row.of) ?? 0) > 1);
}
