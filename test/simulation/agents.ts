// The agents of a run. What they do to the world outside is noted there, and outlives every crash.
import { convertToModelMessages, type LanguageModel, stepCountIs, streamText, type ToolSet } from "ai";
import {
  Agent,
  type AgentHost,
  type AgentOptions,
  agentTool,
  AIChatAgent,
  callable,
  type ChatTurnOptions,
  type Collections,
  createToolsFromClientSchemas,
  type FiberContext,
  Think,
} from "perdure";
import type { QueueRun, ScheduleRun } from "perdure/work";
import { z } from "zod";
import { parts } from "../../src/parts/part.ts";
import { sleep } from "../../src/base/time.ts";
import { makeModel } from "../think/interleave-model.ts";
import { makeTools } from "../think/interleave-tools.ts";
import type { Machine } from "./machine.ts";

/** What every agent of a run knows. */
export interface Env {
  readonly machine: Machine;
}

/** The state of a board: it changes together with a row. */
export interface BoardState {
  readonly n: number;
  readonly mark: string;
}

interface Job {
  readonly key: string;
}

export const FIBER_STEPS = 3;
const ASYNC_MS = 40;
const RETRY = { maxAttempts: 20, baseDelayMs: 200, maxDelayMs: 2_000 };

class Keeper extends Agent<Env, BoardState> {
  static override options: AgentOptions = { retry: RETRY };
  static {
    callable(this, "add");
  }
  override initialState: BoardState = { n: 0, mark: "" };

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS done (kind TEXT NOT NULL, key TEXT NOT NULL)`;
  }

  /** A row and the state: both, or neither. */
  add(key: string): string {
    return this.transaction(() => {
      this.note("add", key);
      this.setState({ n: this.state.n + 1, mark: key });
      return key;
    });
  }

  note(kind: string, key: string): void {
    this.sql`INSERT INTO done (kind, key) VALUES (${kind}, ${key})`;
  }

  protected outside(kind: string, key: string): void {
    this.env.machine.world.outside(this.env.machine, kind, key);
  }
}

/** A child of a board. */
class Leaf extends Keeper {}

class Board extends Keeper {
  static {
    callable(this, "addLate");
    callable(this, "plan");
    callable(this, "planAsync");
    callable(this, "chain");
    callable(this, "enqueue");
    callable(this, "spawn");
    callable(this, "below");
    callable(this, "drop");
  }

  override getCollections(): Collections {
    return { notes: {} };
  }

  /** Several commits, with other work in between: acknowledged only at the end. */
  async addLate(key: string): Promise<string> {
    this.note("late", `${key}.1`);
    await sleep(this.env.machine.clock, ASYNC_MS);
    this.note("late", `${key}.2`);
    return key;
  }

  async plan(key: string, seconds: number): Promise<string> {
    return (await this.schedule(seconds, "ring", { key })).id;
  }

  async planAsync(key: string, seconds: number): Promise<string> {
    return (await this.schedule(seconds, "ringLate", { key })).id;
  }

  /** One schedule sets the next. */
  async chain(key: string, seconds: number): Promise<string> {
    return (await this.schedule(seconds, "link", { key, left: 2, seconds })).id;
  }

  async enqueue(key: string): Promise<string> {
    this.note("queued", key);
    return this.queue("work", { key });
  }

  spawn(key: string): string {
    return this.spawnFiber("steps", { key }, { idempotencyKey: key, maxRetries: 20 });
  }

  async below(key: string, name: string): Promise<string> {
    const leaf = await this.subAgent(Leaf, name);
    return leaf.add(key);
  }

  async drop(name: string): Promise<void> {
    await this.deleteSubAgent(Leaf, name);
  }

  // Called by the framework.

  ring({ key }: Job, _run: ScheduleRun<Job>): void {
    this.outside("ring", key);
    this.note("ring", key);
  }

  async ringLate({ key }: Job, { occurrence }: ScheduleRun<Job>): Promise<void> {
    this.outside("ringLate", `${key} ${occurrence}`);
    await sleep(this.env.machine.clock, ASYNC_MS);
    this.note("ringLate", key);
  }

  async link({ key, left, seconds }: Job & { left: number; seconds: number }): Promise<void> {
    this.note("link", `${key}.${left}`);
    if (left > 0) await this.schedule(seconds, "link", { key, left: left - 1, seconds });
  }

  work({ key }: Job, _run: QueueRun<Job>): void {
    this.outside("work", key);
    this.note("work", key);
  }

  async steps({ key }: Job, fiber: FiberContext): Promise<string> {
    const { done = 0 } = (fiber.snapshot ?? {}) as { done?: number };
    for (let step = done; step < FIBER_STEPS; step++) {
      this.outside("step", `${key}.${step}`);
      this.transaction(() => {
        this.note("step", `${key}.${step}`);
        fiber.stash({ done: step + 1 });
      });
      await sleep(this.env.machine.clock, ASYNC_MS);
    }
    return key;
  }
}

/** An agent whose clients set its state. */
class Sheet extends Agent<Env, BoardState> {
  override initialState: BoardState = { n: 0, mark: "" };
}

/** A model for one agent, and tools that are noted outside. */
function equipment(agent: Agent<Env>, host: AgentHost) {
  const { machine } = agent.env;
  const { world } = machine;
  const view = {
    seed: world.seed,
    setup: world.setup,
    get calm() {
      return world.calm;
    },
    asked: world.asked,
    called: (prompt: readonly string[]) => world.called(machine, host, prompt),
    ran: (tool: string, toolCallId: string, key: string) => world.ran(machine, host, tool, toolCallId, key),
  };
  return { model: makeModel(view, machine.clock, "a") as LanguageModel, tools: makeTools(view, machine.clock) };
}

class Chat extends AIChatAgent<Env> {
  readonly #kit: ReturnType<typeof equipment>;

  constructor(host: AgentHost) {
    super(host);
    this.#kit = equipment(this, host);
    const { setup } = this.env.machine.world;
    this.messageConcurrency = setup.policy;
    this.chatStreamStallTimeoutMs = setup.stallMs;
    this.approvalTimeoutMs = setup.approvalMs;
  }

  override async onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
    const { model, tools } = this.#kit;
    const result = streamText({
      model,
      messages: await convertToModelMessages(this.messages),
      tools: { ...tools, ...createToolsFromClientSchemas(options.clientTools) },
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      abortSignal: options.abortSignal,
      onError: () => undefined,
    });
    return result.toUIMessageStream();
  }
}

class Helper extends Think<Env> {
  override workspaceTools = false as const;
  override contextOverflow = false as const;
  protected readonly kit: ReturnType<typeof equipment>;

  constructor(host: AgentHost) {
    super(host);
    this.kit = equipment(this, host);
    const { setup } = this.env.machine.world;
    this.maxSteps = setup.maxSteps;
    this.chatStreamStallTimeoutMs = setup.stallMs;
    this.approvalTimeoutMs = setup.approvalMs;
  }

  override getModel(): LanguageModel {
    return this.kit.model;
  }

  override getSystemPrompt(): string {
    return "Help.";
  }

  override getTools(): ToolSet {
    const { look, put, fail } = this.kit.tools;
    return { ...(look && { look }), ...(put && { put }), ...(fail && { fail }) };
  }
}

class Mind extends Helper {
  static {
    callable(this, "hand");
  }

  constructor(host: AgentHost) {
    super(host);
    const { setup } = this.env.machine.world;
    this.messageConcurrency = setup.policy;
    this.budgets = setup.budgets;
  }

  /** Server code hands a message in, once per key. */
  async hand(key: string, text: string): Promise<string> {
    const message = { id: `m${key}`, role: "user", parts: [{ type: "text", text }] } as const;
    return (await this.submitMessages([{ ...message, parts: [...message.parts] }], { idempotencyKey: key }))
      .submissionId;
  }

  override beforeTurn() {
    const { maxOutputTokens } = this.env.machine.world.setup;
    return maxOutputTokens === undefined ? {} : { maxOutputTokens };
  }

  override getTools(): ToolSet {
    const inputSchema = z.object({ n: z.string() });
    return { ...this.kit.tools, ask: agentTool(Helper, { description: "Have a helper do it.", inputSchema }) };
  }
}

/** Classes that clients reach. */
export const agents = { Board, Chat, Mind, Sheet };
/** Classes that are children. */
export const children = { Leaf, Helper };

/** The port of an agent. */
export function hostOf(agent: Agent<Env>): AgentHost {
  return agent[parts].host;
}
