import type { Lane, LaneEvents } from "./lane.ts";

/** So many lanes exist at most, also when nearly all of them only wait. */
const MOST_LANES = 256;
/** A lane that has not started after so long never will. */
const START_MS = 30_000;
/** A lane does not live forever: whatever piles up in it goes with it. */
const RUNS_PER_LANE = 2_000;

interface PoolOptions {
  /** Lanes that compute at the same time. */
  readonly max: number;
  /** Lanes that stay ready. */
  readonly warm: number;
  /** Others end after so many milliseconds without work. */
  readonly idleMs: number;
  readonly open: (events: LaneEvents) => Lane;
}

/** A lane that was lent out. Goes back by {@link LanePool.release}. */
export interface LentLane {
  readonly lane: Lane;
  /** Set by who has borrowed it. */
  events: LaneEvents | undefined;
}

interface Kept extends LentLane {
  /** Resolves to why it never will be, if so. */
  readonly ready: Promise<string | undefined>;
  state: "idle" | "busy" | "resting" | "gone";
  runs: number;
  closing: NodeJS.Timeout | undefined;
}

interface Waiting {
  /** False when nobody waits any more. */
  readonly give: (lane: LentLane) => boolean;
  readonly fail: (reason: Error) => void;
}

/**
 * The lanes of one sandbox. Only lanes that compute count against `max`: a guest that waits for a tool which needs
 * a lane itself would otherwise wait for itself.
 */
export class LanePool {
  readonly #options: PoolOptions;
  readonly #lanes = new Set<Kept>();
  readonly #queue: Waiting[] = [];
  #disposed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** A lane that is ready. Rejects when there can be none any more, or the signal aborts. */
  async acquire(signal: AbortSignal | undefined): Promise<LentLane> {
    if (signal?.aborted === true) throw new Error("aborted");
    return new Promise<LentLane>((resolve, reject) => {
      let waits = true;
      const settle = (then: () => void): boolean => {
        if (!waits) return false;
        waits = false;
        signal?.removeEventListener("abort", onAbort);
        then();
        return true;
      };
      const onAbort = (): void => {
        const at = this.#queue.indexOf(waiting);
        if (at !== -1) this.#queue.splice(at, 1);
        settle(() => reject(new Error("aborted")));
      };
      const waiting: Waiting = {
        give: (lane) => settle(() => resolve(lane)),
        fail: (reason) => void settle(() => reject(reason)),
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queue.push(waiting);
      this.#serve();
    });
  }

  /** Whether a borrowed lane computes, or waits for the host. */
  setResting(lent: LentLane, resting: boolean): void {
    const kept = lent as Kept;
    if (kept.state === "gone" || kept.state === "idle") return;
    kept.state = resting ? "resting" : "busy";
    if (resting) this.#serve();
  }

  /** `replace` for a lane that is not to be used again. */
  release(lent: LentLane, fate: "reuse" | "replace"): void {
    const kept = lent as Kept;
    kept.events = undefined;
    if (kept.state === "gone") return;
    kept.runs += 1;
    if (fate === "replace" || kept.runs >= RUNS_PER_LANE || this.#disposed) {
      this.#drop(kept);
      this.#keepWarm();
    } else {
      this.#setIdle(kept);
    }
    this.#serve();
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    for (const waiting of this.#queue.splice(0)) waiting.fail(new Error("The sandbox was disposed of."));
    await Promise.all(
      [...this.#lanes].map(async (kept) => {
        const events = kept.events;
        clearTimeout(kept.closing);
        kept.state = "gone";
        kept.events = undefined;
        this.#lanes.delete(kept);
        events?.exited("The sandbox was disposed of.");
        // Whoever waits for the end must be able to see it.
        kept.lane.hold(true);
        await kept.lane.kill();
      }),
    );
  }

  #serve(): void {
    while (this.#queue.length > 0 && !this.#disposed) {
      const lane = this.#free();
      if (lane === undefined) return;
      lane.state = "busy";
      clearTimeout(lane.closing);
      lane.lane.hold(true);
      const waiting = this.#queue.shift();
      if (waiting !== undefined) void this.#lend(lane, waiting);
    }
    if (!this.#disposed) return;
    for (const waiting of this.#queue.splice(0)) waiting.fail(new Error("The sandbox was disposed of."));
  }

  async #lend(kept: Kept, waiting: Waiting): Promise<void> {
    const failure = await kept.ready;
    if (failure !== undefined) return waiting.fail(new Error(failure));
    if (waiting.give(kept)) return;
    this.#setIdle(kept);
    this.#serve();
  }

  #free(): Kept | undefined {
    let computing = 0;
    for (const kept of this.#lanes) {
      if (kept.state === "busy") computing += 1;
    }
    if (computing >= this.#options.max) return undefined;
    for (const kept of this.#lanes) if (kept.state === "idle") return kept;
    return this.#lanes.size < MOST_LANES ? this.#open() : undefined;
  }

  #open(): Kept {
    let settle: (failure: string | undefined) => void = () => undefined;
    const late = setTimeout(() => void kept.lane.kill(), START_MS).unref();
    const kept: Kept = {
      state: "idle",
      runs: 0,
      closing: undefined,
      events: undefined,
      ready: new Promise((resolve) => (settle = resolve)),
      lane: this.#options.open({
        message: (value) => {
          // The first thing that a lane says is that it is there.
          clearTimeout(late);
          settle(undefined);
          kept.events?.message(value);
        },
        exited: (reason) => {
          clearTimeout(late);
          settle(reason);
          this.#lanes.delete(kept);
          const wasGone = kept.state === "gone";
          kept.state = "gone";
          kept.events?.exited(reason);
          if (!wasGone) this.#serve();
        },
      }),
    };
    kept.lane.hold(false);
    this.#lanes.add(kept);
    return kept;
  }

  #setIdle(kept: Kept): void {
    kept.state = "idle";
    kept.lane.hold(false);
    const close = (): void => {
      const idle = [...this.#lanes].filter((one) => one.state === "idle").length;
      if (kept.state === "idle" && idle > this.#options.warm) this.#drop(kept);
    };
    kept.closing = setTimeout(close, this.#options.idleMs).unref();
  }

  #drop(kept: Kept): void {
    kept.events = undefined;
    kept.state = "gone";
    clearTimeout(kept.closing);
    this.#lanes.delete(kept);
    void kept.lane.kill();
  }

  #keepWarm(): void {
    if (this.#disposed) return;
    const idle = [...this.#lanes].filter((one) => one.state === "idle").length;
    if (idle < this.#options.warm && this.#lanes.size < MOST_LANES) this.#open();
  }
}
