// What is chosen once for a run: the agent's settings, and how its model and its tools behave.
import type { Budgets, MessageConcurrency } from "perdure";
import { hashOf, random } from "./interleave-random.ts";

/** The settings of one run. */
export interface Setup {
  readonly policy: MessageConcurrency;
  readonly budgets: Budgets;
  /** What the model may say in one call; only set with a budget. */
  readonly maxOutputTokens: number | undefined;
  readonly maxSteps: number;
  /** How many models there are to try. */
  readonly models: 1 | 2;
  /** 0: a stream never stalls. */
  readonly stallMs: number;
  /** 0: a question never expires. */
  readonly approvalMs: number;
  /** How many of the model calls fail, 0 to 1. */
  readonly failures: number;
  /** How many of the model calls ask for tools. */
  readonly eager: number;
  /** The longest wait before a piece of a stream. */
  readonly paceMs: number;
  /** The longest run of a tool. */
  readonly toolMs: number;
  /** A model call that is repeated says the same again. */
  readonly faithful: boolean;
  /** The ids of tool calls: new ones each time, the same when a model call is repeated, or counted from zero. */
  readonly ids: "new" | "same" | "counted";
}

const OUTPUT_TOKENS = 40;

export function setupOf(seed: number): Setup {
  const chance = random(hashOf(`setup ${seed}`));
  const policy = chance.weighted({ queue: 5, steer: 6, latest: 1.5, merge: 1.5, drop: 0.7, debounce: 1.3 });
  const budgets = chance.chance(0.5) ? budgetsOf(chance.next(), chance.next(), chance.next()) : {};
  return {
    policy: policy === "debounce" ? { strategy: "debounce", debounceMs: 1 + chance.int(120) } : policy,
    budgets,
    maxOutputTokens: Object.keys(budgets).length > 0 ? OUTPUT_TOKENS : undefined,
    maxSteps: 2 + chance.int(4),
    models: chance.chance(0.3) ? 2 : 1,
    stallMs: chance.chance(0.25) ? 100 + chance.int(300) : 0,
    approvalMs: chance.chance(0.25) ? 200 + chance.int(2000) : 0,
    failures: chance.chance(0.3) ? 0 : chance.next() * 0.5,
    eager: 0.2 + chance.next() * 0.6,
    paceMs: chance.chance(0.2) ? 0 : 1 + chance.int(40),
    toolMs: chance.chance(0.3) ? 0 : 1 + chance.int(120),
    faithful: chance.chance(0.6),
    ids: chance.weighted({ new: 5, same: 3, counted: 2 }),
  };
}

function budgetsOf(which: number, size: number, soft: number): Budgets {
  const budget = {
    maxTokens: 300 + Math.floor(size * size * 12_000),
    ...(soft < 0.4 && { soft: 0.2 + soft }),
  };
  if (which < 0.4) return { turn: budget };
  if (which < 0.7) return { session: budget };
  return which < 0.85 ? { agent: budget } : { turn: budget, session: { maxTokens: budget.maxTokens * 3 } };
}
