import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { type Identity, readIdentity, storeIdentity } from "../../base/identity.ts";
import { reconcile, type StoredMessages } from "../../message/reconcile.ts";
import { isRecord, sameJson } from "../../base/json.ts";
import { withStoredMedia } from "../../message/media-ref.ts";
import { withoutReserved } from "../../message/steered.ts";
import type { Role, UIMessage } from "../../message/types.ts";
import { type ParsedUserMessage, parseUserMessage } from "../../message/validate.ts";
import { isSaidIn } from "../../session/siblings.ts";
import type { Transcript } from "../../session/transcript.ts";
import {
  begunTurns,
  countOpenTurns,
  isOpen,
  messageIdsOf,
  namedMessages,
  openTurns,
  readTurn,
  type TurnRow,
} from "../../store/turn.ts";
import type { ChatBody } from "../../wire/chat-body.ts";
import type { ClientTool } from "../../wire/frames.ts";
import { NamedMessage } from "../../wire/sent-before.ts";
import { accept, acceptRepeated, trailingUserIds } from "./accept.ts";
import { explain, type Origin } from "../policy.ts";
import type { Engine } from "../engine/engine.ts";
import { isOfSession } from "../engine/mend.ts";
import type { Conversations } from "../engine/conversations.ts";

/** The most messages that one request may add. Each is a row, and all of them are stored in one go. */
export const MAX_NEW_MESSAGES = 500;

/** The most requests that may wait for their turns. Each new one looks through all of them. */
const MAX_OPEN_TURNS = 1_000;

/** Why the messages of a request are not taken. */
type RefusedMessage = Extract<ParsedUserMessage, { readonly reason: string }>;

/** A client's request for a turn. */
interface ChatRequest {
  readonly id: string;
  /** The client's transcript after its local edit, or the new messages alone. Not checked yet. */
  readonly messages: readonly unknown[];
  /** As of {@link ChatBody}. */
  readonly content?: ChatBody["content"];
  readonly trigger: "submit" | "regenerate";
  readonly body: Record<string, unknown> | undefined;
  readonly clientTools: readonly ClientTool[] | undefined;
  /** The conversation that it is for. Default: the current one. */
  readonly session?: string;
  /** Who sent it, as the app established it. */
  readonly identity?: Identity | undefined;
}

/**
 * Takes in a request: its new messages and the turn are committed together, then the others are told. A request that is turned
 * away changes nothing, and its sender is told. A repeat does nothing but tell its sender the end, if there was one. The same
 * question in another request asks for another answer, or joins the turn that makes the first.
 * @returns the reason when the request is not understood; nothing has changed then.
 * @throws PerdureError `limit` when too many wait; what storing throws
 */
export function submit(all: Engine, request: ChatRequest, origin: Origin): RefusedMessage | undefined {
  const { host, output } = all;
  const { session = all.transcripts.current } = request;
  const transcript = all.transcripts.of(session);
  const known = readTurn(host, request.id);
  if (known !== undefined) {
    if (!isOfSession(host, known, session))
      return { code: "bad_input", reason: "The request's `id` is already in use. Choose another." };
    if (!isOpen(known)) output.repeated(known, origin);
    return undefined;
  }
  if (countOpenTurns(host) >= MAX_OPEN_TURNS)
    throw new PerdureError(
      "limit",
      `${MAX_OPEN_TURNS} requests are already waiting. Send this one again when some have been answered.`,
    );
  const roles = rolesOf(transcript, request.messages);
  const read = readMessages(transcript, roles, request.messages, request.content);
  if ("reason" in read) return read;
  const running = all.turnIn(session);
  const stored: StoredMessages = {
    role: (id) => roles.get(id),
    get: (id) => transcript.get(id),
    idsAfter: (id) => transcript.idsAfter(id),
  };
  let named: ReadonlySet<string> | undefined;
  const changeBy = (trigger: ChatRequest["trigger"]) =>
    reconcile(stored, read, {
      trigger: trigger === "regenerate" ? "regenerate-message" : "submit-message",
      inFlightId: running?.continuation === false ? running.builder.id : undefined,
      wasStored: (id) => (named ??= namedMessages(host, session)).has(id),
      asStored: (message) => withStoredMedia(transcript.get(message.id), transcript.clean(message)),
    });
  const asGiven = changeBy(request.trigger);
  const last = read.at(-1);
  const edits = asGiven.update.some((message) => message.id === last?.id);
  const repeats =
    request.trigger === "submit" && last?.role === "user" && asGiven.add.length + asGiven.update.length === 0;
  if ((edits || repeats) && last !== undefined && !isSaidIn(host, session, last.id)) {
    // What its sender shows is not so (any more): it is given what is.
    output.turnedAway(request.id, [last.id], origin);
    return undefined;
  }
  const other = repeats ? turnThatAnswers(all, session, last.id) : undefined;
  if (other !== undefined) {
    // It gets that answer and no second one, which might do twice what its tools do.
    acceptRepeated(all, request.id, session, trailingUserIds(read));
    output.joined(request.id, trailingUserIds(read), other, origin);
    return undefined;
  }
  // The same question once more, after an answer or an attempt at one, asks for another answer.
  const trigger = repeats && wasTried(all, transcript, last.id) ? "regenerate" : request.trigger;
  const change = trigger === request.trigger ? asGiven : changeBy(trigger);
  const goesOn = change.add.length + change.update.length + change.remove.length === 0 && last?.role === "assistant";
  const turn = accept(all, {
    ...{ session, id: request.id, origin, identity: storeIdentity(request.identity) },
    ...{ body: request.body, clientTools: request.clientTools },
    input: {
      kind: "change",
      change,
      asks: trigger === "regenerate" ? questionOf(read) : trailingUserIds(read),
      wants: trigger === "regenerate" ? "another" : goesOn ? "more" : "answer",
      overlap: all.policy.messageConcurrency,
      shown: { answer: read.findLast(({ id }) => roles.get(id) === "assistant")?.id, anything: roles.size > 0 },
    },
  });
  if (turn === undefined) output.turnedAway(request.id, trailingUserIds(read), origin);
  return undefined;
}

