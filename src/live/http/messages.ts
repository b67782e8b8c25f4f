import { PerdureError } from "../../base/error.ts";
import { cutAnswer, reaches } from "../conversation-frames.ts";
import type { Instead } from "../../session/transcript.ts";
import { PAGE_MESSAGES } from "../../wire/history.ts";
import { type ChatDoor, sessionFor } from "./turns.ts";
import type { Route, RouteRequest } from "../../door/routes.ts";

/** Names, in an answer, the page before; absent when there is none. */
const BEFORE_HEADER = "perdure-before";

/**
 * `GET …/get-messages`: what is stored, without an answer that has only begun, since that comes by the stream. With `?last=N` the
 * newest N, with `?before=C` those before an earlier page; of the current session or of `?_session=ID`.
 */
export const TRANSCRIPT_ROUTES: readonly Route<ChatDoor>[] = [
  { method: "GET", shape: "get-messages", acts: ["chat.read"], answer: storedMessages },
];

function storedMessages({ query, caller }: RouteRequest, { room: { chat } }: ChatDoor): Response {
  const headers = { "content-type": "application/json" };
  const session = sessionFor(chat, caller);
  const transcript = chat.transcripts.of(session);
  const running = chat.turnIn(session);
  const hidden = running !== undefined && !running.continuation && running.cutBy !== "cleared";
  const instead: Instead | undefined = hidden ? { id: running.builder.id, json: undefined } : cutAnswer(chat, session);
  if (!query.has("last") && !query.has("before")) return new Response(transcript.json(instead), { headers });
  const last = readNumber(query, "last");
  const before = readNumber(query, "before");
  if (before !== undefined && !reaches(chat, session, before)) return new Response("[]", { headers });
  const page = transcript.page(Math.min(last ?? PAGE_MESSAGES, MAX_LAST), before, instead);
  return new Response(page.json, {
    headers: { ...headers, ...(page.before !== undefined && { [BEFORE_HEADER]: String(page.before) }) },
  });
}

/** The most messages of one page. */
const MAX_LAST = 1_000;

function readNumber(query: URLSearchParams, name: "last" | "before"): number | undefined {
  const text = query.get(name);
  if (text === null || /^[1-9]\d{0,14}$/.test(text)) return text === null ? undefined : Number(text);
  const whence = name === "before" ? `. Take it from the header ${BEFORE_HEADER} of a page` : "";
  throw new PerdureError("bad_input", `\`${name}\` must be a whole number above 0${whence}.`);
}
