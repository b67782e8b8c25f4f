import { type MessageInput, toMessages } from "../../message/input.ts";
import { newId } from "../../base/id.ts";
import { type Identity, writeIdentity } from "../../base/identity.ts";
import { hasBehind } from "../../store/message.ts";
import { readChatContext, writeChatContext } from "../../store/session.ts";
import { insertTurn, type NewTurn, setTurnIdentity, trimTurns, type TurnRow } from "../../store/turn.ts";
import { runApprovedFirst } from "./approved-first.ts";
import type { Origin } from "../engine/chat-types.ts";
import { type Desk, KEPT_TURNS } from "../engine/desk.ts";
import { nameSession } from "./name-session.ts";
import { putMessages } from "./put-messages.ts";
import { forgetFailed, trailingUserIds } from "./submit.ts";
import { trimTranscript } from "../engine/trim.ts";
import { waitingInput } from "./waiting-input.ts";

/** Where messages go that come without a turn. */
export interface PersistOptions {
  /** The client that they come from. */
  readonly origin?: Origin;
  /** Default: that of the turn that runs, or of all who name none. */
  readonly session?: string;
  /** Who wrote them, as it is stored; undefined: nobody knows, or it stays as it was. */
  readonly identity?: string | null | undefined;
}

/** Merges messages of server code into the conversation, without a turn. @throws PerdureError `bad_input`, `too_large` */
export function persist(
  desk: Desk,
  input: MessageInput,
  { origin, session = desk.session, identity }: PersistOptions = {},
): void {
  const messages = toMessages(input);
  const transcript = desk.transcripts.of(session);
  const changed = desk.commit(() => {
    if (messages.some(({ id }) => transcript.role(id) === undefined)) runApprovedFirst(desk, session);
    const waiting = identity === undefined ? [] : waitingInput(desk);
    const put = putMessages(transcript, messages, identity);
    // Whoever has other words answered asks for them.
    for (const { turn, messages: own } of waiting) {
      const last = own.findLast(({ id }) => put.some((one) => one.id === id));
      if (last !== undefined) setTurnIdentity(desk.host, turn.seq, transcript.identityOf(last.id));
    }
    nameSession(desk, session, messages);
    trimTranscript(desk, session);
    return put;
  });
  // Those who know only the end of the conversation would not hear of a change further up.
  if (origin === undefined) for (const message of changed) desk.output.messageUpdated(session, message);
  desk.output.transcript(session, origin);
  // What was approved need not wait for more answers.
  desk.pump();
}

/** What else belongs to a turn that server code asks for. */
export interface SaveOptions {
  /** Is told the id before the turn can start. */
  readonly named?: (id: string) => void;
  /** Runs in the transaction that accepts the turn. */
  readonly also?: (turn: TurnRow) => void;
  /** Default: that of the turn that runs, or of all who name none. */
  readonly session?: string;
  /** Something else bounds how many of these there are. */
  readonly isBounded?: boolean;
  /** For whom it is, as it is stored. A turn that goes on with an answer is for whom that was, where nothing is said. */
  readonly identity?: string | undefined;
}

/** Whom server code names, as it is stored. @throws PerdureError `bad_input` for what is no identity */
export function givenIdentity({ identity }: { readonly identity?: Identity | undefined }): string | undefined {
  return identity === undefined ? undefined : writeIdentity(identity, "a turn");
}

/**
 * Merges messages of server code and asks for a turn that answers them. @returns the turn's id; it is committed.
 * @throws PerdureError `bad_input`, `too_large`. Nothing has changed then.
 */
export function save(desk: Desk, input: MessageInput, options: SaveOptions = {}): string {
  const { named, also, session = desk.session, identity, isBounded = false } = options;
  const messages = toMessages(input);
  const cause = desk.hooks.admitted?.(!isBounded) ?? null;
  const id = newId("srv");
  named?.(id);
  desk.commit(() => {
    runApprovedFirst(desk, session);
    putMessages(desk.transcripts.of(session), messages, identity);
    nameSession(desk, session, messages);
    const messageIds = JSON.stringify(trailingUserIds(messages));
    const turn = insert(desk, session, { id, messageIds, continuation: 0, identity, cause });
    also?.(turn);
    trimTranscript(desk, session);
  });
  desk.output.transcript(session);
  desk.pump();
  return id;
}

/**
 * Asks for a turn that goes on with the last answer. @returns its id, or undefined when the last message is no answer, or
 * one that another branch or session has gone on from: what those read must not change.
 */
export function continueLast(
  desk: Desk,
  options: Omit<SaveOptions, "also"> & { readonly body?: Record<string, unknown> | undefined } = {},
): string | undefined {
  const { body, named, session = desk.session } = options;
  const transcript = desk.transcripts.of(session);
  const { value: last } = transcript.up().next();
  if (last?.role !== "assistant" || hasBehind(desk.host, last.seq)) return undefined;
  const cause = desk.hooks.admitted?.(true) ?? null;
  const id = newId("srv");
  const { identity = transcript.identityOf(last.id) } = options;
  named?.(id);
  desk.commit(() => {
    if (body !== undefined) {
      const context = { ...readChatContext(desk.host, session), body: JSON.stringify(body) };
      writeChatContext(desk.host, session, context, desk.host.clock.now());
    }
    insert(desk, session, { id, messageIds: "[]", continuation: 1, identity, cause });
  });
  desk.pump();
  return id;
}

function insert(
  desk: Desk,
  session: string,
  asked: Pick<NewTurn, "id" | "messageIds" | "continuation" | "identity" | "cause">,
): TurnRow {
  const now = desk.host.clock.now();
  forgetFailed(desk, session);
  const turn = insertTurn(desk.host, {
    ...asked,
    status: "accepted",
    trigger: "server",
    notBefore: now,
    createdAt: now,
    session,
    ...readChatContext(desk.host, session),
  });
  trimTurns(desk.host, KEPT_TURNS);
  return turn;
}