/** The turn under way that is to answer this message, unless it was stopped. */
export function turnThatAnswers(
  { host }: Pick<Engine, "host">,
  session: string,
  messageId: string,
): TurnRow | undefined {
  return openTurns(host).find(
    (turn) => turn.session === session && turn.cancelled === 0 && turn.status !== "held" && names(turn, messageId),
  );
}

/** Whether a message was answered, or a turn has begun to. */
function wasTried({ host }: Engine, transcript: Transcript, messageId: string): boolean {
  if (begunTurns(host, transcript.session).some((turn) => names(turn, messageId))) return true;
  return transcript.idsAfter(messageId).some((id) => transcript.role(id) === "assistant");
}

function names(turn: TurnRow, messageId: string): boolean {
  return messageIdsOf(turn).includes(messageId);
}

/** What is to be answered anew. A client that shows answers in an order of its own may end with another answer. */
function questionOf(messages: readonly UIMessage[]): string[] {
  const trailing = trailingUserIds(messages);
  const last = messages.findLast(({ role }) => role === "user");
  return trailing.length > 0 || last === undefined ? trailing : [last.id];
}

/** The error of a request whose messages cannot be stored. */
export function notStored(cause: unknown): PerdureError {
  if (PerdureError.is(cause, "limit")) return cause;
  return new PerdureError("bad_state", "The message could not be stored. Please try again.", { cause });
}

/** Tells the app of a request that was not taken in. @returns what its sender reads. */
export function notTaken(
  all: Pick<Engine, "host" | "policy" | "agent">,
  request: { readonly id: string; readonly identity: Identity | undefined },
  error: PerdureError,
  stage: "parse" | "persist",
): Promise<string> {
  const { id: requestId, identity } = request;
  const none = { classification: undefined, partial: undefined };
  return explain(all, error, { stage, requestId, identity, messagesPersisted: false, ...none });
}

/**
 * Checks the messages of a request without a socket, where an answer that is not ours, or a system message, is made up. @throws
 * PerdureError `bad_input` or `too_large`.
 */
export function checkMessages(all: Engine, session: string, list: readonly unknown[]): void {
  const transcript = all.transcripts.of(session);
  const running = all.turnIn(session);
  const roles = rolesOf(transcript, list);
  const read = readMessages(transcript, roles, list);
  if ("reason" in read) throw new PerdureError(read.code, read.reason);
  for (const [i, { id, role }] of read.entries()) {
    if (role === "user" || roles.has(id) || id === running?.builder.id) continue;
    // Pages often greet with an answer that nobody gave. It is not taken, nor in the way.
    if (role === "system" || i === read.length - 1)
      throw new PerdureError("bad_input", `A message of role "${role}" cannot come from a client. Use "user".`);
  }
}

