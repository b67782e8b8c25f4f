import { PerdureError } from "../../base/error.ts";
import type { UIMessage } from "../../message/types.ts";
import type { Clock } from "../../base/time.ts";
import type { Work } from "../../work/work.ts";
import type { AgentHost, WriteLevel } from "../../port.ts";
import { hasSession, noSession } from "../../session/session-changes.ts";
import { Transcripts } from "../../session/transcripts.ts";
import { nextQuestionExpiry } from "../../store/tool-call.ts";
import { cancelTurn, isOpen, openTurns, readTurn, settleTurn, type TurnRow } from "../../store/turn.ts";
import { CallBook } from "../../tool/call-book.ts";
import { expireApprovals, holds } from "../intake/tool-answers.ts";
import type { Origin, TurnAgent, TurnOutcome, TurnPolicy } from "../policy.ts";
import { Conversation, type Conversing } from "./conversation.ts";
import type { Answerer, Engine, TurnEnd, TurnFacts, TurnOutput } from "./engine.ts";
import { dropApproved, familyOf, forgetSession, isOfSession, messagesIn, renamed } from "./mend.ts";
import { endOf, nextMoves, suspects } from "./next-moves.ts";
import type { Turn } from "./turn.ts";

/** After the store refused to take a turn's end, how long until the turn is looked at again. */
const STORE_RETRY_MS = 5_000;

/** What an agent brings to its conversations. */
export type AgentSide = Pick<Engine, "policy" | "silent" | "agent" | "answerer" | "facts">;

/** An agent's conversations. Every way to start a turn adds an inbox row and calls {@link Conversations.pump}, which decides. */
export class Conversations implements Conversing, Work {
  readonly host: AgentHost;
  readonly policy: TurnPolicy;
  readonly silent: TurnPolicy;
  readonly agent: TurnAgent;
  readonly answerer: Answerer;
  readonly facts: readonly TurnFacts[];
  readonly output: TurnOutput;
  readonly transcripts: Transcripts;
  readonly origins = new Map<string, Origin>();
  readonly #changed: () => void;
  readonly #stopped: () => boolean;
  readonly #waiters = new Waiters();
  /** Where something happens now. */
  readonly #open = new Map<string, Conversation>();
  /** See {@link suspects}. */
  #alone: Set<string> | undefined;
  #due: number | null = null;
  #pausedUntil = 0;
  halted = false;

  /** @param work `changed`: due times changed; `stopped`: begin nothing new. */
  constructor(host: AgentHost, side: AgentSide, output: TurnOutput, work: { changed(): void; stopped(): boolean }) {
    const { policy } = side;
    this.host = host;
    this.policy = policy;
    this.silent = side.silent;
    this.agent = side.agent;
    this.answerer = side.answerer;
    this.facts = side.facts;
    this.output = output;
    this.#changed = () => work.changed();
    this.#stopped = () => work.stopped();
    this.transcripts = new Transcripts(host, {
      sanitize: (message) => policy.sanitizeMessageForPersistence(message),
      maxMessages: () => policy.maxPersistedMessages,
      removed: (id) => new CallBook(host).forget(id),
      isUsed: (session) => this.turnIn(session) !== undefined,
      renamed: (session, from, to) => renamed(this, session, from, to),
    });
  }

