import { PerdureError } from "../../base/error.ts";
import type { UIMessage } from "../../message/types.ts";
import type { Work } from "../../work/work.ts";
import type { AgentHost, WriteLevel } from "../../port.ts";
import { Transcripts } from "../../session/transcripts.ts";
import { readChatContext } from "../../store/session.ts";
import {
  cancelTurn,
  isOpen,
  noteProgress,
  openTurns,
  readTurn,
  releaseTurn,
  settleTurn,
  startTurn,
  type TurnRow,
} from "../../store/turn.ts";
import { nextQuestionExpiry } from "../../store/tool-call.ts";
import { attachmentsOf } from "../../tool/action-attachment.ts";
import { ActiveTurn } from "./active-turn.ts";
import type { ChatHooks, ChatOutput, Origin, TurnEnd, TurnOutcome } from "./chat-types.ts";
import type { Desk } from "./desk.ts";
import { drive } from "./drive.ts";
import { abandon, finish, notSaved } from "./finish.ts";
import { familyOf, forgetSession, isOfSession } from "./forget-session.ts";
import { messagesIn } from "./history.ts";
import { decideRecovery, tellRecovered } from "./recover.ts";
import { renamed } from "./renamed.ts";
import { dropApproved, repairLast, repairsOf } from "./repair-last.ts";
import { takePlace } from "./place.ts";
import { endOf, nextTurnMove } from "./state.ts";
import { type ChatRequest, type RefusedMessage, submit } from "../intake/submit.ts";
import { answerTool, expireApprovals, holds, type ToolAnswer } from "../intake/tool-answers.ts";
import { type Outcome, Waiters } from "./waiters.ts";

/** After the store refused to take a turn's end, how long until the turn is looked at again. */
const STORE_RETRY_MS = 5_000;

/**
 * The conversation of an agent and the turns that make it. Every way to start a turn puts a row into the inbox
 * and ends in {@link Chat.pump}; every end of a turn goes through {@link finish}.
 */
export class Chat implements Desk, Work {
  readonly host: AgentHost;
  readonly hooks: ChatHooks;
  readonly output: ChatOutput;
  readonly transcripts: Transcripts;
  readonly origins = new Map<string, Origin>();
  readonly #changed: () => void;
  readonly #stopped: () => boolean;
  readonly #waiters = new Waiters();
  #active: ActiveTurn | undefined;
  #due: number | null = null;
  #pausedUntil = 0;
  #halted = false;
  /** The turn that clients were told is being recovered. */
  #recovering: string | undefined;
  #responses: Promise<void> = Promise.resolve();

  /** @param work `changed`: due times changed; `stopped`: begin nothing new. */
  constructor(host: AgentHost, hooks: ChatHooks, output: ChatOutput, work: { changed(): void; stopped(): boolean }) {
    this.host = host;
    this.hooks = hooks;
    this.output = output;
    this.#changed = () => work.changed();
    this.#stopped = () => work.stopped();
    this.transcripts = new Transcripts(host, {
      sanitize: (message) => hooks.sanitize(message),
      maxMessages: () => hooks.settings().maxMessages,
      removed: (id) => hooks.removed?.(id),
      renamed: (session, from, to) => renamed(this, session, from, to),
    });
  }

  get running(): ActiveTurn | undefined {
    return this.#active;
  }

  turn(id: string): ActiveTurn | undefined {
    return this.#active?.row.id === id ? this.#active : undefined;
  }

  turnIn(session: string): ActiveTurn | undefined {
    return this.#active?.row.session === session ? this.#active : undefined;
  }

  get session(): string {
    return this.#active?.row.session ?? this.transcripts.current;
  }

  /**
   * The conversation as the app and the model see it: an answer that has only begun is not in it, and while a turn
   * runs, neither is what waits for a turn of its own.
   */
  get messages(): UIMessage[] {
    return messagesIn(this, this.session);
  }

