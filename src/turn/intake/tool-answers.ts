import type { ToolSet } from "ai";
import { defer } from "../../base/defer.ts";
import { findTool } from "../../message/builder.ts";
import {
  applyToolApproval,
  applyToolApprovalLive,
  applyToolResult,
  applyToolResultLive,
  batchState,
  DENIED_TEXT,
  type ToolResult,
} from "../../message/tool-answer.ts";
import {
  isTerminal,
  isToolPart,
  type ToolPart,
  toolName,
  toolParts,
  type UIMessage,
  type UIMessageChunk,
} from "../../message/types.ts";
import type { Identity } from "../../base/identity.ts";
import { readMessage, readMessageIdentity } from "../../store/message.ts";
import { readChatContext, sessionsEndingWith, writeChatContext } from "../../store/session.ts";
import { decideQuestion, overdueQuestions, settleToolCall, type ToolCallRow } from "../../store/tool-call.ts";
import { openTurns, postponeTurn, readTurn, type TurnRow } from "../../store/turn.ts";
import { noteDecision, type RecordedDecision } from "../../tool/decision-record.ts";
import { CallBook } from "../../tool/call-book.ts";
import { toolNamed } from "../../tool/define.ts";
import type { ClientTool } from "../../wire/frames.ts";
import { accept } from "./accept.ts";
import type { Turn } from "../engine/turn.ts";
import type { Engine } from "../engine/engine.ts";
import type { Origin } from "../policy.ts";
import { closeCut, cutTurn } from "../engine/recover.ts";
import { waitingMessages } from "../engine/history.ts";
import { hasApproved } from "../engine/mend.ts";

/** Nobody reads a question and answers it faster than this. */
const SECOND_QUESTION_MS = 400;

/** How many decisions about calls that another engine runs are remembered. */
const KEPT_DECISIONS = 500;

/** Answers that come in quick succession start one continuation. */
const GATHER_MS = 50;

/** The continuation that waits for its start; for whoever asked for it also while answers are missing. */
export function heldContinuation(all: Engine, session: string, asker: Origin): TurnRow | undefined {
  return openTurns(all.host).find((turn) => {
    if (turn.session !== session) return false;
    if (turn.trigger !== "continuation" || turn.status === "running") return false;
    return turn.status === "accepted" || all.origins.get(turn.id) === asker || holds(all, turn) === "ready";
  });
}

/** What a client, or a person, says to a tool call. */
export interface ToolAnswer {
  readonly toolCallId: string;
  readonly answer:
    | { readonly kind: "result"; readonly result: Omit<ToolResult, "toolCallId"> }
    | { readonly kind: "approval"; readonly approved: boolean; readonly reason?: string };
  /** Who approved or denied it. Default: whoever the agent takes the client for. */
  readonly approver?: string;
  /** Who gave it, as the app established it. */
  readonly identity?: Identity | undefined;
  /** What its giver says that it is about; to anything else it is no answer. */
  readonly about?: { readonly messageId?: string | undefined; readonly approvalId?: string | undefined };
  /** Of tool and input, as its giver saw them. With it, it is no answer to others. */
  readonly digest?: string | undefined;
  /** The question that it was judged for; it answers no other. Default: whichever is open. */
  readonly question?: { readonly messageId: string; readonly approvalId: string | undefined };
  /** The conversation that it is about. Default: wherever the call waits. */
  readonly session?: string;
  /** A client gave it that has no socket. */
  readonly overHttp?: boolean;
  /** Nobody has answered in time. */
  readonly expired?: boolean;
  /** The turn goes on by itself once all calls are answered. */
  readonly autoContinue: boolean;
  readonly clientTools?: readonly ClientTool[];
}

/**
 * Applies an answer to its call, streamed or stored. The first answer wins; a late or repeated one changes nothing. The wish to
 * go on is stored with it and survives a restart. @returns whether anything changed; `held`: not yet, see {@link
 * Turn.releaseHeld}.
 */
