// One agent on a host in this process: a real runtime, real SQLite in memory, time and power in the hands of the run.
import { Think, type TurnConfig } from "perdure";
import { memoryStorage } from "perdure/node";
import { manualClock, type ManualClock } from "perdure/testing";
import type { LanguageModel, ToolSet } from "ai";
import { parts } from "../../src/parts/part.ts";
import { PerdureError } from "../../src/base/error.ts";
import type { Resident } from "../../src/host/resident.ts";
import { asyncContext } from "../../src/host/node/async-context.ts";
import { Registry } from "../../src/host/registry.ts";
import { Residents } from "../../src/host/residents.ts";
import type { AgentStore, Storage } from "../../src/host/storage.ts";
import type { Clock } from "../../src/base/time.ts";
import type { AgentHost, AgentPath, Blobs, SqlRow, SqlValue, WriteLevel } from "../../src/port.ts";
import type { Conversations } from "../../src/turn/engine/conversations.ts";
import { Client } from "./interleave-client.ts";
import { makeModel, type ModelWorld } from "./interleave-model.ts";
import { type ModelCall, Record, type ToolRun } from "./interleave-record.ts";
import type { Setup } from "./interleave-setup.ts";
import { makeTools, type ToolWorld } from "./interleave-tools.ts";

export const IDLE_MS = 2_000;
const CLASS = "Talk";
const RUNS_PER_DATABASE = 8;

/** One process: when its power is off, nothing of it reaches the world any more. */
export class Power {
  on = true;
  /** After so many commits it goes off. */
  commits = Number.POSITIVE_INFINITY;
  /** The transaction with this number from now is undone. */
  undone = Number.POSITIVE_INFINITY;

  /** At the end of each transaction. */
  tried<T>(value: T): T {
    if (--this.undone === 0) throw new PerdureError("sql_failed", "The disk is full.");
    return value;
  }

  committed(): void {
    if (--this.commits <= 0) this.on = false;
  }

  check(): void {
    if (!this.on) throw new PerdureError("agent_gone", "The power is off.");
  }
}

const worlds = new Map<string, World>();
const shared = memoryStorage({ onCommit: (id) => worlds.get(id)?.power.committed() });

class Talk extends Think {
  override workspaceTools = false as const;
  // What the model reads is compared from request to request: a summary would be another conversation.
  override contextOverflow = false as const;
  readonly #world: World;

  constructor(host: AgentHost) {
    super(host);
    const world = worlds.get(host.id);
    if (world === undefined) throw new Error(`There is no run for ${host.id}.`);
    this.#world = world;
    const { setup } = world;
    this.messageConcurrency = setup.policy;
    this.budgets = setup.budgets;
    this.maxSteps = setup.maxSteps;
    this.chatStreamStallTimeoutMs = setup.stallMs;
    this.approvalTimeoutMs = setup.approvalMs;
    if (setup.maxOutputTokens !== undefined) this.beforeTurn = (): TurnConfig => ({ ...limitOf(setup) });
    world.agent = this;
  }

  override getModel(): LanguageModel[] {
    return this.#world.models;
  }

  override getSystemPrompt(): string {
    return "Help.";
  }

  override getTools(): ToolSet {
    return this.#world.tools;
  }

  override onError(error: unknown): void {
    this.#world.failed(error);
  }

  ping(): string {
    return "pong";
  }
}

function limitOf({ maxOutputTokens }: Setup): TurnConfig {
  return maxOutputTokens === undefined ? {} : { maxOutputTokens };
}

export class World implements ModelWorld, ToolWorld {
  readonly seed: number;
  readonly setup: Setup;
  readonly record = new Record();
  readonly clients = [new Client("ann"), new Client("bob")] as const;
  readonly clock: ManualClock = manualClock();
  readonly asked = new Map<number, number>();
  readonly id: string;
  readonly #path: AgentPath;
  calm = false;
  life = 0;
  power = new Power();
  agent: Talk | undefined;
  models: LanguageModel[] = [];
  tools: ToolSet = {};
  #runtime: Residents;

  constructor(seed: number, setup: Setup) {
    this.seed = seed;
    this.setup = setup;
    this.#path = [{ className: CLASS, name: "one" }];
    this.#runtime = this.#open();
    this.id = this.cell.id;
  }

  get cell(): Resident {
    return this.#runtime.resident(this.#path);
  }

  /** The agent in memory. Only after {@link World.wake}. */
  get host(): AgentHost {
    if (this.agent === undefined) throw new Error("The agent is not awake.");
    return this.agent[parts].host;
  }

  get chat(): Conversations {
    if (this.agent === undefined) throw new Error("The agent is not awake.");
    return this.agent[parts].chat.chat;
  }

  rows<T = SqlRow>(query: string, ...args: (string | number)[]): T[] {
    return this.host.sql<T>(query, ...args);
  }

  async wake(): Promise<void> {
    await this.call("ping");
  }

  /** Calls a method as server code does. Undefined when the power went off meanwhile. */
  async call<T>(method: keyof Talk & string, ...args: unknown[]): Promise<T | undefined> {
    const { power } = this;
    try {
      const result = await this.#runtime.call(this.#path, method, args);
      return power.on ? (result as T) : undefined;
    } catch (thrown) {
      if (!power.on) return undefined;
      throw thrown;
    }
  }

