import { PerdureError } from "perdure";
import type { RowLog } from "perdure/collections";
import { ownLog } from "../own-log.ts";

/** A log that can die as its process does: what is under way is lost to it, and it writes nothing any more. */
export interface MortalLog extends RowLog {
  die(): void;
}

/** The same log for a process of its own. The log itself lives on: others may have the same one. */
export function mortal(log: RowLog): MortalLog {
  let dead = false;
  const own = ownLog(log, {
    write: async (write) => {
      if (dead) throw new PerdureError("disconnected", "The process is dead.");
      return log.write(write);
    },
    close: async () => {
      dead = true;
    },
  });
  return Object.assign(own, {
    die: () => {
      dead = true;
    },
  });
}
