import { type Identity, readIdentity } from "../identity.ts";
import { type ToolPart, toolName, type UIMessage } from "../message/types.ts";
import { readMessageIdentity } from "../store/message.ts";
import type { ApprovalCall, Origin } from "./chat-types.ts";
import type { Desk } from "./desk.ts";
import { findAsked, type ToolAnswer } from "./tool-answers.ts";

/** Whether an answer of somebody outside may be given: as it was judged, or why not, with the call as it is. */
export type JudgedAnswer =
  | { readonly answer: ToolAnswer }
  | { readonly refusal: { readonly reason: string; readonly part?: ToolPart } };

/**
 * Asks the app whether whoever answers a question for approval may. What is judged is this question: an answer that was
 * allowed holds for no later one of the same call. Refused, the question stays open, everybody is shown it again, and an
 * event tells of it. What is no question needs no leave.
 */
export function judgeAnswer(desk: Desk, given: ToolAnswer, origin: Origin): JudgedAnswer | Promise<JudgedAnswer> {
  const { hooks } = desk;
  const asked = hooks.authorize === undefined ? undefined : findQuestion(desk, given, origin);
  if (asked === undefined) return { answer: given };
  const { session, message, part } = asked;
  const call = describe(desk, session, message, part);
  const approved =
    given.answer.kind === "approval" ? given.answer.approved : given.answer.result.state !== "output-error";
  const conclude = (verdict: true | string): JudgedAnswer => {
    if (verdict === true)
      return { answer: { ...given, question: { messageId: message.id, approvalId: part.approval?.id } } };
    desk.host.emit("approval:refused", {
      ...{ toolCallId: call.toolCallId, tool: call.toolName, approved, reason: verdict },
      ...(given.identity !== undefined && { by: given.identity.id }),
    });
    const now = findAsked(desk, given);
    // What its sender shows as answered is not.
    if (now !== undefined) desk.output.messageUpdated(now.session, now.message);
    const what = approved ? "approve" : "decline";
    const reason = `You may not ${what} the call of "${call.toolName}". It still waits for somebody who may.`;
    return { refusal: { reason, ...(now !== undefined && { part: now.part }) } };
  };
  const verdict = hooks.authorize?.({ call, identity: given.identity, approved }) ?? true;
  return verdict instanceof Promise ? verdict.then(conclude) : conclude(verdict);
}

function findQuestion(desk: Desk, given: ToolAnswer, origin: Origin) {
  const asked = findAsked(desk, given);
  if (asked === undefined) return undefined;
  const { part, message } = asked;
  const isOpen = part.state === "approval-requested";
  // A result for a call that waits for a yes stands for that yes.
  if (given.answer.kind === "result" ? !isOpen : !isOpen && part.state !== "input-available") return undefined;
  return desk.hooks.answerable?.(part, message.id, given.answer.kind, origin) === false ? undefined : asked;
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
