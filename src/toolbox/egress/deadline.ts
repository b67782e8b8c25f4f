import { linkSignals } from "../../base/abort.ts";
import { startTimer } from "../../base/time.ts";
import { PerdureError } from "../../base/error.ts";

/** A signal that aborts when the time is over, or when another does. */
interface Deadline {
  readonly signal: AbortSignal;
  /** Must be called: a timer keeps the process alive. */
  clear(): void;
}

/** Aborts with a PerdureError `timeout` after `ms`, or with the reason of `outer`. */
export function createDeadline(ms: number, outer: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  const late = () => controller.abort(new PerdureError("timeout", `The request took longer than ${ms} ms.`));
  const cancel = startTimer(ms, late);
  const unlink = linkSignals([outer], controller);
  return {
    signal: controller.signal,
    clear() {
      cancel();
      unlink();
    },
  };
}
