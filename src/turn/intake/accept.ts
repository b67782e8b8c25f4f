import { newId } from "../../base/id.ts";
import { type Identity, writeIdentity } from "../../base/identity.ts";
import { type MessageInput, toMessages } from "../../message/input.ts";
import { mergeMessages } from "../../message/merge.ts";
import type { Reconciled } from "../../message/reconcile.ts";
import { batchState } from "../../message/tool-answer.ts";
import type { UIMessage } from "../../message/types.ts";
import type { Sql } from "../../port.ts";
import { nameAfter } from "../../session/titles.ts";
import { isSaidIn } from "../../session/siblings.ts";
import type { Transcript } from "../../session/transcript.ts";
import { hasBehind, standsAbove } from "../../store/message.ts";
import { readChatContext, writeChatContext } from "../../store/session.ts";
import { deleteChunks, hasChunks } from "../../store/stream.ts";
import {
  begunTurns,
  cancelTurn,
  insertTurn,
  messageIdsOf,
  newestTurn,
  openTurns,
  placeTurn,
  releaseTurn,
  settleTurn,
  setTurnIdentity,
  trimTurns,
  type TurnRow,
  type TurnTrigger,
} from "../../store/turn.ts";
import type { ClientTool } from "../../wire/frames.ts";
import type { MessageConcurrency, Origin } from "../policy.ts";
import type { Engine } from "../engine/engine.ts";
import { hasApproved, setAside, trimTranscript } from "../engine/mend.ts";
import { isWaiting, placeOf, waitingInput } from "./inbox.ts";
import { PerdureError } from "../../base/error.ts";

/*
 * The way into a turn
 *
 * Whatever asks for a turn ends here. What it says, the turn that answers and its place among those that wait are one commit.
 * Recognising a repeat is each caller's task, since each knows it by another name: a request id, a key, a call.
 */

/** How many ended turns of a session are remembered, so that late questions for them can be answered. */
export const KEPT_TURNS = 50;

/** A wish for a turn. */
interface TurnInput {
  readonly session: string;
  /** Default: a new one. */
  readonly id?: string;
  readonly input: ClientChange | CodeInput;
  /** For whom it is, as it is stored. A turn that goes on with an answer is for whom that was, where nothing is said. */
  readonly identity?: string | null | undefined;
  /** What is sent along. A client's takes the place of what the last one sent; code leaves what it does not name. */
  readonly body?: Record<string, unknown> | undefined;
  readonly clientTools?: readonly ClientTool[] | undefined;
  /** The client that waits for it. */
  readonly origin?: Origin;
  /** Something else bounds how many of these code asks for. */
  readonly isBounded?: boolean;
  /** Runs in the transaction that accepts the turn. */
  readonly also?: (turn: TurnRow) => void;
}

/** What code asks for. It is never turned away. */
type CodeInput =
  /** Messages and an answer to them; they join the conversation now, or when the turn starts. */
  | { readonly kind: "messages"; readonly messages: readonly UIMessage[]; readonly joins: "now" | "at-start" }
  /** To go on with the last answer; `heldUntil`: when the calls in it are answered, and not before this time. */
  | { readonly kind: "continue"; readonly heldUntil?: number };

/** What a client's transcript changes in the conversation, and what its user wants. */
interface ClientChange {
  readonly kind: "change";
  readonly change: Reconciled;
  /** The messages that are to be answered. */
  readonly asks: readonly string[];
  /** An answer, another one in the place of the first, or that the last one goes on. */
  readonly wants: "answer" | "another" | "more";
  readonly overlap: MessageConcurrency;
  /** What its sender shows already: the newest answer, and whether there is anything. */
  readonly shown: { readonly answer: string | undefined; readonly anything: boolean };
}

/**
 * Accepts a turn in one commit, or in the caller's; after it listeners are told and the turn may start. @returns undefined for a
 * client's message that is turned away. @throws PerdureError `limit` for one turn of code too many; what storing throws. Nothing
 * has changed in either case.
 */
