import { linkSignals } from "../base/abort.ts";
import type { TimeoutConfiguration } from "ai";
import { PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";

/** Parts that a stream brings before the model has said anything, and meanwhile. */
export const SILENT: ReadonlySet<string> = new Set(["model-call-start", "model-call-response-metadata", "ping", "raw"]);

/** Bounds on the time of one model call. */
interface Deadline {
  /** Aborts with the turn, and when a bound is reached. */
  readonly signal: AbortSignal;
  /** Waits for the call to begin. Rejects when a bound is reached. */
  within<T>(work: Promise<T>): Promise<T>;
  /** The parts of its stream. Throws when a bound is reached. */
  each<T extends { readonly type: string }>(stream: AsyncIterable<T>): AsyncIterable<T>;
  /** The call is over: no bound holds any more. */
  end(): void;
}

/**
 * The bounds of one call: the whole of it, the time until it says something, and the time between two parts. What its
 * reader does with a part is not the model's time. Call `end` when the call is over, however it ended.
 */
export function deadline(clock: Clock, turn: AbortSignal, timeout: TimeoutConfiguration<never> | undefined): Deadline {
  const bounds = typeof timeout === "number" ? { stepMs: timeout } : (timeout ?? {});
  const { chunkMs } = bounds;
  const firstMs = bounds.firstChunkMs ?? chunkMs;
  const wholes = [bounds.stepMs, bounds.totalMs].filter((ms) => ms !== undefined);
  const wholeMs = wholes.length === 0 ? undefined : Math.min(...wholes);
  if (wholeMs === undefined && firstMs === undefined) return { signal: turn, within, each: (s) => s, end() {} };

  const own = new AbortController();
  let late: (error: PerdureError) => void = () => {};
  const unlink = linkSignals([turn], own);
  const watch = (ms: number | undefined, what: string): (() => void) =>
    ms === undefined
      ? () => {}
      : clock.after(ms, () => {
          const error = new PerdureError("timeout", `The model ${what} for ${ms} ms.`);
          own.abort(error);
          late(error);
        });
  const failing = new Promise<never>((_resolve, reject) => (late = reject));
  failing.catch(() => {});
  const endWhole = watch(wholeMs, "did not finish");
  let endNext = watch(firstMs, "said nothing");
  return {
    signal: own.signal,
    within: (work) => Promise.race([work, failing]),
    async *each(stream) {
      const parts = stream[Symbol.asyncIterator]();
      try {
        for (;;) {
          const next = await Promise.race([parts.next(), failing]);
          if (next.done === true) return;
          const said = !SILENT.has(next.value.type);
          if (said) endNext();
          yield next.value;
          if (said) endNext = watch(chunkMs, "said nothing");
        }
      } finally {
        endNext();
        // Not awaited: a stream that says nothing would not end either.
        parts.return?.().catch(() => {});
      }
    },
    end() {
      endWhole();
      endNext();
      unlink();
    },
  };
}

function within<T>(work: Promise<T>): Promise<T> {
  return work;
}