  get turns(): Turn[] {
    return [...this.#open.values()].flatMap(({ turn }) => turn ?? []);
  }

  /** The turn that runs, if it is the only one. */
  get running(): Turn | undefined {
    const [turn, another] = this.turns;
    return another === undefined ? turn : undefined;
  }

  turn(id: string): Turn | undefined {
    return this.turns.find(({ row }) => row.id === id);
  }

  turnIn(session: string): Turn | undefined {
    return this.#open.get(session)?.turn;
  }

  get session(): string {
    return this.running?.row.session ?? this.transcripts.current;
  }

  /** The conversation of that session as the app and the model see it. */
  get messages(): UIMessage[] {
    return messagesIn(this, this.session);
  }

  /** Turns that will stream but do not yet, oldest first; of one session, if it is given. */
  waitingTurns(session?: string): TurnRow[] {
    return openTurns(this.host).filter((turn) => {
      if (session !== undefined && turn.session !== session) return false;
      const running = this.turnIn(turn.session);
      if (turn.seq === running?.row.seq) return !running.streams;
      return turn.status !== "held" || holds(this, turn) === "ready";
    });
  }

  /** Carries on what an earlier life left. */
  start(): void {
    this.pump();
  }

  /** Whether a turn of this id was accepted, and is not forgotten yet. */
  knows(requestId: string): boolean {
    return readTurn(this.host, requestId) !== undefined;
  }

  /** Stops a turn for good, whether it runs or waits. The wish is stored first. False: no such turn, or of another session. */
  cancel(requestId: string, session?: string): boolean {
    const turn = readTurn(this.host, requestId);
    if (turn === undefined || !isOpen(turn) || !isOfSession(this.host, turn, session)) return false;
    this.#stop([turn]);
    return true;
  }

  /** Stops every turn that runs or waits: all of them, or none. */
  cancelAll(): void {
    this.#stop(openTurns(this.host));
  }

  #stop(turns: readonly TurnRow[]): void {
    if (turns.length === 0) return;
    this.commit(() => {
      for (const { seq } of turns) cancelTurn(this.host, seq);
    });
    for (const { id } of turns) this.turn(id)?.cut("stopped", stopReason());
    this.pump();
  }

  /** Forgets a conversation and its views, and ends their turns. @param also runs in the same transaction. */
  clear(origin: Origin, session = this.session, also?: () => void): void {
    const family = familyOf(this.host, session);
    const open = openTurns(this.host).filter((turn) => family.has(turn.session));
    const running = this.turns.filter(({ row }) => family.has(row.session));
    this.commit(() => {
      forgetSession(this, family);
      also?.();
    });
    for (const turn of running) turn.cut("cleared", stopReason());
    // First: a clear makes the public hook forget ends of turns that it has heard of but not passed on.
    for (const one of family) this.output.cleared(one, origin);
    for (const turn of open) {
      if (running.some(({ row }) => row.seq === turn.seq)) continue;
      this.output.skipped(turn, this.origins.get(turn.id), true);
      this.ended(turn, { status: "skipped" });
    }
  }

  /** Resolves with how the turn ended. Aborting the signal stops it. */
  async settled(requestId: string, signal?: AbortSignal): Promise<TurnEnd> {
    const stop = () => void this.cancel(requestId);
    if (signal?.aborted === true) stop();
    const turn = readTurn(this.host, requestId);
    if (turn === undefined || !isOpen(turn)) return { status: endOf(turn), error: turn?.error ?? undefined };
    signal?.addEventListener("abort", stop, { once: true });
    const end = await this.#waiters.forTurn(requestId);
    signal?.removeEventListener("abort", stop);
    return end;
  }

  /** Resolves with true when no turn runs or is about to, in one session or in any; with false after `timeout` milliseconds. */
  idle({ timeout, session }: { readonly timeout?: number; readonly session?: string } = {}): Promise<boolean> {
    const isQuiet = () =>
      this.turns.every(({ row }) => session !== undefined && row.session !== session) &&
      this.waitingTurns(session).length === 0;
    return isQuiet() ? Promise.resolve(true) : this.#waiters.forQuiet(this.host.clock, timeout, isQuiet);
  }

  commit<T>(work: () => T, level?: WriteLevel): T {
    try {
      return this.host.tx(work, level);
    } catch (thrown) {
      this.transcripts.reload();
      throw thrown;
    }
  }

  /** Does what is to be done next: see {@link nextMoves}. */
  pump(): void {
    while (!this.halted) {
      const now = this.host.clock.now();
      const paused = now < this.#pausedUntil;
      const open = openTurns(this.host);
      const { settle, start, until } = nextMoves(open, {
        ...{ now, stopped: this.#stopped() },
        running: new Set(this.turns.map(({ row }) => row.session)),
        width: paused ? 0 : this.#width,
        alone: (this.#alone ??= suspects(open)),
        holds: (turn) => holds(this, turn),
      });
      for (const { turn, status } of settle) this.#settle(turn, status, now);
      if (settle.length > 0) continue;
      // One at a time: what it does at once may start others.
      const [first] = start;
      if (first !== undefined) {
        this.#start(first);
        continue;
      }
      this.#due = paused ? this.#pausedUntil : until;
      this.#changed();
      this.#waiters.look();
      return;
    }
  }

  /** What is no number of turns counts as one. */
  get #width(): number {
    const { maxConcurrentTurns } = this.policy;
    return maxConcurrentTurns >= 1 ? maxConcurrentTurns : 1;
  }

  pause(): void {
    this.#pausedUntil = this.host.clock.now() + STORE_RETRY_MS;
    this.pump();
  }

  #start(found: TurnRow): void {
    const conversation = this.#open.get(found.session) ?? new Conversation(this, found.session);
    this.#open.set(found.session, conversation);
    const turn = conversation.begin(found);
    if (turn !== undefined) void this.host.keepAwake(conversation.run(turn));
    else {
      this.leave(conversation);
      this.#pausedUntil = this.host.clock.now() + STORE_RETRY_MS;
    }
  }

