import { errorText, PerdureError } from "../../base/error.ts";
import type { AgentHost, Socket } from "../../port.ts";
import type { ListedAgentRun } from "../../store/agent-run.ts";
import { ownerIdOf } from "../../store/session.ts";
import type { AgentToolEventFrame } from "../../wire/agent-tool-frames.ts";
import { chunkFrame, endFrame, isProgress, milestoneFrame, startedFrame } from "./run-frames.ts";
import type { AgentToolChunk, AgentToolMilestone } from "./types.ts";

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
 * Tells the clients of an agent of the runs of their conversation. A client that has just connected is told of earlier ones first, which
 * takes a while, since only the children know what they said; what happens meanwhile waits for its place behind that.
 */
export class RunEvents {
  readonly #host: AgentHost;
  readonly #read: (run: ListedAgentRun) => Promise<StoredRun>;
  readonly #sessionOf: (socket: Socket) => string | undefined;
  /** What clients that are being told of earlier runs have to wait for, by run. */
  readonly #behind = new Map<Socket, Map<string, string[]>>();

  /**
   * @param read may reject: then the run is told without what its child said.
   * @param sessionOf the conversation that a client is in, if the agent holds any.
   */
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
