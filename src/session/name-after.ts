import type { UIMessage } from "../message/types.ts";
import type { Sql } from "../port.ts";
import { readOwnerLine, setName } from "../store/session.ts";
import { deriveTitle } from "./titles.ts";

/**
 * Names a session that has no name after the first thing that a user says in it, in the transaction that stores that.
 * @param messages what was just said. @returns the session and its name; undefined when nothing has changed.
 */
export function nameAfter(
  db: Sql,
  session: string,
  messages: readonly UIMessage[],
  now: number,
): { readonly session: string; readonly name: string } | undefined {
  const first = messages.find(({ role }) => role === "user");
  const owner = first === undefined ? undefined : readOwnerLine(db, session);
  if (first === undefined || owner === undefined || owner.name !== null) return undefined;
  const name = deriveTitle(first);
  if (name === undefined) return undefined;
  setName(db, owner.id, name, "derived", now);
  return { session: owner.id, name };
}
