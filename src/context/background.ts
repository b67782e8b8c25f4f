import type { CompactionOutcome, Prepared } from "./compaction-job.ts";

type Result = Prepared | Extract<CompactionOutcome, { ok: false }>;

interface Work {
  readonly stop: AbortController;
  readonly done: Promise<void>;
  result: Result | undefined;
}

/** Summaries that are being made while turns go on, one for each session at most. In memory: a row says that it was begun. */
export class BackgroundWork {
  readonly #work = new Map<string, Work>();

  /** Begins one, unless there is one. @param make must not reject. */
  start(session: string, make: (signal: AbortSignal) => Promise<Result>): void {
    if (this.#work.has(session)) return;
    const stop = new AbortController();
    const work: Work = {
      stop,
      result: undefined,
      done: make(stop.signal).then((result) => void (work.result = result)),
    };
    this.#work.set(session, work);
  }

  /** Whether one is under way, or waits to be taken. */
  has(session: string): boolean {
    return this.#work.has(session);
  }

  /** Takes what is ready; undefined while it is not, or when it came to nothing. */
  take(session: string): Prepared | undefined {
    const result = this.#work.get(session)?.result;
    if (result === undefined) return undefined;
    this.#work.delete(session);
    return "seq" in result ? result : undefined;
  }

  /** Resolves when there is nothing under way for this session, or the signal aborts. */
  async wait(session: string, signal: AbortSignal): Promise<void> {
    const work = this.#work.get(session);
    if (work === undefined || signal.aborted) return;
    await Promise.race([
      work.done,
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    ]);
  }

  /** Stops what is under way for a session, or for all. */
  stop(session?: string): void {
    for (const [name, work] of this.#work) {
      if (session !== undefined && name !== session) continue;
      work.stop.abort(new Error("The conversation has gone another way."));
      this.#work.delete(name);
    }
  }
}
