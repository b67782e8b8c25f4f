// One agent with many sessions on a host in this process: real SQLite in memory, time and power in the hands of the run.
import { jsonSchema, type LanguageModel, tool, type ToolSet } from "ai";
import { Think, getCurrentAgent } from "perdure";
import { memoryStorage } from "perdure/node";
import { manualClock, type ManualClock, scriptedModel, type ScriptedCall, type ScriptedReply } from "perdure/testing";
import { parts } from "../../src/parts/part.ts";
import { PerdureError } from "../../src/base/error.ts";
import type { Resident } from "../../src/host/resident.ts";
import { asyncContext } from "../../src/host/node/async-context.ts";
import { Registry } from "../../src/host/registry.ts";
import { Residents } from "../../src/host/residents.ts";
import type { AgentHost, AgentPath, SqlRow } from "../../src/port.ts";
import type { Conversations } from "../../src/turn/engine/conversations.ts";
import { type Random, seeded } from "../support/seeded.ts";
import { empty, mortal, Power, powered, settle } from "../think/interleave-world.ts";
import { Client } from "./branches-client.ts";

const CLASS = "Talk";
const IDLE_MS = 2_000;
const RUNS_PER_DATABASE = 50;

const worlds = new Map<string, World>();
const shared = memoryStorage({ onCommit: (id) => worlds.get(id)?.power.committed() });

/** What is chosen once for a run. */
export interface Setup {
  readonly policy: "queue" | "steer";
  readonly maxMessages: number | undefined;
  /** The longest wait before a piece of a stream. */
  readonly paceMs: number;
  /** How many of the answers ask for something first, in percent. */
  readonly eager: number;
  /** The ids of tool calls are counted from zero in each answer, as some providers do. */
  readonly counted: boolean;
  readonly approvalMs: number;
}

/** A request that reached the model. */
export interface ModelCall {
  readonly turn: string;
  readonly session: string;
  readonly prompt: ScriptedCall["prompt"];
}

class Talk extends Think {
  override workspaceTools = false as const;
  override contextOverflow = false as const;
  override titles = false;
  readonly #world: World;

  constructor(host: AgentHost) {
    super(host);
    const world = worlds.get(host.id);
    if (world === undefined) throw new Error(`There is no run for ${host.id}.`);
    this.#world = world;
    this.messageConcurrency = world.setup.policy;
    this.maxPersistedMessages = world.setup.maxMessages;
    this.approvalTimeoutMs = world.setup.approvalMs;
    world.agent = this;
  }

  override getModel(): LanguageModel {
    return this.#world.model;
  }

  override getSystemPrompt(): string {
    return "Help.";
  }

  override getTools(): ToolSet {
    const inputSchema = jsonSchema<object>({ type: "object" });
    return {
      look: tool({ description: "Looks.", inputSchema, execute: async () => "seen" }),
      pay: tool({ description: "Pays.", inputSchema, needsApproval: true, execute: async () => "paid" }),
    };
  }

  override onError(error: unknown): void {
    if (this.#world.power.on) this.#world.errors.push(error);
  }

  ping(): string {
    return "pong";
  }

  openView(session: string, at?: string): string {
    return this.sessions.openView(session, at);
  }

  closeView(session: string): boolean {
    return this.sessions.closeView(session);
  }

  clearSession(session: string): void {
    this.sessions.clear(session);
  }
}

export class World {
  readonly seed: number;
  readonly setup: Setup;
  readonly chance: Random;
  readonly clients = [new Client("ann", true), new Client("bob", false), new Client("cat", true)] as const;
  readonly clock: ManualClock = manualClock();
  readonly errors: unknown[] = [];
  readonly id: string;
  readonly #path: AgentPath = [{ className: CLASS, name: "one" }];
  /** From now on answers are short and ask for nothing. */
  calm = false;
  power = new Power();
  agent: Talk | undefined;
  model: LanguageModel;
  called: (call: ModelCall) => void = () => {};
  #runtime: Residents;

