// One run: a disk, one process after the other on it, and clients around them. A seed decides everything.
import { getCurrentAgent } from "perdure";
import { manualClock, type ManualClock } from "perdure/testing";
import type { AgentEvents, AgentEventType } from "../../src/base/event.ts";
import type { AgentHost } from "../../src/port.ts";
import { hashOf, type Random, random } from "../think/interleave-random.ts";
import { type Setup, setupOf } from "../think/interleave-setup.ts";
import { Disk } from "./disk.ts";
import { Faults } from "./faults.ts";
import { type Death, Machine } from "./machine.ts";
import { type ModelCall, Record, type ToolRun } from "./record.ts";

/** How often a process that ends this way does so by losing power. */
const POWER = 0.5;
const LONGEST_DOWN_MS = 5_000;

export class World {
  readonly seed: number;
  readonly setup: Setup;
  readonly chance: Random;
  readonly time: ManualClock = manualClock();
  readonly disk = new Disk();
  readonly faults: Faults;
  readonly record = new Record();
  readonly asked = new Map<number, number>();
  /** Who notices when the host is gone. */
  readonly lines = new Set<{ hostDied(): void }>();
  readonly #traced: string[] = [];
  readonly #echo: ((line: string) => void) | undefined;
  /** What the wall clock is off by, and the most that it was. */
  #skew = 0;
  #highestSkew = 0;
  /** From now on models answer in a few words. */
  calm = false;
  machine: Machine | undefined;
  /** How often the power was lost: what was only committed may have gone with it. */
  powerLosses = 0;
  #machines = 0;
  /** A port is made anew for each life of an agent. */
  readonly #lives = new WeakMap<AgentHost, number>();
  #lastLife = 0;

  constructor(seed: number, echo?: (line: string) => void) {
    this.seed = seed;
    this.#echo = echo;
    this.setup = setupOf(seed);
    this.chance = random(hashOf(`world ${seed}`));
    this.faults = new Faults(seed);
    this.boot();
  }

  now(): number {
    return this.time.now() + this.#skew;
  }

  get skew(): number {
    return this.#skew;
  }

  get highestSkew(): number {
    return this.#highestSkew;
  }

  /** The wall clock jumps. */
  jump(ms: number): void {
    this.#skew += ms;
    this.#highestSkew = Math.max(this.#highestSkew, this.#skew);
    this.trace(`the wall clock jumps: it is off by ${this.#skew} ms`);
  }

  get traced(): readonly string[] {
    return this.#traced;
  }

  trace(text: string): void {
    const line = `${((this.time.now() - START) / 1000).toFixed(3).padStart(9)} ${text}`;
    this.#traced.push(line);
    this.#echo?.(line);
  }

  /** Another process takes over. */
  boot(): void {
    if (this.machine !== undefined) return;
    this.disk.settleAll();
    const machine = new Machine(this, ++this.#machines, this.chance.chance(POWER));
    this.machine = machine;
    this.trace(`process ${machine.number} starts${machine.powerMayFail ? " on weak power" : ""}`);
    machine.start();
  }

  /** The process ends, whatever it is doing. */
  die(death: Exclude<Death, "stopped"> | Death): void {
    const { machine } = this;
    if (machine === undefined) return;
    this.machine = undefined;
    machine.end();
    const power = death === "power" && machine.powerMayFail;
    this.trace(`process ${machine.number} ${power ? "loses power" : "is killed"}`);
    if (power) this.disk.powerFailed(this.chance);
    else this.disk.processDied();
    if (power) this.powerLosses++;
    this.#bootLater();
  }

  /** The process is stopped in order. */
  async stop(): Promise<void> {
    const { machine } = this;
    if (machine === undefined) return;
    this.trace(`process ${machine.number} stops`);
    await machine.runtime.stop(0);
    if (this.machine !== machine) return;
    this.machine = undefined;
    machine.end();
    this.disk.processDied();
    this.#bootLater();
  }

  event<T extends AgentEventType>(id: string, type: T, payload: AgentEvents[T]): void {
    this.trace(`event ${id} ${type} ${JSON.stringify(payload)}`);
  }

  // What models, tools and callbacks tell.

  called(machine: Machine, host: AgentHost, prompt: readonly string[]): ModelCall {
    if (!machine.alive) throw new Error("This process is dead.");
    const running = host.sql<{ id: string; session: string }>(
      "SELECT id, session FROM perdure_turn WHERE status = 'running'",
    );
    const turn = getCurrentAgent().turn ?? running[0]?.id ?? "";
    for (const [session, turns] of Map.groupBy(running, (row) => row.session))
      if (turns.length > 1) this.record.breaks(`${host.id}: ${turns.length} turns of ${session} run at a time`);
    const order = this.record.next();
    const { number } = machine;
    const call = { order, agent: host.id, machine: number, life: this.#lifeOf(host), turn, prompt, spent: 0 };
    this.record.calls.push(call);
    this.trace(`${host.id} calls its model for ${turn} (${prompt.length} messages)`);
    return call;
  }

  ran(machine: Machine, host: AgentHost, tool: string, toolCallId: string, key: string): ToolRun {
    if (!machine.alive) throw new Error("This process is dead.");
    const order = this.record.next();
    const run = {
      order,
      agent: host.id,
      machine: machine.number,
      life: this.#lifeOf(host),
      tool,
      toolCallId,
      key,
      finished: false,
    };
    this.record.runs.push(run);
    this.trace(`${host.id} runs ${tool} for ${key === "" ? toolCallId : key}`);
    return run;
  }

  outside(machine: Machine, kind: string, key: string): void {
    if (!machine.alive) return;
    this.record.outside.push({ machine: machine.number, kind, key });
    this.trace(`done outside: ${kind} ${key}`);
  }

  #lifeOf(host: AgentHost): number {
    const life = this.#lives.get(host) ?? ++this.#lastLife;
    this.#lives.set(host, life);
    return life;
  }

  #bootLater(): void {
    const lines = [...this.lines];
    this.lines.clear();
    for (const line of lines) line.hostDied();
    const down = this.faults.over || this.chance.chance(0.5) ? 0 : this.chance.int(LONGEST_DOWN_MS);
    this.time.after(down, () => this.boot());
  }
}

const START = Date.UTC(2025, 0, 1);
