import type { UIMessage } from "../message/types.ts";
import { newId } from "../id.ts";
import { readChatContext, writeChatContext } from "../store/chat-context.ts";
import { insertTurn, trimTurns, type TurnRow } from "../store/turn.ts";
import type { Origin } from "./chat-types.ts";
import { type Desk, KEPT_TURNS } from "./desk.ts";
import { putMessages } from "./put-messages.ts";
import { forgetFailed, trailingUserIds } from "./submit.ts";
import { trimTranscript } from "./trim.ts";

/** Merges messages of server code into the conversation, without a turn. */
export function persist(desk: Desk, messages: readonly UIMessage[], origin?: Origin): void {
  const changed = desk.commit(() => {
    const put = putMessages(desk.transcript, messages);
    trimTranscript(desk);
    return put;
  });
  // Those who know only the end of the conversation would not hear of a change further up.
  if (origin === undefined) for (const message of changed) desk.output.messageUpdated(message);
  desk.output.transcript(origin);
}

/** What else belongs to a turn that server code asks for. */
export interface SaveOptions {
  /** Is told the id before the turn can start. */
  readonly named?: (id: string) => void;
  /** Runs in the transaction that accepts the turn. */
  readonly also?: (turn: TurnRow) => void;
}

/** Merges messages of server code and asks for a turn that answers them. @returns the turn's id; it is committed. */
export function save(desk: Desk, messages: readonly UIMessage[], { named, also }: SaveOptions = {}): string {
  const id = newId("srv");
  named?.(id);
  desk.commit(() => {
    putMessages(desk.transcript, messages);
    const turn = insert(desk, id, trailingUserIds(messages), 0);
    also?.(turn);
    trimTranscript(desk);
  });
  desk.output.transcript();
  desk.pump();
  return id;
}

/** Asks for a turn that goes on with the last answer. @returns its id, or undefined when there is no such answer. */
export function continueLast(
  desk: Desk,
  body?: Record<string, unknown>,
  named?: (id: string) => void,
): string | undefined {
  if (desk.transcript.last()?.role !== "assistant") return undefined;
  const id = newId("srv");
  named?.(id);
  desk.commit(() => {
    if (body !== undefined) writeChatContext(desk.host, { ...readChatContext(desk.host), body: JSON.stringify(body) });
    insert(desk, id, [], 1);
  });
  desk.pump();
  return id;
}

function insert(desk: Desk, id: string, messageIds: readonly string[], continuation: 0 | 1): TurnRow {
  const now = desk.host.clock.now();
  forgetFailed(desk);
  const turn = insertTurn(desk.host, {
    id,
    status: "accepted",
    trigger: "server",
    continuation,
    messageIds: JSON.stringify(messageIds),
    notBefore: now,
    createdAt: now,
    ...readChatContext(desk.host),
  });
  trimTurns(desk.host, KEPT_TURNS);
  return turn;
}
