import { toolParts } from "../message/types.ts";
import type { Socket } from "../port.ts";
import type { Instead } from "../session/transcript.ts";
import { hasMessage, siblingsIn } from "../session/siblings.ts";
import { readMessageAt } from "../store/message.ts";
import { readSessionLine } from "../store/session.ts";
import type { Turn } from "../turn/engine/turn.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { BranchPlaces } from "../wire/frames.ts";
import { PAGE_MESSAGES, TAIL_MESSAGES, wantsPages } from "../wire/history.ts";

/** A conversation at one moment, as each client wants to be told of it. Written at most once in each way. */
export class ConversationFrames {
  readonly #chat: Conversations;
  readonly #session: string;
  readonly #for: "connect" | "stored" | undefined;
  #whole: string | undefined;
  #end: string | undefined;

  /**
   * @param wanted `connect`: for a client that has just come: what it has sent and is not here yet stays on its screen.
   * `stored`: the same, without what the turn under way adds to an answer.
   */
  constructor(chat: Conversations, session: string, wanted?: "connect" | "stored") {
    this.#chat = chat;
    this.#session = session;
    this.#for = wanted;
  }

  for(socket: Socket): string {
    if (wantsPages(socket.uri)) return (this.#end ??= this.#writeEnd());
    const transcript = this.#chat.transcripts.of(this.#session);
    return (this.#whole ??= this.#write(transcript.json(this.#instead)));
  }

  #writeEnd(): string {
    const limit = this.#for === undefined ? TAIL_MESSAGES : PAGE_MESSAGES;
    const { json, before, seqs } = this.#chat.transcripts.of(this.#session).page(limit, undefined, this.#instead);
    const session = this.#for === undefined ? "" : `"session":${JSON.stringify(this.#session)},`;
    const older = before === undefined ? "" : `"before":${before},`;
    return this.#write(json, session + older + branchField(this.#chat, this.#session, seqs));
  }

  get #instead(): Instead | undefined {
    return this.#for === "stored" ? undefined : shownInstead(this.#chat, this.#session);
  }

  /** @param more fields that only clients know who want pages. */
  #write(messages: string, more = ""): string {
    const connect = this.#for === undefined ? "" : '"connect":true,';
    return `{"type":"cf_agent_chat_messages",${connect}${more}"messages":${messages}}`;
  }
}

/** What was said before, for a client that asked. Nothing, if that is about another session. */
export function olderFrame(chat: Conversations, session: string, before: number): string {
  if (!reaches(chat, session, before)) return noOlderFrame(before);
  const page = chat.transcripts.of(session).page(PAGE_MESSAGES, before, shownInstead(chat, session));
  const next = page.before === undefined ? "" : `,"next":${page.before}`;
  const branches = branchField(chat, session, page.seqs);
  return `{"type":"perdure_chat_older","before":${before},${branches}"messages":${page.json}${next}}`;
}

/** The same for a client that may not see them: there are none. */
export function noOlderFrame(before: number): string {
  return `{"type":"perdure_chat_older","before":${before},"messages":[]}`;
}

/** Whether a session shows a message, or it was said there. One that is not there is no secret. */
export function reaches({ host }: Conversations, session: string, seq: number): boolean {
  const said = host.blank ? undefined : readMessageAt(host, seq);
  if (said === undefined) return true;
  const line = readSessionLine(host, session);
  return line !== undefined && hasMessage(host, line, said);
}

/** Which of these messages have others in their place. */
function branchField({ host }: Conversations, session: string, seqs: readonly number[]): string {
  const line = seqs.length === 0 ? undefined : readSessionLine(host, session);
  const siblings = line === undefined ? [] : siblingsIn(host, line, seqs);
  if (siblings.length === 0) return "";
  const places: [id: string, place: BranchPlaces[string]][] = [];
  for (const [seq, all] of Map.groupBy(siblings, (row) => row.of)) {
    const index = all.findIndex((row) => row.seq === seq);
    places.push([all[index]?.id ?? "", [index, all.length]]);
  }
  return `"branches":${JSON.stringify(Object.fromEntries(places))},`;
}

/** The answer under way as clients may see it outside its stream. */
function shownInstead(chat: Conversations, session: string): Instead | undefined {
  const running = chat.turnIn(session);
  if (running === undefined || running.cutBy === "cleared") return cutAnswer(chat, session);
  const { id } = running.builder;
  if (isShowable(running)) return { id, json: JSON.stringify(running.message) };
  // Without this turn's part: what an earlier turn left of the message, or nothing.
  return running.continuation ? undefined : { id, json: undefined };
}

/** Of a turn that was cut and could not be taken up again yet, as on a full disk: its answer may have a place and nothing in it. */
export function cutAnswer(chat: Conversations, session: string): Instead | undefined {
  const cut = chat.waitingTurns(session).find(({ status, answerId }) => status === "running" && answerId !== null);
  const id = cut?.answerId ?? undefined;
  const stored = id === undefined ? undefined : chat.transcripts.of(session).get(id);
  return id === undefined || stored?.parts.length !== 0 ? undefined : { id, json: undefined };
}

/** Whether an unfinished answer can be shown outside its stream: it is committed, and clients would run no call of it. */
function isShowable(running: Turn): boolean {
  if (running.empty || toolParts(running.message).some(({ state }) => state === "input-available")) return false;
  try {
    running.log.flush();
    return true;
  } catch {
    return false;
  }
}
