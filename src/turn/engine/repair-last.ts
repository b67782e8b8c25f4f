import { repairMessage, type RepairOptions } from "../../message/repair.ts";
import { isToolPart, type Part, type UIMessage } from "../../message/types.ts";
import { readMessage } from "../../store/message.ts";
import type { Desk } from "./desk.ts";
import { familyOf } from "./forget-session.ts";

/** What an approved call says that no turn will run any more. Whoever said yes must not think that it is done. */
export const NOT_BEGUN_TEXT = "The call was approved, but the conversation went on before it began. It did not run.";

/**
 * Gives the calls of the last answer an end that nobody will answer any more, because a new message was sent instead:
 * the provider would refuse the conversation with them. Everyone is told. In a fork, the answer that both have stays as
 * it is: who reads the conversation is given ends in their places.
 */
export function repairLast(desk: Desk, session: string): void {
  dropApproved(desk, session);
  const last = desk.transcripts.of(session).lastAnswer();
  if (last !== undefined) replace(desk, session, last, repairMessage(last, repairsOf(desk)));
}

/** Gives calls of the last answer that were approved an end: the turn that was to run them has ended before it began. */
export function dropApproved(desk: Desk, session: string): void {
  const last = desk.transcripts.of(session).lastAnswer();
  if (last?.parts.some(isApproved) !== true) return;
  const options = { ...repairsOf(desk), interruptedText: NOT_BEGUN_TEXT };
  const end = (part: Part) => (isApproved(part) ? repairMessage({ ...last, parts: [part] }, options).parts : [part]);
  replace(desk, session, last, { ...last, parts: last.parts.flatMap(end) });
}

/** Whether somebody has said yes to a call, and it has not ended. */
export function isApproved(part: Part): boolean {
  return isToolPart(part) && part.state === "approval-responded";
}

/** Whether an answer has a call that was approved and has not ended. */
export function hasApproved(message: UIMessage | undefined): boolean {
  return message?.role === "assistant" && message.parts.some(isApproved);
}

/** Whether an answer was given in another session, of which this one is a fork: what it waits for is not ours to end. */
export function isOfOthers({ host }: Pick<Desk, "host">, session: string, id: string): boolean {
  const row = readMessage(host, id);
  return row !== undefined && !familyOf(host, session).has(row.session);
}

function replace(desk: Desk, session: string, last: UIMessage, repaired: UIMessage): void {
  if (repaired === last || isOfOthers(desk, session, last.id)) return;
  desk.commit(() => {
    desk.transcripts.of(session).put(repaired);
    desk.hooks.settled?.(repaired);
  });
  desk.output.messageUpdated(session, repaired);
}

/** What the app puts in the places of calls that were cut off. */
export function repairsOf({ hooks }: Pick<Desk, "hooks">): RepairOptions {
  return { repairInterruptedToolPart: (part, message) => hooks.repairToolPart(part, message) };
}