export function answerTool(all: Engine, given: ToolAnswer, origin: Origin): boolean | "held" {
  const live = liveWith(all, given);
  // The hook runs what is pending as soon as it has stopped, also what ran here. Stop means stop: nothing goes on.
  if (live !== undefined && live.abort.signal.aborted && live.cutBy !== "stalled") return false;
  const session = live?.row.session ?? given.session ?? sessionWaiting(all, given.toolCallId);
  const message = live ? answerLive(all, live, given, origin) : answerStored(all, session, given, origin);
  if (message === "held" || message === undefined) return message ?? false;
  all.output.messageUpdated(session, message);
  all.pump();
  return true;
}

function applyHeld(all: Engine, part: ToolPart, given: ToolAnswer, origin: Origin): void {
  if (answerTool(all, given, origin) !== false) return;
  tellRefused(all, part, given, `The server already has the result of "${toolName(part)}": the tool ran there.`);
}

/** Says that an answer from outside counts for nothing. */
export function tellRefused({ host }: Pick<Engine, "host">, part: ToolPart, given: ToolAnswer, reason: string): void {
  host.emit("chat:answer:refused", {
    ...{ toolCallId: part.toolCallId, tool: toolName(part), kind: given.answer.kind, reason },
    ...(given.identity !== undefined && { by: given.identity.id }),
  });
}

/** The turn, running or cut, whose answer has the call. It continues from its log, so an answer must go there. */
function liveWith(all: Engine, { session: named, toolCallId }: ToolAnswer): Turn | undefined {
  const begun = openTurns(all.host).filter(({ status }) => status === "running");
  // Some providers count calls from zero in every answer: what another session says is about its own call.
  const sessions = named === undefined ? [all.session, ...begun.map(({ session }) => session)] : [named];
  const having = [...new Set(sessions)].flatMap((session) => {
    const turn = all.turnIn(session) ?? cutTurn(all, session);
    const part = turn && turn.cutBy !== "cleared" ? findTool(turn.builder, toolCallId) : undefined;
    return turn && part ? [{ turn, part }] : [];
  });
  return (having.find(({ part }) => !isTerminal(part)) ?? having[0])?.turn;
}

/** A call that waits, and where. */
export interface Asked {
  readonly session: string;
  readonly message: UIMessage;
  readonly part: ToolPart;
}

/** The call that an answer is about, as it is now. */
export function findAsked(all: Engine, given: ToolAnswer): Asked | undefined {
  const { toolCallId } = given;
  const live = liveWith(all, given);
  const session = live?.row.session ?? given.session ?? sessionWaiting(all, toolCallId);
  const message = live?.message ?? all.transcripts.of(session).withCall(toolCallId);
  const part = message && toolParts(message).findLast((one) => one.toolCallId === toolCallId);
  return message && part && { session, message, part };
}

/**
 * Where a call waits that code answers without saying where: in the session of now, or at the end of any other. If a fork is what
 * runs now, and has gone on with something else, the call waits in the session that it comes of.
 */
function sessionWaiting(all: Engine, toolCallId: string): string {
  const { host, session } = all;
  const messageIn = (id: string) => {
    const message = all.transcripts.of(id).withCall(toolCallId);
    const part = message && toolParts(message).findLast((one) => one.toolCallId === toolCallId);
    return part !== undefined && !isTerminal(part) ? message : undefined;
  };
  const here = messageIn(session);
  const isLast = here !== undefined && all.transcripts.of(session).last()?.id === here.id;
  const others = isLast ? [] : [all.transcripts.current, ...sessionsEndingWith(host, toolCallId)];
  return others.find((id) => all.turnIn(id) === undefined && messageIn(id) !== undefined) ?? session;
}

/** Denies what nobody has approved in time, wherever it waits. What waits nowhere any more is over without a word. */
export function expireApprovals(all: Engine): void {
  const { host } = all;
  const now = host.clock.now();
  const answer = { kind: "approval", approved: false, reason: "The approval has expired." } as const;
  for (const question of overdueQuestions(host, now)) {
    answerWherever(all, question, { answer, expired: true });
    const nobody = { approver: null, identity: null, reason: null };
    all.commit(() => decideQuestion(host, question.seq, { status: "expired", decidedAt: now, ...nobody }));
  }
}

