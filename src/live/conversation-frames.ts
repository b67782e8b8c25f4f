import { toolParts } from "../message/types.ts";
import type { Socket } from "../port.ts";
import type { Instead } from "../session/transcript.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import type { Chat } from "../turn/chat.ts";
import { PAGE_MESSAGES, TAIL_MESSAGES, wantsPages } from "../wire/history.ts";

/** A conversation at one moment, as each client wants to be told of it. Written at most once in each way. */
export class ConversationFrames {
  readonly #chat: Chat;
  readonly #session: string;
  readonly #connect: boolean;
  #whole: string | undefined;
  #end: string | undefined;

  /** @param connect for a client that has just come: what it has sent and is not here yet stays on its screen. */
  constructor(chat: Chat, session: string, connect = false) {
    this.#chat = chat;
    this.#session = session;
    this.#connect = connect;
  }

  for(socket: Socket): string {
    if (wantsPages(socket.uri)) return (this.#end ??= this.#writeEnd());
    const transcript = this.#chat.transcripts.of(this.#session);
    return (this.#whole ??= this.#write(transcript.json(shownInstead(this.#chat, this.#session))));
  }

  #writeEnd(): string {
    const instead = shownInstead(this.#chat, this.#session);
    const limit = this.#connect ? PAGE_MESSAGES : TAIL_MESSAGES;
    const { json, before } = this.#chat.transcripts.of(this.#session).page(limit, undefined, instead);
    return this.#write(json, before);
  }

  #write(messages: string, before?: number): string {
    const connect = this.#connect ? '"connect":true,' : "";
    const older = before === undefined ? "" : `"before":${before},`;
    return `{"type":"cf_agent_chat_messages",${connect}${older}"messages":${messages}}`;
  }
}

/** What was said before, for a client that asked. */
export function olderFrame(chat: Chat, session: string, before: number): string {
  const page = chat.transcripts.of(session).page(PAGE_MESSAGES, before, shownInstead(chat, session));
  const next = page.before === undefined ? "" : `,"next":${page.before}`;
  return `{"type":"perdure_chat_older","before":${before},"messages":${page.json}${next}}`;
}

/** The answer under way as clients may see it outside of its stream. */
function shownInstead({ running }: Chat, session: string): Instead | undefined {
  if (running === undefined || running.dropped || running.row.session !== session) return undefined;
  const { id } = running.builder;
  if (isShowable(running)) return { id, json: JSON.stringify(running.message) };
  // Without this turn's part: what an earlier turn left of the message, or nothing.
  return running.continuation ? undefined : { id, json: undefined };
}

/**
 * Whether an answer under way can be shown outside of its stream. A call that runs here looks to the public hook as if
 * it were its own to run; and what is not committed may be seen by nobody.
 */
function isShowable(running: ActiveTurn): boolean {
  if (running.empty || toolParts(running.message).some(({ state }) => state === "input-available")) return false;
  try {
    running.log.flush();
    return true;
  } catch {
    return false;
  }
}
