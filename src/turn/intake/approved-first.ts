import { batchState } from "../../message/tool-answer.ts";
import type { UIMessage } from "../../message/types.ts";
import { readChatContext } from "../../store/session.ts";
import { openTurns, placeTurn, releaseTurn } from "../../store/turn.ts";
import type { Desk } from "../engine/desk.ts";
import { isApproved } from "../engine/repair-last.ts";
import { placeOf } from "./waiting-input.ts";

/**
 * Something is said behind calls that were approved and have yet to begin: the turn that runs them keeps its place before
 * it. Whoever said yes was told that it counts. Not while other questions of the same answer are open: who goes on without
 * an answer to them ends them all. Calls that have a result need no turn of their own: the next one reads it.
 */
export function runApprovedFirst(desk: Desk, session: string): void {
  const { host, running, transcripts } = desk;
  const open = openTurns(host).filter((turn) => turn.session === session);
  const held = open.find((turn) => turn.status === "held");
  const answer = running?.row.session === session ? running.message : transcripts.of(session).lastAnswer();
  if (held === undefined || answer === undefined || !hasApproved(answer) || batchState(answer).waiting > 0) return;
  const context = readChatContext(host, session);
  releaseTurn(host, held.seq, context.body, context.clientTools);
  // What was said before the yes and waits exchanges places with it.
  const overtaken = open.filter((turn) => turn.status === "accepted" && placeOf(turn) < placeOf(held));
  const places = [...overtaken, held].map(placeOf);
  for (const [i, turn] of [held, ...overtaken].entries())
    if (overtaken.length > 0) placeTurn(host, turn.seq, places[i] ?? turn.seq, turn.messageIds);
}

/** Whether an answer has a call that was approved and has not ended. */
export function hasApproved(message: UIMessage | undefined): boolean {
  return message?.role === "assistant" && message.parts.some(isApproved);
}