/**
 * The messages of a request. Clients send all they have, so stored ones are known by id alone; only what is new, and the last
 * one, which may be an edit, is checked. What has no id is new and gets one; what it repeats of the stored conversation behind
 * that is passed over. @returns the reason when not acceptable.
 */
function readMessages(
  transcript: Transcript,
  roles: ReadonlyMap<string, Role>,
  list: readonly unknown[],
  content?: ChatBody["content"],
): UIMessage[] | RefusedMessage {
  const messages: UIMessage[] = [];
  // What stands before a message that is stored was stored once too, and is not looked at.
  const lastKnown = list.findLastIndex((value) => isRecord(value) && roles.has(value.id as string));
  let added = 0;
  const answered = list.findLastIndex((value) => isRecord(value) && value.role !== "user");
  for (const [i, given] of list.entries()) {
    if (!isRecord(given)) return { code: "bad_input", reason: `messages[${i}] must be an object.` };
    if (given.id === undefined && given.role === "user" && i < answered && !transcript.isEmpty) continue;
    const value = given.id === undefined ? { ...given, id: newId("msg") } : given;
    if (typeof value.id !== "string") return { code: "bad_input", reason: `messages[${i}]: id must be a string.` };
    const known = roles.get(value.id);
    if (known !== undefined && (known !== "user" || i < list.length - 1)) {
      messages.push({ id: value.id, role: known, parts: [] });
      continue;
    }
    if (value.role === "assistant" || value.role === "system") {
      // Ours alone to write: kept for its place, never for its content.
      messages.push({ id: value.id, role: value.role, parts: [] });
      continue;
    }
    if (i < lastKnown && value.role === "user") {
      messages.push({ id: value.id, role: "user", parts: [] });
      continue;
    }
    if (added++ >= MAX_NEW_MESSAGES)
      return { code: "too_large", reason: `A request may add at most ${MAX_NEW_MESSAGES} messages.` };
    const parsed = parseUserMessage(given instanceof NamedMessage ? content?.(i) : value);
    if ("reason" in parsed) return { ...parsed, reason: `messages[${i}]: ${parsed.reason}.` };
    messages.push(withoutReserved(parsed.message));
  }
  return messages;
}

/** Of those messages of a request that are stored. */
function rolesOf(transcript: Transcript, list: readonly unknown[]): ReadonlyMap<string, Role> {
  const ids: string[] = [];
  for (const value of list) if (isRecord(value) && typeof value.id === "string") ids.push(value.id);
  return transcript.roles(ids);
}

/** So many messages of a transcript that a client pushes are looked at in one go. */
export const LOOKED_AT_ONCE = 500;

/** Of a transcript that a client pushes, takes its own new messages of this session. Nobody may change another's words. */
export function newUserMessages(
  chat: Conversations,
  session: string,
  list: readonly unknown[],
  identity: Identity | undefined,
  refused: (reason: string) => void,
): UIMessage[] {
  const messages: UIMessage[] = [];
  const transcript = chat.transcripts.of(session);
  for (const value of list) {
    if (!isRecord(value) || value.role !== "user" || typeof value.id !== "string") continue;
    const role = transcript.role(value.id);
    const isOwn = role === undefined || (role === "user" && isSaidIn(chat.host, session, value.id));
    if (!isOwn || (role !== undefined && sameJson(transcript.get(value.id), value))) continue;
    const author = role === undefined ? undefined : readIdentity(transcript.identityOf(value.id));
    if (author !== undefined && author.id !== identity?.id) {
      const isSame = sameJson(transcript.get(value.id)?.parts, value.parts);
      if (!isSame) refused("a pushed message: somebody else wrote it");
      continue;
    }
    const parsed = parseUserMessage(value);
    if ("message" in parsed) messages.push(withoutReserved(parsed.message));
    else refused(`a pushed message: ${parsed.reason}`);
  }
  return messages;
}

/** Looks through a long transcript without holding up everybody else. */
export async function inPieces(
  { host }: Conversations,
  list: readonly unknown[],
  look: (piece: readonly unknown[]) => UIMessage[],
): Promise<UIMessage[]> {
  const found: UIMessage[] = [];
  for (let at = 0; at < list.length; at += LOOKED_AT_ONCE) {
    for (const message of look(list.slice(at, at + LOOKED_AT_ONCE))) found.push(message);
    await host.breathe();
  }
  return found;
}