  /** Turns that will stream but do not yet, oldest first; of one session, if it is given. */
  waitingTurns(session?: string): TurnRow[] {
    return openTurns(this.host).filter((turn) => {
      if (session !== undefined && turn.session !== session) return false;
      if (turn.seq === this.#active?.row.seq) return !this.#active.streaming;
      return turn.status !== "held" || holds(this, turn) === "ready";
    });
  }

  /** Carries on what an earlier life left. */
  start(): void {
    this.pump();
  }

  /** See {@link submit}. */
  submit(request: ChatRequest, origin: Origin): RefusedMessage | undefined {
    return submit(this, request, origin);
  }

  /** Whether a turn of this id was accepted, and is not forgotten yet. */
  knows(requestId: string): boolean {
    return readTurn(this.host, requestId) !== undefined;
  }

  /** See {@link answerTool}. */
  answerTool(answer: ToolAnswer, origin: Origin): boolean | "held" {
    return answerTool(this, answer, origin);
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
    const active = this.#active;
    if (turns.some(({ seq }) => seq === active?.row.seq)) active?.abort.abort(stopReason());
    this.pump();
  }

  /**
   * Forgets a conversation, with all views of it. Its turns end; nothing of them is written any more.
   * @param also runs in the transaction that does it.
   */
  clear(origin: Origin, session = this.session, also?: () => void): void {
    const family = familyOf(this.host, session);
    const open = openTurns(this.host).filter((turn) => family.has(turn.session));
    const active = this.#active !== undefined && family.has(this.#active.row.session) ? this.#active : undefined;
    this.commit(() => {
      forgetSession(this, family);
      also?.();
    });
    if (active !== undefined) {
      active.dropped = true;
      active.log.close();
      active.abort.abort(stopReason());
    }
    // First: a clear makes the public hook forget ends of turns that it has heard of but not passed on.
    for (const one of family) this.output.cleared(one, origin);
    for (const turn of open) {
      if (turn.seq === active?.row.seq) continue;
      this.output.skipped(turn, this.origins.get(turn.id), true);
      this.#ended(turn.id, { status: "skipped" });
    }
  }

  /** Resolves with how the turn ended. */
  settled(requestId: string): Promise<Outcome> {
    const turn = readTurn(this.host, requestId);
    if (turn !== undefined && isOpen(turn)) return this.#waiters.forTurn(requestId);
    return Promise.resolve({ status: endOf(turn), error: turn?.error ?? undefined });
  }

  /** Resolves with true when no turn runs or is about to, with false after `timeout` milliseconds. */
  idle(timeout?: number): Promise<boolean> {
    return this.#quiet() ? Promise.resolve(true) : this.#waiters.forQuiet(this.host.clock, timeout);
  }

  commit<T>(work: () => T, level?: WriteLevel): T {
    try {
      return this.host.tx(work, level);
    } catch (thrown) {
      this.transcripts.reload();
      throw thrown;
    }
  }

  pump(): void {
    if (this.#halted) return;
    for (;;) {
      const now = this.host.clock.now();
      const paused = now < this.#pausedUntil;
      const move = nextTurnMove(openTurns(this.host), {
        now,
        active: this.#active !== undefined || paused,
        stopped: this.#stopped(),
        holds: (turn) => holds(this, turn),
      });
      if (move.kind === "run" || move.kind === "resume") {
        void this.host.keepAwake(this.#run(move.turn));
        return;
      }
      if (move.kind === "wait") {
        this.#due = paused ? this.#pausedUntil : move.until;
        this.#changed();
        if (this.#waiters.waitForQuiet && this.#quiet()) this.#waiters.quiet();
        return;
      }
      this.commit(() => {
        settleTurn(this.host, move.turn.seq, move.status, null, now);
        if (move.turn.continuation === 1) dropApproved(this, move.turn.session);
      });
      this.close(move.turn, move.status);
    }
  }

  // Work with a due time: turns that wait for a pause, and questions that expire.

  next(): number | null {
    const expiry = nextQuestionExpiry(this.host);
    if (this.#due === null || expiry === null) return this.#due ?? expiry;
    return Math.min(this.#due, expiry);
  }

  active(): boolean {
    return this.#active !== undefined;
  }

  runDue(): void {
    this.#due = null;
    expireApprovals(this);
    this.pump();
  }

  halt(reason: unknown): void {
    this.#halted = true;
    if (this.#active === undefined) return;
    this.#active.halted = true;
    this.#active.abort.abort(reason);
  }

  async #run(found: TurnRow): Promise<void> {
    const active = this.#begin(found);
    if (active === undefined) return this.#pause();
    let end: TurnEnd | "again";
    try {
      end = await this.#attempt(active);
    } catch (thrown) {
      this.hooks.failed(thrown, { stage: "turn", requestId: found.id });
      end = { status: "error", error: await this.hooks.explain(thrown, active.failure("turn")) };
    }
    if (active.halted) return;
    let needless: readonly TurnRow[] = [];
    try {
      if (end !== "again") needless = finish(this, active, end);
      else active.log.flush();
    } catch (thrown) {
      this.hooks.failed(thrown, { stage: "save", requestId: found.id });
      this.transcripts.reload();
      const error = await this.hooks.explain(notSaved(thrown), active.failure("persist"));
      end = { status: "error", error };
      if (active.halted) return;
      // Not even that it failed is stored: it is not over, and nobody may be told so.
      if (!abandon(this, active, error)) [end, this.#pausedUntil] = ["again", this.host.clock.now() + STORE_RETRY_MS];
    }
    this.#active = undefined;
    if (end !== "again") this.#tell(active, active.dropped ? { status: "aborted" } : end);
    for (const turn of needless) this.close(turn, "skipped");
    this.pump();
  }

  /** Nothing can be stored now: try again later. */
  #pause(): void {
    this.#pausedUntil = this.host.clock.now() + STORE_RETRY_MS;
    this.pump();
  }

  #setRecovering(turn: TurnRow, value: boolean): void {
    if ((this.#recovering === turn.id) === value) return;
    this.#recovering = value ? turn.id : undefined;
    this.output.recovering(turn, value);
  }

  #tell(active: ActiveTurn, end: TurnEnd): void {
    this.#setRecovering(active.row, false);
    if (active.incident !== undefined) tellRecovered(this.host, active.incident, end);
    // What was cut was mended, and who stopped it reads no more of the stream.
    const { session } = active.row;
    const asStreamed = end.status === "completed" && active.stoodIn.size === 0;
    const mended = asStreamed ? undefined : this.transcripts.of(session).get(active.builder.id);
    if (mended !== undefined) this.output.messageUpdated(session, mended);
    this.output.ended(active.row, end, active.origin);
    this.#responded(active, end);
  }

  /** Undefined when the attempt could not be stored; then it has not begun. */
  #begin(found: TurnRow): ActiveTurn | undefined {
    let cut = false;
    try {
      const row = this.#prepare(found, () => (cut = true));
      const transcript = this.transcripts.of(row.session);
      this.#active = new ActiveTurn(this.host, transcript, this.output, row, this.origins.get(row.id));
    } catch (thrown) {
      this.hooks.failed(thrown, { stage: "turn", requestId: found.id });
      return undefined;
    }
    if (cut) this.output.transcript(found.session);
    return this.#active;
  }

  /** A held turn is released and every attempt is counted, before it can cost anything. */
  #prepare(found: TurnRow, cut: () => void): TurnRow {
    return this.commit(() => {
      if (found.status === "held") {
        const context = readChatContext(this.host, found.session);
        releaseTurn(this.host, found.seq, context.body, context.clientTools);
      }
      if (found.attempts > 0) noteProgress(this.host, found.seq, this.host.clock.now());
      else {
        if (takePlace(this, found)) cut();
        if (found.continuation === 0) repairLast(this, found.session);
      }
      const row = readTurn(this.host, found.id) ?? found;
      this.hooks.begun?.(row);
      startTurn(this.host, found.seq, this.host.clock.now());
      return row;
    });
  }

  async #attempt(active: ActiveTurn): Promise<TurnEnd | "again"> {
    let continuation = active.continuation;
    if (this.hooks.wanted !== undefined && !(await this.hooks.wanted(active.row))) return { status: "aborted" };
    if (active.row.attempts > 0) {
      const decision = await decideRecovery(this, active);
      if (decision.kind === "end") {
        if (!decision.keepPartial) active.builder.parts.length = active.builder.inherited;
        return decision.end;
      }
      continuation = decision.continuation;
      active.incident = decision.incident;
      // Before anything is added: who waits is given what there is first.
      active.streaming = true;
      this.output.streaming(active.row);
      active.standInAgain(repairsOf(this));
      // A turn that runs step by step goes on from what is there by itself.
      if (this.hooks.ranInSteps?.(active.row) !== true) active.carryOn(repairsOf(this));
      active.log.flush();
      this.#setRecovering(active.row, true);
    }
    return drive(this, active, continuation);
  }

  #responded(active: ActiveTurn, end: TurnEnd): void {
    const { row } = active;
    const { output } = end;
    this.#ended(row.id, {
      status: end.status,
      ...(end.error !== undefined && { error: end.error }),
      ...(output !== undefined && { output }),
    });
    if (active.dropped) return;
    const message = this.transcripts.of(row.session).get(active.builder.id);
    const result = {
      ...{ requestId: row.id, sessionId: row.session, identity: active.identity, status: end.status },
      ...{ continuation: active.continuation, message, error: end.error },
      attachments: message === undefined ? [] : attachmentsOf(message),
      ...(output !== undefined && { output }),
    };
    this.#responses = this.#responses
      .then(() => this.hooks.responded(result))
      .catch((thrown: unknown) => this.hooks.failed(thrown, { stage: "onChatResponse", requestId: row.id }));
    void this.host.keepAwake(this.#responses);
  }

  #quiet(): boolean {
    return this.#active === undefined && this.waitingTurns().length === 0;
  }

  close(turn: TurnRow, status: TurnOutcome): void {
    this.output.ended(turn, { status }, this.origins.get(turn.id));
    this.#ended(turn.id, { status });
  }

  #ended(id: string, end: Outcome): void {
    this.hooks.over?.(id);
    this.origins.delete(id);
    this.#waiters.ended(id, end);
  }
}

function stopReason(): PerdureError {
  return new PerdureError("agent_gone", "The turn was stopped.");
}
