import { reaches } from "../live/conversation-frames.ts";
import type { Instead } from "../session/message-pages.ts";
import { MAIN_SESSION, readSessionLine } from "../store/session.ts";
import type { Chat } from "../turn/chat.ts";
import { PAGE_MESSAGES, SESSION_PARAM } from "../wire/history.ts";

/** Names, in an answer, the page before; absent when there is none. */
const BEFORE_HEADER = "perdure-before";

/**
 * Answers `GET …/get-messages`: what is stored, without an answer that has only begun, since that comes by the stream.
 * All of it, or with `?last=N` the newest N, or with `?before=C` those before an earlier page. Of the current session,
 * or of `?_session=ID`.
 */
export function storedMessages(chat: Chat, query: URLSearchParams): Response {
  const headers = { "content-type": "application/json" };
  const session = query.get(SESSION_PARAM) ?? chat.transcripts.current;
  if (session !== MAIN_SESSION && (chat.host.blank || readSessionLine(chat.host, session) === undefined)) {
    return Response.json({ error: { code: "not_found", message: "There is no such session." } }, { status: 404 });
  }
  const transcript = chat.transcripts.of(session);
  const running = chat.running?.row.session === session ? chat.running : undefined;
  const hidden = running !== undefined && !running.continuation && !running.dropped;
  const instead: Instead | undefined = hidden ? { id: running.builder.id, json: undefined } : undefined;
  if (!query.has("last") && !query.has("before")) return new Response(transcript.json(instead), { headers });
  const last = readNumber(query, "last");
  const before = readNumber(query, "before");
  if (last === "bad" || before === "bad") {
    const message = "`last` and `before` must be whole numbers above 0; `before` is what the header of a page says.";
    return Response.json({ error: { code: "bad_input", message } }, { status: 400 });
  }
  if (before !== undefined && !reaches(chat, session, before)) return new Response("[]", { headers });
  const page = transcript.page(Math.min(last ?? PAGE_MESSAGES, MAX_LAST), before, instead);
  return new Response(page.json, {
    headers: { ...headers, ...(page.before !== undefined && { [BEFORE_HEADER]: String(page.before) }) },
  });
}

/** The most messages of one page. */
const MAX_LAST = 1_000;

function readNumber(query: URLSearchParams, name: string): number | undefined | "bad" {
  const text = query.get(name);
  if (text === null) return undefined;
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : "bad";
}
