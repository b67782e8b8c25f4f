import { dropLostApprovals } from "../store/approval.ts";
import { writeChatContext } from "../store/session.ts";
import { deleteChunksOf } from "../store/stream.ts";
import { deleteTurnsOf } from "../store/turn.ts";
import type { Desk } from "./desk.ts";

/** Deletes what was said in a session, its turns and all that belongs to them, in the caller's transaction. */
export function forgetSession({ host, hooks, transcripts, running }: Desk, session: string): void {
  const now = host.clock.now();
  transcripts.of(session).clear();
  deleteChunksOf(host, session);
  deleteTurnsOf(host, session, now);
  dropLostApprovals(host);
  writeChatContext(host, session, { body: null, clientTools: null }, now);
  hooks.cleared?.(session, running?.row.session === session);
}
