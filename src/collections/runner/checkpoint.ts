import { PerdureError } from "../../error.ts";
import type { CheckpointContract } from "../contract.ts";
import type { RowLog, RowProducer } from "../log/row-log.ts";
import { streamPath } from "./control.ts";

/** Where a log stands that was not read yet. */
const BEFORE_FIRST = "-1";

/** Holds checkpoints to one direction. */
export class CheckpointGuard {
  private readonly latest = new Map<string, string>();

  /**
   * The latest checkpoint of each source that has grown; cursors that stay where they were are left out.
   * @throws PerdureError `bad_input` when a cursor sorts before an earlier one of its source.
   */
  check(checkpoints: readonly CheckpointContract[]): CheckpointContract[] {
    const grown = new Map<string, string>();
    for (const { source, cursor } of checkpoints) {
      if (typeof source !== "string" || typeof cursor !== "string" || source === "" || cursor === "") {
        throw new PerdureError("bad_input", "A checkpoint needs a source and a cursor, both of them texts.");
      }
      const before = grown.get(source) ?? this.latest.get(source);
      if (before !== undefined && cursor < before) {
        throw goesBack(source, before, cursor);
      }
      if (before !== cursor) grown.set(source, cursor);
    }
    return [...grown].map(([source, cursor]) => ({ source, cursor }));
  }

  /** Remembers what was sent. */
  keep(checkpoints: readonly CheckpointContract[]): void {
    for (const { source, cursor } of checkpoints) this.latest.set(source, cursor);
  }
}

/** The error of a checkpoint that sorts before an earlier one of its source. */
export function goesBack(source: string, from: string, to: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The checkpoint of "${source}" would go back from "${from}" to "${to}". Checkpoints only go on.`,
  );
}

/**
 * How far these logs were read, own writes included. As a checkpoint it is right only when nothing that was read is
 * left to be done: read it before the look for work that finds nothing. `drainUntilIdle` does.
 */
export async function checkpointsOf(...logs: readonly RowLog[]): Promise<CheckpointContract[]> {
  return logs
    .filter((log) => log.position !== BEFORE_FIRST)
    .map((log) => ({ source: log.source, cursor: log.position }));
}

/**
 * The writer that a session's writes are to be stamped with: once a later session has written under the same name,
 * the writes of an earlier one are refused with `fenced`.
 * @throws PerdureError `bad_state` when the session's adapter gives no fence token that is a number.
 */
export function producerOf(name: string, session: { readonly fenceToken?: string }): RowProducer {
  const epoch = Number(session.fenceToken);
  if (session.fenceToken === undefined || !Number.isSafeInteger(epoch) || epoch < 0) {
    throw new PerdureError(
      "bad_state",
      `The session has no fence token that is a number: its adapter cannot fence the writer "${name}".`,
    );
  }
  return { id: name, epoch };
}

/** Whether a path of a transport and the name of a log mean the same source: `chat/1` and `http://…/v1/stream/chat/1`. */
export function sameSource(path: string, source: string): boolean {
  return path === source || streamPath(path) === streamPath(source);
}
