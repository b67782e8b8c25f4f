import { PerdureError } from "../../base/error.ts";
import type { RowLog } from "../log/row-log.ts";
import { compareCursors, sameSource } from "./checkpoint.ts";
import { pause } from "../timer.ts";
import type { RunnerSession } from "./lifecycle.ts";

const LOOK_MS = 5;
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Resolves when these logs have read what the session was woken for. A wake is often quicker than the log: without
 * this, a runner may find nothing to do, and be woken again for the same.
 * @throws PerdureError `timeout` when a log is not there in `timeoutMs` (default 10 s); the reason of the session's
 *   signal when that aborts.
 */
export async function catchUp(
  session: Pick<RunnerSession, "tails" | "signal"> & Partial<Pick<RunnerSession, "compareCursors">>,
  logs: readonly RowLog[],
  { timeoutMs = DEFAULT_TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  await Promise.all(logs.map((log) => log.ready));
  const began = performance.now();
  const compare = session.compareCursors ?? compareCursors;
  for (const log of logs) {
    const tail = session.tails.find(({ source }) => sameSource(source, log.source));
    while (tail !== undefined && compare(log.position, tail.cursor, log.source) < 0) {
      session.signal.throwIfAborted();
      if (performance.now() - began > timeoutMs) {
        throw new PerdureError("timeout", `"${log.source}" was not read up to "${tail.cursor}" in ${timeoutMs} ms.`);
      }
      await pause(LOOK_MS, session.signal);
    }
  }
}
