import { PerdureError } from "../../base/error.ts";
import type { CheckpointContract } from "../contract.ts";
import { compareCursors, goesBack, sameSource } from "./checkpoint.ts";
import type { DurableStreamsWakeStream } from "./control.ts";

/** What is looked at of a stream of a wake. */
type WakeStream = Pick<DurableStreamsWakeStream, "path" | "acked_offset" | "tail_offset">;

/** How the server is told what was consumed. */
export interface Ack {
  readonly stream: string;
  readonly offset: string;
}

/**
 * When acks are sent. `with-done` (default): together with `done`, so that a run that dies or ends with work left is woken again,
 * whatever it checkpointed. `at-once`: with each checkpoint, which must be exact; a run that acked everything and then says "not
 * done" is not woken again.
 */
export type AckMode = "with-done" | "at-once";

/** The acks of one wake. */
export class AckLedger {
  readonly #streams: readonly WakeStream[];
  readonly #held = new Map<string, string>();

  constructor(streams: readonly WakeStream[]) {
    this.#streams = streams;
  }

  /** How far each stream goes. */
  tails(): CheckpointContract[] {
    return this.#streams.map(({ path, tail_offset }) => ({ source: path, cursor: tail_offset }));
  }

  /**
   * Takes checkpoints.
   * @throws PerdureError `bad_input` for a source that is no stream of this subscription, or a cursor behind its ack.
   */
  take(checkpoints: readonly CheckpointContract[]): Ack[] {
    const acks = checkpoints.map(({ source, cursor }): Ack => {
      const stream = this.#streams.find(({ path }) => sameSource(path, source));
      if (stream === undefined) {
        const known = this.#streams.map(({ path }) => `"${path}"`).join(", ");
        throw new PerdureError("bad_input", `"${source}" is not a stream of this subscription. It has: ${known}.`);
      }
      if (compareCursors(cursor, stream.acked_offset, source) < 0) throw goesBack(source, stream.acked_offset, cursor);
      return { stream: stream.path, offset: cursor };
    });
    for (const { stream, offset } of acks) this.#held.set(stream, offset);
    return acks;
  }

  /**
   * Acked with "done": the checkpoints, and for streams without one what the wake named. Streams read less far wait for another
   * wake.
   */
  final(): Ack[] {
    return this.#streams.map(({ path, tail_offset }) => ({
      stream: path,
      offset: this.#held.get(path) ?? tail_offset,
    }));
  }

  /** Whether an ack goes beyond where its stream was acked when this wake began. */
  hasMoved(acks: readonly Ack[]): boolean {
    return acks.some(({ stream, offset }) => {
      const acked = this.#streams.find(({ path }) => path === stream)?.acked_offset ?? "";
      return compareCursors(offset, acked, stream) > 0;
    });
  }
}

/** Wakes of one subscription in one lease that may end without any progress before the next one is put off. */
const QUICK_WAKES = 20;

/**
 * Stops a runner that makes no progress from being woken forever: after so many such wakes within one lease, a wake is kept until
 * its lease runs out.
 */
export class WakePace {
  readonly #ends = new Map<string, number[]>();

  /** Whether a wake that ends now is to be given back at once. */
  mayGiveBack(subscription: string, hasMoved: boolean, leaseMs: number): boolean {
    if (hasMoved) {
      this.#ends.delete(subscription);
      return true;
    }
    const now = performance.now();
    const recent = (this.#ends.get(subscription) ?? []).filter((end) => now - end < leaseMs);
    recent.push(now);
    this.#ends.set(subscription, recent);
    return recent.length <= QUICK_WAKES;
  }
}
