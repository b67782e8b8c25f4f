import { PerdureError } from "../../base/error.ts";
import { type AgentRunRow, readAgentRun, tellAgentRun } from "../../store/agent-run.ts";
import type { OwnAgent } from "../part.ts";
import { failedRun, type RunPolicy } from "./run-policy.ts";
import { type Detached, detachedOf, toInfo } from "./run-views.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, DetachedAgentToolConfig } from "./types.ts";

type Config = DetachedAgentToolConfig<Record<string, unknown>>;
type GiveUp = (run: AgentRunRow, reason: "budget-exceeded" | "no-progress") => void;

interface OpenRun {
  readonly run: AgentRunRow;
  readonly until: number;
  /** How long it may report nothing after it has once reported something. */
  readonly silenceMs: number;
}

/** Runs that nobody waits for: how long they may take, and how what comes of them reaches the agent. */
export class DetachedRuns {
  readonly #own: OwnAgent;
  readonly #agent: RunPolicy;
  readonly #giveUp: GiveUp;
  /** When each was last heard to report something. */
  readonly #reportedAt = new Map<string, number>();
  /** Those that are open. In memory and ready to compare: all are looked at whenever the agent's alarm is. */
  readonly #open = new Map<string, OpenRun>();

  constructor(own: OwnAgent, agent: RunPolicy, giveUp: GiveUp) {
    this.#own = own;
    this.#agent = agent;
    this.#giveUp = giveUp;
  }

  /** The configuration of a new run. @throws PerdureError `bad_config` */
  check(given: boolean | DetachedAgentToolConfig | undefined): Config | undefined {
    if (given === undefined || given === false) return undefined;
    const config: Config = given === true ? {} : given;
    if (config.onFinish !== undefined && this.#own.method(config.onFinish) === undefined) {
      throw new PerdureError("bad_config", `\`onFinish\` names "${config.onFinish}", which is no method of the agent.`);
    }
    if ((config.notify !== undefined && config.notify !== false) || config.onMilestones !== undefined) {
      if (this.#own.turns?.conversation === undefined) {
        throw new PerdureError("bad_config", "`notify` and `onMilestones` need an agent that holds a conversation.");
      }
    }
    return config;
  }

  /** A run is followed from now on. */
  noticed(run: AgentRunRow): void {
    if (run.detached === null || this.#open.has(run.runId)) return;
    const { maxBudgetMs = this.#agent.detachedMaxBudgetMs, noProgressBudgetMs } = detachedOf(run) ?? {};
    const silenceMs = bound(noProgressBudgetMs ?? this.#agent.detachedNoProgressBudgetMs);
    this.#open.set(run.runId, { run, until: run.startedAt + bound(maxBudgetMs), silenceMs });
    this.#own.rearm();
  }

  /** A run has ended. */
  forget(runId: string): void {
    this.#open.delete(runId);
    this.#reportedAt.delete(runId);
  }

  reported(runId: string, at: number): void {
    const before = this.#reportedAt.get(runId);
    this.#reportedAt.set(runId, Math.max(before ?? at, at));
    // With the first report it may have less time than before; later ones only give it more.
    if (before === undefined) this.#own.rearm();
  }

  /** When the next run is to be given up. */
  next(): number | null {
    let first = Number.POSITIVE_INFINITY;
    for (const open of this.#open.values()) first = Math.min(first, open.until, this.#quietUntil(open));
    return Number.isFinite(first) ? first : null;
  }

  runDue(): void {
    const now = this.#own.host.clock.now();
    for (const open of this.#open.values()) {
      const quietUntil = this.#quietUntil(open);
      if (Math.min(quietUntil, open.until) > now) continue;
      this.#giveUp(open.run, quietUntil < open.until ? "no-progress" : "budget-exceeded");
    }
  }

  /** Tells the agent how a run ended, from the queue: exactly once if synchronous, else at least once, up to a bound of tries. */
  deliver(payload: unknown): void | Promise<void> {
    const { runId, result } = payload as { runId: string; result: AgentToolLifecycleResult };
    const run = readAgentRun(this.#own.host, runId);
    if (run === undefined) return;
    const config = detachedOf(run) ?? {};
    const info = { ...toInfo(run), status: result.status };
    const onFinish = config.onFinish === undefined ? undefined : this.#own.method(config.onFinish);
    const steps = [
      () => this.#watched(() => this.#agent.onAgentToolFinish(info, result)),
      () => onFinish?.(info, result),
      () => (onFinish === undefined ? this.#notify(run, config, result) : undefined),
    ];
    return inOrder(steps);
  }

  /** A run has reached a milestone: the conversation is told of those that it asked for, once each. Does not throw. */
  reached(runId: string, milestone: AgentToolMilestone): void {
    this.#watched(() => this.#tell(runId, milestone));
  }

  #tell(runId: string, milestone: AgentToolMilestone): void {
    const run = readAgentRun(this.#own.host, runId);
    const { onMilestones: wish, session, deliverTo } = (run && detachedOf(run)) ?? {};
    const conversation = this.#own.turns?.conversation;
    if (run === undefined || wish === undefined || conversation === undefined) return;
    const { names, mode = "narrate" } = "names" in wish ? wish : { names: wish };
    const told = JSON.parse(run.told) as string[];
    if (!names.includes(milestone.name) || told.includes(milestone.name)) return;
    const key = `agent-tool:${runId}:milestone:${milestone.name}`;
    const text = conversation.formatMilestone(toInfo(run), milestone);
    // The key makes it one message even if the note below is lost.
    if (text !== "" && mode === "narrate") conversation.narrate(key, text, session);
    else if (text !== "")
      conversation.react(key, text, { agentToolRunId: runId }, { session, identity: run.identity, deliverTo });
    tellAgentRun(this.#own.host, runId, JSON.stringify([...told, milestone.name]));
  }

  #notify(run: AgentRunRow, { notify = false, session, deliverTo }: Detached, result: AgentToolLifecycleResult): void {
    const conversation = this.#own.turns?.conversation;
    if (notify === false || conversation === undefined) return;
    const info = toInfo(run);
    const text = conversation.formatCompletion(info, result);
    if (text === "") return;
    const source = info.notifySource;
    const metadata = { agentToolRunId: run.runId, ...(source !== undefined && { source }) };
    const { identity } = run;
    conversation.react(`agent-tool:${run.runId}:${result.status}`, text, metadata, { session, identity, deliverTo });
  }

  /** Who only watches holds nothing up. */
  #watched(hook: () => unknown): unknown {
    const failed = (thrown: unknown) => failedRun(this.#own, thrown);
    try {
      const result = hook();
      return result instanceof Promise ? result.catch(failed) : result;
    } catch (thrown) {
      return failed(thrown);
    }
  }

  #quietUntil({ run, silenceMs }: OpenRun): number {
    const reportedAt = this.#reportedAt.get(run.runId);
    return reportedAt === undefined ? Number.POSITIVE_INFINITY : reportedAt + silenceMs;
  }
}

/** 0 means that there is no bound. */
function bound(ms: number): number {
  return ms > 0 ? ms : Number.POSITIVE_INFINITY;
}

/** One after the other; synchronous as long as they are. */
function inOrder(steps: readonly (() => unknown)[]): void | Promise<void> {
  for (const [i, step] of steps.entries()) {
    const result = step();
    if (result instanceof Promise) return result.then(() => inOrder(steps.slice(i + 1)));
  }
}
