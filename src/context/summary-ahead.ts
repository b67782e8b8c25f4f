import { unlessAborted } from "../base/abort.ts";
import { type CompactionOutcome, OTHER_WAY, type Prepared } from "./compaction-job.ts";

type Result = Prepared | Extract<CompactionOutcome, { ok: false }>;

interface Work {
  readonly stop: AbortController;
  readonly done: Promise<void>;
  result: Result | undefined;
}

/** Who looks after the work. None of them may throw. */
export interface BackgroundOwner {
  /** Keeps the agent in memory until it is done. */
  keepAwake(work: Promise<void>): void;
  /** A summary waits to be taken. */
  ready(session: string): void;
  /** It could not even be written down that one came to nothing. */
  failed(error: unknown): void;
}

/** Summaries made while turns go on, at most one per session. In memory only (a row says it began); failures are handled here. */
export class BackgroundWork {
  readonly #work = new Map<string, Work>();
  readonly #owner: BackgroundOwner;
  #closed = false;

  /** The agent is about to stop, or has. */
  get closed(): boolean {
    return this.#closed;
  }

  constructor(owner: BackgroundOwner) {
    this.#owner = owner;
  }

  /** Whether one may be begun for a session: none is under way, and the agent is not about to stop. */
  isFree(session: string): boolean {
    return !this.#closed && !this.#work.has(session);
  }

  /** Begins one, if that may be. */
  start(session: string, make: (signal: AbortSignal) => Promise<Result>): void {
    if (!this.isFree(session)) return;
    const stop = new AbortController();
    const work: Work = { stop, result: undefined, done: this.#see(session, stop.signal, make) };
    this.#work.set(session, work);
    this.#owner.keepAwake(work.done);
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
    await unlessAborted(() => work.done, signal);
  }

  /** The conversation has gone another way: stops what is under way for a session. */
  stop(session: string): void {
    const work = this.#work.get(session);
    this.#work.delete(session);
    work?.stop.abort(new Error(OTHER_WAY));
  }

  /** The agent is about to stop, or has: what is under way is stopped, and nothing more is begun. */
  close(): void {
    this.#closed = true;
    const all = [...this.#work.values()];
    this.#work.clear();
    for (const { stop } of all) stop.abort(new Error("The agent was stopped."));
  }

  /** Never rejects. */
  async #see(session: string, signal: AbortSignal, make: (signal: AbortSignal) => Promise<Result>): Promise<void> {
    let result: Result;
    try {
      result = await make(signal);
    } catch (thrown) {
      // The rows of a life that is over cannot be written: the next one closes them.
      if (!signal.aborted) this.#owner.failed(thrown);
      result = { ok: false, error: "It could not be written down.", tried: false };
    }
    const work = this.#work.get(session);
    if (work?.stop.signal !== signal) return;
    work.result = result;
    if ("seq" in result) this.#owner.ready(session);
    else this.#work.delete(session);
  }
}
