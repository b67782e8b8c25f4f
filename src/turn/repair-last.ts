import { repairMessage } from "../message/repair.ts";
import type { Desk } from "./desk.ts";

/**
 * Gives the calls of the last answer an end that nobody will answer any more, because a new message was sent instead:
 * the provider would refuse the conversation with them. Everyone is told.
 */
export function repairLast(desk: Desk): void {
  const { transcript, hooks, output } = desk;
  const last = transcript.lastAnswer();
  if (last === undefined) return;
  const repaired = repairMessage(last, {
    repairInterruptedToolPart: (part, message) => hooks.repairToolPart(part, message),
  });
  if (repaired === last) return;
  desk.commit(() => {
    transcript.put(repaired);
    hooks.settled?.(repaired);
  });
  output.messageUpdated(repaired);
}
