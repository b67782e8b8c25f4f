import { errorText, PerdureError } from "../../error.ts";
import type { Work } from "../../fiber/work.ts";
import { newId, sleep } from "../../id.ts";
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
import { writeJson } from "../../wire/json.ts";
import { type Connection, socketOf } from "../connection.ts";
import type { Feature } from "../feature.ts";
import type { AgentParts } from "../parts.ts";
import type { ChildClass } from "../sub-agents.ts";
import { ChildLink } from "./child-link.ts";
import { DetachedRuns } from "./detached-runs.ts";
import { endOf, nextStatus } from "./parent-state.ts";
import { NOTHING_SAID, RunEvents } from "./run-events.ts";
import { deleted, failed, isGone, lost } from "./run-ends.ts";
import { chunkFrame, endFrame, isProgress, milestoneFrame, startedFrame } from "./run-frames.ts";
import { toDetached, toEnd, toInfo, toResult } from "./run-views.ts";
import type {
  AgentToolListener,
  AgentToolProgressSnapshot,
  AgentToolRunInfo,
  AgentToolRunInspection,
  AgentToolRunStatus,
  DetachedRunAgentToolResult,
  RunAgentToolOptions,
  RunAgentToolResult,
} from "./types.ts";
import type { RunHooks } from "./run-hooks.ts";

/** How often in a row a child that says nothing new may be out of reach before its run is given up. */
const MAX_FAILURES = 5;
const FIRST_WAIT_MS = 100;

/** A run that is followed in this life. */
interface Live {
  readonly run: AgentRunRow;
  /** How many stored chunks were heard. */
  count: number;
  /** Milestones that were heard of. */
  readonly milestones: Set<number>;
  /** How many callers wait for its end. */
  waiting: number;
  /** Resolves when the child has accepted it, or it has ended. */
  readonly accepted: Promise<void>;
  accept(): void;
  /** Resolves with the row of the run as it ended. */
  readonly ended: Promise<AgentRunRow>;
}

/**
 * The work that an agent gives to its children. A run is a row here, stored before the child hears of it, and a row in
 * the child with the turn that does the work. The parent follows its open runs while it is in memory, and again after
 * every start: nothing that it missed is lost, because the child has it.
 */
export class AgentRuns implements Feature, Work {
  readonly #own: AgentParts<unknown>;
  readonly #hooks: RunHooks;
  readonly #live = new Map<string, Live>();
  #parts: { link: ChildLink; events: RunEvents; detached: DetachedRuns } | undefined;

  constructor(own: AgentParts<never>, hooks: RunHooks) {
    this.#own = own as unknown as AgentParts<unknown>;
    this.#hooks = hooks;
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
        events: new RunEvents(this.#host, async (run) => (this.#hasChild(run) ? link.read(run) : NOTHING_SAID)),
        detached: new DetachedRuns(this.#own, this.#hooks, (run, reason) => this.#giveUp(run, reason)),
      };
    }
    return this.#parts;
  }

