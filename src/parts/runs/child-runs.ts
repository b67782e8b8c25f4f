import { turnNow } from "../current.ts";
import { errorText, PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { Identity } from "../../base/identity.ts";
import type { Follower } from "../../live/broadcast.ts";
import { toMessages } from "../../message/input.ts";
import { tryParseJson } from "../../base/json.ts";
import { batchState } from "../../message/tool-answer.ts";
import { isToolPart, type UIMessage } from "../../message/types.ts";
import { parseMessage } from "../../message/validate.ts";
import type { AgentHost } from "../../port.ts";
import { endRun, insertRun, openRuns, readRun, runOfTurn, type RunRow, setRunTurns } from "../../store/run.ts";
import { countChunks, readChunks } from "../../store/stream.ts";
import { isOpen, readTurn, type TurnRow, type TurnStatus } from "../../store/turn.ts";
import { accept, givenIdentity } from "../../turn/intake/accept.ts";
import type { AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";
import { writeJson } from "../../wire/json.ts";
import type { ChatRoom } from "../../live/chat-room.ts";
import { parentPath } from "../children.ts";
import { askAbove } from "./ask-above.ts";
import { ChildProgress } from "./child-progress.ts";
import { storeEnd } from "./run-ends.ts";
import type {
  AgentToolChildHooks,
  AgentToolChunk,
  AgentToolListener,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolRunInspection,
} from "./types.ts";

/** What the runs of a child ask of it. */
interface ChildRunsOwner {
  readonly host: AgentHost;
  room(): ChatRoom;
  readonly hooks: AgentToolChildHooks;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown): void;
}

/** A turn of a run: its number, the number of its first chunk within the run, its id. */
type TurnOfRun = readonly [seq: number, first: number, id: string];

/** Somebody who follows a run. */
interface Tail {
  readonly runId: string;
  readonly listener: AgentToolListener;
  /** The number of the chunk that it gets next. */
  next: number;
  /** Where the chunks of the turn begin that it hears. Looked up once per turn, not once per flush. */
  place: { readonly turn: number; readonly first: number } | undefined;
  resolve(end: AgentToolRunInspection): void;
  reject(error: unknown): void;
}

/**
 * The work that an agent does for the one above it. A run and its turn are one commit, so asking again joins it. After a crash it
 * goes on only if the agent above still wants it: a stop stored there holds, even if never heard here.
 */
export class ChildRuns {
  readonly #own: ChildRunsOwner;
  readonly #tails = new Set<Tail>();
  readonly #ending = new Set<string>();
  readonly #progress: ChildProgress;
  #follower: Follower | undefined;

  constructor(own: ChildRunsOwner) {
    this.#own = own;
    this.#progress = new ChildProgress(own.host, () => own.room());
  }

  get #host(): AgentHost {
    return this.#own.host;
  }

  /** Only children have runs. Asked first everywhere, so that others do not pay for them. */
  get #none(): boolean {
    return this.#host.path.length === 1 || this.#host.blank;
  }

  /** Looks after runs that an earlier life left. */
  started(): void {
    if (this.#none) return;
    this.#listen();
    this.#settle();
  }

  /** Accepts a run, once. What comes of it is heard by following it. */
  start(
    input: unknown,
    run: { readonly runId: string; readonly identity?: Identity; readonly lineage?: string | null },
  ): AgentToolRunInspection {
    const { runId, identity, lineage = null } = run;
    const known = readRun(this.#host, runId);
    if (known !== undefined) return this.#inspect(known);
    const message = toMessage(this.#own.hooks.formatAgentToolInput(input, { runId }), runId);
    const row = {
      runId,
      lineage,
      status: "running",
      input: writeJson(input, "The input of the run"),
      messageId: message.id,
      error: null,
      startedAt: this.#host.clock.now(),
      endedAt: null,
    } as const;
    const { chat } = this.#own.room();
    this.#listen();
    accept(chat, {
      session: chat.transcripts.current,
      input: { kind: "messages", messages: toMessages(message), joins: "now" },
      identity: givenIdentity({ identity }),
      isBounded: true,
      also: (turn) => insertRun(this.#host, { ...row, turns: JSON.stringify([[turn.seq, 0, turn.id]]) }),
    });
    return this.inspect(runId) as AgentToolRunInspection;
  }

  /** Stops a run for good. One that never began will not begin. */
  cancel(runId: string, reason?: string): void {
    const run = readRun(this.#host, runId);
    if (run === undefined) {
      const now = this.#host.clock.now();
      const none = { input: "null", messageId: null, turns: "[]", error: reason ?? null };
      insertRun(this.#host, { runId, status: "aborted", ...none, startedAt: now, endedAt: now });
      return;
    }
    if (run.status !== "running") return;
    const turn = lastTurnOf(run);
    if (turn !== undefined && this.#own.room().chat.cancel(turn[2])) return;
    // At once, also while what it brings is being made: that may never be done.
    const end = { kind: "end", status: "aborted", error: reason ?? "The run was stopped." } as const;
    void this.#close(run, end).catch((thrown: unknown) => this.#own.failed(thrown));
  }

  inspect(runId: string): AgentToolRunInspection | null {
    const run = readRun(this.#host, runId);
    return run === undefined ? null : this.#inspect(run);
  }

  /** The stored chunks of a run from number `from` on. */
  chunks(runId: string, from: number): AgentToolChunk[] {
    const run = readRun(this.#host, runId);
    return run === undefined ? [] : this.#stored(run, from);
  }

  /** All chunks of a run from `from` on, as they come; resolves with its end or null (no such run), rejects if this life ends. */
  async tail(runId: string, from: number, listener: AgentToolListener): Promise<AgentToolRunInspection | null> {
    const run = readRun(this.#host, runId);
    if (run === undefined) return null;
    const { promise, resolve, reject } = Promise.withResolvers<AgentToolRunInspection>();
    const tail: Tail = { runId, listener, next: from, place: undefined, resolve, reject };
    this.#give(tail, this.#stored(run, from));
    // Read now: what is shown when a life ends can read nothing any more.
    const milestones = JSON.parse(run.milestones) as AgentToolMilestone[];
    this.#host.show(() => milestones.forEach((milestone) => listener.milestone(milestone)));
    if (run.status !== "running") return this.#inspect(run);
    this.#listen();
    this.#tails.add(tail);
    return promise.finally(() => this.#tails.delete(tail));
  }

  /** See `ChatAgent.reportProgress`. */
  report(progress: AgentToolProgress, persist: boolean): void {
    const { chat } = this.#own.room();
    const seq = this.#none ? undefined : (turnNow(this.#host)?.seq ?? chat.running?.row.seq);
    const run = seq === undefined ? undefined : runOfTurn(this.#host, seq);
    if (run === undefined) return;
    const chunks = progress.milestone === undefined ? 0 : this.#saidBefore(run);
    const milestone = this.#progress.report(run, progress, persist, chunks);
    if (milestone !== undefined) this.#tellMilestone(run.runId, milestone);
  }

  /** How many chunks come before what is said now. A milestone is told behind all of them. */
  #saidBefore(run: RunRow): number {
    const last = lastTurnOf(run);
    if (last !== undefined) this.#own.room().chat.turn(last[2])?.log.flush();
    const told = [...this.#tails].filter(({ runId }) => runId === run.runId).map(({ next }) => next);
    return Math.max(this.#inspect(run).chunks, ...told);
  }

  // What the chat asks

  /** A turn begins, in the transaction that starts it: one that goes on with a run's answer, or redoes it, is of that run. */
  begun(turn: TurnRow): void {
    if (turn.attempts > 0 || this.#none || (turn.continuation === 0 && turn.trigger !== "regenerate")) return;
    for (const run of openRuns(this.#host)) {
      const last = lastTurnOf(run);
      if (last === undefined || !this.#goesOn(run, last, turn)) continue;
      const first = last[1] + countChunks(this.#host, last[0]);
      setRunTurns(this.#host, run.runId, JSON.stringify([...turnsOf(run), [turn.seq, first, turn.id]]));
      const denied = turn.answerId === null ? [] : deniedChunks(this.#messages(turn).get(turn.answerId));
      for (const tail of this.#tails) if (tail.runId === run.runId) this.#give(tail, denied);
    }
  }

  #goesOn(run: RunRow, last: TurnOfRun, turn: TurnRow): boolean {
    if (turn.continuation === 0)
      return (
        this.#messages(turn)
          .list()
          .findLast(({ role }) => role === "user")?.id === run.messageId
      );
    return turn.answerId !== null && readTurn(this.#host, last[2])?.answerId === turn.answerId;
  }

  /** Whether the agent above still wants what this turn is for. @throws what the call to it throws. */
  async wanted(turn: TurnRow): Promise<boolean> {
    const run = this.#none ? undefined : runOfTurn(this.#host, turn.seq);
    const above = parentPath(this.#host.path);
    if (run === undefined || above === undefined) return true;
    return (await askAbove(this.#host, above, "wantsAgentToolRun", [run.runId])) === true;
  }

  #listen(): void {
    if (this.#follower !== undefined) return;
    const { live, chat } = this.#own.room();
    const isTold = (seq: number) => [...this.#tails].some((tail) => this.#firstOf(tail, seq) !== undefined);
    const follower: Follower = {
      // While the host stops, those who follow what runs are let wait for its end.
      get seq() {
        return chat.turns.find(({ row }) => isTold(row.seq))?.row.seq ?? -1;
      },
      chunks: (turn, chunks) => {
        for (const tail of this.#tails) {
          const first = this.#firstOf(tail, turn.seq);
          if (first === undefined) continue;
          this.#give(
            tail,
            chunks.map(({ body, seq }) => ({ body, sequence: seq === undefined ? undefined : first + seq })),
          );
        }
      },
      ended: () => this.#settle(),
      cleared: () => this.#settle(),
      gone: () => this.#gone(),
    };
    this.#follower = follower;
    live.followers.add(follower);
  }

  #firstOf(tail: Tail, turn: number): number | undefined {
    if (tail.place?.turn === turn) return tail.place.first;
    const run = readRun(this.#host, tail.runId);
    const first = run && turnsOf(run).find(([seq]) => seq === turn)?.[1];
    if (first !== undefined) tail.place = { turn, first };
    return first;
  }

  #give(tail: Tail, chunks: readonly AgentToolChunk[]): void {
    const fresh = chunks.filter(({ sequence }) => sequence === undefined || sequence >= tail.next);
    const last = fresh.findLast(({ sequence }) => sequence !== undefined)?.sequence;
    if (last !== undefined) tail.next = last + 1;
    // Nobody sees what this agent's own clients may not see yet.
    if (fresh.length > 0) this.#host.show(() => tail.listener.chunks(fresh));
  }

  #tellMilestone(runId: string, milestone: AgentToolMilestone): void {
    for (const tail of this.#tails) {
      if (tail.runId === runId) this.#host.show(() => tail.listener.milestone(milestone));
    }
  }

  #gone(): void {
    const error = new PerdureError("agent_gone", "The child left memory while its run was followed.");
    for (const tail of this.#tails) tail.reject(error);
    this.#tails.clear();
    this.#progress.stop();
  }

  /** Looks at every run that has not ended. */
  #settle(): void {
    for (const run of openRuns(this.#host)) {
      const last = lastTurnOf(run);
      const turn = last && readTurn(this.#host, last[2]);
      const answer = turn === undefined || turn.answerId === null ? undefined : this.#messages(turn).get(turn.answerId);
      const asks = answer !== undefined && !isOpen(turn as TurnRow) && batchState(answer).waiting > 0;
      const move = nextRunMove({ status: turn?.status, error: turn?.error ?? null, asks });
      if (move.kind === "end") this.#end(run, move);
    }
  }

  #messages(turn: TurnRow | undefined) {
    const { chat } = this.#own.room();
    return chat.transcripts.of(turn?.session ?? chat.transcripts.current);
  }

  #end(run: RunRow, move: Extract<RunMove, { kind: "end" }>): void {
    if (this.#ending.has(run.runId)) return;
    this.#ending.add(run.runId);
    const work = this.#close(run, move).finally(() => this.#ending.delete(run.runId));
    void this.#host.keepAwake(work).catch((thrown: unknown) => this.#own.failed(thrown));
  }

  async #close(run: RunRow, move: Extract<RunMove, { kind: "end" }>): Promise<void> {
    let end = { status: move.status, output: null as string | null, summary: null as string | null };
    let error = move.error ?? null;
    if (move.status === "completed") {
      try {
        end = { ...end, ...(await this.#outcome(run)) };
      } catch (thrown) {
        end = { ...end, status: "error" };
        error = errorText(thrown);
        this.#own.failed(thrown);
      }
    }
    const store = () => endRun(this.#host, run.runId, { ...end, error, endedAt: this.#host.clock.now() });
    await storeEnd(this.#host, store, (thrown) => this.#own.failed(thrown));
    const told = this.inspect(run.runId);
    for (const tail of this.#tails) if (told !== null && tail.runId === run.runId) tail.resolve(told);
  }

  async #outcome(run: RunRow): Promise<{ output: string; summary: string }> {
    const { hooks } = this.#own;
    const request = { runId: run.runId, input: tryParseJson(run.input) };
    const turn = readTurn(this.#host, lastTurnOf(run)?.[2] ?? "");
    const messages = ownMessages(this.#messages(turn).list(), run.messageId, turn?.answerId ?? null);
    const output: unknown = await hooks.getAgentToolOutput(request, messages);
    const summary = hooks.getAgentToolSummary(request, output, messages);
    return { output: writeJson(output ?? null, "The output of the run"), summary };
  }

  #stored(run: RunRow, from: number): AgentToolChunk[] {
    const last = lastTurnOf(run);
    const turn = last && readTurn(this.#host, last[2]);
    const chunks: AgentToolChunk[] = turnsOf(run).flatMap(([seq, first]) => {
      const start = Math.max(0, from - first);
      return readChunks(this.#host, seq, start).map((body, i) => ({ body, sequence: first + start + i }));
    });
    return turn === undefined || turn.answerId === null
      ? chunks
      : [...chunks, ...deniedChunks(this.#messages(turn).get(turn.answerId))];
  }

  #inspect(run: RunRow): AgentToolRunInspection {
    const last = lastTurnOf(run);
    return {
      runId: run.runId,
      status: run.status,
      chunks: last === undefined ? 0 : last[1] + countChunks(this.#host, last[0]),
      startedAt: run.startedAt,
      milestones: JSON.parse(run.milestones) as AgentToolMilestone[],
      ...(run.output !== null && { output: JSON.parse(run.output) as unknown }),
      ...(run.summary !== null && { summary: run.summary }),
      ...(run.error !== null && { error: run.error }),
      ...(run.reason !== null && { reason: run.reason as AgentToolInterruptReason }),
      ...(run.endedAt !== null && { completedAt: run.endedAt }),
      ...(run.progress !== null && {
        progress: JSON.parse(run.progress) as NonNullable<AgentToolRunInspection["progress"]>,
      }),
    };
  }
}

function turnsOf(run: RunRow): TurnOfRun[] {
  return JSON.parse(run.turns) as TurnOfRun[];
}

function lastTurnOf(run: RunRow): TurnOfRun | undefined {
  return turnsOf(run).at(-1);
}

/** From what asked for a run to its answer: the child may have been asked for other things since. */
function ownMessages(all: readonly UIMessage[], from: string | null, to: string | null): UIMessage[] {
  const first = Math.max(
    0,
    all.findIndex(({ id }) => id === from),
  );
  const last = all.findIndex(({ id }) => id === to);
  return all.slice(first, last < first ? undefined : last + 1);
}

function toMessage(given: string | UIMessage, runId: string): UIMessage {
  if (typeof given !== "string") {
    const message = parseMessage(given);
    if (message !== undefined) return message;
    const text = "formatAgentToolInput() must return a text, or a message with an id, a role and parts.";
    throw new PerdureError("bad_input", text);
  }
  return {
    id: newId("msg"),
    role: "user",
    parts: [{ type: "text", text: given }],
    metadata: { agentToolRunId: runId },
  };
}

/** Tells followers of a run which calls were denied: only the message says so, and they see none. Not stored, may be repeated. */
function deniedChunks(answer: UIMessage | undefined): AgentToolChunk[] {
  return (answer?.parts ?? []).flatMap((part) =>
    isToolPart(part) && part.state === "output-denied"
      ? [{ sequence: undefined, body: JSON.stringify({ type: "tool-output-denied", toolCallId: part.toolCallId }) }]
      : [],
  );
}

/**
 * What becomes of a run when one of its turns is looked at. A turn that stops to ask a person is followed by another that goes on
 * with the same answer, and both are the run.
 *
 *     running ── its last turn is open, or its answer waits for a person ──→ wait
 *             ── the last turn ended ─────────────────────────────────────→ completed | error | aborted
 */
export type RunMove =
  | { readonly kind: "wait" }
  | { readonly kind: "end"; readonly status: "completed" | "error" | "aborted"; readonly error?: string };

/** What is known of the last turn of a run. */
interface LastTurn {
  /** Undefined when the turn is forgotten: the conversation was cleared. */
  readonly status: TurnStatus | undefined;
  readonly error: string | null;
  /** Whether the answer waits for a tool of the client or an approval. */
  readonly asks: boolean;
}

/** Decides what becomes of a run that has not ended. Pure. */
export function nextRunMove({ status, error, asks }: LastTurn): RunMove {
  switch (status) {
    case "held":
    case "accepted":
    case "running":
      return { kind: "wait" };
    case "completed":
      return asks ? { kind: "wait" } : { kind: "end", status };
    case "error":
      return { kind: "end", status, error: error ?? "The child's turn failed." };
    case "aborted":
      return { kind: "end", status, error: "The child's turn was stopped." };
    case "skipped":
      return { kind: "end", status: "aborted", error: "The child skipped the message." };
    case undefined:
      return { kind: "end", status: "aborted", error: "The child's conversation was cleared." };
  }
}
