import { nameAnswer, openTurns, type TurnRow } from "../store/turn.ts";
import { deleteOtherChunks } from "../store/stream.ts";
import type { Desk } from "./desk.ts";

/*
 * Where messages stand
 *
 * A message is stored when it is accepted, so that every client sees it. Until its turn starts it waits behind
 * whatever is said before: the answer under way is put in front of it, and the model that writes that answer does
 * not see it. So each turn reads a conversation that ends with what it is to answer.
 */

/** Ids of messages that wait for their own turn while `current` runs. */
export function waitingMessages(open: readonly TurnRow[], current: TurnRow): Set<string> {
  const ids = new Set<string>();
  for (const turn of open) {
    // What is regenerated, or was edited, has its place already.
    if (turn.status !== "accepted" || turn.seq === current.seq || turn.trigger === "regenerate") continue;
    for (const id of messageIdsOf(turn)) ids.add(id);
  }
  if (ids.size > 0) for (const id of messageIdsOf(current)) ids.delete(id);
  return ids;
}

/**
 * Makes the conversation ready for the first attempt of a turn: what it replaces goes, and what it goes on with is
 * named, so that every later attempt means the same. In the caller's transaction. @returns whether messages went.
 */
export function takePlace(desk: Desk, turn: TurnRow): boolean {
  const { host, transcript } = desk;
  deleteOtherChunks(host, turn.seq);
  if (turn.continuation === 1) {
    const base = transcript.list().findLast((message) => message.role === "assistant");
    if (base !== undefined) nameAnswer(host, turn.seq, base.id, base.parts.length);
    return false;
  }
  if (turn.trigger !== "regenerate") return false;
  // An answer that was still being written when this was asked for.
  const asked = messageIdsOf(turn).at(-1);
  const after = asked === undefined ? [] : transcript.idsAfter(asked);
  const next = after.findIndex((id) => transcript.role(id) !== "assistant");
  const stale = next === -1 ? after : after.slice(0, next);
  for (const id of stale) transcript.remove(id);
  return stale.length > 0;
}

/** Puts an answer that was just named in front of everything that waits. */
export function passWaiting(desk: Pick<Desk, "host" | "transcript">, current: TurnRow): void {
  desk.transcript.moveToEnd(waitingMessages(openTurns(desk.host), current));
}

function messageIdsOf(turn: TurnRow): string[] {
  return JSON.parse(turn.messageIds) as string[];
}