export function accept(all: Engine, wish: TurnInput & { readonly input: CodeInput }): TurnRow;
export function accept(all: Engine, wish: TurnInput): TurnRow | undefined;
export function accept(all: Engine, wish: TurnInput): TurnRow | undefined {
  const { host, output } = all;
  const { session, input, origin } = wish;
  const now = host.clock.now();
  const overlap = input.kind === "change" ? overlapOf(all, session, input, now) : undefined;
  if (overlap === null) return undefined;
  const heldUntil = input.kind === "continue" ? input.heldUntil : undefined;
  const trigger = triggerOf(input, overlap);
  // What people say, and their answers to calls, come of no other turn.
  const isByCode = trigger === "server" || trigger === "submission";
  const cause = isByCode ? all.agent.admit(wish.isBounded !== true) : null;
  let merged = false;
  const turn = all.commit(() => {
    if (heldUntil === undefined) forgetFailed(all, session);
    if (input.kind === "messages") {
      runApprovedFirst(all, session);
      if (input.joins === "now") say(all, session, input.messages, wish.identity);
    }
    if (input.kind === "change" && overlap) merged = makeChange(all, session, input, overlap, wish.identity);
    const accepted = insertTurn(host, {
      id: wish.id ?? newId(trigger === "continuation" ? "cont" : "srv"),
      status: heldUntil === undefined ? "accepted" : "held",
      trigger,
      continuation: input.kind === "continue" || (input.kind === "change" && input.wants === "more") ? 1 : 0,
      messageIds: JSON.stringify(asksOf(input)),
      notBefore: heldUntil ?? overlap?.notBefore ?? now,
      createdAt: now,
      session,
      identity: wish.identity ?? null,
      cause,
      // An edit, or a wish to go on, is about the conversation as it was: no answer can take it in.
      steer: overlap?.steer === true && input.kind === "change" && input.change.add.length > 0 ? 1 : 0,
      ...contextOf(all, wish, now),
    });
    if (trigger === "regenerate") passSubmissions(host, accepted);
    // What was said before the yes, and waits, would end the call.
    if (heldUntil !== undefined && openIn(host, session).some(({ status }) => status === "accepted"))
      runApprovedFirst(all, session);
    wish.also?.(accepted);
    if (heldUntil === undefined) {
      trimTranscript(all, session);
      trimTurns(host, session, KEPT_TURNS);
    }
    return accepted;
  });
  host.afterTx((committed) => {
    if (!committed) return;
    host.emit("turn:accepted", { requestId: turn.id, session, trigger });
    // The first word of the answer waits for this commit: it is synced while the model is asked. A failure ends this life.
    host.durable().catch(() => {});
    for (const skipped of overlap?.skip ?? []) {
      // Who asked in an earlier life is not known any more, and waits all the same.
      const asker = all.origins.get(skipped.id);
      output.skipped(skipped, asker, asker === undefined);
      all.origins.delete(skipped.id);
    }
    if (origin !== undefined) all.origins.set(turn.id, origin);
    if (input.kind === "change") {
      const { answer, anything } = input.shown;
      const seq = answer === undefined ? undefined : all.transcripts.of(session).seqOf(answer);
      output.accepted(session, origin, { answer: seq, anything, merged });
    } else if (input.kind === "messages" && input.joins === "now") output.transcript(session);
    if (overlap?.moot !== undefined) all.cancel(overlap.moot.id);
    // One that is held cannot start yet: who stores the answer looks when that is told.
    else if (heldUntil === undefined) all.pump();
  });
  return turn;
}

