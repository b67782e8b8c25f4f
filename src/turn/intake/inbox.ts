import { PerdureError } from "../../base/error.ts";
import { tryParseJson } from "../../base/json.ts";
import { isSteered } from "../../message/steered.ts";
import type { Part, UIMessage } from "../../message/types.ts";
import { parseMessages, parseUserMessage } from "../../message/validate.ts";
import type { Sql } from "../../port.ts";
import { editSubmission, submissionOf } from "../../store/submission.ts";
import {
  placeTurn,
  readTurn,
  setTurnIdentity,
  settleTurn,
  type TurnRow,
  turnsNotSkipped,
  type TurnTrigger,
  messageIdsOf,
} from "../../store/turn.ts";
import type { Engine } from "../engine/engine.ts";

/*
 * The inbox
 *
 * What was accepted and has not started can be changed. Each function reads and writes in one synchronous section, as the start
 * of a turn does: an answer never reads half an edit, and what was withdrawn is never answered.
 */

/** Input that waits for its start. */
export interface InboxItem {
  readonly requestId: string;
  readonly messageIds: readonly string[];
  /** The messages that wait. None when it only asks for something, such as another answer. */
  readonly messages: readonly UIMessage[];
  readonly trigger: TurnTrigger;
  /** The conversation that it waits in. */
  readonly session: string;
  /** The turn that runs takes it in before its next step, if it has one. */
  readonly steer: boolean;
  readonly createdAt: number;
  /** From 0, in the order in which the items will run. */
  readonly position: number;
}

/** Why something is not in the inbox: it has started, or was taken in; or it never was there, or left unstarted. */
export type NotWaiting = "started" | "not_found";

/** What became of a wish to take input back. */
export type Withdrawal =
  | { readonly kind: "withdrawn"; readonly messages: readonly UIMessage[] }
  | { readonly kind: NotWaiting };

/** A turn that waits for its start, and the messages that wait with it. */
interface WaitingInput {
  readonly turn: TurnRow;
  /** Its own: not those that its request repeats, nor what it only asks to be answered again. */
  readonly messages: readonly UIMessage[];
}