  /** The process dies, if it has not yet, and another one takes over. */
  async restart(how: "crash" | "stop" = "crash"): Promise<void> {
    if (this.power.on && how === "stop") await this.#runtime.stop(0);
    this.power.on = false;
    for (const client of this.clients) client.lost();
    if (!this.#runtime.stopping) this.cell.end(new PerdureError("agent_gone", "The power is off."));
    await settle();
    this.power = new Power();
    this.#runtime = this.#open();
    await settle();
  }

  /** Forgets everything. The next run gets the same database, empty, most of the time: a new one is slow to open. */
  async close(): Promise<void> {
    this.power.on = false;
    this.cell.end(new PerdureError("agent_gone", "The run is over."));
    await settle();
    worlds.delete(this.id);
    const store = shared.open(this.id, { refusal: () => undefined, mark: () => 0, rolledBack() {}, committed() {} });
    shared.index.settle(this.id, null);
    if (this.seed % RUNS_PER_DATABASE !== 0) return store.tx(() => empty(store));
    await store.release();
    shared.index.doom([this.id]);
    await shared.remove(this.id);
  }

  // What the model and the tools see.

  called(prompt: readonly string[]): ModelCall {
    this.power.check();
    const turn = this.chat.running?.row.id;
    if (turn === undefined) throw new Error("A model was called, but no turn runs.");
    const call = { order: this.record.next(), life: this.life, turn, prompt, spent: 0 };
    this.record.calls.push(call);
    return call;
  }

  ran(tool: string, toolCallId: string, key: string): ToolRun {
    this.power.check();
    const run: ToolRun = { order: this.record.next(), life: this.life, tool, toolCallId, key, finished: false };
    this.record.runs.push(run);
    return run;
  }

  failed(error: unknown): void {
    if (this.power.on) this.record.errors.push(error);
  }

  #open(): Residents {
    const { power } = this;
    this.life++;
    this.agent = undefined;
    const clock = mortal(this.clock, power);
    this.models = ["a", "b"].slice(0, this.setup.models).map((id) => makeModel(this, clock, id));
    this.tools = makeTools(this, clock);
    const runtime = new Residents({
      registry: new Registry({ [CLASS]: Talk }, {}),
      storage: powered(shared, power),
      clock,
      context: asyncContext,
      breathe: settle,
      publish: () => {},
      env: {},
      log: () => {},
      idleMs: IDLE_MS,
      maxLive: 10,
    });
    worlds.set(runtime.resident(this.#path).id, this);
    runtime.start();
    return runtime;
  }
}

/** Deletes all rows. */
export function empty(store: AgentStore): void {
  const tables = store.sql<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'perdure_%' AND name <> 'perdure_migration'",
  );
  for (const { name } of tables) store.sql(`DELETE FROM ${name}`);
  store.sql("DELETE FROM sqlite_sequence");
}

/** Lets all promises that are ready settle. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Timers of a process die with it. */
export function mortal(clock: Clock, power: Power): Clock {
  return {
    now: () => clock.now(),
    after: (ms, work) =>
      clock.after(ms, () => {
        if (power.on) work();
      }),
  };
}

/** A storage that nothing is written to once the power is off. What was committed is there. */
export function powered(storage: Storage, power: Power): Storage {
  const { index } = storage;
  return {
    index: {
      awake: () => index.awake(),
      due: (now, limit) => index.due(now, limit),
      nextDue: () => index.nextDue(),
      has: (id) => index.has(id),
      list: (after, limit) => index.list(after, limit),
      tree: (id) => index.tree(id),
      wake: (id) => (power.on ? index.wake(id) : undefined),
      settle: (id, at) => (power.on ? index.settle(id, at) : undefined),
      doom: (ids, lost) => index.doom(ids, lost),
      doomed: () => index.doomed(),
      isDoomed: (id) => index.isDoomed(id),
      lost: (parent) => index.lost(parent),
      told: (child) => index.told(child),
    },
    open: (id, listener) => new PoweredStore(storage.open(id, listener), power),
    remove: (id) => storage.remove(id),
    durable: () => storage.durable(),
    close: () => storage.close(),
  };
}

class PoweredStore implements AgentStore {
  readonly #store: AgentStore;
  readonly #power: Power;

  constructor(store: AgentStore, power: Power) {
    this.#store = store;
    this.#power = power;
  }

  get inTransaction(): boolean {
    return this.#store.inTransaction;
  }

  get needed(): number {
    return this.#store.needed;
  }

  get synced(): number {
    return this.#store.synced;
  }

  get blobs(): Blobs {
    return this.#store.blobs;
  }

  get blank(): boolean {
    return this.#store.blank;
  }

  get wrote(): boolean {
    return this.#store.wrote;
  }

  sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[] {
    this.#power.check();
    return this.#store.sql<T>(query, ...args);
  }

  tx<T>(work: () => T, level?: WriteLevel): T {
    this.#power.check();
    return this.#store.tx(() => this.#power.tried(work()), level);
  }

  async durable(): Promise<void> {
    this.#power.check();
    await this.#store.durable();
  }

  /** The next life opens its own view of the same rows; the connection below is kept, because opening one is slow. */
  release(): Promise<void> {
    return Promise.resolve();
  }
}
