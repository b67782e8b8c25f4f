import { PerdureError } from "../../base/error.ts";
import type { CheckpointContract } from "../contract.ts";
import type { RowLog } from "../log/row-log.ts";
import type { RowProducer } from "../../wire/row-frames.ts";
import { streamPath } from "./control.ts";
import { pause } from "../../base/time.ts";

/** Where a log stands that was not read yet. */
const BEFORE_FIRST = "-1";

/** Which of two cursors of a source is later: above 0 for `a`; 0 for neither, or unknown. Must not throw. */
export type CompareCursors = (a: string, b: string, source: string) => number;

const DIGITS = /^\d+$/;

/** The order of cursors where nobody says otherwise: numbers by their value, however they are padded, others as texts. */
export const compareCursors: CompareCursors = (a, b) => {
  if (DIGITS.test(a) && DIGITS.test(b)) {
    const [first, second] = [BigInt(a), BigInt(b)];
    return first < second ? -1 : first > second ? 1 : 0;
  }
  return a < b ? -1 : a > b ? 1 : 0;
};

/** Holds checkpoints to one direction. */
export class CheckpointGuard {
  readonly #latest = new Map<string, string>();
  readonly #compare: CompareCursors;

  constructor(compare: CompareCursors = compareCursors) {
    this.#compare = compare;
  }

  /**
   * The latest checkpoint of each source that has grown; cursors that stay where they were are left out.
   * @throws PerdureError `bad_input` when a cursor is before an earlier one of its source.
   */
  check(checkpoints: readonly CheckpointContract[]): CheckpointContract[] {
    const grown = new Map<string, string>();
    for (const { source, cursor } of checkpoints) {
      if (typeof source !== "string" || typeof cursor !== "string" || source === "" || cursor === "") {
        throw new PerdureError("bad_input", "A checkpoint needs a source and a cursor, both strings.");
      }
      const before = grown.get(source) ?? this.#latest.get(source);
      if (before !== undefined && this.#compare(cursor, before, source) < 0) throw goesBack(source, before, cursor);
      if (before !== cursor) grown.set(source, cursor);
    }
    return [...grown].map(([source, cursor]) => ({ source, cursor }));
  }

  /** Remembers what was sent. */
  keep(checkpoints: readonly CheckpointContract[]): void {
    for (const { source, cursor } of checkpoints) this.#latest.set(source, cursor);
  }
}

/** The error of a checkpoint that is before an earlier one of its source. */
export function goesBack(source: string, from: string, to: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The checkpoint of "${source}" would go back from "${from}" to "${to}". Checkpoints only move forward.`,
  );
}

/**
 * How far these logs were read, own writes included. A valid checkpoint only if nothing read is left to do: take it before the
 * look that finds no work, as `drainUntilIdle` does.
 */
export async function checkpointsOf(...logs: readonly RowLog[]): Promise<CheckpointContract[]> {
  return logs
    .filter((log) => log.position !== BEFORE_FIRST)
    .map((log) => ({ source: log.source, cursor: log.position }));
}

/**
 * The producer to stamp a session's writes with: once a later session writes under that name, earlier ones are `fenced`.
 * @throws PerdureError `bad_state` when the session's adapter gives no fence token that is a number.
 */
export function producerOf(name: string, session: { readonly fenceToken?: string }): RowProducer {
  const epoch = Number(session.fenceToken);
  if (session.fenceToken === undefined || !Number.isSafeInteger(epoch) || epoch < 0) {
    throw new PerdureError(
      "bad_state",
      `The session's fence token is not a number, so its adapter cannot fence the writer "${name}".`,
    );
  }
  return { id: name, epoch };
}

/** Whether a path of a transport and the name of a log mean the same source: `chat/1` and `http://…/v1/stream/chat/1`. */
export function sameSource(path: string, source: string): boolean {
  return path === source || streamPath(path) === streamPath(source);
}

const LOOK_MS = 5;
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Resolves when these logs have read what the session was woken for. A wake often outruns the log: without this, a runner may
 * find nothing to do, and be woken again for the same.
 * @throws PerdureError `timeout` when a log is not there in `timeoutMs` (default 10 s); the reason of the session's signal when
 *   that aborts.
 */
export async function catchUp(
  session: {
    readonly tails: readonly CheckpointContract[];
    readonly signal: AbortSignal;
    readonly compareCursors?: CompareCursors;
  },
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
