import type { RowLog } from "perdure/collections";
import type { RowWrite } from "perdure/collections/log";
import { ownLog } from "./own-log.ts";

/** The log of a process that dies with its `at`th write: before it is written, or before it hears of it. */
export function dying(log: RowLog, at: number, moment: "before" | "after") {
  let writes = 0;
  const death = Promise.withResolvers<void>();
  const mine = ownLog(log, {
    write: async (write: RowWrite) => {
      const isLast = ++writes === at;
      if (writes < at) return log.write(write);
      if (isLast && moment === "after") await log.write(write);
      death.resolve();
      // A dead process is never told anything.
      return new Promise(() => {});
    },
    close: async () => {},
  });
  return { log: mine, died: death.promise };
}

export const moments = ["before", "after"] as const;
