import { placesUp } from "../store/message.ts";
import type { SessionLine } from "../store/session.ts";
import type { SessionDesk } from "./session-desk.ts";
import type { SessionInfo } from "../wire/session-types.ts";

/** A row as it is shown. */
export function infoOf({ store, transcripts }: SessionDesk, row: SessionLine): SessionInfo {
  const { id, name, namedBy, parent, subject, viewOf, createdAt, updatedAt } = row;
  const forkedAt = row.forkAt === null ? null : (placesUp(store, row.forkAt, 1)[0]?.id ?? null);
  const current = transcripts.current === id;
  return { id, name, namedBy, current, parent, forkedAt, subject, viewOf, createdAt, updatedAt };
}
