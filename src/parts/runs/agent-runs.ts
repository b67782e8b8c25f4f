import { errorText, PerdureError } from "../../base/error.ts";
import type { Work } from "../../work/work.ts";
import { newId } from "../../base/id.ts";
import { backOff, sleep } from "../../base/time.ts";
import type { AgentHost, HostedAgentClass } from "../../port.ts";
import {
  type AgentRunEnd,
  type AgentRunRow,
  cancelAgentRun,
  countOpenAgentRuns,
  deleteAgentRun,
  endAgentRun,
  insertAgentRun,
  listAgentRuns,
  openAgentRuns,
  readAgentRun,
  reopenAgentRun,
} from "../../store/agent-run.ts";
import { type Connection, socketOf } from "../../door/connection.ts";
import type { AgentPart, OwnAgent } from "../part.ts";
import type { ChildClass } from "../children.ts";
import { closeCallsOf } from "./book-calls.ts";
import { ChildLink } from "./child-link.ts";
import { DetachedRuns } from "./detached-runs.ts";
import { isRoot, type Lineage, lineageOf, refusalAbove, refusalHere, type RunRefusal } from "./lineage.ts";
import { deleted, endedBy, failed, givenUp, isGone, lost, nextStatus, storeEnd } from "./run-ends.ts";
import { endFrame, type HeardRun, NOTHING_SAID, RunEvents, runListener, startedFrame } from "./run-events.ts";
import { callingIdentity, callingTurn, failedRun, type RunPolicy, watch } from "./run-policy.ts";
import { toDetached, toEnd, toInfo, toResult } from "./run-views.ts";
import type {
  AgentToolRunInfo,
  AgentToolRunInspection,
  AgentToolRunStatus,
  DetachedAgentToolConfig,
  DetachedRunAgentToolResult,
  RunAgentToolOptions,
  RunAgentToolResult,
} from "./types.ts";
import { writeJson } from "../../wire/json.ts";

/** How often in a row a child that says nothing new may be out of reach before its run is given up. */
const MAX_FAILURES = 5;
const FIRST_WAIT_MS = 100;

/** Who waits for a run, in which turn; null outside one. */
interface Caller {
  readonly turnId: string | null;
}

/** A run that is followed in this life. */
interface Live extends HeardRun {
  /** Those who wait for its end. */
  readonly waiting: Set<Caller>;
  /** Resolves when the child has accepted it, or it has ended. */
  readonly accepted: Promise<void>;
  accept(): void;
  /** Resolves with the row of the run as it ended. */
  readonly ended: Promise<AgentRunRow>;
}

/**
 * The work that an agent gives to its children. A run is a row here, stored before the child hears of it, and a row in the child
 * with its turn. The parent follows open runs, again after every start: what it missed, the child has.
 */
export class AgentRuns implements AgentPart, Work {
  readonly #own: OwnAgent;
  readonly #agent: RunPolicy;
  readonly #live = new Map<string, Live>();
  #parts: { link: ChildLink; events: RunEvents; detached: DetachedRuns } | undefined;

  constructor(own: OwnAgent, agent: RunPolicy) {
    this.#own = own;
    this.#agent = agent;
  }

