import { PerdureError } from "perdure";
import type { RowLog } from "perdure/collections";
import type { AppliedChange, ConfirmedRow, RowTable } from "perdure/collections/log";
import { ownLog } from "../own-log.ts";

type Listener = (changes: readonly AppliedChange[], reset: boolean) => void;

/** A log whose reader can be made deaf: it has what it had, until it writes and its own write comes back. */
export function hardOfHearing(log: RowLog, name: string): { readonly log: RowLog; stop(): void } {
  const inner = log.table(name);
  let frozen: { rows: Map<string, ConfirmedRow>; versions: Map<string, number> } | undefined;
  const listeners = new Set<Listener>();
  inner.subscribe((changes, reset) => {
    if (frozen === undefined) for (const listener of listeners) listener(changes, reset);
  });
  const table: RowTable = {
    get: (key) => (frozen === undefined ? inner.get(key) : frozen.rows.get(key)),
    rows: () => (frozen === undefined ? inner.rows() : frozen.rows.values()),
    get size() {
      return frozen === undefined ? inner.size : frozen.rows.size;
    },
    version: (key) => (frozen === undefined ? inner.version(key) : (frozen.versions.get(key) ?? 0)),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const hear = () => {
    if (frozen === undefined) return;
    frozen = undefined;
    const all = [...inner.rows()].map((row) => ({ ...row, table: name, operation: "insert" }) as const);
    for (const listener of listeners) listener(all, true);
  };
  return {
    log: ownLog(log, {
      table: (asked) => (asked === name ? table : log.table(asked)),
      write: async (write) => {
        const receipt = await log.write(write);
        hear();
        return receipt;
      },
    }),
    stop: () => {
      const rows = [...inner.rows()];
      frozen = {
        rows: new Map(rows.map((row) => [row.key, row])),
        versions: new Map(rows.map((row) => [row.key, row.version])),
      };
    },
  };
}

/** A log that can be cut off from what it writes to. */
export function cutOff(log: RowLog): { readonly log: RowLog; close(): void } {
  let closed = false;
  return {
    log: ownLog(log, {
      write: (write) =>
        closed ? Promise.reject(new PerdureError("disconnected", "The log is closed.")) : log.write(write),
    }),
    close: () => void (closed = true),
  };
}
