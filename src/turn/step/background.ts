import type { ModelMessage, Tool, ToolSet } from "ai";
import { errorText, PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { readIdentity } from "../../base/identity.ts";
import { insist } from "../../work/callback.ts";
import { encodeJson } from "../../base/json.ts";
import { MAX_INTERRUPTIONS, type Work, type WorkContext } from "../../work/work.ts";
import { INTERRUPTED_TEXT } from "../../message/repair.ts";
import { BACKGROUND_METADATA } from "../../message/told-line.ts";
import type { UIMessage } from "../../message/types.ts";
import {
  type BackgroundRow,
  countBackgroundCalls,
  deleteBackgroundCall,
  moveToBackground,
  openBackgroundCalls,
  readBackgroundCall,
  restartBackgroundCall,
  returnBackgroundCall,
  settleBackgroundCall,
} from "../../store/background-call.ts";
import { ownerIdOf } from "../../store/session.ts";
import { boundPreview, withoutMedia } from "../../tool/bound-output.ts";
import type { JudgedCall } from "../../tool/call-book.ts";
import { approvalOf } from "../../tool/decision-record.ts";
import { toolNamed } from "../../tool/define.ts";
import { type BackgroundEnd, describeEnd } from "../../tool/receipt.ts";
import { type CallOutcome, type EndedCall, failedCall, ToolRunner } from "../../tool/runner.ts";
import { storedSteps } from "../../tool/step.ts";
import type { Engine } from "../engine/engine.ts";
import { familyOf } from "../engine/mend.ts";
import { submitMessages } from "../intake/submissions.ts";
import { type AskedTurn, isAsked } from "../policy.ts";
import {
  type BackgroundCall,
  type BackgroundNote,
  calledOf,
  identityOf,
  inputOf,
  noteOf,
  toBackgroundCall,
} from "./background-note.ts";
import { fromStore, judge, type Judging, tellChanged, tellShown, toStore } from "./show-result.ts";
import {
  askedTurn,
  assemble,
  type BackgroundAdmission,
  type MovedCall,
  type StepBackground,
  type StepParts,
} from "./parts.ts";
import { equip } from "./prepare.ts";
import { contextOf } from "./step-run.ts";
import { NESTED_TEXT } from "./waited-call.ts";
import { hasSession } from "../../session/session-changes.ts";
import { checkBound } from "../../base/known-options.ts";

/** It was cut, and may not run again. */
class CutCall extends Error {}

/** Clients are told of progress this often at most. */
const PROGRESS_MS = 200;
/** All who are in the session are sent it, each time. */
const PROGRESS_LIMITS = { maxOutputLines: 40, maxOutputChars: 2_000 };

const PARKED_TEXT = "The call needs a person's approval, which it cannot wait for in the background.";

/** What calls in the background ask of their agent besides. */
interface BackgroundSurroundings {
  readonly work: WorkContext;
  /** Whether one more may come of the turn. */
  admit(turnId: string): Promise<BackgroundAdmission>;
  /** The last one of a turn has ended. Must not throw. */
  over(turnId: string): void;
}

/** What a call was run with. Of one that an earlier life left it is found out anew. */
interface Given {
  tool: Tool | undefined;
  messages: readonly ModelMessage[];
}

interface Live {
  readonly row: BackgroundRow;
  readonly stop: AbortController;
  progress?: unknown;
  /** Cancels the news of it. */
  later?: (() => void) | undefined;
}

/**
 * Tool calls that go on without their turn. Each is a row in the book of calls, written with its receipt; its end and the message
 * that tells it are one commit. After a crash it either has been told, or the tool's rule about running again decides.
 */
export class BackgroundCalls implements StepBackground, Work {
  readonly #parts: StepParts;
  readonly #around: BackgroundSurroundings;
  readonly #live = new Map<number, Live>();
  #halted = false;

  constructor(parts: StepParts, around: BackgroundSurroundings) {
    this.#parts = parts;
    this.#around = around;
  }

  get #host() {
    return this.#parts.host;
  }

  /** The turn that it comes of. */
  #asked(row: BackgroundRow): AskedTurn {
    return askedTurn(this.#parts, row.turnId, identityOf(row));
  }

  /** Something about the calls of a session has changed. */
  #changed(session: string): void {
    this.#parts.chat.output.sessions?.({ kind: "context", session });
  }

  // For the turns that they come of

  admit(turnId: string): Promise<BackgroundAdmission> {
    return this.#around.admit(turnId);
  }

  room(): number {
    return checkBound("maxBackgroundCalls", this.#parts.policy.maxBackgroundCalls) - countBackgroundCalls(this.#host);
  }

  moved({ messageId, toolCallId, turn, begun, given, lineage }: MovedCall): BackgroundRow {
    const { session, identity, id: requestId } = turn;
    const since = this.#host.clock.now();
    const note: BackgroundNote = { session, identity, since, lineage, ...(given !== undefined && { given }) };
    const json = encodeJson(note, "What a call was given") ?? "{}";
    const row = moveToBackground(this.#host, messageId, toolCallId, json, begun);
    if (row === undefined) throw new PerdureError("bad_state", `The call ${toolCallId} is not running.`);
    this.#host.afterTx((committed) => {
      if (!committed) return;
      this.#host.emit("chat:background:started", { requestId, toolCallId, toolName: row.tool, session });
      this.#changed(session);
    });
    return row;
  }

  begin(row: BackgroundRow, tool: Tool, messages: readonly ModelMessage[], context: unknown): void {
    const stop = new AbortController();
    const outcome = this.#start(row, tool, messages, context, stop.signal).catch(failedCall);
    this.follow(row, { tool, messages }, stop, outcome);
  }

  follow(row: BackgroundRow, given: Given, stop: AbortController, outcome: Promise<CallOutcome>): void {
    this.#live.set(row.seq, { row, stop });
    const ended = outcome.then((said) => this.#ended(row, given, said));
    void this.#host.keepAwake(ended).catch((thrown: unknown) => {
      if (!this.#halted) this.#parts.chat.agent.failed(thrown, { stage: "background call" });
    });
  }

  progress(seq: number, output: unknown): void {
    const live = this.#live.get(seq);
    if (live === undefined || this.#halted) return;
    const isDue = live.progress === undefined;
    live.progress = boundPreview(output, PROGRESS_LIMITS);
    if (isDue) this.#changed(noteOf(live.row).session);
    else live.later ??= this.#host.clock.after(PROGRESS_MS, () => this.#tellProgress(live));
  }

  #tellProgress(live: Live): void {
    live.later = undefined;
    if (!this.#halted && this.#live.get(live.row.seq) === live) this.#changed(noteOf(live.row).session);
  }

  // For people and the app

  list(session?: string): BackgroundCall[] {
    if (this.#host.blank) return [];
    const family = session === undefined ? undefined : familyOf(this.#host, session);
    return openBackgroundCalls(this.#host).flatMap((row) => {
      if (family !== undefined && !family.has(noteOf(row).session)) return [];
      return [toBackgroundCall(row, this.#live.get(row.seq)?.progress)];
    });
  }

  stop(toolCallId: string, { session, reason }: { readonly session?: string; readonly reason?: string } = {}): boolean {
    if (this.#host.blank) return false;
    const family = session === undefined ? undefined : familyOf(this.#host, session);
    const row = openBackgroundCalls(this.#host).findLast(
      (one) => one.toolCallId === toolCallId && (family === undefined || family.has(noteOf(one).session)),
    );
    if (row === undefined) return false;
    this.#parts.chat.commit(() => this.#settle(row, { status: "stopped", reason }, false));
    return true;
  }

  drop(isUnwanted: (call: { readonly messageId: string; readonly session: string }) => boolean): void {
    if (this.#host.blank) return;
    const rows = openBackgroundCalls(this.#host).filter((row) =>
      isUnwanted({ messageId: row.messageId, session: noteOf(row).session }),
    );
    if (rows.length === 0) return;
    for (const { seq } of rows) deleteBackgroundCall(this.#host, seq);
    this.#host.afterTx((committed) => {
      if (!committed) return;
      for (const row of rows) this.#tellEnd(row, "dropped");
    });
  }

  /** The same for the calls of a session that is cleared or deleted, and of its views. */
  dropSession(session: string): void {
    const owner = this.#host.blank ? session : ownerIdOf(this.#host, session);
    this.drop((call) => call.session === session || ownerIdOf(this.#host, call.session) === owner);
  }

  /** Whether a turn has calls that go on. */
  hasOpen(turnId: string): boolean {
    return !this.#host.blank && openBackgroundCalls(this.#host).some((row) => row.turnId === turnId);
  }

  // As work of the agent

  started(): void {
    if (this.#host.blank || this.#around.work.stopped()) return;
    for (const row of openBackgroundCalls(this.#host)) this.#resume(row);
  }

  next(): number | null {
    return null;
  }

  active(): boolean {
    return this.#live.size > 0;
  }

  runDue(): void {}

  halt(reason: unknown): void {
    this.#halted = true;
    for (const { stop } of this.#live.values()) stop.abort(reason);
    this.#live.clear();
  }

  // One call

  /** Writes down that it is about to run, then runs it. */
  async #start(
    row: BackgroundRow,
    tool: Tool,
    messages: readonly ModelMessage[],
    context: unknown,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const { seq, messageId, toolCallId, tool: toolName } = row;
    const attempt = row.attempts + 1;
    // It may have been stopped meanwhile, or the host is about to: then the next life has it.
    if (signal.aborted || this.#around.work.stopped()) return { kind: "aborted" };
    this.#host.tx(() => restartBackgroundCall(this.#host, seq));
    await this.#host.durable();
    if (attempt > 1) {
      this.#host.emit("chat:background:recovered", { toolCallId, toolName, session: noteOf(row).session, attempt });
    }
    const parts = this.#parts;
    const asked = this.#asked(row);
    const identity = identityOf(row);
    const idempotencyKey = `${messageId}:${toolCallId}`;
    const whole = isAsked(parts, "afterToolCall");
    const runner = new ToolRunner({
      ...{ clock: this.#host.clock, signal, identity, context, whole },
      as: (work) => asked.as(work),
      keep: (text) => parts.keep(text),
    });
    return runner.run({ toolCallId, toolName, tool, input: inputOf(row) }, messages, {
      ...{ abortSignal: signal, idempotencyKey, approval: approvalOf(this.#host, messageId, toolCallId) },
      turn: { runNested: async () => ({ kind: "error", errorText: NESTED_TEXT }) },
      steps: (stop) => storedSteps(this.#host, { messageId, toolCallId, attempt }, idempotencyKey, stop),
      progress: (output) => {
        if (!whole) this.progress(row.seq, output);
      },
    });
  }

  /** A call that an earlier life left. */
  #resume(row: BackgroundRow): void {
    const stop = new AbortController();
    const given: Given = { tool: undefined, messages: [] };
    const outcome = this.#again(row, stop.signal, given).catch(failedCall);
    this.follow(row, given, stop, outcome);
  }

  async #again(row: BackgroundRow, signal: AbortSignal, given: Given): Promise<CallOutcome> {
    const { tool: name } = row;
    const { session } = noteOf(row);
    if (row.result !== null) return fromStore(JSON.parse(row.result) as JudgedCall);
    if (row.replay === "never" && row.attempts > 0) return failedCall(new CutCall(INTERRUPTED_TEXT));
    if (row.attempts >= MAX_INTERRUPTIONS) {
      const text = `The process ended ${row.attempts} times while it ran. It is not run again.`;
      return failedCall(new CutCall(text));
    }
    const tools = (await equip(this.#parts, session)).tools();
    const tool = toolNamed(tools, name);
    if (tool?.execute === undefined) return failedCall(`There is no tool ${JSON.stringify(name)} any more.`);
    given.tool = tool;
    given.messages = await this.#before(session, row.messageId, tools);
    return this.#start(row, tool, given.messages, undefined, signal);
  }

  /** What was said before an answer, as the model reads it. */
  #before(session: string, messageId: string, tools: ToolSet): Promise<ModelMessage[]> {
    const { chat, window } = this.#parts;
    const { base } = contextOf(chat, window.reader, session, 0);
    const at = base.findIndex(({ id }) => id === messageId);
    return assemble(this.#parts, base.slice(0, Math.max(0, at)), tools);
  }

  async #ended(row: BackgroundRow, { tool, messages }: Given, outcome: CallOutcome): Promise<void> {
    // Who stopped it has said so; what the end of this life cut is the next one's.
    if (this.#halted || outcome.kind === "aborted") return;
    const ended: EndedCall = outcome.kind === "parked" ? failedCall(PARKED_TEXT) : outcome;
    const open = readBackgroundCall(this.#host, row.seq);
    if (open === undefined) return;
    if (ended.kind === "error" && ended.error instanceof CutCall)
      return this.#conclude(row, { status: "interrupted", error: ended.errorText }, false);
    const parts = this.#parts;
    const durationMs = Math.max(0, this.#host.clock.now() - (row.startedAt ?? this.#host.clock.now()));
    if (isAsked(parts, "afterToolCall") && open.result === null) this.#keep(row, ended, durationMs);
    const where: Judging = { parts, asked: this.#asked(row) };
    const called = calledOf(row, messages);
    const verdict = await judge(where, tool, called, ended, durationMs);
    if (this.#halted) return;
    const { shown } = verdict;
    const keep = (text: string) => parts.keep(text);
    const end: BackgroundEnd =
      shown.kind === "error"
        ? { status: "error", error: shown.errorText }
        : { status: "completed", output: await withoutMedia(shown.output, keep) };
    if (this.#halted) return;
    await this.#conclude(row, end, verdict.action !== undefined);
    tellChanged(where, called, verdict);
    await tellShown(where, called, verdict, durationMs);
  }

  /** Before it is judged, so that it is judged after a crash too, and never made again. What no row can hold runs the risk. */
  #keep(row: BackgroundRow, ended: EndedCall, durationMs: number): void {
    const stored: JudgedCall = { ...toStore(ended), durationMs };
    try {
      const json = encodeJson(stored, "The result") ?? "null";
      this.#host.tx(() => returnBackgroundCall(this.#host, row.seq, json));
    } catch (thrown) {
      if (!PerdureError.is(thrown, "limit")) throw thrown;
    }
  }

  /** Stores the end with the message that tells it, however often the store has to be asked. */
  #conclude(row: BackgroundRow, end: BackgroundEnd, keepResult: boolean): Promise<void> {
    const done = Promise.withResolvers<void>();
    const write = () => this.#parts.chat.commit(() => this.#settle(row, end, keepResult));
    insist(
      this.#around.work,
      () => this.#halted,
      write,
      () => done.resolve(),
    );
    return done.promise;
  }

  #settle(row: BackgroundRow, end: BackgroundEnd, keepResult: boolean): void {
    if (!settleAndTell(this.#parts.chat, row, end, keepResult)) return;
    this.#host.afterTx((committed) => {
      if (committed) this.#tellEnd(row, end.status, "error" in end ? end.error : undefined);
    });
  }

  #tellEnd(row: BackgroundRow, status: BackgroundEnd["status"] | "dropped", error?: string): void {
    const { toolCallId, tool: toolName, turnId } = row;
    const { session } = noteOf(row);
    const about = { toolCallId, toolName, session, status };
    this.#host.emit("chat:background:ended", { ...about, ...(error !== undefined && { error: errorText(error) }) });
    if (status === "stopped" || status === "dropped")
      this.#live.get(row.seq)?.stop.abort(new DOMException(`The call was ${status}.`, "AbortError"));
    this.#live.delete(row.seq);
    this.#changed(session);
    if (!this.hasOpen(turnId)) this.#around.over(turnId);
  }
}

/**
 * Records the end of a call and has its session's model answer a message about it, in the caller's transaction. If the session is
 * gone there is only the row. @param keep the stored result, and tell something else. @returns false if it had ended before
 */
function settleAndTell(all: Engine, row: BackgroundRow, end: BackgroundEnd, keep: boolean): boolean {
  const { host } = all;
  const note = noteOf(row);
  if (!settleBackgroundCall(host, row, host.clock.now(), keep)) return false;
  // A view may have been closed since: then those are told who see what it was a view of.
  const session = [note.session, ownerIdOf(host, note.session)].find((one) => hasSession(host, one));
  if (session === undefined) return true;
  const { toolCallId, messageId, tool: toolName } = row;
  const metadata = { [BACKGROUND_METADATA]: { toolCallId, messageId, toolName, status: end.status } };
  const text = describeEnd(toolCallId, toolName, end);
  const message: UIMessage = { id: newId("msg"), role: "user", parts: [{ type: "text", text }], metadata };
  const identity = readIdentity(note.identity);
  const options = { session, metadata, isBounded: true, ...(identity !== undefined && { identity }) };
  submitMessages(all, [message], options);
  return true;
}
