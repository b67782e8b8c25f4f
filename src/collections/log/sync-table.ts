import type { AppliedChange, RowLog, RowTable, RowValue } from "./row-log.ts";

/** The part of TanStack DB's sync parameters that is used here. */
export interface SyncSink {
  begin(): void;
  write(message: { type: "insert" | "update" | "delete"; key: string; value: RowValue }): void;
  /** True when it shows at once; otherwise resolves when it does, or rejects when the collection is cleaned up. */
  commit(): true | Promise<void>;
  markReady(): void;
  markError(error?: unknown): void;
  truncate(): void;
}

/** How long rows may be held back by local writes. */
const LONGEST_HOLD_MS = 250;

/** Showing all rows again may take this part of the time at most. */
const RESHOW_SHARE = 1 / 20;

/**
 * Keeps a collection of TanStack DB as the table is; returns its end. The first state arrives in one commit, so that
 * nobody sees a row as pending that a later change of the same replay has completed.
 *
 * TanStack DB holds all rows of a collection back while a local write to it is being persisted, and for ever when
 * such writes overlap without a gap. So what was held for some time is shown by other means: everything is cleared
 * and written again in one commit, which is not held, and in which nothing is seen to go.
 */
export function syncTable(
  log: RowLog,
  table: RowTable,
  show: (row: { readonly value: RowValue; readonly order: number }) => RowValue,
  sink: SyncSink,
): () => void {
  let stop: (() => void) | undefined;
  let closed = false;
  let held = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = LONGEST_HOLD_MS;

  const commit = () => {
    const shown = sink.commit();
    if (shown === true) return;
    held++;
    timer ??= setTimeout(reshow, pauseMs);
    const over = () => {
      if (--held > 0) return;
      clearTimeout(timer);
      timer = undefined;
    };
    shown.then(over, over);
  };
  const reshow = () => {
    timer = undefined;
    if (closed || held === 0) return;
    const from = performance.now();
    writeAll(true);
    pauseMs = Math.max(LONGEST_HOLD_MS, (performance.now() - from) / RESHOW_SHARE);
  };
  const writeAll = (again: boolean) => {
    sink.begin();
    if (again) sink.truncate();
    for (const row of table.rows()) sink.write({ type: "insert", key: row.key, value: show(row) });
    commit();
  };
  const start = () => {
    if (closed) return;
    writeAll(false);
    sink.markReady();
    stop = table.subscribe(follow);
  };
  const follow = (changes: readonly AppliedChange[], reset: boolean) => {
    sink.begin();
    if (reset) sink.truncate();
    for (const change of changes) sink.write({ type: change.operation, key: change.key, value: show(change) });
    commit();
  };
  // Its own, where there is one: another table that cannot be read is no reason to show nothing of this one.
  (table.ready ?? log.ready).then(start, (error: unknown) => {
    if (!closed) sink.markError(error);
  });
  return () => {
    closed = true;
    clearTimeout(timer);
    stop?.();
  };
}
