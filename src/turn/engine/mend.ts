import { repairMessage, type RepairOptions } from "../../message/repair.ts";
import { isPending, isTerminal, isToolPart, type Part, toolParts, type UIMessage } from "../../message/types.ts";
import type { Sql } from "../../port.ts";
import { beginContextAnew } from "../../memory/lifecycle.ts";
import { readMessage } from "../../store/message.ts";
import { ownerIdOf, viewsOf, writeChatContext } from "../../store/session.ts";
import { deleteChunksOf } from "../../store/stream.ts";
import { deleteTurnsOf, messageIdsOf, openTurns, setMessageIds, type TurnRow } from "../../store/turn.ts";
import { CallBook } from "../../tool/call-book.ts";
import type { Engine } from "./engine.ts";
import { waitingMessages } from "./history.ts";

/* Beside what is said: calls that nobody will answer get an end, messages stand aside, are trimmed, renamed or forgotten. */

/** How many tool calls that have their last word are remembered, with who approved them. */
const KEPT_CALLS = 500;

/** What an approved call says that no turn will run any more. Whoever said yes must not think that it is done. */
export const NOT_BEGUN_TEXT = "The call was approved, but the conversation went on before it began. It did not run.";

/**
 * Ends open calls of the last answer when a new message came instead: a provider would refuse them. Everyone is told. An answer
 * that a fork shares stays as it is: its readers are given ends in their places.
 */
export function repairLast(all: Engine, session: string): void {
  dropApproved(all, session);
  const last = all.transcripts.of(session).lastAnswer();
  if (last !== undefined) replace(all, session, last, repairMessage(last, repairsOf(all)));
}

/** Gives calls of the last answer that were approved an end: the turn that was to run them has ended before it began. */
export function dropApproved(all: Engine, session: string): void {
  const last = all.transcripts.of(session).lastAnswer();
  if (last?.parts.some(isApproved) !== true) return;
  const options = { ...repairsOf(all), interruptedText: NOT_BEGUN_TEXT };
  const end = (part: Part) => (isApproved(part) ? repairMessage({ ...last, parts: [part] }, options).parts : [part]);
  replace(all, session, last, { ...last, parts: last.parts.flatMap(end) });
}

/** Whether somebody has said yes to a call, and it has not ended. */
export function isApproved(part: Part): boolean {
  return isToolPart(part) && part.state === "approval-responded";
}

/** Whether an answer has a call that was approved and has not ended. */
export function hasApproved(message: UIMessage | undefined): boolean {
  return message?.role === "assistant" && message.parts.some(isApproved);
}

/** Whether an answer was given in another session that this one was forked from: its open calls are not ours to end. */
function isOfOthers({ host }: Pick<Engine, "host">, session: string, id: string): boolean {
  const row = readMessage(host, id);
  return row !== undefined && !familyOf(host, session).has(row.session);
}

function replace(all: Engine, session: string, last: UIMessage, repaired: UIMessage): void {
  if (repaired === last || isOfOthers(all, session, last.id)) return;
  all.commit(() => {
    all.transcripts.of(session).put(repaired);
    noteSettled(all, repaired);
  });
  all.output.messageUpdated(session, repaired);
}

/** An answer is stored: calls in it that have an end get no other. In that transaction. @param turn that has ended with it */
export function noteSettled({ host, facts }: Engine, message: UIMessage, turn?: TurnRow): void {
  const calls = toolParts(message).filter(isTerminal);
  const book = new CallBook(host);
  book.settleAll(message.id, calls);
  if (calls.length > 0) book.forgetOlder(KEPT_CALLS);
  for (const part of facts) part.settled?.(message, turn);
}

/** What the app puts in the places of calls that were cut off. */
export function repairsOf({ agent }: Pick<Engine, "agent">): RepairOptions {
  return {
    repairInterruptedToolPart(part, message) {
      try {
        return agent.repair(part, message);
      } catch (thrown) {
        agent.failed(thrown);
        return undefined;
      }
    },
  };
}

/**
 * Takes messages out of a conversation because something else is said instead; they stay as a branch. Open calls of the newest
 * answer among them are ended. In the caller's transaction.
 */
