import type { Sql } from "../../port.ts";
import { beginContextAnew } from "../../memory/lifecycle.ts";
import { ownerIdOf, viewsOf, writeChatContext } from "../../store/session.ts";
import { deleteChunksOf } from "../../store/stream.ts";
import { deleteTurnsOf } from "../../store/turn.ts";
import type { Desk } from "./desk.ts";

/** A session and the views of it; for a view, those of its session. They have one tree. */
export function familyOf(db: Sql, session: string): ReadonlySet<string> {
  const owner = ownerIdOf(db, session);
  return new Set([owner, ...viewsOf(db, owner).map(({ id }) => id)]);
}

/**
 * Whether a turn belongs to a session, or to a view of it: who is in one session has nothing to do with those of others.
 * Without one, to any.
 */
export function isOfSession(db: Sql, turn: { readonly session: string }, session?: string): boolean {
  return session === undefined || turn.session === session || familyOf(db, session).has(turn.session);
}

/** Deletes what was said in a session and its views, their turns and all that belongs to them, in the caller's transaction. */
export function forgetSession({ host, hooks, transcripts, running }: Desk, sessions: ReadonlySet<string>): void {
  const now = host.clock.now();
  const [owner] = sessions;
  if (owner === undefined) return;
  transcripts.of(owner).clear();
  beginContextAnew(host, owner);
  for (const session of sessions) {
    deleteChunksOf(host, session);
    deleteTurnsOf(host, session, now);
    writeChatContext(host, session, { body: null, clientTools: null }, now);
  }
  hooks.cleared?.(owner, running !== undefined && sessions.has(running.row.session) ? running.row : undefined);
}
