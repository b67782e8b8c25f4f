import { PerdureError } from "../../base/error.ts";
import { closeStreaming, repairMessage } from "../../message/repair.ts";
import { isSteered } from "../../message/steered.ts";
import { isToolPart, toolName, toolParts, type UIMessage } from "../../message/types.ts";
import type { AgentHost } from "../../port.ts";
import type { Transcript } from "../../session/transcript.ts";
import { readChatContext } from "../../store/session.ts";
import { deleteChunks, deleteEndedChunks, keepsChunks } from "../../store/stream.ts";
import { noteQuestion } from "../../store/tool-call.ts";
import {
  messageIdsOf,
  nameAnswer,
  noteProgress,
  readTurn,
  releaseTurn,
  setTurnIdentity,
  settleTurn,
  startTurn,
  type TurnRow,
} from "../../store/turn.ts";
import { attachmentsOf } from "../../tool/action-attachment.ts";
import { say } from "../intake/accept.ts";
import { submittedMessages } from "../intake/inbox.ts";
import { needlessContinuations } from "../intake/tool-answers.ts";
import { type ChatAnswer, ORDINARY_TURN, readAnswer } from "./by-stream.ts";
import { StreamCallIds } from "./call-ids.ts";
import { explain } from "../policy.ts";
import { callCounter } from "./chunk-bounds.ts";
import type { Engine, StepAnswerer, TurnEnd } from "./engine.ts";
import { passWaiting, waitingMessages } from "./history.ts";
import { isApproved, noteSettled, repairLast, repairsOf, setAside, trimTranscript } from "./mend.ts";
import { decideRecovery, recoveryOf, tellRecovered } from "./recover.ts";
import { Turn } from "./turn.ts";
import type { ChatTurnOptions } from "../step/config.ts";
import { unlessAborted } from "../../base/abort.ts";

/** How long a silent continuation is hidden from clients: the public hook is better at joining a stream that has begun. */
const HOLD_BACK_MS = 100;

/** Those that a conversation is one of. */
export interface Conversing extends Engine {
  /** This life is over. */
  readonly halted: boolean;
  /** A conversation in which nothing happens any more is forgotten. */
  leave(conversation: Conversation): void;
  /** Nothing can be stored now: what is left is tried again later. */
  pause(): void;
  /** Tells who listens, and server code that waits for a turn, that it has ended. */
  ended(turn: TurnRow, end: TurnEnd): void;
}

/** What happens in a session now, one turn at a time. Made when a turn starts, forgotten when nothing is left to do. */
export class Conversation {
  readonly session: string;
  readonly #all: Conversing;
  /** The turn that runs. */
  turn: Turn | undefined;
  /** The turn that clients were told is being recovered. */
  #recovering: string | undefined;
  /** What hears of the ends of turns, in their order. */
  #responses: Promise<void> | undefined;

  constructor(all: Conversing, session: string) {
    this.#all = all;
    this.session = session;
  }

  /** Whether there is nothing more to remember. */
  get isOver(): boolean {
    return this.turn === undefined && this.#recovering === undefined && this.#responses === undefined;
  }

