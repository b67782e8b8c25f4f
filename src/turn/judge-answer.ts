import { type Identity, readIdentity } from "../identity.ts";
import { type ToolPart, toolName, type UIMessage } from "../message/types.ts";
import { readMessageIdentity } from "../store/message.ts";
import type { ApprovalCall } from "./chat-types.ts";
import type { Desk } from "./desk.ts";
import { type Asked, findAsked, type ToolAnswer } from "./tool-answers.ts";

/** Whether an answer of somebody outside may be given: as it was judged, or why not, with the call as it is. */
export type JudgedAnswer =
  | { readonly answer: ToolAnswer }
  | { readonly refusal: { readonly reason: string; readonly part?: ToolPart } };

/**
 * Asks the app whether whoever answers a question for approval may. What is judged is this question: an answer that was
 * allowed holds for no later one of the same call. Refused, the question stays open, everybody is shown it again, and an
 * event tells of it. What is no question needs no leave.
 */
export function judgeAnswer(desk: Desk, given: ToolAnswer): JudgedAnswer | Promise<JudgedAnswer> {
  const { hooks } = desk;
  if (hooks.authorize === undefined) return { answer: given };
  const now = findAsked(desk, given);
  // What is asked from here on was not asked when this was said.
  const pinned = { ...given, question: { messageId: now?.message.id ?? "", approvalId: now?.part.approval?.id } };
  if (now === undefined || !isQuestion(desk, now, given)) return { answer: pinned };
  const { session, message, part } = now;
  const call = describe(desk, session, message, part);
  const approved =
    given.answer.kind === "approval" ? given.answer.approved : given.answer.result.state !== "output-error";
  const conclude = (verdict: true | string): JudgedAnswer => {
    if (verdict === true) return { answer: pinned };
    desk.host.emit("approval:refused", {
      ...{ toolCallId: call.toolCallId, tool: call.toolName, approved, reason: verdict },
      ...(given.identity !== undefined && { by: given.identity.id }),
    });
    const open = findAsked(desk, given);
    // What its sender shows as answered is not.
    if (open !== undefined) desk.output.messageUpdated(open.session, open.message);
    const what = approved ? "approve" : "decline";
    const reason = `You may not ${what} the call of "${call.toolName}". It still waits for somebody who may.`;
    return { refusal: { reason, ...(open !== undefined && { part: open.part }) } };
  };
  const verdict = hooks.authorize({ call, identity: given.identity, approved });
  return verdict instanceof Promise ? verdict.then(conclude) : conclude(verdict);
}

function isQuestion(desk: Desk, { part, message }: Asked, { answer }: ToolAnswer): boolean {
  const isOpen = part.state === "approval-requested";
  // A result for a call that waits for a yes stands for that yes.
  if (answer.kind === "result" ? !isOpen : !isOpen && part.state !== "input-available") return false;
  return desk.hooks.answerable?.(part, message.id, answer.kind, true) !== false;
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
