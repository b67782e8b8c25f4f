import { isSteered } from "../../message/steered.ts";
import { isToolPart, type UIMessage } from "../../message/types.ts";
import type { Sql } from "../../port.ts";
import type { Transcript } from "../../session/transcript.ts";
import { begunTurns, nameAnswer, setTurnIdentity, type TurnRow, turnsBehind, messageIdsOf } from "../../store/turn.ts";
import { deleteOtherChunks } from "../../store/stream.ts";
import { say } from "../intake/accept.ts";
import type { Desk } from "./desk.ts";
import { setAside } from "./set-aside.ts";
import { trimTranscript } from "./trim.ts";
import { submittedMessages } from "../intake/inbox.ts";

/*
 * Where messages stand
 *
 * A message is stored when it is accepted, so that every client sees it. Until its turn starts it waits behind
 * whatever is said before: the answer under way is put in front of it, and the model that writes that answer does
 * not see it. So each turn reads a conversation that ends with what it is to answer. What code submits is stored
 * elsewhere until then.
 */

/**
 * Ids of messages that wait for their own turn while `current` runs, or did until it was stopped.
 * @param unanswered ids of messages behind the last answer.
 */
export function waitingMessages(db: Sql, current: TurnRow, unanswered: () => readonly string[]): Set<string> {
  const ids = new Set<string>();
  for (const turn of turnsBehind(db, current)) {
    // What is regenerated, or was edited, has its place already.
    if (turn.trigger !== "regenerate") for (const id of messageIdsOf(turn)) ids.add(id);
  }
  if (ids.size === 0) return ids;
  // A request names every message before it that had no answer when it was sent. Those of turns that have begun had
  // their turn, whatever became of it; and what stands before the turn's own message is what it was sent into.
  for (const turn of [current, ...begunTurns(db, current.session)]) for (const id of messageIdsOf(turn)) ids.delete(id);
  const list = unanswered();
  const own = new Set(messageIdsOf(current));
  return new Set(list.slice(list.findLastIndex((id) => own.has(id)) + 1).filter((id) => ids.has(id)));
}

/**
 * Makes the conversation ready for the first attempt of a turn: what it brings along comes, what it replaces stands aside,
 * and
 * what it goes on with is named, so that every later attempt means the same. In the caller's transaction.
 * @returns whether the conversation changed.
 */
export function takePlace(desk: Desk, turn: TurnRow): boolean {
  const { host } = desk;
  const transcript = desk.transcripts.of(turn.session);
  deleteOtherChunks(host, turn.seq);
  if (turn.continuation === 1) {
    const base = transcript.lastAnswer();
    if (base === undefined) return false;
    nameAnswer(host, turn.seq, base.id, base.parts.length);
    // Behind a call it goes on for whom it began, whichever answer was named; without one, for whoever asks.
    if (turn.trigger !== "server" && endsWithCalls(base))
      setTurnIdentity(host, turn.seq, transcript.identityOf(base.id));
    return false;
  }
  if (turn.trigger === "submission") {
    const waiting = waitingMessages(host, turn, () => transcript.unanswered());
    const submitted = submittedMessages(host, turn.id);
    say(desk, turn.session, submitted, turn.identity ?? undefined);
    transcript.moveToEnd(waiting);
    trimTranscript(desk, turn.session);
    return true;
  }
  if (turn.trigger !== "regenerate") return false;
  // An answer that was still being written when this was asked for.
  const asked = messageIdsOf(turn).at(-1);
  const after = asked === undefined ? [] : transcript.idsAfter(asked);
  const next = after.findIndex((id) => transcript.role(id) !== "assistant" && !wasTaken(transcript, id));
  const behind = next === -1 ? after : after.slice(0, next);
  const stale = behind.filter((id) => transcript.role(id) === "assistant");
  setAside(desk, turn.session, stale);
  return stale.length > 0;
}

function endsWithCalls({ parts }: UIMessage): boolean {
  return parts.slice(parts.findLastIndex(({ type }) => type === "step-start") + 1).some(isToolPart);
}

/** Whether an answer took this message in: then it stands between that one and its question. */
function wasTaken(transcript: Transcript, id: string): boolean {
  const message = transcript.get(id);
  return message !== undefined && isSteered(message);
}

/** Puts an answer that was just named in front of everything that waits. */
export function passWaiting(db: Sql, transcript: Transcript, current: TurnRow, answerId: string): void {
  transcript.moveToEnd(waitingMessages(db, current, () => transcript.unanswered(answerId)));
}