  get #host(): AgentHost {
    return this.#own.host;
  }

  /** Made when the first run is: most agents have none, and there may be many thousands of them. */
  get #use() {
    if (this.#parts === undefined) {
      const link = new ChildLink(this.#host);
      this.#parts = {
        link,
        events: new RunEvents(
          this.#host,
          async (run) => (this.#hasChild(run) ? link.read(run) : NOTHING_SAID),
          (socket) => this.#own.sessionOf(this.#own.connections.of(socket)),
        ),
        detached: new DetachedRuns(this.#own, this.#agent, (run, reason) => this.#giveUp(run, reason)),
      };
    }
    return this.#parts;
  }

  // As a part of the agent

  get work(): Work {
    return this;
  }

  started(): void {
    if (this.#host.blank) return;
    for (const run of openAgentRuns(this.#host)) void this.#host.keepAwake(this.#adopt(run));
  }

  connecting(connection: Connection): void {
    if (this.#host.blank) return;
    const runs = listAgentRuns(this.#host);
    if (runs.length > 0) this.#use.events.welcome(socketOf(connection), runs);
  }

  moved(connection: Connection): void {
    if (this.#host.blank) return;
    const runs = listAgentRuns(this.#host).filter(({ session }) => session !== null);
    if (runs.length > 0) this.#use.events.welcome(socketOf(connection), runs);
  }

  closed(connection: Connection): void {
    this.#parts?.events.closed(socketOf(connection));
  }

  next(): number | null {
    return this.#parts?.detached.next() ?? null;
  }

  active(): boolean {
    return this.#live.size > 0;
  }

  runDue(): void {
    this.#parts?.detached.runDue();
  }

  halt(): void {
    this.#live.clear();
  }

  // What users call

  /** See `Agent.runAgentTool`. */
  async run<Output>(
    cls: HostedAgentClass,
    options: RunAgentToolOptions,
  ): Promise<RunAgentToolResult<Output> | DetachedRunAgentToolResult> {
    const run = await this.#accept(cls, options);
    const live = run.status === "running" ? this.#follow(run) : undefined;
    if (options.detached !== undefined && options.detached !== false) {
      await live?.accepted;
      return toDetached(readAgentRun(this.#host, run.runId) ?? run);
    }
    if (live === undefined) return toResult(run);
    const { signal } = options;
    const caller: Caller = { turnId: callingTurn(this.#own) ?? null };
    const stop = () => {
      live.waiting.delete(caller);
      this.#abandoned(run, signal?.reason);
    };
    live.waiting.add(caller);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return toResult(await live.ended);
    } catch (thrown) {
      // The turn is about to be cut, and comes back at the next start. It would take this for the end of the run.
      if (run.turnId !== null && PerdureError.is(thrown, "host_stopped")) return await new Promise<never>(() => {});
      throw thrown;
    } finally {
      live.waiting.delete(caller);
      signal?.removeEventListener("abort", stop);
    }
  }

  /** A turn is over: what it asked for, and nobody else waits for, is not needed any more. */
  turnEnded(turnId: string): void {
    for (const { run, waiting } of this.#live.values()) {
      const others = [...waiting].some((caller) => caller.turnId !== turnId);
      if (run.turnId === turnId && run.detached === null && !others)
        this.#stop(run.runId, "The turn that asked for it is over.");
    }
  }

  /** Stops a run for good: stored first, then the child is told. One that has ended stays as it is. */
  async cancel(runId: string, reason?: string): Promise<void> {
    if (this.#host.blank || readAgentRun(this.#host, runId)?.status !== "running") return;
    cancelAgentRun(this.#host, runId, reason ?? null);
    const run = readAgentRun(this.#host, runId) as AgentRunRow;
    const live = this.#live.get(runId);
    // Who follows it tells the child, or finds that it is to be told.
    if (live !== undefined) {
      await this.#use.link.stop(run, live.ended).catch((thrown: unknown) => {
        if (!isGone(thrown)) throw thrown;
      });
    } else this.#follow(run);
    await this.#host.durable();
  }

  has(cls: ChildClass, runId: string): boolean {
    const className = typeof cls === "string" ? cls : this.#host.classNameOf(cls);
    return !this.#host.blank && readAgentRun(this.#host, runId)?.className === className;
  }

  list(): AgentToolRunInfo[] {
    return this.#host.blank ? [] : listAgentRuns(this.#host).map(toInfo);
  }

  /** See `Agent.clearAgentToolRuns`. */
  async clear(options: { olderThan?: number; status?: readonly AgentToolRunStatus[] } = {}): Promise<void> {
    const { olderThan = Number.POSITIVE_INFINITY, status } = options;
    if (this.#host.blank) return;
    for (const run of listAgentRuns(this.#host)) {
      if (run.startedAt >= olderThan || status?.includes(run.status) === false) continue;
      await this.cancel(run.runId, "The run was cleared.");
      await this.#live.get(run.runId)?.ended;
      await this.#own.children.delete(run.className, run.runId);
      deleteAgentRun(this.#host, run.runId);
    }
    await this.#host.durable();
  }

  /** See `Agent.deliverAgentToolRun`. */
  deliver(payload: unknown): void | Promise<void> {
    return this.#use.detached.deliver(payload);
  }

  /** Whether a run is still to be done. Asked by the child before it calls a model for it. */
  async wants(runId: string): Promise<boolean> {
    const run = this.#host.blank ? undefined : readAgentRun(this.#host, runId);
    if (run === undefined || run.cancelled === 1 || (run.status !== "running" && run.status !== "interrupted")) {
      return false;
    }
    return run.turnId === null || run.detached !== null || (this.#own.turns?.isWanted(run.turnId) ?? true);
  }

  /** A run that an earlier life left open. */
  async #adopt(run: AgentRunRow): Promise<void> {
    try {
      if (!(await this.wants(run.runId)))
        cancelAgentRun(this.#host, run.runId, "The work that asked for it was stopped.");
      this.#follow(run);
    } catch (thrown) {
      if (!this.#own.halted) failedRun(this.#own, thrown);
    }
  }

  async #accept(cls: HostedAgentClass, options: RunAgentToolOptions): Promise<AgentRunRow> {
    const className = this.#host.classNameOf(cls);
    if (typeof (cls as { prototype?: { startAgentToolRun?: unknown } }).prototype?.startAgentToolRun !== "function") {
      throw new PerdureError("bad_config", `${className} holds no conversation. Extend Think or AIChatAgent.`);
    }
    const { deliverTo: place } = typeof options.detached === "object" ? options.detached : {};
    const why = place && (await this.#own.turns?.conversation.whyNowhere(place));
    if (why !== undefined) throw new PerdureError("bad_config", why);
    const runId = options.runId ?? newId("run");
    const known = this.#host.blank ? undefined : readAgentRun(this.#host, runId);
    if (known !== undefined) return this.#again(known, className);
    const detached = this.#use.detached.check(options.detached);
    const turn = callingTurn(this.#own);
    const lineage = lineageOf(this.#host, this.#own.turns?.lineageOf(turn), className, turn ?? runId);
    const here = isRoot(this.#host, lineage);
    const above = here ? undefined : await refusalAbove(this.#host, this.#agent, lineage);
    // Somebody may have asked for the same while the agent at the root was asked.
    const joined = here ? undefined : readAgentRun(this.#host, runId);
    if (joined !== undefined) return this.#again(joined, className);
    // What counts it here is stored with it.
    const { run, refusal } = this.#host.tx(() => {
      const refusal = here ? refusalHere(this.#host, this.#agent, lineage) : above;
      const asked = { runId, className, options, detached, lineage, refusal };
      return { run: storeRun(this.#own, this.#agent.maxConcurrentAgentTools, asked), refusal };
    });
    if (refusal !== undefined) {
      this.#host.emit("agent_tool:refused", { runId, className, reason: refusal.reason, chain: lineage.chain });
    }
    this.#host.emit("agent_tool:started", { runId, className });
    this.#use.events.tell(run, [startedFrame(run)]);
    watch(this.#agent, () => this.#agent.onAgentToolStart(toInfo(run)));
    // Who asked hears of it at once, so that nothing is to be delivered.
    if (run.status !== "running") this.#tellEnd(run, true);
    return run;
  }

  #hasChild({ className, runId }: Pick<AgentRunRow, "className" | "runId">): boolean {
    return this.#own.children.has(className, runId);
  }

  /** The same id again: the run is joined. One that was given up is followed again. */
  #again(run: AgentRunRow, className: string): AgentRunRow {
    if (run.className !== className) {
      const text = `The run "${run.runId}" is of ${run.className}, not ${className}. Use a new id.`;
      throw new PerdureError("conflict", text);
    }
    if (run.status !== "interrupted" || run.cancelled === 1) return run;
    reopenAgentRun(this.#host, run.runId, callingTurn(this.#own) ?? null);
    return readAgentRun(this.#host, run.runId) as AgentRunRow;
  }

  #follow(run: AgentRunRow): Live {
    const known = this.#live.get(run.runId);
    if (known !== undefined) return known;
    this.#use.detached.noticed(run);
    const accepted = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<AgentRunRow>();
    const live: Live = {
      ...{ run, count: 0, milestones: new Set<number>(), waiting: new Set<Caller>() },
      ...{ accepted: accepted.promise, accept: accepted.resolve, ended: ended.promise },
    };
    this.#live.set(run.runId, live);
    const work = this.#watch(live);
    work.then(ended.resolve, ended.reject).finally(accepted.resolve);
    // Who waits hears of it; when nobody does, it is carried on by the next life.
    ended.promise.catch(() => {});
    void this.#host.keepAwake(work).catch(() => {});
    return live;
  }

  /** Has the child do the run, and follows it to its end, through every life of the child. */
  async #watch(live: Live): Promise<AgentRunRow> {
    const { link } = this.#use;
    for (let failures = 0; ;) {
      const before = live.count;
      if (failures > 0 && !this.#hasChild(live.run)) return this.#close(live, deleted(this.#host));
      try {
        const run = readAgentRun(this.#host, live.run.runId) ?? live.run;
        if (run.cancelled === 1) await link.cancel(run);
        else this.#resumed(run, await link.start(run));
        live.accept();
        const end = await link.tail(
          run,
          live.count,
          runListener(live, { own: this.#own, agent: this.#agent, ...this.#use }),
        );
        return this.#close(live, endedBy(end, this.#host));
      } catch (thrown) {
        if (this.#own.halted || PerdureError.is(thrown, "host_stopped")) throw thrown;
        if (!isGone(thrown)) return this.#close(live, failed(errorText(thrown), this.#host));
        failures = live.count > before ? 1 : failures + 1;
        if (failures > MAX_FAILURES) return this.#close(live, lost(thrown, this.#host));
        await sleep(this.#host.clock, backOff(failures, FIRST_WAIT_MS));
      }
    }
  }

  /** What the child said last in an earlier life counts from then. */
  #resumed(run: AgentRunRow, { progress }: AgentToolRunInspection): void {
    if (run.detached !== null && progress !== undefined) this.#use.detached.reported(run.runId, progress.at);
  }

  #close(live: Live, end: AgentRunEnd): Promise<AgentRunRow> {
    const { runId } = live.run;
    // The child may have forgotten what clients have heard.
    const told = { ...end, chunks: Math.max(end.chunks, live.count) };
    const store = () => {
      this.#live.delete(runId);
      return this.#store(runId, told);
    };
    return storeEnd(this.#host, store, (thrown) => {
      this.#live.set(runId, live);
      failedRun(this.#own, thrown);
    });
  }

  /** Stores the end of a run, with its delivery, and tells of it. */
  #store(runId: string, end: AgentRunEnd): AgentRunRow {
    const changed = this.#host.tx(() => {
      const run = readAgentRun(this.#host, runId);
      if (run === undefined) throw new PerdureError("not_found", `The run "${runId}" was cleared.`);
      if (nextStatus(run.status, end.status) === run.status) return undefined;
      // Whoever stopped it has said why.
      const error = run.cancelled === 1 ? (run.error ?? end.error) : end.error;
      endAgentRun(this.#host, runId, { ...end, error });
      const ended = readAgentRun(this.#host, runId) as AgentRunRow;
      closeCallsOf(this.#own, ended);
      if (ended.detached !== null) {
        this.#own.queue.add(
          "deliverAgentToolRun",
          { runId, result: toEnd(ended) },
          { id: `agent-tool:${runId}:${end.status}` },
        );
      }
      return ended;
    });
    if (changed === undefined) return readAgentRun(this.#host, runId) as AgentRunRow;
    this.#tellEnd(changed, changed.detached === null);
    this.#use.detached.forget(runId);
    this.#own.rearm();
    return changed;
  }

  #tellEnd(run: AgentRunRow, watched: boolean): void {
    this.#host.emit("agent_tool:ended", { runId: run.runId, className: run.className, status: run.status });
    this.#use.events.tell(run, [endFrame(run)]);
    if (watched) watch(this.#agent, () => this.#agent.onAgentToolFinish(toInfo(run), toEnd(run)));
  }

  /** A run is given up while its child may still be at work: it is stopped. */
  #giveUp(run: AgentRunRow, reason: "budget-exceeded" | "no-progress"): void {
    const chunks = this.#live.get(run.runId)?.count ?? run.chunks;
    const end = { ...givenUp(reason, this.#host), chunks };
    cancelAgentRun(this.#host, run.runId, null);
    this.#store(run.runId, end);
    void this.#use.link.cancel({ ...run, error: end.error }).catch((thrown: unknown) => failedRun(this.#own, thrown));
  }

  /** Who waited for a run does so no more. */
  #abandoned(run: AgentRunRow, reason: unknown): void {
    // The life ends, or the turn is about to be carried on: then it comes back for the run.
    if (this.#own.halted) return;
    if (run.turnId !== null && this.#own.turns?.isStalled(run.turnId) === true) return;
    this.#stop(run.runId, reason === undefined ? undefined : errorText(reason));
  }

  #stop(runId: string, reason: string | undefined): void {
    void this.cancel(runId, reason).catch((thrown: unknown) => {
      // It is stored: the next life goes on with it.
      if (!this.#own.halted && !PerdureError.is(thrown, "host_stopped")) failedRun(this.#own, thrown);
    });
  }
}

/** A run that is about to be stored. */
interface NewRun {
  readonly runId: string;
  readonly className: string;
  readonly options: RunAgentToolOptions;
  readonly detached: DetachedAgentToolConfig<Record<string, unknown>> | undefined;
  readonly lineage: Lineage;
  readonly refusal: RunRefusal | undefined;
}

/** Stores a run with the child that it is for; one that may not begin is stored as ended. */
function storeRun(
  own: OwnAgent,
  limit: number,
  { runId, className, options, detached, lineage, refusal }: NewRun,
): AgentRunRow {
  const { input, parentToolCallId, display, displayOrder, eventDelivery = "full" } = options;
  const json = writeJson(input ?? null, "The input of the run");
  const { host, children } = own;
  const turn = callingTurn(own);
  const session = own.turns?.sessionOf(turn);
  return host.tx(() => {
    const tooMany = Number.isFinite(limit) && countOpenAgentRuns(host) >= limit;
    insertAgentRun(host, {
      ...{ runId, className, input: json, delivery: eventDelivery, startedAt: host.clock.now() },
      ...{ turnId: turn ?? null, identity: callingIdentity(own, options.identity) },
      session: (turn === undefined ? undefined : session) ?? null,
      toolCallId: parentToolCallId ?? null,
      preview: writeJson(options.inputPreview ?? input ?? null, "The preview of the run"),
      display: display === undefined ? null : writeJson(display, "The display of the run"),
      displayOrder: displayOrder ?? null,
      detached: detached === undefined ? null : JSON.stringify({ ...detached, session }),
      lineage: JSON.stringify(lineage),
    });
    if (refusal !== undefined) endAgentRun(host, runId, failed(refusal.error, host));
    else if (tooMany) endAgentRun(host, runId, failed(`maxConcurrentAgentTools (${limit}) exceeded`, host));
    else children.admit({ className, name: runId });
    return readAgentRun(host, runId) as AgentRunRow;
  });
}
