import type { UIMessage } from "../../src/message/types.ts";
import type { Sql } from "../../src/port.ts";
import { insertMessage } from "../../src/store/message.ts";
import { insertSession, setLeaf } from "../../src/store/session.ts";

/** Says something at the end of a session, which is made if need be. @returns the number of the message. */
export function say(db: Sql, session: string, message: UIMessage, now = 0): number {
  insertSession(db, { id: session }, now);
  const [row] = db.sql<{ leaf: number | null }>("SELECT leaf FROM perdure_session WHERE id = ?", session);
  const seq = insertMessage(db, {
    id: message.id,
    session,
    parent: row?.leaf ?? null,
    role: message.role,
    body: JSON.stringify(message),
    createdAt: now,
  });
  setLeaf(db, session, seq, now);
  return seq;
}

export function user(id: string, text: string): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

export function assistant(id: string, ...parts: UIMessage["parts"]): UIMessage {
  return { id, role: "assistant", parts };
}