/** Answers a question in every session where it waits: a fork may show it too. */
export function answerWherever(
  all: Engine,
  { messageId, toolCallId, turnId }: Pick<ToolCallRow, "messageId" | "toolCallId" | "turnId">,
  answer: Pick<ToolAnswer, "answer" | "approver" | "expired">,
): void {
  const { host } = all;
  const where = [readTurn(host, turnId)?.session, readMessage(host, messageId)?.session];
  for (const session of new Set([...where, ...sessionsEndingWith(host, toolCallId)])) {
    if (session === undefined) continue;
    const given = { ...answer, toolCallId, session, autoContinue: true };
    if (findAsked(all, given)?.message.id === messageId) answerTool(all, given, undefined);
  }
}

function answerLive(all: Engine, active: Turn, given: ToolAnswer, origin: Origin): UIMessage | "held" | undefined {
  const { toolCallId, answer } = given;
  const asked = findTool(active.builder, toolCallId);
  if (asked === undefined) return undefined;
  const isCut = all.turn(active.row.id) === undefined;
  const verdict = isAnswerable(all, active.row.session, asked, active.message, given, origin, active);
  // A step that was cut is never over: what was running in it is told as cut off.
  if (verdict === "later" && isCut) return undefined;
  if (verdict === "later")
    return active.hold(toolCallId, () => applyHeld(all, asked, given, origin)) ? "held" : undefined;
  if (!verdict) return undefined;
  // Nobody runs it in the step that was cut: that is over, and says so to the turn when it is carried on.
  const endsStep = isCut && all.answerer.steps?.ran(active.row) !== true;
  const changed =
    answer.kind === "result"
      ? applyToolResultLive(active.builder, { toolCallId, ...answer.result })
      : applyToolApprovalLive(active.builder, { toolCallId, approved: answer.approved, reason: answer.reason });
  if (!changed) return undefined;
  // A turn that was cut is read from its log for this alone: what cannot be stored now must not be written later.
  using _ = defer(() => (isCut ? active.log.close() : undefined));
  all.commit(() => {
    if (endsStep) closeCut(all, active);
    active.note([...toChunks(given, asked.approval), ...(endsStep ? [{ type: "finish-step" } as const] : [])]);
    settle(all, active.row.session, active.builder.id, asked, given, origin);
  });
  return active.message;
}

function answerStored(all: Engine, session: string, given: ToolAnswer, origin: Origin): UIMessage | undefined {
  const { toolCallId, answer } = given;
  const transcript = all.transcripts.of(session);
  const stored = transcript.withCall(toolCallId);
  if (stored === undefined) return undefined;
  const asked = toolParts(stored).findLast((part) => part.toolCallId === toolCallId);
  if (asked === undefined || isAnswerable(all, session, asked, stored, given, origin) !== true) return undefined;
  const { message, changed } =
    answer.kind === "result"
      ? applyToolResult(stored, { toolCallId, ...answer.result })
      : applyToolApproval(stored, { toolCallId, approved: answer.approved, reason: answer.reason });
  if (!changed) return undefined;
  return all.commit(() => {
    const written = transcript.put(message);
    settle(all, session, message.id, asked, given, origin);
    return written;
  });
}

function isAnswerable(
  all: Engine,
  session: string,
  part: ToolPart,
  message: UIMessage,
  given: ToolAnswer,
  origin: Origin,
  turn = all.turnIn(session),
): boolean | "later" {
  const { question, overHttp = false } = given;
  if (question !== undefined && (question.messageId !== message.id || question.approvalId !== part.approval?.id))
    return false;
  const verdict = mayAnswer(all, turn, part, message, given, overHttp || origin !== undefined);
  // What the client shows as answered is not: it is told, or it would never ask again.
  if (verdict === "early") all.output.messageUpdated(session, message);
  return verdict === "early" ? false : verdict;
}