export function setAside(all: Engine, session: string, ids: readonly string[]): void {
  if (ids.length === 0) return;
  const transcript = all.transcripts.of(session);
  const answerId = ids.findLast((id) => transcript.role(id) === "assistant");
  const answer = answerId === undefined ? undefined : transcript.get(answerId);
  // A fork has the same answer. What goes on for the session that it comes of is not the fork's to stop.
  if (answer !== undefined && !isOfOthers(all, session, answer.id)) {
    const repaired = repairMessage(answer, repairsOf(all));
    if (repaired !== answer) transcript.put(repaired);
    new CallBook(all.host).forget(answer.id);
    all.answerer.steps?.background.drop((call) => call.messageId === answer.id);
  }
  transcript.setAside(new Set(ids));
}

/** Deletes a session's oldest messages beyond the app's limit, but nothing a turn still needs. In the caller's transaction. */
export function trimTranscript(all: Engine, session: string): void {
  all.transcripts.of(session).trim(() => {
    const answers = all.turns.filter(({ cutBy }) => cutBy !== "cleared").map(({ builder }) => builder.id);
    return new Set([...openTurns(all.host).flatMap(messageIdsOf), ...answers]);
  });
}

/** An edit gave the older version a new id: what waits for it in other sessions follows. In the caller's transaction. */
export function renamed(
  { host, output }: Pick<Engine, "host" | "output">,
  session: string,
  from: string,
  to: string,
): void {
  for (const turn of openTurns(host)) {
    if (turn.session === session || !turn.messageIds.includes(JSON.stringify(from))) continue;
    const ids = messageIdsOf(turn);
    setMessageIds(host, turn.seq, JSON.stringify(ids.map((id) => (id === from ? to : id))));
  }
  host.afterTx((committed) => {
    if (committed) output.renamed?.(session, from, to);
  });
}

/** A session and the views of it; for a view, those of its session. They have one tree. */
export function familyOf(db: Sql, session: string): ReadonlySet<string> {
  const owner = ownerIdOf(db, session);
  return new Set([owner, ...viewsOf(db, owner).map(({ id }) => id)]);
}

/** Whether a turn belongs to a session or to a view of it; without a session, always. */
export function isOfSession(db: Sql, turn: { readonly session: string }, session?: string): boolean {
  return session === undefined || turn.session === session || familyOf(db, session).has(turn.session);
}

/** Deletes what was said in a session and its views, their turns and all that belongs to them, in the caller's transaction. */
export function forgetSession(all: Engine, sessions: ReadonlySet<string>): void {
  const { host, facts, transcripts } = all;
  const now = host.clock.now();
  const [owner] = sessions;
  if (owner === undefined) return;
  transcripts.of(owner).clear();
  beginContextAnew(host, owner);
  for (const session of sessions) {
    deleteChunksOf(host, session);
    deleteTurnsOf(host, session, now);
    writeChatContext(host, session, { body: null, clientTools: null }, now);
  }
  const running = all.turns.map(({ row }) => row).filter((row) => sessions.has(row.session));
  // First: calls in the background are stopped, which are forgotten with the others.
  for (const part of facts) part.cleared?.(owner, running);
  new CallBook(host).forgetLost();
}

/** A session as the app and the model see it, oldest first: no answer that has only begun, nor, during a turn, what waits. */
export function messagesIn(all: Engine, session: string): UIMessage[] {
  const transcript = all.transcripts.of(session);
  const turn = all.turnIn(session);
  if (turn === undefined || turn.cutBy === "cleared") return transcript.list();
  const { id } = turn.builder;
  const waiting = waitingMessages(all.host, turn.row, () => transcript.unanswered(id));
  // What was approved runs first, whatever was said behind it.
  const behind = turn.continuation && turn.builder.parts.some(isApproved) ? transcript.unanswered() : [];
  for (const one of behind) waiting.add(one);
  const messages: UIMessage[] = [];
  for (const entry of transcript.up()) {
    if (waiting.has(entry.id) || (entry.id === id && turn.empty)) continue;
    messages.push(entry.id === id ? turn.message : withEnds(entry.message, all));
  }
  return messages.reverse();
}

/** An answer of the session that this one is a fork of may wait for something still. The model wants an end of each call. */
function withEnds(message: UIMessage, all: Engine): UIMessage {
  const waits = message.role === "assistant" && message.parts.some((part) => isToolPart(part) && isPending(part));
  return waits ? repairMessage(message, repairsOf(all)) : message;
}
