import { createRequire } from "node:module";
import { PerdureError } from "../../../../base/error.ts";
import { type LaneSize, ShellLane } from "./lane.ts";

/** A thread that has run this many scripts is replaced. */
const MAX_RUNS = 200;

interface Waiting {
  readonly size: LaneSize;
  give(lane: ShellLane): void;
}

/** Keeps shells warm: at most `workers` at a time, each given to one run, whoever comes later waits. */
export class ShellPool {
  readonly #workers: number;
  readonly #idleMs: number;
  readonly #lanes = new Set<ShellLane>();
  readonly #idle = new Map<ShellLane, ReturnType<typeof setTimeout>>();
  readonly #waiting: Waiting[] = [];
  #closed = false;

  constructor(workers: number, idleMs: number) {
    this.#workers = workers;
    this.#idleMs = idleMs;
  }

  /** @throws PerdureError `bad_state` when the pool is closed; the signal's reason when it aborts */
  async take(size: LaneSize, signal?: AbortSignal): Promise<ShellLane> {
    signal?.throwIfAborted();
    if (this.#closed) throw closed();
    const warm = [...this.#idle.keys()].find((lane) => sameSize(lane.size, size));
    if (warm !== undefined) return this.#wake(warm);
    if (this.#lanes.size < this.#workers) return this.#start(size);
    const [other] = this.#idle.keys();
    if (other !== undefined) {
      await this.#drop(other);
      return this.take(size, signal);
    }
    return new Promise((resolve, reject) => {
      const entry: Waiting = { size, give: resolve };
      const leave = (): void => {
        const at = this.#waiting.indexOf(entry);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        reject(signal?.reason instanceof Error ? signal.reason : closed());
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(entry);
    });
  }

  /** Takes a lane back, dead or alive. */
  async giveBack(lane: ShellLane): Promise<void> {
    if (lane.dead || lane.runs >= MAX_RUNS || this.#closed) await this.#drop(lane);
    const next = this.#closed ? undefined : this.#waiting.shift();
    if (next !== undefined) {
      const fits = this.#lanes.has(lane) && sameSize(lane.size, next.size);
      if (!fits) await this.#drop(lane);
      next.give(fits ? lane : this.#start(next.size));
      return;
    }
    if (!this.#lanes.has(lane)) return;
    lane.rest();
    const timer = setTimeout(() => void this.#drop(lane), this.#idleMs);
    timer.unref();
    this.#idle.set(lane, timer);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#lanes].map((lane) => this.#drop(lane)));
  }

  #start(size: LaneSize): ShellLane {
    const lane = new ShellLane(size);
    this.#lanes.add(lane);
    return lane;
  }

  #wake(lane: ShellLane): ShellLane {
    clearTimeout(this.#idle.get(lane));
    this.#idle.delete(lane);
    return lane;
  }

  async #drop(lane: ShellLane): Promise<void> {
    this.#wake(lane);
    this.#lanes.delete(lane);
    await lane.close();
  }
}

function sameSize(a: LaneSize, b: LaneSize): boolean {
  return a.memoryMB === b.memoryMB && a.pythonMemoryMB === b.pythonMemoryMB;
}

function closed(): PerdureError {
  return new PerdureError("bad_state", "This shell was disposed of.");
}

/** Whether a package can be imported from here. */
export function hasPackage(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}
