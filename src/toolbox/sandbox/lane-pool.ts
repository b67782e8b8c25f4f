/** Where one guest at a time runs. Nothing of it is believed: what it says is checked by whoever listens. */
export interface Lane<POST> {
  post(message: POST): void;
  /** At once and for good. */
  kill(): Promise<void>;
  /** Whether it keeps the process alive. */
  hold(held: boolean): void;
}

/** Who listens to a lane. `exited` comes once, last. */
export interface LaneEvents {
  message(value: unknown): void;
  /** @param spent it has used up what it was given of it */
  exited(reason: string, spent?: "memory"): void;
}

/** So many lanes exist at most, also when nearly all of them only wait. */
const MOST_LANES = 256;
/** A lane that has not started after so long never will. */
const START_MS = 30_000;
interface PoolOptions<POST, KIND> {
  /** Lanes that compute at the same time. */
  readonly max: number;
  /** Lanes that stay ready. */
  readonly warm: number;
  /** Others end after so many milliseconds without work. */
  readonly idleMs: number;
  /** A lane does not live forever: whatever piles up in it goes with it. */
  readonly runsPerLane: number;
  /** @param kind what {@link LanePool.acquire} was asked for */
  readonly open: (events: LaneEvents, kind: KIND) => Lane<POST>;
}

/** A lane that was lent out. Goes back by {@link LanePool.release}. */
export interface LentLane<POST> {
  readonly lane: Lane<POST>;
  /** Set by who has borrowed it. */
  events: LaneEvents | undefined;
}

interface Kept<POST, KIND> extends LentLane<POST> {
  readonly kind: KIND;
  /** Resolves to why it never will be, if so. */
  readonly ready: Promise<string | undefined>;
  state: "idle" | "busy" | "resting" | "gone";
  runs: number;
  closing: NodeJS.Timeout | undefined;
}

interface Waiting<POST, KIND> {
  readonly kind: KIND;
  /** False when nobody waits any more. */
  readonly give: (lane: LentLane<POST>) => boolean;
  readonly fail: (reason: Error) => void;
}

/**
 * One sandbox's lanes. Only those that compute count against `max`: a guest that waits for a tool which needs a lane would wait
 * for itself. Kinds are not interchangeable.
 */
export class LanePool<POST, KIND extends string | undefined = undefined> {
  readonly #options: PoolOptions<POST, KIND>;
  readonly #lanes = new Set<Kept<POST, KIND>>();
  readonly #queue: Waiting<POST, KIND>[] = [];
  #disposed = false;

  constructor(options: PoolOptions<POST, KIND>) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** A lane that is ready. Rejects when there can be none any more, or the signal aborts. */
  async acquire(signal: AbortSignal | undefined, kind: KIND): Promise<LentLane<POST>> {
    if (signal?.aborted === true) throw new Error("aborted");
    return new Promise<LentLane<POST>>((resolve, reject) => {
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
      const waiting: Waiting<POST, KIND> = {
        kind,
        give: (lane) => settle(() => resolve(lane)),
        fail: (reason) => void settle(() => reject(reason)),
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queue.push(waiting);
      this.#serve();
    });
  }

  /** Whether a borrowed lane computes, or waits for the host. */
  setResting(lent: LentLane<POST>, resting: boolean): void {
    const kept = lent as Kept<POST, KIND>;
    if (kept.state === "gone" || kept.state === "idle") return;
    kept.state = resting ? "resting" : "busy";
    if (resting) this.#serve();
  }

  /** `replace` for a lane that is not to be used again. */
  release(lent: LentLane<POST>, fate: "reuse" | "replace"): void {
    const kept = lent as Kept<POST, KIND>;
    kept.events = undefined;
    if (kept.state === "gone") return;
    kept.runs += 1;
    if (fate === "replace" || kept.runs >= this.#options.runsPerLane || this.#disposed) {
      this.#drop(kept);
      this.#keepWarm(kept.kind);
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
    for (let next = this.#queue[0]; next !== undefined && !this.#disposed; next = this.#queue[0]) {
      const lane = this.#free(next.kind);
      if (lane === undefined) return;
      lane.state = "busy";
      clearTimeout(lane.closing);
      lane.lane.hold(true);
      this.#queue.shift();
      void this.#lend(lane, next);
    }
    if (!this.#disposed) return;
    for (const waiting of this.#queue.splice(0)) waiting.fail(new Error("The sandbox was disposed of."));
  }

  async #lend(kept: Kept<POST, KIND>, waiting: Waiting<POST, KIND>): Promise<void> {
    const failure = await kept.ready;
    if (failure !== undefined) return waiting.fail(new Error(failure));
    if (waiting.give(kept)) return;
    this.#setIdle(kept);
    this.#serve();
  }

  #free(kind: KIND): Kept<POST, KIND> | undefined {
    const { max } = this.#options;
    const lanes = [...this.#lanes];
    if (lanes.filter(({ state }) => state === "busy").length >= max) return undefined;
    const idle = lanes.filter(({ state }) => state === "idle");
    const own = idle.find((kept) => kept.kind === kind);
    if (own !== undefined) return own;
    // One of another kind makes room.
    const [other] = idle;
    if (other !== undefined && lanes.length >= max) this.#drop(other);
    return this.#lanes.size < MOST_LANES ? this.#open(kind) : undefined;
  }

  #open(kind: KIND): Kept<POST, KIND> {
    let settle: (failure: string | undefined) => void = () => undefined;
    const late = setTimeout(() => void kept.lane.kill(), START_MS).unref();
    const kept: Kept<POST, KIND> = {
      kind,
      state: "idle",
      runs: 0,
      closing: undefined,
      events: undefined,
      ready: new Promise((resolve) => (settle = resolve)),
      lane: this.#options.open(
        {
          message: (value) => {
            // The first thing that a lane says is that it is there.
            clearTimeout(late);
            settle(undefined);
            kept.events?.message(value);
          },
          exited: (reason, spent) => {
            clearTimeout(late);
            settle(reason);
            this.#lanes.delete(kept);
            const wasGone = kept.state === "gone";
            kept.state = "gone";
            kept.events?.exited(reason, spent);
            if (!wasGone) this.#serve();
          },
        },
        kind,
      ),
    };
    kept.lane.hold(false);
    this.#lanes.add(kept);
    return kept;
  }

  #setIdle(kept: Kept<POST, KIND>): void {
    kept.state = "idle";
    kept.lane.hold(false);
    const close = (): void => {
      const idle = [...this.#lanes].filter((one) => one.state === "idle").length;
      if (kept.state === "idle" && idle > this.#options.warm) this.#drop(kept);
    };
    kept.closing = setTimeout(close, this.#options.idleMs).unref();
  }

  #drop(kept: Kept<POST, KIND>): void {
    kept.events = undefined;
    kept.state = "gone";
    clearTimeout(kept.closing);
    this.#lanes.delete(kept);
    void kept.lane.kill();
  }

  #keepWarm(kind: KIND): void {
    if (this.#disposed) return;
    const idle = [...this.#lanes].filter((one) => one.state === "idle").length;
    if (idle < this.#options.warm && this.#lanes.size < MOST_LANES) this.#open(kind);
  }
}