  // As a feature of the agent

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
    const run = this.#accept(cls, options);
    const live = run.status === "running" ? this.#follow(run) : undefined;
    if (options.detached !== undefined && options.detached !== false) {
      await live?.accepted;
      return toDetached(readAgentRun(this.#host, run.runId) ?? run);
    }
    if (live === undefined) return toResult(run);
    const { signal } = options;
    const stop = () => {
      live.waiting--;
      this.#abandoned(run, signal?.reason);
    };
    live.waiting++;
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return toResult(await live.ended);
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** A turn is over: what it asked for, and nobody waits for, is not needed any more. */
  turnEnded(turnId: string): void {
    for (const { run, waiting } of this.#live.values()) {
      if (run.turnId !== turnId || run.detached !== null || waiting > 0) continue;
      this.#stop(run.runId, "The turn that asked for it is over.");
    }
  }

  /** Stops a run for good: stored first, then the child is told. One that has ended stays as it is. */
  async cancel(runId: string, reason?: string): Promise<void> {
    if (readAgentRun(this.#host, runId)?.status !== "running") return;
    cancelAgentRun(this.#host, runId, reason ?? null);
    const run = readAgentRun(this.#host, runId);
    if (run === undefined) return;
    // Who follows it tells the child, or finds that it is to be told.
    if (this.#live.has(runId)) {
      await this.#use.link.cancel(run).catch((thrown: unknown) => {
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
    return run.turnId === null || run.detached !== null || this.#hooks.turnWanted(run.turnId);
  }

  /** A run that an earlier life left open. */
  async #adopt(run: AgentRunRow): Promise<void> {
    try {
      if (!(await this.wants(run.runId))) cancelAgentRun(this.#host, run.runId, "What it was for was stopped.");
      this.#use.detached.noticed(run);
      this.#follow(run);
    } catch (thrown) {
      if (!this.#own.halted) this.#hooks.failed(thrown);
    }
  }

  #accept(cls: HostedAgentClass, options: RunAgentToolOptions): AgentRunRow {
    const className = this.#host.classNameOf(cls);
    if (typeof (cls as { prototype?: { startAgentToolRun?: unknown } }).prototype?.startAgentToolRun !== "function") {
      throw new PerdureError("bad_config", `${className} holds no conversation. Extend Think or AIChatAgent.`);
    }
    const runId = options.runId ?? newId("run");
    const known = this.#host.blank ? undefined : readAgentRun(this.#host, runId);
    if (known !== undefined) return this.#again(known, className);
    const { input, parentToolCallId, display, displayOrder, eventDelivery = "full" } = options;
    const detached = this.#use.detached.check(options.detached);
    const json = writeJson(input ?? null, "The input of the run");
    const limit = this.#hooks.maxConcurrentAgentTools;
    const run = this.#host.tx(() => {
      const tooMany = Number.isFinite(limit) && countOpenAgentRuns(this.#host) >= limit;
      insertAgentRun(this.#host, {
        ...{ runId, className, input: json, delivery: eventDelivery, startedAt: this.#host.clock.now() },
        turnId: this.#hooks.turn() ?? null,
        toolCallId: parentToolCallId ?? null,
        preview: writeJson(options.inputPreview ?? input ?? null, "The preview of the run"),
        display: display === undefined ? null : writeJson(display, "The display of the run"),
        displayOrder: displayOrder ?? null,
        detached: detached === undefined ? null : JSON.stringify(detached),
      });
      if (tooMany) endAgentRun(this.#host, runId, failed(`maxConcurrentAgentTools (${limit}) exceeded`, this.#host));
      else this.#own.children.admit({ className, name: runId });
      return readAgentRun(this.#host, runId) as AgentRunRow;
    });
    this.#host.emit("agent_tool:started", { runId, className });
    this.#use.events.tell(runId, [startedFrame(run)]);
    if (run.status === "running") this.#use.detached.noticed(run);
    this.#hooks.watch(() => this.#hooks.onAgentToolStart(toInfo(run)));
    // Who asked hears of it at once, so that nothing is to be delivered.
    if (run.status !== "running") this.#tellEnd(run, true);
    return run;
  }

  #hasChild({ className, runId }: AgentRunRow): boolean {
    return this.#own.children.has(className, runId);
  }

  /** The same id again: the run is joined. One that was given up is followed again. */
  #again(run: AgentRunRow, className: string): AgentRunRow {
    if (run.className !== className) {
      throw new PerdureError(
        "conflict",
        `The run "${run.runId}" is of ${run.className}, not ${className}. Use a new id.`,
      );
    }
    if (run.status !== "interrupted" || run.cancelled === 1) return run;
    reopenAgentRun(this.#host, run.runId);
    return { ...run, status: "running" };
  }

  #follow(run: AgentRunRow): Live {
    const known = this.#live.get(run.runId);
    if (known !== undefined) return known;
    const accepted = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<AgentRunRow>();
    const live: Live = {
      ...{ run, count: 0, milestones: new Set<number>(), waiting: 0, ended: ended.promise },
      ...{ accepted: accepted.promise, accept: accepted.resolve },
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
        const end = await link.tail(run, live.count, this.#listener(live));
        return this.#ended(live, end);
      } catch (thrown) {
        if (this.#own.halted || PerdureError.is(thrown, "host_stopped")) throw thrown;
        if (!isGone(thrown)) return this.#close(live, failed(errorText(thrown), this.#host));
        failures = live.count > before ? 1 : failures + 1;
        if (failures > MAX_FAILURES) return this.#close(live, lost(thrown, this.#host));
        await sleep(this.#host.clock, FIRST_WAIT_MS * 2 ** (failures - 1));
      }
    }
  }

  #listener(live: Live): AgentToolListener {
    const { events, detached } = this.#use;
    const { run, milestones } = live;
    return {
      chunks: (chunks) => {
        if (this.#own.halted) return;
        const frames: string[] = [];
        for (const chunk of chunks) {
          if (chunk.sequence !== undefined) live.count = chunk.sequence + 1;
          const progress = chunk.sequence === undefined && isProgress(chunk.body);
          if (progress) this.#progressed(run, chunk.body);
          if (progress || run.delivery === "full") frames.push(chunkFrame(run, chunk, live.count));
        }
        if (frames.length > 0) events.tell(run.runId, frames);
      },
      milestone: (milestone) => {
        if (this.#own.halted || milestones.has(milestone.sequence)) return;
        milestones.add(milestone.sequence);
        events.tell(run.runId, [milestoneFrame(run, milestone, live.count)]);
        const { name, sequence: _sequence, chunks: _chunks, ...rest } = milestone;
        this.#reported(run, { ...rest, milestone: name });
        detached.reached(run.runId, milestone);
      },
    };
  }

  /** What the child said last in an earlier life counts from then. */
  #resumed(run: AgentRunRow, { progress }: AgentToolRunInspection): void {
    if (run.detached !== null && progress !== undefined) this.#use.detached.reported(run.runId, progress.at);
  }

  #progressed(run: AgentRunRow, body: string): void {
    const { data } = JSON.parse(body) as { data: Omit<AgentToolProgressSnapshot, "at"> };
    this.#reported(run, { ...data, at: this.#host.clock.now() });
  }

  #reported(run: AgentRunRow, progress: AgentToolProgressSnapshot): void {
    if (run.detached !== null) this.#use.detached.reported(run.runId, progress.at);
    this.#hooks.watch(() => this.#hooks.onProgress(toInfo(run), progress));
  }

  #ended(live: Live, end: AgentToolRunInspection | null): AgentRunRow {
    const status = end === null ? undefined : endOf(end);
    if (end === null || status === undefined) {
      return this.#close(live, failed("The child does not know of this run.", this.#host));
    }
    return this.#close(live, {
      status,
      output: end.output === undefined ? null : JSON.stringify(end.output),
      summary: end.summary ?? null,
      error: end.error ?? null,
      reason: end.reason ?? null,
      childRunning: status === "interrupted" ? 0 : null,
      chunks: end.chunks,
      endedAt: this.#host.clock.now(),
    });
  }

  #close({ run: { runId }, count }: Live, end: AgentRunEnd): AgentRunRow {
    this.#live.delete(runId);
    // The child may have forgotten what clients have heard.
    return this.#store(runId, { ...end, chunks: Math.max(end.chunks, count) });
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
      this.#hooks.closeCalls(ended);
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
    this.#use.events.tell(run.runId, [endFrame(run)]);
    if (watched) this.#hooks.watch(() => this.#hooks.onAgentToolFinish(toInfo(run), toEnd(run)));
  }

  /** A run is given up while its child may still be at work: it is stopped. */
  #giveUp(run: AgentRunRow, reason: "budget-exceeded" | "no-progress"): void {
    const chunks = this.#live.get(run.runId)?.count ?? run.chunks;
    const error = reason === "no-progress" ? "The child reported nothing for too long." : "The run took too long.";
    const endedAt = this.#host.clock.now();
    cancelAgentRun(this.#host, run.runId, null);
    const none = { output: null, summary: null, childRunning: 0, chunks, endedAt } as const;
    this.#store(run.runId, { ...none, status: "interrupted", error, reason });
    void this.#use.link.cancel({ ...run, error }).catch((thrown: unknown) => this.#hooks.failed(thrown));
  }

  /** Who waited for a run does so no more. */
  #abandoned(run: AgentRunRow, reason: unknown): void {
    // The life ends, or the turn is about to be carried on: then it comes back for the run.
    if (this.#own.halted) return;
    if (run.turnId !== null && this.#hooks.turnStalled(run.turnId)) return;
    const text = reason === undefined ? undefined : errorText(reason);
    this.#stop(run.runId, text);
  }

  #stop(runId: string, reason: string | undefined): void {
    void this.cancel(runId, reason).catch((thrown: unknown) => this.#hooks.failed(thrown));
  }
}
