import { placesUp } from "../store/message.ts";
import type { NamedBy, SessionLine } from "../store/session.ts";
import type { SessionDesk } from "./session-desk.ts";

/** What a list of sessions shows. */
export interface SessionInfo {
  readonly id: string;
  readonly name: string | null;
  /** Who gave it its name: it was taken from the first message, a model found it, or a person wrote it. */
  readonly namedBy: NamedBy | null;
  /** Those who name no session are in this one. */
  readonly current: boolean;
  /** The session that it was forked from, and the message with which it began. */
  readonly parent: string | null;
  readonly forkedAt: string | null;
  /** Whose data it holds. */
  readonly subject: string | null;
  /** It is one client's own place in that session. */
  readonly viewOf: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When something was said in it last, or it was changed. */
  readonly updatedAt: number;
}

/** A row as it is shown. */
export function infoOf({ store, transcripts }: SessionDesk, row: SessionLine): SessionInfo {
  const { id, name, namedBy, parent, subject, viewOf, createdAt, updatedAt } = row;
  const forkedAt = row.forkAt === null ? null : (placesUp(store, row.forkAt, 1)[0]?.id ?? null);
  const current = transcripts.current === id;
  return { id, name, namedBy, current, parent, forkedAt, subject, viewOf, createdAt, updatedAt };
}
