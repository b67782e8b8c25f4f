import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { sleep, backOff } from "../base/time.ts";
import type { HostedAgentClass } from "../port.ts";
import type { Agent } from "./agent.ts";
import { parts } from "../parts/part.ts";
import type { RunAgentToolOptions, RunAgentToolResult } from "../parts/runs/types.ts";

/*
 * Patterns for several children, all on `runAgentTool()`. With an `id`, runs have names that follow from it: called again, after
 * a crash say, they join the runs that exist. Inside a tool, `idempotencyKey` is such an id (the tool is then `replay: "safe"`).
 */

/** A piece of work for a child. */
export interface TeamTask extends Pick<
  RunAgentToolOptions,
  "input" | "inputPreview" | "display" | "parentToolCallId" | "eventDelivery"
> {
  /** The class of the child. */
  readonly agent: HostedAgentClass;
}

/** What all patterns take. */
export interface TeamOptions {
  /** Names the runs. The same id again joins them. Default: a new one. */
  readonly id?: string;
  /** Aborting it stops the runs that are open. */
  readonly signal?: AbortSignal;
}

/** Options of {@link fanOut}. */
export interface FanOutOptions extends TeamOptions {
  /** How many run at one time. Default 4. */
  readonly concurrency?: number;
}

/** Options of {@link firstGood}. */
export interface FirstGoodOptions<Output> extends FanOutOptions {
  /** Whether an answer will do. Default: any that is completed. May be slow; what it throws stops the others. */
  readonly accept?: (result: RunAgentToolResult<Output>) => boolean | Promise<boolean>;
}

/** Options of {@link supervise}. */
export interface SuperviseOptions<Output> extends TeamOptions {
  /** How often a failed child is replaced by a new one. Default 2. */
  readonly maxRestarts?: number;
  /** The wait before the first restart; it doubles with each. Default 1,000 ms. */
  readonly backOffMs?: number;
  /** Whether an answer will do; one that will not counts as a failure. Default: any that is completed. */
  readonly accept?: (result: RunAgentToolResult<Output>) => boolean | Promise<boolean>;
}

const DEFAULT_CONCURRENCY = 4;
const DEFAULT_RESTARTS = 2;
const DEFAULT_BACK_OFF_MS = 1_000;

/** Runs every task, so many at a time. The results are in the order of the tasks, however each ended. */
export async function fanOut<Output = unknown>(
  agent: Agent<object>,
  tasks: readonly TeamTask[],
  { id = newId("team"), signal, concurrency = DEFAULT_CONCURRENCY }: FanOutOptions = {},
): Promise<RunAgentToolResult<Output>[]> {
  checkCount("concurrency", concurrency, 1);
  const results: RunAgentToolResult<Output>[] = [];
  await eachOf(tasks, concurrency, async (task, i) => {
    results[i] = await run<Output>(agent, task, `${id}:${i}`, i, signal);
  });
  return results;
}

/** Runs tasks side by side until one result will do, and stops the others. Undefined when none will do. */
export async function firstGood<Output = unknown>(
  agent: Agent<object>,
  tasks: readonly TeamTask[],
  options: FirstGoodOptions<Output> = {},
): Promise<RunAgentToolResult<Output> | undefined> {
  const { id = newId("team"), signal, concurrency = DEFAULT_CONCURRENCY, accept = () => true } = options;
  checkCount("concurrency", concurrency, 1);
  const stop = new AbortController();
  const signals = signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal]);
  let good: RunAgentToolResult<Output> | undefined;
  try {
    await eachOf(tasks, concurrency, async (task, i) => {
      if (signals.aborted) return;
      const result = await run<Output>(agent, task, `${id}:${i}`, i, signals);
      if (result.status !== "completed" || good !== undefined || !(await accept(result))) return;
      good ??= result;
      stop.abort(new Error("Another child has answered."));
    });
  } finally {
    if (!stop.signal.aborted) stop.abort(new Error("The others are not needed."));
  }
  return good;
}

/** Runs a task, again with a new child if it fails or will not do; not if stopped or out of budget. Returns the last result. */
export async function supervise<Output = unknown>(
  agent: Agent<object>,
  task: TeamTask,
  options: SuperviseOptions<Output> = {},
): Promise<RunAgentToolResult<Output>> {
  const { id = newId("team"), signal, accept = () => true } = options;
  const { maxRestarts = DEFAULT_RESTARTS, backOffMs = DEFAULT_BACK_OFF_MS } = options;
  checkCount("maxRestarts", maxRestarts, 0);
  const { clock } = agent[parts].host;
  for (let restart = 0; ; restart++) {
    const result = await run<Output>(agent, task, `${id}:${restart}`, restart, signal);
    const done = result.status === "completed" ? await accept(result) : result.status === "aborted";
    if (done || result.reason === "budget-exceeded" || restart >= maxRestarts) return result;
    await sleep(clock, backOff(restart + 1, backOffMs), signal);
  }
}

/** Does the work for each task, so many at a time. */
async function eachOf(
  tasks: readonly TeamTask[],
  width: number,
  work: (task: TeamTask, index: number) => Promise<void>,
): Promise<void> {
  const left = tasks.entries();
  const worker = async () => {
    for (const [i, task] of left) await work(task, i);
  };
  await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, worker));
}

function run<Output>(
  agent: Agent<object>,
  { agent: cls, ...task }: TeamTask,
  runId: string,
  displayOrder: number,
  signal: AbortSignal | undefined,
): Promise<RunAgentToolResult<Output>> {
  return agent.runAgentTool<Output>(cls, { ...task, runId, displayOrder, ...(signal !== undefined && { signal }) });
}

function checkCount(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return;
  throw new PerdureError("bad_input", `\`${name}\` must be a whole number of at least ${least}, not ${String(value)}.`);
}
