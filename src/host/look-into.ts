import { PerdureError } from "../base/error.ts";
import type { Sql } from "../port.ts";
import type { Storage, TxListener } from "./storage.ts";

/** Of whoever only looks. */
export const onlyLooks: TxListener = {
  refusal: () => new PerdureError("read_only", "Whoever looks at an agent's rows from outside may write none."),
  mark: () => 0,
  rolledBack: () => undefined,
  committed: () => undefined,
};

/** Reads the rows of an agent that has no life, which must not begin one meanwhile: `read` must be done when it returns. */
export function lookInto<T>(storage: Storage, id: string, read: (rows: Sql) => T): T {
  const store = storage.open(id, onlyLooks);
  try {
    return read(store);
  } finally {
    void store.release();
  }
}
