import { PerdureError } from "../base/error.ts";
import type { Sql } from "../port.ts";
import { placesUp } from "../store/message.ts";
import { openTurns, turnsBehind, messageIdsOf } from "../store/turn.ts";
import type { SessionDesk } from "./session-desk.ts";

/**
 * What a turn reads and writes is the end of its session: that must not be somewhere else all of a sudden.
 * @throws PerdureError `bad_state`
 */
export function refuseDuringTurns(db: Sql, session: string): void {
  if (!openTurns(db).some((turn) => turn.session === session)) return;
  throw new PerdureError(
    "bad_state",
    `A turn of the session "${session}" is under way or waits. Stop it or wait for it, or open a view.`,
  );
}

/** How far up it is looked: only what waits stands behind an answer that is being written. */
const OPEN_DISTANCE = 200;

/**
 * The last message up from `leaf` that stays as it is and where it is. Not so an answer that is being written, by a turn
 * of any session; nor what waits for a turn of its own: the answers before it are yet to be put in front of it.
 * @param top no further up than this.
 */
export function settledEnd(desk: SessionDesk, leaf: number | null, top?: number): number | null {
  const { store } = desk;
  const open = Map.groupBy(openTurns(store), (turn) => turn.session);
  if (leaf === null || open.size === 0) return leaf;
  const moves = new Set<string>();
  for (const [session, [first]] of open) {
    const own = new Set(idsOf(first));
    // Also what waited until it was stopped.
    const others = first === undefined ? [] : turnsBehind(store, first);
    for (const id of others.flatMap(idsOf)) if (!own.has(id)) moves.add(id);
    const writing = desk.answering(session);
    if (writing !== undefined) moves.add(writing);
  }
  const way = placesUp(store, leaf, OPEN_DISTANCE);
  const end = top === undefined ? way.length : way.findIndex(({ seq }) => seq === top);
  const last = way.slice(0, end === -1 ? way.length : end).findLast(({ id }) => moves.has(id));
  return last === undefined ? leaf : last.parent;
}

function idsOf(turn: { readonly messageIds: string } | undefined): string[] {
  return turn === undefined ? [] : messageIdsOf(turn);
}
