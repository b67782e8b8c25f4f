import { type Identity, readIdentity } from "../../base/identity.ts";
import { type ToolPart, toolName, type UIMessage } from "../../message/types.ts";
import { readMessageIdentity } from "../../store/message.ts";
import { digestOf } from "../../tool/digest.ts";
import type { ApprovalCall } from "../engine/chat-types.ts";
import type { Desk } from "../engine/desk.ts";
import { type Asked, findAsked, mayAnswer, tellRefused, type ToolAnswer } from "./tool-answers.ts";

/** Why an answer of somebody outside counts for nothing, with the call as it is. */
export interface AnswerRefusal {
  /** `not_allowed`: whoever gave it may not. `conflict`: it is about another question than the one that is open. */
  readonly code: "not_allowed" | "conflict";
  readonly reason: string;
  readonly part?: ToolPart;
}

/** Whether an answer of somebody outside may be given: as it was judged, or why not. */
export type JudgedAnswer = { readonly answer: ToolAnswer } | { readonly refusal: AnswerRefusal };

/**
 * Judges an answer of somebody outside: whether it is about what is open, whether such an answer may come from outside at
 * all, and whether the app lets this person give it. It is bound to what was judged: one that was allowed holds for no later
 * question of the same call. Refused, the call stays as it is, everybody is shown it again, and an event tells of it.
 */
export function judgeAnswer(desk: Desk, given: ToolAnswer): JudgedAnswer | Promise<JudgedAnswer> {
  const now = findAsked(desk, given);
  // What is asked from here on was not asked when this was said.
  const pinned = { ...given, question: { messageId: now?.message.id ?? "", approvalId: now?.part.approval?.id } };
  // A late answer, or one about nothing, changes nothing and needs no leave.
  if (now === undefined || !isOpen(now.part, given)) return { answer: pinned };
  if (!isMeant(now, given)) return refuseOther(desk, now, given);
  if (given.digest === undefined) return judgeGiver(desk, now, given, pinned);
  return isOfInput(desk, now, given.digest).then((same) =>
    same ? judgeGiver(desk, now, given, pinned) : refuseOther(desk, now, given),
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

async function isOfInput({ hooks }: Desk, { message, part }: Asked, digest: string): Promise<boolean> {
  const known = hooks.question?.(message.id, part.toolCallId)?.digest;
  return digest === (known ?? (await digestOf(toolName(part), part.input)));
}

function judgeGiver(
  desk: Desk,
  now: Asked,
  given: ToolAnswer,
  pinned: ToolAnswer,
): JudgedAnswer | Promise<JudgedAnswer> {
  const { hooks } = desk;
  const { session, message, part } = now;
  const name = toolName(part);
  const verdict = mayAnswer(desk, part, message, given, true);
  if (verdict === false && given.answer.kind === "result")
    return refuse(desk, now, given, {
      code: "not_allowed",
      reason:
        part.state === "approval-requested"
          ? `The call of "${name}" waits for a person: a yes or a no can be said to it, and nothing else.`
          : `What came of the call of "${name}", only the server can say: it runs there.`,
    });
  if (verdict === false || hooks.authorize === undefined || !isQuestion(part, given)) return { answer: pinned };
  const call = describe(desk, session, message, part);
  const approved =
    given.answer.kind === "approval" ? given.answer.approved : given.answer.result.state !== "output-error";
  const conclude = (said: true | string): JudgedAnswer => {
    if (said === true) return { answer: pinned };
    desk.host.emit("approval:refused", {
      ...{ toolCallId: call.toolCallId, tool: call.toolName, approved, reason: said },
      ...(given.identity !== undefined && { by: given.identity.id }),
    });
    const what = approved ? "approve" : "decline";
    const reason = `You may not ${what} the call of "${call.toolName}". It still waits for somebody who may.`;
    return { refusal: { code: "not_allowed", reason, ...shownAgain(desk, given) } };
  };
  const said = hooks.authorize({ call, identity: given.identity, approved });
  return said instanceof Promise ? said.then(conclude) : conclude(said);
}

/** Whether it is an answer to a question for approval. A call that nobody was asked about may be declined as well. */
function isQuestion({ state }: ToolPart, { answer }: ToolAnswer): boolean {
  return answer.kind === "approval" || state === "approval-requested";
}

function refuseOther(desk: Desk, now: Asked, given: ToolAnswer): JudgedAnswer {
  const reason = `The answer is not to what is open about the call of "${toolName(now.part)}". Look at it again.`;
  return refuse(desk, now, given, { code: "conflict", reason });
}

function refuse(desk: Desk, { part }: Asked, given: ToolAnswer, refusal: AnswerRefusal): JudgedAnswer {
  tellRefused(desk, part, given, refusal.reason);
  return { refusal: { ...refusal, ...shownAgain(desk, given) } };
}

/** What its sender shows as answered is not. */
function shownAgain(desk: Desk, given: ToolAnswer): { readonly part?: ToolPart } {
  const open = findAsked(desk, given);
  if (open === undefined) return {};
  desk.output.messageUpdated(open.session, open.message);
  return { part: open.part };
}

function describe(desk: Desk, session: string, message: UIMessage, part: ToolPart): ApprovalCall {
  const { host, running, hooks } = desk;
  const known = hooks.question?.(message.id, part.toolCallId);
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