  get #host(): AgentHost {
    return this.#all.host;
  }

  get #transcript(): Transcript {
    return this.#all.transcripts.of(this.session);
  }

  // The start

  /** Begins an attempt of a turn. @returns undefined when it could not be stored: then it has not begun. */
  begin(found: TurnRow): Turn | undefined {
    let changed = false;
    try {
      const row = this.#all.commit(() => {
        const now = this.#host.clock.now();
        if (found.status === "held") {
          const context = readChatContext(this.#host, found.session);
          releaseTurn(this.#host, found.seq, context.body, context.clientTools);
        }
        if (found.attempts > 0) noteProgress(this.#host, found.seq, now);
        else {
          changed = this.#takePlace(found);
          if (found.continuation === 0) repairLast(this.#all, found.session);
        }
        const started = readTurn(this.#host, found.id) ?? found;
        for (const part of this.#all.facts) part.begun?.(started);
        // Counted before it can cost anything.
        startTurn(this.#host, found.seq, now);
        return started;
      });
      this.turn = new Turn(this.#all, row);
    } catch (thrown) {
      this.#all.agent.failed(thrown, { stage: "turn", requestId: found.id });
      return undefined;
    }
    const { id: requestId, session, trigger, attempts } = this.turn.row;
    this.#host.emit("turn:started", { requestId, session, trigger, attempt: attempts + 1 });
    if (changed) this.#all.output.transcript(found.session);
    return this.turn;
  }

  /** Readies a turn's first attempt, so later ones mean the same. In the caller's transaction. @returns whether it changed. */
  #takePlace(turn: TurnRow): boolean {
    const host = this.#host;
    const transcript = this.#transcript;
    deleteEndedChunks(host, turn.session);
    if (turn.continuation === 1) {
      const base = transcript.lastAnswer();
      if (base === undefined) return false;
      nameAnswer(host, turn.seq, base.id, base.parts.length);
      // Behind a call it goes on for whom it began, whichever answer was named; without one, for whoever asks.
      if (turn.trigger !== "server" && endsWithCalls(base))
        setTurnIdentity(host, turn.seq, transcript.identityOf(base.id));
      return false;
    }
    if (turn.trigger === "submission") {
      const waiting = waitingMessages(host, turn, () => transcript.unanswered());
      say(this.#all, turn.session, submittedMessages(host, turn.id), turn.identity ?? undefined);
      transcript.moveToEnd(waiting);
      trimTranscript(this.#all, turn.session);
      return true;
    }
    if (turn.trigger !== "regenerate") return false;
    // An answer that was still being written when this was asked for.
    const asked = messageIdsOf(turn).at(-1);
    const after = asked === undefined ? [] : transcript.idsAfter(asked);
    const next = after.findIndex((id) => transcript.role(id) !== "assistant" && !wasTaken(transcript, id));
    const behind = next === -1 ? after : after.slice(0, next);
    const stale = behind.filter((id) => transcript.role(id) === "assistant");
    setAside(this.#all, turn.session, stale);
    return stale.length > 0;
  }

  // The attempt

  /** Runs the attempt that has begun, and stores its end. Never rejects. */
  async run(turn: Turn): Promise<void> {
    const requestId = turn.row.id;
    let end: TurnEnd | "again" | "later";
    try {
      end = await this.#attempt(turn);
    } catch (thrown) {
      this.#all.agent.failed(thrown, { stage: "turn", requestId });
      end = { status: "error", error: await explain(this.#all, thrown, turn.failure("turn")) };
    }
    if (isHalted(turn)) return;
    let needless: readonly TurnRow[] = [];
    try {
      if (end === "again") turn.log.flush();
      else needless = this.#finish(turn, end);
    } catch (thrown) {
      this.#all.agent.failed(thrown, { stage: "save", requestId });
      this.#all.transcripts.reload();
      const notSaved = new PerdureError("bad_state", "Failed to save the response.", { cause: thrown });
      const error = await explain(this.#all, notSaved, turn.failure("persist"));
      if (isHalted(turn)) return;
      // Not even that it failed is stored: it is not over, and nobody may be told so.
      end = this.#abandon(turn, error) ? { status: "error", error } : "later";
    }
    this.turn = undefined;
    if (typeof end === "object") this.#tell(turn, turn.cutBy === "cleared" ? { status: "aborted" } : end);
    for (const one of needless) this.#all.close(one, "skipped");
    this.#all.leave(this);
    if (end === "later") this.#all.pause();
    else this.#all.pump();
  }

  /** `again`: it stalled, and the turn is to be carried on. */
  async #attempt(turn: Turn): Promise<TurnEnd | "again"> {
    let { continuation } = turn;
    const { steps } = this.#all.answerer;
    for (const part of this.#all.facts)
      if (part.wanted !== undefined && !(await part.wanted(turn.row))) return { status: "aborted" };
    if (turn.row.attempts > 0) {
      const decision = await decideRecovery(this.#all, turn);
      if (decision.kind === "end") {
        if (!decision.keepPartial) turn.builder.parts.length = turn.builder.inherited;
        return decision.end;
      }
      continuation = decision.continuation;
      turn.incident = decision.incident;
      // Before anything is added: who waits is given what there is first.
      this.#open(turn);
      turn.standInAgain(repairsOf(this.#all));
      // A turn that runs step by step goes on from what is there by itself.
      if (steps?.ran(turn.row) !== true) turn.carryOn(repairsOf(this.#all));
      turn.log.flush();
      this.#setRecovering(turn.row, true);
    }
    return this.#drive(turn, continuation);
  }

  async #drive(turn: Turn, continuation: boolean): Promise<TurnEnd | "again"> {
    const { signal } = turn.abort;
    const { answerer } = this.#all;
    const stopWatching = this.#watchForStall(turn);
    const options = optionsOf(turn, continuation);
    let stage: "turn" | "stream" = "turn";
    try {
      // What was approved runs as soon as the model is called. That it has begun must be known after a power loss too, or
      // it would run again.
      if (turn.builder.parts.some(isApproved)) await unlessAborted(() => this.#host.durable(), signal);
      const answer = await unlessAborted(() => answerer.respond(options), signal);
      if (answer === undefined) return signal.aborted ? await this.#cut(turn) : { status: "completed", silent: true };
      const { steps } = answerer;
      if (answer === ORDINARY_TURN && steps !== undefined)
        return (await unlessAborted(() => this.#inSteps(turn, options, steps), signal)) ?? (await this.#cut(turn));
      // It had run step by step, and does not any more.
      if (turn.incident !== undefined && answerer.steps?.ran(turn.row) === true) turn.carryOn(repairsOf(this.#all));
      this.#open(turn);
      stage = "stream";
      return await this.#byStream(turn, answer as ChatAnswer);
    } catch (thrown) {
      if (signal.aborted) return this.#cut(turn);
      this.#all.agent.failed(thrown, { stage, requestId: turn.row.id });
      return this.#failed(turn, thrown, stage);
    } finally {
      stopWatching();
    }
  }

  /** Clients may go on with the stream as soon as the model is asked. */
  async #inSteps(turn: Turn, options: ChatTurnOptions, steps: StepAnswerer): Promise<TurnEnd | undefined> {
    const offer = () => this.#open(turn);
    if (turn.row.trigger !== "continuation") {
      offer();
      return steps.run(turn, options);
    }
    turn.beforeFirstChunk = offer;
    const cancel = this.#host.clock.after(HOLD_BACK_MS, offer);
    return steps.run(turn, options).finally(cancel);
  }

  async #byStream(turn: Turn, answer: ChatAnswer): Promise<TurnEnd | "again"> {
    const { signal } = turn.abort;
    const ids = new StreamCallIds(turn.callIds);
    const count = callCounter(this.#all.policy.maxToolCallsPerStep);
    for await (const given of readAnswer(answer, turn.row.id, signal)) {
      const chunk = ids.take(given.chunk);
      count(chunk);
      if (chunk.type === "error") {
        const error = new PerdureError("model_failed", chunk.errorText);
        return signal.aborted ? await this.#cut(turn) : await this.#failed(turn, error, "stream");
      }
      if (turn.take(chunk === given.chunk ? given : { chunk })) await this.#host.breathe();
      if (signal.aborted) break;
      turn.releaseHeld();
    }
    turn.endStep();
    if (signal.aborted) return this.#cut(turn);
    turn.releaseHeld();
    return { status: "completed", silent: turn.log.count === 0 };
  }

  async #cut(turn: Turn): Promise<TurnEnd | "again"> {
    if (turn.cutBy !== "stalled") return { status: "aborted" };
    // Where nothing is carried on, it is the stream that has failed.
    const carriesOn = recoveryOf(this.#all).maxAttempts !== 0;
    return carriesOn ? "again" : this.#failed(turn, turn.abort.signal.reason, "stream");
  }

  async #failed(turn: Turn, error: unknown, stage: "turn" | "stream"): Promise<TurnEnd> {
    return { status: "error", error: await explain(this.#all, error, turn.failure(stage)) };
  }

  /** Those who wait for the stream are told that it is here. */
  #open(turn: Turn): void {
    if (turn.open()) this.#all.output.streaming(turn.row);
  }

  /** Gives the attempt up when no chunk has come for too long. */
  #watchForStall(turn: Turn): () => void {
    const { clock } = this.#host;
    const { chatStreamStallTimeoutMs: usual } = this.#all.policy;
    let cancel = () => {};
    const look = () => {
      const timeoutMs = turn.stallTimeoutMs ?? usual;
      if (timeoutMs <= 0) return;
      if (turn.busy > 0) turn.lastChunkAt = clock.now();
      const left = turn.lastChunkAt + timeoutMs - clock.now();
      if (left > 0) {
        cancel = clock.after(left, look);
        return;
      }
      this.#host.emit("chat:stream:stalled", { requestId: turn.row.id, timeoutMs });
      turn.cut("stalled", new PerdureError("timeout", `The model said nothing for ${timeoutMs} ms.`));
    };
    turn.lastChunkAt = clock.now();
    turn.watchAnew = () => {
      cancel();
      look();
    };
    look();
    return () => cancel();
  }

  // The end

  /**
   * Stores the end of a turn: answer, end of log and outcome in one commit. A cleared turn writes nothing. The log of a failed
   * turn stays until the next request, so that a client that comes back sees what there was, and the error.
   * @returns turns that became needless and ended with it.
   */
  #finish(turn: Turn, end: TurnEnd): readonly TurnRow[] {
    const host = this.#host;
    const { row, builder } = turn;
    const transcript = this.#transcript;
    if (turn.cutBy === "cleared") return [];
    // A call that was cut short must not look as if it waited for the client to run it.
    turn.close({ ...repairsOf(this.#all), keepPending: end.status === "completed" });
    turn.endTexts();
    let needless: readonly TurnRow[] = [];
    const forgets = end.status !== "error" && !keepsChunks(host, row.seq);
    const settle = () => {
      const message = closeStreaming(turn.message);
      const isStored = transcript.role(builder.id) !== undefined;
      if (message.parts.length > 0) {
        transcript.put(message, row.identity);
        // That it was put in front of what waits may have been undone.
        if (!isStored && !turn.continuation) passWaiting(host, transcript, row, builder.id);
      } else if (!turn.continuation && isStored) transcript.remove(builder.id);
      if (end.status !== "error") {
        this.#all.output.closing?.(row, () => turn.log.read());
        deleteChunks(host, row.seq);
      }
      const told = end.exhausted === true ? "interrupted" : end.status;
      settleTurn(host, row.seq, end.status, end.error ?? null, host.clock.now(), told);
      if (end.status === "completed") needless = needlessContinuations(this.#all, row, message);
      for (const one of needless) settleTurn(host, one.seq, "skipped", null, host.clock.now());
      this.#noteQuestions(row, message);
      noteSettled(this.#all, message, row);
      trimTranscript(this.#all, row.session);
    };
    // What would be deleted in the same commit is not written first.
    turn.log.flush("sync", settle, forgets);
    return needless;
  }

  /** Notes when the questions of an answer are over. */
  #noteQuestions({ id: turnId }: TurnRow, message: UIMessage): void {
    const host = this.#host;
    const { approvalTimeoutMs } = this.#all.policy;
    for (const part of approvalTimeoutMs > 0 ? toolParts(message) : []) {
      if (part.state !== "approval-requested") continue;
      const call = { messageId: message.id, toolCallId: part.toolCallId, turnId, tool: toolName(part) };
      noteQuestion(host, call, host.clock.now(), host.clock.now() + approvalTimeoutMs);
    }
  }

  /**
   * For a turn whose end cannot be stored: stores that it failed, with what clients have seen if there is room, else with what is
   * stored. It must not be tried again: that would cost again and fail again. Its calls get an end, or whoever answers one would
   * wait for the others. @returns false when nothing at all can be stored.
   */
  #abandon(turn: Turn, error: string): boolean {
    const host = this.#host;
    const { row } = turn;
    const transcript = this.#transcript;
    turn.log.close();
    const stored = () => transcript.get(turn.builder.id);
    const seen = () => {
      const again = new Turn(this.#all, { ...row, attempts: row.attempts + 1 });
      return again.empty ? stored() : again.message;
    };
    const settle = (kept: () => UIMessage | undefined) =>
      this.#all.commit(() => {
        const answer = kept();
        deleteChunks(host, row.seq);
        const message = answer && repairMessage(answer);
        if (message !== undefined) {
          transcript.put(message, row.identity);
          // That it stands in front of what waits may have been undone.
          if (!turn.continuation) passWaiting(host, transcript, row, message.id);
        }
        settleTurn(host, row.seq, "error", error, host.clock.now());
        noteSettled(this.#all, message ?? { ...turn.message, parts: [] }, row);
      });
    for (const kept of [seen, stored, () => undefined]) {
      try {
        settle(kept);
        return true;
      } catch (thrown) {
        this.#all.agent.failed(thrown, { stage: "save", requestId: row.id });
        // What is stored has room already. If not even that is taken, calls would stay open: later, then.
        if (kept === stored && stored() !== undefined && PerdureError.is(thrown, "disk_full")) return false;
      }
    }
    return false;
  }

  #tell(turn: Turn, end: TurnEnd): void {
    const { row } = turn;
    this.#setRecovering(row, false);
    if (turn.incident !== undefined) tellRecovered(this.#host, turn.incident, end);
    // What was cut was mended, and who stopped it reads no more of the stream.
    const asStreamed = end.status === "completed" && turn.stoodIn.size === 0;
    const mended = asStreamed ? undefined : this.#transcript.get(turn.builder.id);
    if (mended !== undefined) this.#all.output.messageUpdated(this.session, mended);
    this.#all.output.ended(row, end, turn.origin);
    const { error, output } = end;
    const told = { ...(error !== undefined && { error }), ...(output !== undefined && { output }) };
    this.#all.ended(row, { status: end.status, ...told });
    if (turn.cutBy !== "cleared") this.#respond(turn, end);
  }

  #setRecovering(turn: TurnRow, value: boolean): void {
    if ((this.#recovering === turn.id) === value) return;
    this.#recovering = value ? turn.id : undefined;
    this.#all.output.recovering(turn, value);
  }

  /** The app hears of it, after it has dealt with the end before. */
  #respond(turn: Turn, { status, error, output }: TurnEnd): void {
    const { row, identity, continuation } = turn;
    const message = this.#transcript.get(turn.builder.id);
    const result = {
      ...{ requestId: row.id, sessionId: row.session, identity, status, continuation, message, error },
      attachments: message === undefined ? [] : attachmentsOf(message),
      ...(output !== undefined && { output }),
    };
    const { agent, policy } = this.#all;
    const told = (this.#responses ?? Promise.resolve())
      // In a life that is over it could do nothing.
      .then(() => (this.#all.halted ? undefined : agent.after(result, () => policy.onChatResponse(result))))
      .catch((thrown: unknown) => this.#all.agent.failed(thrown, { stage: "onChatResponse", requestId: row.id }))
      .then(() => {
        if (this.#responses !== told) return;
        this.#responses = undefined;
        this.#all.leave(this);
      });
    this.#responses = told;
    void this.#host.keepAwake(told);
  }
}

function endsWithCalls({ parts }: UIMessage): boolean {
  return parts.slice(parts.findLastIndex(({ type }) => type === "step-start") + 1).some(isToolPart);
}

/** Whether an answer took this message in: then it stands between that one and its question. */
function wasTaken(transcript: Transcript, id: string): boolean {
  const message = transcript.get(id);
  return message !== undefined && isSteered(message);
}

/** Whether this life is over: nothing is stored or told any more. */
function isHalted({ cutBy }: Turn): boolean {
  return cutBy === "halted";
}

function optionsOf(turn: Turn, continuation: boolean): ChatTurnOptions {
  const { row, identity, abort } = turn;
  return {
    ...{ requestId: row.id, sessionId: row.session, identity, abortSignal: abort.signal },
    ...{ ...turn.sentAlong(), continuation },
  };
}