/** Stores a request whose question another turn is already answering, so that the request can be repeated too. */
export function acceptRepeated(all: Engine, id: string, session: string, asks: readonly string[]): void {
  const { host } = all;
  const now = host.clock.now();
  all.commit(() => {
    const turn = insertTurn(host, {
      ...{ id, session, status: "accepted", trigger: "submit", continuation: 0, notBefore: now, createdAt: now },
      ...{ messageIds: JSON.stringify(asks), body: null, clientTools: null },
    });
    settleTurn(host, turn.seq, "skipped", null, now);
    trimTurns(host, session, KEPT_TURNS);
  });
}

/**
 * Asks for a turn that goes on with the last answer. @returns undefined when there is none, or when another branch or session
 * went on from it: what those read must not change.
 */
export function acceptMore(all: Engine, wish: Omit<TurnInput, "input">): TurnRow | undefined {
  const transcript = all.transcripts.of(wish.session);
  const { value: last } = transcript.up().next();
  if (last?.role !== "assistant" || hasBehind(all.host, last.seq)) return undefined;
  const { identity = transcript.identityOf(last.id) } = wish;
  return accept(all, { ...wish, identity, input: { kind: "continue" } });
}

/** Where messages go that come without a turn. */
interface PersistOptions {
  readonly session: string;
  /** The client that they come from. */
  readonly origin?: Origin;
  /** Who wrote them, as it is stored; undefined: nobody knows, or it stays as it was. */
  readonly identity?: string | null | undefined;
}

/** Merges messages of server code into the conversation, without a turn. @throws PerdureError `bad_input`, `too_large` */
export function persist(all: Engine, input: MessageInput, { origin, session, identity }: PersistOptions): void {
  const messages = toMessages(input);
  const transcript = all.transcripts.of(session);
  const changed = all.commit(() => {
    if (messages.some(({ id }) => transcript.role(id) === undefined)) runApprovedFirst(all, session);
    const waiting = identity === undefined ? [] : waitingInput(all);
    const put = say(all, session, messages, identity);
    // Whoever has other words answered asks for them.
    for (const { turn, messages: own } of waiting) {
      const last = own.findLast(({ id }) => put.some((one) => one.id === id));
      if (last !== undefined) setTurnIdentity(all.host, turn.seq, transcript.identityOf(last.id));
    }
    trimTranscript(all, session);
    return put;
  });
  // Those who know only the end of the conversation would not hear of a change further up.
  if (origin === undefined) for (const message of changed) all.output.messageUpdated(session, message);
  all.output.transcript(session, origin);
  // What was approved need not wait for more answers.
  all.pump();
}

/** Whom server code names, as it is stored. @throws PerdureError `bad_input` for what is no identity */
export function givenIdentity({ identity }: { readonly identity?: Identity | undefined }): string | undefined {
  return identity === undefined ? undefined : writeIdentity(identity, "a turn");
}

/** The ids of the user messages at the end of the list. */
export function trailingUserIds(messages: readonly UIMessage[]): string[] {
  const from = messages.findLastIndex(({ role }) => role !== "user") + 1;
  return messages.slice(from).map(({ id }) => id);
}

function asksOf(input: TurnInput["input"]): readonly string[] {
  if (input.kind === "continue") return [];
  return input.kind === "change" ? input.asks : trailingUserIds(input.messages);
}

function triggerOf(input: TurnInput["input"], overlap: Overlap | undefined): TurnTrigger {
  if (input.kind === "change") return overlap?.replaces === true ? "regenerate" : "submit";
  if (input.kind === "continue") return input.heldUntil === undefined ? "server" : "continuation";
  return input.joins === "now" ? "server" : "submission";
}

/** What was sent along with the turn. One that is held reads it when it is released: others may send more until then. */
function contextOf({ host }: Engine, { session, input, body, clientTools }: TurnInput, now: number) {
  if (input.kind === "continue" && input.heldUntil !== undefined) return { body: null, clientTools: null };
  const sent = { body: toJson(body), clientTools: toJson(clientTools) };
  const stored = input.kind === "change" ? sent : readChatContext(host, session);
  const context = body === undefined ? stored : { ...stored, body: sent.body };
  if (context !== stored || input.kind === "change") writeChatContext(host, session, context, now);
  return context;
}

