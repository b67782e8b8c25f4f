import type { PerdureError } from "perdure";
import type { RowLog } from "perdure/collections";
import type { RowWrite } from "perdure/collections/log";

/** The same log as somebody has it who does some of it another way. */
export function ownLog(log: RowLog, own: Partial<Pick<RowLog, "write" | "close" | "table">>): RowLog {
  const close = own.close ?? (() => log.close());
  return {
    kind: log.kind,
    source: log.source,
    ready: log.ready,
    get position() {
      return log.position;
    },
    get quarantined() {
      return log.quarantined;
    },
    table: own.table ?? ((name) => log.table(name)),
    write: own.write ?? ((write) => log.write(write)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The same log, but for the writes that `fails` says something about. */
export function failing(log: RowLog, fails: (write: RowWrite) => PerdureError | undefined): RowLog {
  return ownLog(log, {
    write: async (write) => {
      const error = fails(write);
      if (error !== undefined) throw error;
      return log.write(write);
    },
  });
}