  /** Ends a turn that never ran. */
  #settle(turn: TurnRow, status: "aborted" | "skipped", now: number): void {
    this.commit(() => {
      settleTurn(this.host, turn.seq, status, null, now);
      if (turn.continuation === 1) dropApproved(this, turn.session);
    });
    this.close(turn, status);
  }

  leave(conversation: Conversation): void {
    if (conversation.isOver) this.#open.delete(conversation.session);
  }

  // Work with a due time: turns that wait for a pause, and questions that expire.

  next(): number | null {
    const expiry = nextQuestionExpiry(this.host);
    if (this.#due === null || expiry === null) return this.#due ?? expiry;
    return Math.min(this.#due, expiry);
  }

  active(): boolean {
    return this.turns.length > 0;
  }

  runDue(): void {
    this.#due = null;
    expireApprovals(this);
    this.pump();
  }

  halt(reason: unknown): void {
    this.halted = true;
    for (const turn of this.turns) turn.cut("halted", reason);
  }

  close(turn: TurnRow, status: TurnOutcome): void {
    this.output.ended(turn, { status }, this.origins.get(turn.id));
    this.ended(turn, { status });
  }

  ended({ id, session, trigger, createdAt }: TurnRow, end: TurnEnd): void {
    const durationMs = Math.max(0, this.host.clock.now() - createdAt);
    this.host.emit("turn:settled", { requestId: id, session, trigger, status: end.status, durationMs });
    this.agent.over(id);
    this.output.sessions?.({ kind: "turn" });
    this.origins.delete(id);
    this.#alone?.delete(id);
    this.#waiters.ended(id, end);
  }
}

/** The session that code names; by default that of the running turn, else the current one. @throws PerdureError `not_found` */
export function sessionNamed(all: Conversations, id: string | undefined): string {
  if (id === undefined) return all.session;
  if (hasSession(all.host, id)) return id;
  throw noSession(id);
}

function stopReason(): PerdureError {
  return new PerdureError("agent_gone", "The turn was stopped.");
}

/** Server code that waits for a turn to end, or for turns to be quiet. In memory: it dies with its callers. */
class Waiters {
  readonly #turns = new Map<string, ((end: TurnEnd) => void)[]>();
  readonly #quiet = new Map<() => void, () => boolean>();

  /** Resolves when {@link Waiters.ended} is called for this turn. */
  forTurn(id: string): Promise<TurnEnd> {
    return new Promise((resolve) => {
      const waiting = this.#turns.get(id);
      if (waiting === undefined) this.#turns.set(id, [resolve]);
      else waiting.push(resolve);
    });
  }

  /** Resolves with true when {@link Waiters.look} finds that `isQuiet`, with false after `timeout` milliseconds. */
  forQuiet(clock: Clock, timeout: number | undefined, isQuiet: () => boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (quiet: boolean) => {
        cancel?.();
        this.#quiet.delete(rest);
        resolve(quiet);
      };
      const rest = () => finish(true);
      const cancel = timeout === undefined ? undefined : clock.after(timeout, () => finish(false));
      this.#quiet.set(rest, isQuiet);
    });
  }

  ended(id: string, end: TurnEnd): void {
    const waiting = this.#turns.get(id) ?? [];
    this.#turns.delete(id);
    for (const resolve of waiting) resolve(end);
  }

  /** Looks whether it is quiet now where somebody waits for that. */
  look(): void {
    for (const [rest, isQuiet] of this.#quiet) if (isQuiet()) rest();
  }
}