/** `early`: the client cannot have seen the question yet. `later`: whose the call is will be known when its step is over. */
type AnswerVerdict = boolean | "early" | "later";

/**
 * Whether a call may be answered now. Steps have a rule of their own. Else server code may give any answer; a client decides what
 * was asked, and gives results for what it runs: calls that ask nobody and have no result when their step is over.
 */
export function mayAnswer(
  all: Engine,
  turn: Turn | undefined,
  part: ToolPart,
  message: UIMessage,
  { answer }: ToolAnswer,
  isClient: boolean,
): AnswerVerdict {
  const own = turn?.builder.id === message.id ? turn : undefined;
  const inSteps = all.answerer.steps !== undefined;
  const verdict = inSteps ? mayAnswerStep(all, own?.tools, part, message.id, answer.kind, isClient) : undefined;
  if (verdict !== undefined || !isClient) return verdict ?? true;
  if (part.state === "approval-requested")
    // An error in the place of a result is a no, in the client's own words.
    return answer.kind === "approval" || answer.result.state === "output-error";
  if (part.state === "approval-responded" || part.providerExecuted === true) return false;
  return own?.isInOpenStep(part.toolCallId) === true ? "later" : true;
}

/**
 * The rule for turns that run step by step; undefined: the one for all. A result may come from outside only for what runs
 * outside, and a person decides only what was asked: the agent's own rule comes first.
 * @param tools of the call's turn: known only where it runs step by step, once prepared
 */
function mayAnswerStep(
  { host }: Engine,
  tools: ToolSet | undefined,
  part: ToolPart,
  messageId: string,
  kind: "result" | "approval",
  isClient: boolean,
): AnswerVerdict | undefined {
  const { toolCallId } = part;
  const book = new CallBook(host);
  if (kind === "approval") {
    if (part.state !== "approval-requested") return false;
    if (!isClient) return true;
    // A call that was approved has asked something else a moment ago. Clients name the call alone in their answers, so that
    // one which comes now is the answer of another tab, or a second click, to what was asked before.
    const row = book.find(messageId, toolCallId);
    if (row === undefined || row.askedAt === null || row.decidedAt === null) return true;
    return host.clock.now() - row.askedAt < SECOND_QUESTION_MS ? "early" : true;
  }
  if (book.isOfSteps(messageId, toolCallId)) return false;
  if (tools === undefined) return undefined;
  const tool = toolNamed(tools, toolName(part));
  return tool !== undefined && tool.execute === undefined && part.state === "input-available";
}

/** What is stored beside the answer: new client tools, the end of its deadline, and the turn that is to follow. */
function settle(
  all: Engine,
  session: string,
  messageId: string,
  part: ToolPart,
  given: ToolAnswer,
  origin: Origin,
): void {
  const { host } = all;
  const { toolCallId, answer, identity, expired = false } = given;
  if (answer.kind === "result") {
    settleToolCall(host, messageId, toolCallId, host.clock.now(), true);
    const ok = answer.result.state !== "output-error";
    host.afterTx((committed) => {
      if (committed) host.emit("tool:settled", { toolCallId, toolName: toolName(part), ok });
    });
  }
  if (answer.kind === "approval") {
    const { approved, reason } = answer;
    const { approver = expired ? undefined : all.agent.approver(origin, identity) } = given;
    noteDecided(all, {
      ...{ messageId, toolCallId, tool: toolName(part), approved, expired },
      ...(identity !== undefined && { identity }),
      ...(approver !== undefined && { approver }),
      ...(reason !== undefined && { reason }),
    });
  }
  if (given.clientTools !== undefined && given.clientTools.length > 0) {
    const context = { ...readChatContext(host, session), clientTools: JSON.stringify(given.clientTools) };
    writeChatContext(host, session, context, host.clock.now());
  }
  const notBefore = host.clock.now() + GATHER_MS;
  const pending = openTurns(host).find((turn) => turn.session === session && isUnbegunContinuation(turn));
  if (pending !== undefined) {
    if (pending.status === "held") postponeTurn(host, pending.seq, notBefore);
    if (given.autoContinue) all.origins.set(pending.id, origin);
    return;
  }
  if (!given.autoContinue) return;
  // It goes on for whom it began, whoever has answered.
  const running = all.turnIn(session);
  const whose = running?.builder.id === messageId ? running.row.identity : readMessageIdentity(host, messageId);
  accept(all, { session, input: { kind: "continue", heldUntil: notBefore }, identity: whose, origin });
}

