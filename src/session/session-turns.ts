import { PerdureError } from "../error.ts";
import type { Sql } from "../port.ts";
import { openTurns } from "../store/turn.ts";

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