function toJson(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function openIn(db: Sql, session: string): TurnRow[] {
  return openTurns(db).filter((turn) => turn.session === session);
}

/** A new request ends the time in which a failed one can be looked at again. */
function forgetFailed({ host }: Engine, session: string): void {
  const newest = hasChunks(host) ? newestTurn(host, session) : undefined;
  if (newest?.status === "error") deleteChunks(host, newest.seq);
}

// What a client's change does to the turns that are open

interface Overlap extends Extract<Admission, { kind: "accept" }> {
  readonly open: readonly TurnRow[];
  /** Nobody wants the answer of this one any more: the conversation is cut before what it answers. */
  readonly moot: TurnRow | undefined;
  /** The answer takes the place of another one. */
  readonly replaces: boolean;
}

/** Null: it is turned away. */
function overlapOf(all: Engine, session: string, input: ClientChange, now: number): Overlap | null {
  const { change, asks, wants } = input;
  const open = openIn(all.host, session);
  const admission = admitMessage(wants === "another" ? "queue" : input.overlap, open, now);
  if (admission.kind === "refuse") return null;
  const edits = change.update.length > 0;
  // An edit that waits with the words of before would be answered twice. A regenerate is asked for on top: the public
  // hook loses its place when a turn that it waits for is passed over while it asks for another.
  const superseded = edits ? orphanedTurns(open, asks.slice(-1)) : [];
  const running = all.turnIn(session);
  const begun = running?.row ?? open.find(({ status }) => status === "running");
  return {
    ...admission,
    open,
    skip: [...new Set([...admission.skip, ...orphanedTurns(open, change.remove), ...superseded])],
    moot: begun !== undefined && isCut(begun, running?.builder.id, change.remove) ? begun : undefined,
    // What waits for its first answer has none yet that could be replaced.
    replaces: (edits || wants === "another") && superseded.every(({ trigger }) => trigger === "regenerate"),
  };
}

/** Whether the question that a turn answers, or the answer that it goes on with, is among what is removed. */
function isCut(turn: TurnRow, answerId: string | null | undefined, removed: readonly string[]): boolean {
  const question = messageIdsOf(turn).at(-1);
  return [answerId ?? turn.answerId, question].some((id) => typeof id === "string" && removed.includes(id));
}

/** Turns left with nothing to answer: their messages are removed, or another turn answers them. */
function orphanedTurns(open: readonly TurnRow[], taken: readonly string[]): TurnRow[] {
  if (taken.length === 0) return [];
  const gone = new Set(taken);
  return open.filter((turn) => {
    // Its own is the last: those before it, if any, have turns of their own.
    const own = turn.status === "accepted" ? messageIdsOf(turn).at(-1) : undefined;
    return own !== undefined && gone.has(own);
  });
}

/** In the caller's transaction. @returns whether messages that waited became part of the new one. */
function makeChange(
  all: Engine,
  session: string,
  { change, wants }: ClientChange,
  { open, skip, moot, merge }: Overlap,
  identity: string | null | undefined,
): boolean {
  const { host } = all;
  const transcript = all.transcripts.of(session);
  const cuts = wants === "another" || change.update.length + change.remove.length > 0;
  if (!cuts) runApprovedFirst(all, session);
  if (wants === "another" && open.length === 0) goTo(all, transcript, change.last);
  setAside(all, session, change.remove);
  for (const message of change.update) transcript.edit(message, identity);
  for (const message of change.add) transcript.put(message, identity);
  nameSession(all, session, change.add);
  const others = merge ? [...open.filter((turn) => !skip.includes(turn)), ...begunTurns(host, session)] : [];
  const merged = merge && mergeWaiting(transcript, skip, change.add, others);
  for (const { seq } of skip) settleTurn(host, seq, "skipped", null, host.clock.now());
  if (moot !== undefined) cancelTurn(host, moot.seq);
  return merged;
}

/** What is to be answered anew may stand on a branch that the session has left since: then it goes on there. */
function goTo({ host }: Engine, transcript: Transcript, id: string | undefined): void {
  const { session, leaf } = transcript;
  const seq = id === undefined ? undefined : transcript.seqOf(id);
  if (id === undefined || seq === undefined || (leaf !== null && standsAbove(host, seq, leaf))) return;
  if (isSaidIn(host, session, id)) transcript.cutTo(seq);
}

/**
 * Merges messages of waiting turns into the newest one, so that the model reads one. Leaves alone what was answered, what one of
 * the `others` is to answer even if a client counts it among its own, and what somebody else wrote. @returns whether there were
 * any.
 */
export function mergeWaiting(
  transcript: Transcript,
  waiting: readonly TurnRow[],
  added: readonly UIMessage[],
  others: readonly TurnRow[],
): boolean {
  const newest = added.at(-1);
  if (newest === undefined) return false;
  const asked = new Set([...waiting.flatMap(messageIdsOf), ...added.map((message) => message.id)]);
  for (const id of others.flatMap(messageIdsOf)) asked.delete(id);
  const open = transcript.unanswered().flatMap((id) => transcript.get(id) ?? []);
  const writer = transcript.identityOf(newest.id);
  const earlier = open.filter(({ id }) => asked.has(id) && id !== newest.id && transcript.identityOf(id) === writer);
  if (earlier.length === 0) return false;
  for (const { id } of earlier) transcript.remove(id);
  transcript.put({ ...newest, parts: [...earlier.flatMap((message) => message.parts), ...newest.parts] });
  return true;
}

// Where a turn stands among those that wait

/**
 * Moves turns of code behind a new first answer: their messages join the conversation at their start, so nobody who asks for
 * another answer has seen them. Only such turns, and only those behind the turn that gives the first answer, if it waits; others
 * keep their order.
 */
function passSubmissions(db: Sql, turn: TurnRow): void {
  const waiting = openIn(db, turn.session).filter(isWaiting);
  const question = messageIdsOf(turn).at(-1);
  const first = waiting.findLastIndex((one) => one.seq !== turn.seq && messageIdsOf(one).at(-1) === question);
  const behind = waiting.slice(first + 1);
  const isHandedIn = ({ trigger }: TurnRow) => trigger === "submission";
  takePlaces(db, [...behind.filter((one) => !isHandedIn(one)), ...behind.filter(isHandedIn)]);
}

/**
 * Keeps the turn that runs approved calls before what is said after them: whoever said yes was told that it counts. Not while
 * other questions of that answer are open, since going on ends them all. Calls with a result need no turn: the next one reads it.
 */
function runApprovedFirst(all: Engine, session: string): void {
  const { host, transcripts } = all;
  const open = openIn(host, session);
  const held = open.find(({ status }) => status === "held");
  const answer = all.turnIn(session)?.message ?? transcripts.of(session).lastAnswer();
  if (held === undefined || answer === undefined || !hasApproved(answer) || batchState(answer).waiting > 0) return;
  const context = readChatContext(host, session);
  releaseTurn(host, held.seq, context.body, context.clientTools);
  // What was said before the yes, and waits, comes after it.
  takePlaces(host, [held, ...open.filter((turn) => turn.status === "accepted" && placeOf(turn) < placeOf(held))]);
}

/** Turns that wait run in this order: they have the places that they had, so that nobody else's changes. */
function takePlaces(db: Sql, turns: readonly TurnRow[]): void {
  const places = turns.map(placeOf).sort((a, b) => a - b);
  for (const [i, turn] of turns.entries()) {
    const place = places[i] ?? placeOf(turn);
    if (place !== placeOf(turn)) placeTurn(db, turn.seq, place, turn.messageIds);
  }
}

// What is said

/** How far beyond their number messages are compared by content. */
const COMPARED = 200;

/**
 * Merges messages of server code into the conversation, and names the session after them. @returns those that existed and
 * changed.
 * @param identity who wrote those of the user, as stored; undefined: unknown, or unchanged.
 */
export function say(
  all: Engine,
  session: string,
  messages: readonly UIMessage[],
  identity?: string | null,
): UIMessage[] {
  const transcript = all.transcripts.of(session);
  // Only an answer under a new id is looked for by its content; the others cost nothing in a long conversation.
  const byContent = messages.some(({ id, role }) => role === "assistant" && transcript.role(id) !== "assistant");
  const stored = byContent ? recent(transcript, messages) : messages.flatMap(({ id }) => transcript.get(id) ?? []);
  const { add, update } = mergeMessages(stored, messages);
  const whose = ({ role }: UIMessage) => (role === "user" ? identity : undefined);
  const changed = update.map((message) => transcript.rewrite(message, whose(message)));
  for (const message of add) transcript.put(message, whose(message));
  nameSession(all, session, messages);
  return changed;
}

/** The messages that the given ones can be about: as many as there are, and some. */
function recent(transcript: Transcript, messages: readonly UIMessage[]): UIMessage[] {
  const list: UIMessage[] = [];
  for (const { message } of transcript.up()) {
    if (list.length >= messages.length + COMPARED) break;
    list.push(message);
  }
  list.reverse();
  const ids = new Set(list.map(({ id }) => id));
  return [...messages.flatMap(({ id }) => (ids.has(id) ? [] : (transcript.get(id) ?? []))), ...list];
}

/** See {@link nameAfter}; who listens is told when it is committed. */
export function nameSession({ host, policy, output }: Engine, session: string, messages: readonly UIMessage[]): void {
  if (policy.titles === false) return;
  const named = nameAfter(host, session, messages, host.clock.now());
  if (named === undefined) return;
  host.afterTx((committed) => {
    if (!committed) return;
    host.emit("session:renamed", { ...named, by: "derived" });
    output.sessions?.({ kind: "renamed", session: named.session });
  });
}

const DEFAULT_DEBOUNCE_MS = 750;

/** How one message is taken in. */
type Admission =
  | { readonly kind: "refuse" }
  | {
      readonly kind: "accept";
      /** Turns that are passed over. */
      readonly skip: readonly TurnRow[];
      readonly notBefore: number;
      /** Their messages become part of the new one. */
      readonly merge: boolean;
      /** The turn that runs may take it in. */
      readonly steer: boolean;
    };

/** Decides by the turns that are open. Only new messages overlap; a regenerate always queues. Pure. */
export function admitMessage(policy: MessageConcurrency, open: readonly TurnRow[], now: number): Admission {
  const strategy = typeof policy === "string" ? policy : policy.strategy;
  const overlaps = open.some((turn) => turn.status !== "held");
  const waiting = open.filter((turn) => turn.status === "accepted" && turn.trigger === "submit");
  const accepted = { kind: "accept", skip: [], notBefore: now, merge: false, steer: false } as const;
  if (!overlaps || strategy === "queue") return accepted;
  switch (strategy) {
    case "drop":
      return { kind: "refuse" };
    case "latest":
      return { ...accepted, skip: waiting };
    case "merge":
      return { ...accepted, skip: waiting, merge: true };
    case "debounce":
      return { ...accepted, skip: waiting, notBefore: now + debounceMs(policy) };
    case "steer":
      return { ...accepted, steer: open.some((turn) => turn.status === "running") };
    default:
      throw new PerdureError(
        "bad_config",
        `messageConcurrency is ${JSON.stringify(policy)}; it must be queue, latest, merge, drop, debounce or steer.`,
      );
  }
}

function debounceMs(policy: MessageConcurrency): number {
  const ms = typeof policy === "string" ? undefined : policy.debounceMs;
  return ms !== undefined && Number.isFinite(ms) && ms >= 0 ? ms : DEFAULT_DEBOUNCE_MS;
}