/** A step's question is in its book; what an `onChatMessage` has asked is taken down here. */
function noteDecided({ host, answerer }: Engine, decision: RecordedDecision): void {
  const book = new CallBook(host);
  const { toolCallId, tool: toolName, approved, expired, approver } = decision;
  const answer = expired ? "expired" : approved ? "approved" : "denied";
  host.afterTx((committed) => {
    const by = approver === undefined ? {} : { by: approver };
    if (committed) host.emit("tool:answered", { toolCallId, toolName, decision: answer, ...by });
  });
  if (answerer.steps?.asked(decision.messageId, decision.toolCallId) === true) return book.record(decision);
  noteDecision(host, decision, host.clock.now());
  book.forgetOlder(KEPT_DECISIONS);
}

/** A turn that is to go on behind answers to calls, and has not begun. */
function isUnbegunContinuation({ trigger, status, attempts }: TurnRow): boolean {
  return trigger === "continuation" && attempts === 0 && (status === "held" || status === "accepted");
}

/**
 * Whether a continuation may start. A held one: when all calls of the last answer are answered. Others: unless something said
 * after that answer still wants one; but what was approved runs in any case.
 */
export function holds({ host, transcripts }: Engine, turn: TurnRow): "ready" | "waiting" | "moot" {
  const transcript = transcripts.of(turn.session);
  if (turn.status !== "held") {
    if (turn.trigger === "continuation" && hasApproved(transcript.lastAnswer())) return "ready";
    const unanswered = transcript.unanswered();
    const waiting = waitingMessages(host, turn, () => unanswered);
    return unanswered.every((id) => waiting.has(id)) ? "ready" : "moot";
  }
  const last = transcript.last();
  if (last?.role !== "assistant") return "moot";
  const batch = batchState(last);
  if (batch.answered === 0) return "moot";
  return batch.waiting > 0 ? "waiting" : "ready";
}

/** Continuations that became needless while `message` was written: its model got the results and went on by itself. */
export function needlessContinuations(all: Engine, turn: TurnRow, message: UIMessage): TurnRow[] {
  const step = message.parts.slice(message.parts.findLastIndex((part) => part.type === "step-start") + 1);
  const spoke = step.some((part) => part.type === "text" && part.text !== "");
  if (!spoke || step.some(isToolPart) || batchState(message).waiting > 0 || hasApproved(message)) return [];
  return openTurns(all.host).filter(
    (open) => open.session === turn.session && isUnbegunContinuation(open) && open.seq > turn.seq,
  );
}

/** The answer as chunks of the stream that it falls into, so that the log alone tells the whole answer. */
function toChunks(given: ToolAnswer, asked: ToolPart["approval"]): UIMessageChunk[] {
  const { toolCallId, answer } = given;
  if (answer.kind === "result") {
    const { state, output, errorText } = answer.result;
    return state === "output-error"
      ? [{ type: "tool-output-error", toolCallId, errorText: errorText || DENIED_TEXT }]
      : [{ type: "tool-output-available", toolCallId, output: output ?? null, preliminary: false }];
  }
  const { approved, reason } = answer;
  const approvalId = asked?.id ?? toolCallId;
  const chunks: UIMessageChunk[] = [];
  if (asked === undefined) chunks.push({ type: "tool-approval-request", approvalId, toolCallId });
  chunks.push({ type: "tool-approval-response", approvalId, approved, ...(reason !== undefined && { reason }) });
  if (!approved) chunks.push({ type: "tool-output-denied", toolCallId });
  return chunks;
}