  constructor(seed: number, setup?: Partial<Setup>) {
    this.seed = seed;
    this.chance = seeded(seed);
    this.setup = { ...setupOf(seed, seeded(seed + 1_000_003)), ...setup };
    this.model = this.#model();
    this.#runtime = this.#open();
    this.id = this.cell.id;
  }

  get cell(): Resident {
    return this.#runtime.resident(this.#path);
  }

  get chat(): Conversations {
    if (this.agent === undefined) throw new Error("The agent is not awake.");
    return this.agent[parts].chat.chat;
  }

  rows<T = SqlRow>(query: string, ...args: (string | number)[]): T[] {
    if (this.agent === undefined) throw new Error("The agent is not awake.");
    return this.agent[parts].host.sql<T>(query, ...args);
  }

  async wake(): Promise<void> {
    await this.call("ping");
  }

  /** Calls a method as server code does. @returns undefined when the power went off meanwhile; what it threw. */
  async call(method: keyof Talk & string, ...args: unknown[]): Promise<unknown> {
    const { power } = this;
    try {
      const result = await this.#runtime.call(this.#path, method, args);
      return power.on ? result : undefined;
    } catch (thrown) {
      if (!power.on || PerdureError.is(thrown)) return thrown;
      throw thrown;
    }
  }

  connect(client: Client): void {
    const { power } = this;
    client.connect(this.cell, () => power.on);
  }

  /** The process dies, if it has not yet, and another one takes over; clients come back. */
  async restart(how: "crash" | "stop" = "crash"): Promise<void> {
    const here = this.clients.filter((client) => client.connected);
    if (this.power.on && how === "stop") await this.#runtime.stop(0);
    this.power.on = false;
    for (const client of this.clients) client.lost();
    if (!this.#runtime.stopping) this.cell.end(new PerdureError("agent_gone", "The power is off."));
    await settle();
    this.power = new Power();
    this.#runtime = this.#open();
    await settle();
    for (const client of here) this.connect(client);
    await settle();
  }

  /** Forgets everything; the next run gets the same database, empty: a new one is slow to open. */
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

  #open(): Residents {
    const { power } = this;
    this.agent = undefined;
    const clock = mortal(this.clock, power);
    this.model = this.#model(clock);
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

  #model(clock = mortal(this.clock, this.power)): LanguageModel {
    const { power } = this;
    return scriptedModel((call) => this.#answer(call, power), { clock });
  }

  #answer(call: ScriptedCall, power: Power): ScriptedReply {
    power.check();
    const { turn } = getCurrentAgent();
    const [row] = this.rows<{ id: string; session: string }>(
      `SELECT id, session FROM perdure_turn WHERE id = '${turn}'`,
    );
    if (row === undefined) throw new Error("A model was called, but no turn runs.");
    this.called({ turn: row.id, session: row.session, prompt: call.prompt });
    const { paceMs, eager, counted } = this.setup;
    const chance = seeded(hashOf(`${this.seed} ${row.id} ${call.step}`));
    const asks = !this.calm && call.step < 2 && chance(100) < eager;
    const id = counted ? "call_0" : `call_${row.id}_${call.step}`;
    const text = Array.from({ length: 1 + chance(4) }, (_, i) => `${i === 0 ? `[a:${row.id}]` : "word"} `);
    return {
      text,
      ...(asks && { toolCalls: [{ toolName: chance(3) === 0 ? "look" : "pay", toolCallId: id, input: {} }] }),
      delayMs: paceMs === 0 ? 0 : chance(paceMs),
    };
  }
}

function setupOf(seed: number, chance: Random): Setup {
  return {
    policy: chance(4) === 0 ? "steer" : "queue",
    maxMessages: seed % 4 === 3 ? 2 + chance(8) : undefined,
    paceMs: chance(3) === 0 ? 0 : 1 + chance(60),
    eager: chance(3) === 0 ? 0 : chance(60),
    counted: chance(2) === 0,
    approvalMs: chance(3) === 0 ? 500 + chance(3000) : 0,
  };
}

export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
