import { openTurns, setMessageIds, messageIdsOf } from "../../store/turn.ts";
import type { Desk } from "./desk.ts";

/**
 * A message was edited in a session, and has its id there; the older version, which other sessions may show, has
 * another one now. What waits there means that one. In the caller's transaction; clients are told when it is committed.
 */
export function renamed(
  { host, output }: Pick<Desk, "host" | "output">,
  session: string,
  from: string,
  to: string,
): void {
  for (const turn of openTurns(host)) {
    if (turn.session === session || !turn.messageIds.includes(JSON.stringify(from))) continue;
    const ids = messageIdsOf(turn);
    setMessageIds(host, turn.seq, JSON.stringify(ids.map((id) => (id === from ? to : id))));
  }
  host.afterTx((committed) => {
    if (committed) output.renamed?.(session, from, to);
  });
}
