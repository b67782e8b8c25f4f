import { tryParseJson } from "../../message/json.ts";
import { isSteered } from "../../message/steered.ts";
import type { UIMessage } from "../../message/types.ts";
import { parseMessages } from "../../message/validate.ts";
import type { Sql } from "../../port.ts";
import { submissionOf } from "../../store/submission.ts";
import { messageIdsOf, type TurnRow, turnsNotSkipped } from "../../store/turn.ts";
import type { Desk } from "../engine/desk.ts";

/** A turn that waits for its start, and the messages that wait with it. */
export interface WaitingInput {
  readonly turn: TurnRow;
  /** Its own: not those that its request repeats, nor what it only asks to be answered again. */
  readonly messages: readonly UIMessage[];
}

/**
 * The turns that wait, in the order in which they will run. A request names every unanswered message that its client
 * knew of; each belongs to the turn that named it first.
 */
export function waitingInput({
  host,
  transcripts,
  running,
}: Pick<Desk, "host" | "transcripts" | "running">): WaitingInput[] {
  const open = new Map<string, ReadonlySet<string>>();
  const unanswered = (session: string) => {
    const known = open.get(session) ?? new Set(transcripts.of(session).unanswered(running?.builder.id));
    open.set(session, known);
    return known;
  };
  const claimed = new Set(running === undefined ? [] : messageIdsOf(running.row));
  const waiting: WaitingInput[] = [];
  for (const turn of turnsNotSkipped(host)) {
    const ids = messageIdsOf(turn).filter((id) => !claimed.has(id));
    for (const id of ids) claimed.add(id);
    if (!isWaiting(turn)) continue;
    if (turn.trigger === "submission") waiting.push({ turn, messages: submittedMessages(host, turn.id) });
    else if (turn.trigger === "regenerate") waiting.push({ turn, messages: [] });
    else {
      const own = ids.flatMap((id) =>
        unanswered(turn.session).has(id) ? (transcripts.of(turn.session).get(id) ?? []) : [],
      );
      waiting.push({ turn, messages: own.filter((message) => !isSteered(message)) });
    }
  }
  return waiting.sort((a, b) => placeOf(a.turn) - placeOf(b.turn));
}

/** Whether a turn is still in the inbox: nothing of it has begun, and nobody has stopped it. */
export function isWaiting(turn: TurnRow): boolean {
  return turn.status === "accepted" && turn.attempts === 0 && turn.cancelled === 0;
}

/** The number that says when a waiting turn has its turn. */
export function placeOf({ position, seq }: TurnRow): number {
  return position ?? seq;
}

/** The messages that a turn brings along, as they were handed in or changed since. */
export function submittedMessages(db: Sql, turnId: string): UIMessage[] {
  const row = submissionOf(db, turnId);
  return row === undefined ? [] : parseMessages(tryParseJson(row.edited ?? row.messages));
}