/** The turns that wait, in the order in which they will run. A message named by several belongs to the first of them. */
export function waitingInput(all: Engine): WaitingInput[] {
  const { host, transcripts } = all;
  const open = new Map<string, ReadonlySet<string>>();
  const unanswered = (session: string) => {
    const known = open.get(session) ?? new Set(transcripts.of(session).unanswered(all.turnIn(session)?.builder.id));
    open.set(session, known);
    return known;
  };
  const claimed = new Set(all.turns.flatMap(({ row }) => messageIdsOf(row)));
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

/** What waits, in the order in which it will run. */
export function listInbox(all: Engine): InboxItem[] {
  return waitingInput(all).map(({ turn, messages }, position) => ({
    requestId: turn.id,
    messageIds: messages.map(({ id }) => id),
    messages,
    trigger: turn.trigger,
    session: turn.session,
    steer: turn.steer === 1,
    createdAt: turn.createdAt,
    position,
  }));
}

/**
 * Changes a message that waits; if the item has several, its last one. A text replaces its texts and leaves its files; parts
 * replace all.
 * @param identity whose words these are, as stored: the turn is theirs from now on. Undefined: as before.
 * @throws PerdureError `bad_input` or `too_large` for a bad message, `bad_state` when the item has none. Nothing has changed
 * then.
 */
export function editInbox(
  all: Engine,
  requestId: string,
  content: string | readonly unknown[],
  identity?: string | null,
): "edited" | NotWaiting {
  const found = find(all, requestId);
  if (typeof found === "string") return found;
  const { turn, messages } = found;
  const last = messages.at(-1);
  if (last === undefined)
    throw new PerdureError("bad_state", `"${requestId}" has no message to edit: it only asks for another turn.`);
  const parts = typeof content === "string" ? withText(last.parts, content) : content;
  const parsed = parseUserMessage({ ...last, parts });
  if ("reason" in parsed) throw new PerdureError(parsed.code, `The message was not changed: ${parsed.reason}.`);
  const rewrite = <T>(write: () => T): T =>
    all.commit(() => {
      if (identity !== undefined) setTurnIdentity(all.host, turn.seq, identity);
      return write();
    });
  if (turn.trigger === "submission") {
    rewrite(() => editSubmission(all.host, turn.id, JSON.stringify([...messages.slice(0, -1), parsed.message])));
    return "edited";
  }
  const stored = rewrite(() => all.transcripts.of(turn.session).put(parsed.message, identity));
  // Those who know only the end of the conversation would not hear of a change further up.
  all.output.messageUpdated(turn.session, stored);
  all.output.transcript(turn.session);
  return "edited";
}

/** Moves an item before another, or to the end with null. `started` and `not_found`, about either one, change nothing. */
export function moveInbox(all: Engine, requestId: string, before: string | null): "moved" | NotWaiting {
  const found = find(all, requestId);
  if (typeof found === "string") return found;
  const target = before === null ? undefined : find(all, before);
  if (typeof target === "string") return target;
  const inOrder = waitingInput(all);
  const places = inOrder.map(({ turn }) => placeOf(turn));
  const rest = inOrder.filter(({ turn }) => turn.seq !== found.turn.seq);
  const at = target === undefined ? -1 : rest.findIndex(({ turn }) => turn.seq === target.turn.seq);
  const moved = firstAnswersFirst(target === undefined ? [...rest, found] : rest.toSpliced(at, 0, found));
  if (target?.turn.seq === found.turn.seq) return "moved";
  all.commit(() => {
    for (const [i, { turn, messages }] of moved.entries()) {
      placeTurn(all.host, turn.seq, places[i] ?? turn.seq, claimed(turn, messages));
      if (turn.trigger !== "submission")
        all.transcripts.of(turn.session).moveToEnd(new Set(messages.map(({ id }) => id)));
    }
  });
  for (const session of new Set(moved.map(({ turn }) => turn.session))) all.output.transcript(session);
  all.pump();
  return "moved";
}

/** What asks for another answer stays behind what asks for the first one: there is nothing to answer anew before. */
function firstAnswersFirst(list: readonly WaitingInput[]): WaitingInput[] {
  const ordered: WaitingInput[] = [];
  const held = new Set<WaitingInput>();
  const ownerOf = ({ turn }: WaitingInput) => {
    const question = turn.trigger === "regenerate" ? messageIdsOf(turn).at(-1) : undefined;
    return question === undefined ? undefined : list.find(({ messages }) => messages.some(({ id }) => id === question));
  };
  for (const item of list) {
    const owner = ownerOf(item);
    if (owner !== undefined && !ordered.includes(owner)) held.add(item);
    else ordered.push(item);
    for (const one of held) if (ownerOf(one) === item) ordered.push(one);
  }
  return ordered;
}

/** Takes an item back: its messages leave the conversation and its turn ends `skipped`. Everyone is told. */
export function withdrawInbox(all: Engine, requestId: string): Withdrawal {
  const { host } = all;
  const found = find(all, requestId);
  if (typeof found === "string") return { kind: found };
  const { turn, messages } = found;
  const transcript = all.transcripts.of(turn.session);
  all.commit(() => {
    if (turn.trigger !== "submission") for (const { id } of messages) transcript.remove(id);
    settleTurn(host, turn.seq, "skipped", null, host.clock.now());
  });
  all.output.transcript(turn.session);
  all.close(turn, "skipped");
  // It may have held up others.
  all.pump();
  return { kind: "withdrawn", messages };
}

/** Whether a request waits. */
export function inboxStanding(all: Engine, requestId: string): "waiting" | NotWaiting {
  const found = find(all, requestId);
  return typeof found === "string" ? found : "waiting";
}

/** Where a request is: what waits, or why it does not. */
function find(all: Engine, requestId: string): WaitingInput | NotWaiting {
  const turn = readTurn(all.host, requestId);
  if (turn === undefined || turn.status === "held") return "not_found";
  if (isWaiting(turn)) return waitingInput(all).find((input) => input.turn.seq === turn.seq) ?? "not_found";
  return turn.attempts > 0 || turn.receipt !== null ? "started" : "not_found";
}

/** What a turn names once it was moved: only its own messages. Others that it named may come after it now. */
function claimed(turn: TurnRow, messages: readonly UIMessage[]): string {
  const named = turn.trigger === "regenerate" || turn.trigger === "submission";
  return named ? turn.messageIds : JSON.stringify(messages.map(({ id }) => id));
}

function withText(parts: readonly Part[], text: string): Part[] {
  const at = parts.findIndex((part) => part.type === "text");
  const others = parts.filter((part, i) => i === at || part.type !== "text");
  const part: Part = { type: "text", text };
  return at === -1 ? [...others, part] : others.map((other) => (other.type === "text" ? part : other));
}
