import { errorText, PerdureError } from "../../base/error.ts";
import type { AgentHost, Socket } from "../../port.ts";
import type { AgentRunRow, ListedAgentRun } from "../../store/agent-run.ts";
import { ownerIdOf } from "../../store/session.ts";
import type { AgentToolEvent, AgentToolEventFrame, AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";
import type { AgentToolChunk, AgentToolListener, AgentToolMilestone, AgentToolProgressSnapshot } from "./types.ts";
import { tryParseJson } from "../../base/json.ts";
import { encodeFrame } from "../../wire/encode.ts";
import type { OwnAgent } from "../part.ts";
import type { DetachedRuns } from "./detached-runs.ts";
import { type RunPolicy, watch } from "./run-policy.ts";
import { toInfo } from "./run-views.ts";

/** Of so many runs, the newest, a client that connects is told all that the child said; of older ones, how they ended. */
const REPLAYED_RUNS = 20;
/** How long a child may take to say what it stored, before a client is told of its run without that. */
const MAX_WAIT_MS = 5_000;

/** What a child has stored of a run. */
export interface StoredRun {
  readonly chunks: readonly AgentToolChunk[];
  readonly milestones: readonly AgentToolMilestone[];
}

/** Of a child that does not answer, or was never made. */
export const NOTHING_SAID: StoredRun = { chunks: [], milestones: [] };

/**
 * Tells clients of the runs of their conversation. A new client hears of earlier ones first, which takes a while, since only the
 * children know what they said; what happens meanwhile waits behind that.
 */
export class RunEvents {
  readonly #host: AgentHost;
  readonly #read: (run: ListedAgentRun) => Promise<StoredRun>;
  readonly #sessionOf: (socket: Socket) => string | undefined;
  /** What clients that are being told of earlier runs have to wait for, by run. */
  readonly #behind = new Map<Socket, Map<string, string[]>>();

  /** @param read may reject: the run is told without its child's words. @param sessionOf a client's conversation, if any. */
  constructor(
    host: AgentHost,
    read: (run: ListedAgentRun) => Promise<StoredRun>,
    sessionOf: (socket: Socket) => string | undefined,
  ) {
    this.#host = host;
    this.#read = read;
    this.#sessionOf = sessionOf;
  }

  /** Something of a run, to everyone in the conversation that asked for it. */
  tell(run: ListedAgentRun, frames: readonly string[]): void {
    for (const socket of this.#host.sockets.all()) {
      if (!this.#mayHear(socket, run)) continue;
      const held = this.#behind.get(socket)?.get(run.runId);
      if (held === undefined) socket.sendAll(frames);
      else held.push(...frames);
    }
  }

  /** A client has come to its conversation: it is told of those of these runs that are for it, oldest first. */
  welcome(socket: Socket, all: readonly ListedAgentRun[]): void {
    const runs = all.filter((run) => this.#mayHear(socket, run));
    if (runs.length === 0) return;
    const whole = new Set(runs.slice(-REPLAYED_RUNS));
    for (const run of runs) if (run.status === "running") whole.add(run);
    const brief = runs.filter((run) => !whole.has(run));
    socket.sendAll(brief.flatMap((run) => [startedFrame(run, true), endFrame(run, true)]));
    if (whole.size === 0) return;
    const behind = this.#behind.get(socket) ?? new Map<string, string[]>();
    for (const { runId } of whole) behind.set(runId, behind.get(runId) ?? []);
    this.#behind.set(socket, behind);
    void this.#host.keepAwake(this.#replay(socket, [...whole]));
  }

  closed(socket: Socket): void {
    this.#behind.delete(socket);
  }

  async #replay(socket: Socket, runs: readonly ListedAgentRun[]): Promise<void> {
    for (const run of runs) {
      const stored = await this.#within(this.#read(run));
      const held = this.#behind.get(socket);
      if (held === undefined) return;
      if (!this.#mayHear(socket, run)) {
        held.delete(run.runId);
        continue;
      }
      const chunks = run.delivery === "full" ? stored.chunks : [];
      const next = Math.max(run.chunks, stored.chunks.filter(({ sequence }) => sequence !== undefined).length);
      socket.sendAll([
        startedFrame(run, true),
        ...saidFrames(run, chunks, stored.milestones, next),
        ...(run.status === "running" ? [] : [endFrame(run, true)]),
        ...(held.get(run.runId) ?? []).filter((frame) => !isTold(frame, stored)),
      ]);
      held.delete(run.runId);
    }
    // It may have gone to another conversation meanwhile, of which it is still being told.
    if (this.#behind.get(socket)?.size === 0) this.#behind.delete(socket);
  }

  /** What a turn asked for is for those who are in its conversation, in whatever place of it. */
  #mayHear(socket: Socket, { session }: ListedAgentRun): boolean {
    if (session === null) return true;
    const here = this.#sessionOf(socket);
    return here === session || (here !== undefined && ownerIdOf(this.#host, here) === ownerIdOf(this.#host, session));
  }

  async #within(stored: Promise<StoredRun>): Promise<StoredRun> {
    const { promise, resolve } = Promise.withResolvers<StoredRun>();
    const cancel = this.#host.clock.after(MAX_WAIT_MS, () => resolve(NOTHING_SAID));
    stored.then(resolve, (thrown: unknown) => {
      if (!PerdureError.is(thrown, "host_stopped")) {
        this.#host.emit("agent:failed", { stage: "agent-tool-replay", error: errorText(thrown) });
        this.#host.report(thrown, { stage: "agent-tool-replay" });
      }
      resolve(NOTHING_SAID);
    });
    return promise.finally(cancel);
  }
}

/** Whether what came while a child was asked what it has stored is in its answer. */
function isTold(json: string, { chunks, milestones }: StoredRun): boolean {
  const { sequence, event } = JSON.parse(json) as AgentToolEventFrame;
  if (event.kind !== "chunk" || event.unstoredId !== undefined || isProgress(event.body)) return false;
  const { type, data } = JSON.parse(event.body) as { type: string; data?: { sequence?: number } };
  if (type === "data-agent-milestone") return (data?.sequence ?? 0) < milestones.length;
  return sequence <= (chunks.findLast((chunk) => chunk.sequence !== undefined)?.sequence ?? -1) + 1;
}

/** What a child said with its milestones in between, each where it was when it was reached. */
function saidFrames(
  run: ListedAgentRun,
  chunks: readonly AgentToolChunk[],
  milestones: readonly AgentToolMilestone[],
  next: number,
): string[] {
  const frames: string[] = [];
  const left = [...milestones];
  for (const chunk of chunks) {
    while (left[0]?.chunks !== undefined && left[0].chunks <= (chunk.sequence ?? next)) {
      frames.push(milestoneFrame(run, left[0], left[0].chunks, true));
      left.shift();
    }
    frames.push(chunkFrame(run, chunk, next, true));
  }
  return [...frames, ...left.map((milestone) => milestoneFrame(run, milestone, next, true))];
}

/*
 * Runs as the parent's clients read them: `started` is number 0, the child's stored chunk i is i + 1, then the end. What is not
 * stored carries the next number without using it up. Clients drop numbers they know, so a frame has the same one live and
 * replayed.
 */

function frame(run: ListedAgentRun, sequence: number, replay: boolean, event: AgentToolEvent): string {
  const { toolCallId } = run;
  const head: AgentToolEventFrame = {
    type: "agent-tool-event",
    ...(toolCallId !== null && { parentToolCallId: toolCallId }),
    sequence,
    ...(replay && { replay: true as const }),
    event,
  };
  return encodeFrame(head);
}

export function startedFrame(run: ListedAgentRun, replay = false): string {
  const { runId, className, preview, display, displayOrder, seq } = run;
  return frame(run, 0, replay, {
    kind: "started",
    runId,
    agentType: className,
    ...(preview !== null && { inputPreview: tryParseJson(preview) }),
    order: displayOrder ?? seq,
    ...(display !== null && { display: tryParseJson(display) as { name?: string; icon?: string } }),
  });
}

/** @param next how many chunks are stored before this one, for one that is not stored. */
export function chunkFrame(
  run: ListedAgentRun,
  { sequence, body }: AgentToolChunk,
  next: number,
  replay = false,
): string {
  const { runId } = run;
  if (sequence !== undefined) return frame(run, sequence + 1, replay, { kind: "chunk", runId, body });
  // Progress is known by an id of its own; what else is not stored needs one.
  const unstored = isProgress(body) ? {} : { unstoredId: crypto.randomUUID() };
  return frame(run, next + 1, replay, { kind: "chunk", runId, body, ...unstored });
}

export function milestoneFrame(
  run: ListedAgentRun,
  milestone: AgentToolMilestone,
  next: number,
  replay = false,
): string {
  const { chunks: _place, ...data } = milestone;
  const body = JSON.stringify({ type: "data-agent-milestone", data });
  return frame(run, next + 1, replay, { kind: "chunk", runId: run.runId, body });
}

/** The end of a run. */
export function endFrame(run: ListedAgentRun, replay = false): string {
  return frame(run, run.chunks + 1, replay, endEvent(run));
}

function endEvent({ runId, status, summary, error, reason, childRunning }: ListedAgentRun): AgentToolEvent {
  switch (status) {
    case "completed":
    case "running":
      return { kind: "finished", runId, summary: summary ?? "" };
    case "error":
      return { kind: "error", runId, error: error ?? "" };
    case "aborted":
      return { kind: "aborted", runId, ...(error !== null && { reason: error }) };
    case "interrupted":
      return {
        kind: "interrupted",
        runId,
        error: error ?? "",
        ...(reason !== null && { reason: reason as AgentToolInterruptReason }),
        ...(childRunning !== null && { childStillRunning: childRunning === 1 }),
      };
  }
}

/** Whether a chunk reports progress. */
export function isProgress(body: string): boolean {
  return body.startsWith('{"type":"data-agent-progress"');
}

/** A run as far as it was heard. */
export interface HeardRun {
  readonly run: AgentRunRow;
  /** How many stored chunks were heard. */
  count: number;
  /** Milestones that were heard of. */
  readonly milestones: Set<number>;
}

/** Whom a parent tells what its child says. */
interface RunAudience {
  readonly own: OwnAgent;
  readonly agent: RunPolicy;
  readonly events: RunEvents;
  readonly detached: DetachedRuns;
}

/** Passes on what a child says of a run: to the clients of the parent, its hooks, and its conversation. */
export function runListener(heard: HeardRun, { own, agent, events, detached }: RunAudience): AgentToolListener {
  const { run, milestones } = heard;
  const reported = (progress: AgentToolProgressSnapshot) => {
    if (run.detached !== null) detached.reported(run.runId, progress.at);
    watch(agent, () => agent.onProgress(toInfo(run), progress));
  };
  return {
    chunks: (chunks) => {
      if (own.halted) return;
      const frames: string[] = [];
      for (const chunk of chunks) {
        if (chunk.sequence !== undefined) heard.count = chunk.sequence + 1;
        const progress = chunk.sequence === undefined && isProgress(chunk.body);
        if (progress) reported({ ...progressOf(chunk.body), at: own.host.clock.now() });
        if (progress || run.delivery === "full") frames.push(chunkFrame(run, chunk, heard.count));
      }
      if (frames.length > 0) events.tell(run, frames);
    },
    milestone: (milestone) => {
      if (own.halted || milestones.has(milestone.sequence)) return;
      milestones.add(milestone.sequence);
      events.tell(run, [milestoneFrame(run, milestone, heard.count)]);
      const { name, sequence: _sequence, chunks: _chunks, ...rest } = milestone;
      reported({ ...rest, milestone: name });
      detached.reached(run.runId, milestone);
    },
  };
}

function progressOf(body: string): Omit<AgentToolProgressSnapshot, "at"> {
  return (JSON.parse(body) as { data: Omit<AgentToolProgressSnapshot, "at"> }).data;
}
