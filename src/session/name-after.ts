import { tryParseJson } from "../base/json.ts";
import type { UIMessage } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import type { Sql } from "../port.ts";
import { placesUp, readMessageAt, standsAbove } from "../store/message.ts";
import { readOwnerLine, sessionsNamedAfter, setName, unname } from "../store/session.ts";
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

/**
 * Takes away the names that sessions have from a message which is about to be deleted, in the same transaction.
 * @returns those sessions
 */
export function forgetNames(db: Sql, message: UIMessage, seq: number): string[] {
  const name = message.role === "user" ? deriveTitle(message) : undefined;
  if (name === undefined) return [];
  const named = sessionsNamedAfter(db, name).filter(({ leaf }) => leaf !== null && standsAbove(db, seq, leaf));
  for (const { id } of named) unname(db, id);
  return named.map(({ id }) => id);
}

/** Names a session that has lost its name after what is now the first thing that a user says in it. */
export function nameAnew(db: Sql, session: string, now: number): ReturnType<typeof nameAfter> {
  const leaf = readOwnerLine(db, session)?.leaf ?? null;
  const path = leaf === null ? [] : placesUp(db, leaf, Number.MAX_SAFE_INTEGER);
  const first = path.findLast(({ role }) => role === "user");
  const row = first === undefined ? undefined : readMessageAt(db, first.seq);
  const message = row === undefined ? undefined : parseMessage(tryParseJson(row.body));
  return message === undefined ? undefined : nameAfter(db, session, [message], now);
}
