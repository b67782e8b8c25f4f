import { PerdureError } from "../../base/error.ts";

/** A signal that aborts when the time is over, or when another does. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Must be called: a timer keeps the process alive. */
  clear(): void;
}

/** Aborts with a PerdureError `timeout` after `ms`, or with the reason of `outer`. */
export function createDeadline(ms: number, outer: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(
    () => controller.abort(new PerdureError("timeout", `The request took longer than ${ms} ms.`)),
    ms,
  );
  const follow = () => controller.abort(outer?.reason);
  if (outer?.aborted === true) follow();
  else outer?.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer?.removeEventListener("abort", follow);
    },
  };
}
