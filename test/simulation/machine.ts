// One process of the host: it lives from its start until it is killed, loses power or is stopped.
import { asyncContext } from "../../src/host/node/async-context.ts";
import { Registry } from "../../src/host/registry.ts";
import { Router } from "../../src/host/route.ts";
import { Residents } from "../../src/host/residents.ts";
import type { Clock } from "../../src/base/time.ts";
import { agents, children } from "./agents.ts";
import { type DiskLuck, syncError } from "./disk.ts";
import type { World } from "./world.ts";

/** How a process ends. */
export type Death = "killed" | "power" | "stopped";

const MAX_BODY = 1_000_000;
/** How long agents stay in memory: mostly they do, at times they hardly do. */
const IDLE_MS = [60_000, 60_000, 5_000, 300] as const;

export class Machine implements DiskLuck {
  readonly world: World;
  readonly number: number;
  readonly runtime: Residents;
  readonly router: Router;
  /** Stops with the process: a timer of the dead never rings. */
  readonly clock: Clock;
  readonly powerMayFail: boolean;
  /** How often the power was lost before it. */
  readonly epoch: number;
  alive = true;
  /** After so many commits from now it dies like this. */
  fate: { commits: number; readonly death: Death } | undefined;
  readonly #timers = new Map<() => void, () => void>();

  constructor(world: World, number: number, powerMayFail: boolean) {
    this.world = world;
    this.number = number;
    this.powerMayFail = powerMayFail;
    this.epoch = world.powerLosses;
    this.clock = { now: () => world.now(), after: (ms, work) => this.#after(ms, work) };
    const registry = new Registry(agents, children);
    this.runtime = new Residents({
      registry,
      storage: world.disk.mount(this),
      clock: this.clock,
      context: asyncContext,
      breathe: () => new Promise((resolve) => void setImmediate(resolve)),
      publish: (_path, id, type, payload) => {
        if (this.alive) world.event(id, type, payload);
      },
      env: { machine: this },
      log: ({ agent, stage, error }) => {
        if (this.alive)
          world.trace(`log ${agent}: ${stage} failed: ${error instanceof Error ? error.message : String(error)}`);
      },
      idleMs: world.chance.pick(IDLE_MS),
      maxLive: 100,
    });
    this.router = new Router(this.runtime, registry, {
      admits: () => "yes",
      answersTo: () => true,
      maxBodyBytes: MAX_BODY,
    });
  }

  start(): void {
    this.runtime.start();
  }

  /** What waits for a time: of the host, its agents, their models and tools. */
  get timers(): string[] {
    return [...this.#timers.values()].map((work) => work.toString().replaceAll(/\s+/g, " "));
  }

  /** From now on nothing of it reaches the world. */
  end(): void {
    this.alive = false;
    for (const cancel of this.#timers.keys()) cancel();
    this.#timers.clear();
  }

  // What the disk does to it.

  async synced(): Promise<void> {
    const { world } = this;
    if (!this.alive) return new Promise(() => undefined);
    const { fails, ms } = world.faults.sync();
    if (ms > 0) await new Promise<void>((resolve) => void this.#after(ms, resolve));
    if (!this.alive) return new Promise(() => undefined);
    if (!fails) return;
    world.trace("a sync fails");
    throw syncError();
  }

  refused(): "full" | "undone" | undefined {
    if (!this.alive) return undefined;
    const refused = this.world.faults.write();
    if (refused !== undefined) this.world.record.refused++;
    if (refused !== undefined) this.world.trace(`the disk is full (${refused})`);
    return refused;
  }

  committed(agentId: string): void {
    if (!this.alive || this.fate === undefined || --this.fate.commits > 0) return;
    this.world.trace(`at a commit of ${agentId === "" ? "the index" : agentId}:`);
    this.world.die(this.fate.death);
  }

  #after(ms: number, work: () => void): () => void {
    if (!this.alive) return () => undefined;
    const cancel = this.world.time.after(ms, () => {
      this.#timers.delete(stop);
      if (this.alive) work();
    });
    const stop = () => {
      this.#timers.delete(stop);
      cancel();
    };
    this.#timers.set(stop, work);
    return stop;
  }
}
