import { errorText, PerdureError } from "../../base/error.ts";
import { type Identity, readIdentity } from "../../base/identity.ts";
import { type ToolPart, toolName, type UIMessage } from "../../message/types.ts";
import { readMessageIdentity } from "../../store/message.ts";
import { CallBook } from "../../tool/call-book.ts";
import { digestOf } from "../../tool/digest.ts";
import type { Engine } from "../engine/engine.ts";
import { type ApprovalCall, type ApprovalRequest, isAsked } from "../policy.ts";
import { type Asked, findAsked, mayAnswer, tellRefused, type ToolAnswer } from "./tool-answers.ts";

/** Why an answer of somebody outside counts for nothing, with the call as it is. */
interface AnswerRefusal {
  /** `not_allowed`: this person may not answer. `conflict`: it answers another question than the open one. */
  readonly code: "not_allowed" | "conflict";
  readonly reason: string;
  readonly part?: ToolPart;
}

/** Whether an answer of somebody outside may be given: as it was judged, or why not. */
export type JudgedAnswer = { readonly answer: ToolAnswer } | { readonly refusal: AnswerRefusal };

/**
 * Judges an answer from outside: is it about what is open, may it come from outside, does the app let this person give it.
 * (Whether to ask at all is up to `ToolRunner.judge`.) What is allowed holds for no later question of the same call. When
 * refused, the call stays as it is, everybody is shown it again, and an event tells of it.
 */
export function judgeAnswer(all: Engine, given: ToolAnswer): JudgedAnswer | Promise<JudgedAnswer> {
  const now = findAsked(all, given);
  // What is asked from here on was not asked when this was said.
  const pinned = { ...given, question: { messageId: now?.message.id ?? "", approvalId: now?.part.approval?.id } };
  // A late answer, or one about nothing, changes nothing and needs no leave.
  if (now === undefined || !isOpen(now.part, given)) return { answer: pinned };
  if (!isMeant(now, given)) return refuseOther(all, now, given);
  if (given.digest === undefined) return judgeGiver(all, now, given, pinned);
  return isOfInput(all, now, given.digest).then((same) =>
    same ? judgeGiver(all, now, given, pinned) : refuseOther(all, now, given),
  );
}

/** Whether anything can still be said to a call. */
function isOpen({ state }: ToolPart, { answer }: ToolAnswer): boolean {
  if (state === "approval-responded") return answer.kind === "result";
  return state === "approval-requested" || state === "input-available";
}

function isMeant({ message, part }: Asked, { about }: ToolAnswer): boolean {
  if (about?.messageId !== undefined && about.messageId !== message.id) return false;
  // A call that nobody was asked about has its own id for one.
  return about?.approvalId === undefined || about.approvalId === (part.approval?.id ?? part.toolCallId);
}

async function isOfInput({ host }: Engine, { message, part }: Asked, digest: string): Promise<boolean> {
  const known = new CallBook(host).question(message.id, part.toolCallId)?.digest;
  return digest === (known ?? (await digestOf(toolName(part), part.input)));
}

function judgeGiver(
  all: Engine,
  now: Asked,
  given: ToolAnswer,
  pinned: ToolAnswer,
): JudgedAnswer | Promise<JudgedAnswer> {
  const { session, message, part } = now;
  const name = toolName(part);
  const verdict = mayAnswer(all, all.turnIn(session), part, message, given, true);
  if (verdict === false && given.answer.kind === "result")
    return refuse(all, now, given, {
      code: "not_allowed",
      reason:
        part.state === "approval-requested"
          ? `The call of "${name}" waits for approval. Approve or deny it; it takes no result.`
          : `The call of "${name}" runs on the server. Its result cannot come from a client.`,
    });
  if (verdict === false || !isAsked(all, "authorizeApproval") || !isQuestion(part, given)) return { answer: pinned };
  const call = describe(all, session, message, part);
  const approved =
    given.answer.kind === "approval" ? given.answer.approved : given.answer.result.state !== "output-error";
  const conclude = (said: true | string): JudgedAnswer => {
    if (said === true) return { answer: pinned };
    all.host.emit("approval:refused", {
      ...{ toolCallId: call.toolCallId, tool: call.toolName, approved, reason: said },
      ...(given.identity !== undefined && { by: given.identity.id }),
    });
    const what = approved ? "approve" : "decline";
    const reason = `You may not ${what} the call of "${call.toolName}". It still waits for somebody who may.`;
    return { refusal: { code: "not_allowed", reason, ...shownAgain(all, given) } };
  };
  const said = askAuthorizeApproval(all, { call, identity: given.identity, approved });
  return said instanceof Promise ? said.then(conclude) : conclude(said);
}

/** Whether the app lets somebody answer a question; a text says why not. */
function askAuthorizeApproval(
  { policy, agent }: Engine,
  request: ApprovalRequest,
): true | string | Promise<true | string> {
  const failed = (thrown: unknown) => {
    agent.failed(thrown);
    return `authorizeApproval threw: ${errorText(thrown)}`;
  };
  // JavaScript can return anything.
  const judge = (said: unknown) => {
    if (said === true) return true;
    if (said === false) return "authorizeApproval said no";
    const mistake = `authorizeApproval returned ${typeof said}, not true or false`;
    agent.failed(new PerdureError("bad_config", `${mistake}. The question stays open.`));
    return mistake;
  };
  try {
    const said: unknown = policy.authorizeApproval(request);
    return said instanceof Promise ? said.then(judge, failed) : judge(said);
  } catch (thrown) {
    return failed(thrown);
  }
}

/** Whether it is an answer to a question for approval. A call that nobody was asked about may be declined as well. */
function isQuestion({ state }: ToolPart, { answer }: ToolAnswer): boolean {
  return answer.kind === "approval" || state === "approval-requested";
}

function refuseOther(all: Engine, now: Asked, given: ToolAnswer): JudgedAnswer {
  const reason = `This does not answer the open question about the call of "${toolName(now.part)}". Reload it, then answer.`;
  return refuse(all, now, given, { code: "conflict", reason });
}

function refuse(all: Engine, { part }: Asked, given: ToolAnswer, refusal: AnswerRefusal): JudgedAnswer {
  tellRefused(all, part, given, refusal.reason);
  return { refusal: { ...refusal, ...shownAgain(all, given) } };
}

/** What its sender shows as answered is not. */
function shownAgain(all: Engine, given: ToolAnswer): { readonly part?: ToolPart } {
  const open = findAsked(all, given);
  if (open === undefined) return {};
  all.output.messageUpdated(open.session, open.message);
  return { part: open.part };
}

function describe(all: Engine, session: string, message: UIMessage, part: ToolPart): ApprovalCall {
  const { host } = all;
  const known = new CallBook(host).question(message.id, part.toolCallId);
  const running = all.turnIn(session);
  const live = running?.builder.id === message.id ? running : undefined;
  const requestedBy: Identity | undefined = live?.identity ?? readIdentity(readMessageIdentity(host, message.id));
  const summary = known?.summary ?? part.approval?.requestReason;
  return {
    toolCallId: part.toolCallId,
    toolName: known?.tool ?? toolName(part),
    input: known === undefined ? part.input : known.input,
    messageId: message.id,
    sessionId: session,
    ...(summary !== undefined && { summary }),
    ...(requestedBy !== undefined && { requestedBy }),
  };
}
