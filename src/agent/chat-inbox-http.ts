import { PerdureError } from "../error.ts";
import { type Identity, storeIdentity } from "../identity.ts";
import { isRecord } from "../message/json.ts";
import { readTurn } from "../store/turn.ts";
import type { Chat } from "../turn/chat.ts";
import { editInbox, inboxStanding, listInbox, moveInbox, type NotWaiting, withdrawInbox } from "../turn/inbox.ts";
import { readReceipt } from "../turn/steer.ts";
import { decodeSegment, readBody, refuseInput } from "./request-body.ts";

/*
 * What waits for its turn, over plain HTTP, under the agent's own address:
 *
 *   GET    …/chat/inbox       what waits, in the order in which it will run
 *   GET    …/chat/inbox/{id}  where one request is, and where its messages were taken to
 *   PATCH  …/chat/inbox/{id}  { text } or { parts } changes the message, { before } moves it: an id, or null for the end
 *   DELETE …/chat/inbox/{id}  takes it back
 *
 * 404: not there, or gone without having started; 409: it has started.
 */

const ROUTE = /(?:^|\/)chat\/inbox(?:\/(?<id>[^/]+))?\/?$/;

/** Answers a request that is about the inbox; undefined for any other. @param rest the path behind the agent's address. */
export async function answerInboxRequest(
  room: () => { readonly chat: Chat },
  request: Request,
  rest: string,
  identity?: Identity,
): Promise<Response | undefined> {
  const groups = ROUTE.exec(rest)?.groups;
  if (groups === undefined) return undefined;
  const id = groups.id === undefined ? undefined : decodeSegment(groups.id);
  const { chat } = room();
  try {
    if (id === undefined)
      return request.method === "GET" ? Response.json({ items: listInbox(chat) }) : notAllowed("GET");
    switch (request.method) {
      case "GET":
        return look(chat, id);
      case "PATCH":
        return change(chat, id, await readBody(chat.host, request), identity);
      case "DELETE": {
        const taken = withdrawInbox(chat, id);
        if (taken.kind !== "withdrawn") return refuse(taken.kind, id);
        return Response.json({ requestId: id, status: "withdrawn", messages: taken.messages });
      }
      default:
        return notAllowed("GET, PATCH, DELETE");
    }
  } catch (thrown) {
    return refuseInput(thrown);
  }
}

function look(chat: Chat, id: string): Response {
  const turn = readTurn(chat.host, id);
  if (turn === undefined) return refuse("not_found", id);
  const item = listInbox(chat).find(({ requestId }) => requestId === id);
  if (item !== undefined) return Response.json({ requestId: id, status: "waiting", item });
  return Response.json({ requestId: id, status: turn.status, receipt: readReceipt(chat, id) });
}

function change(chat: Chat, id: string, wish: unknown, identity: Identity | undefined): Response {
  const { content, before } = readWish(wish);
  const target = typeof before === "string" ? inboxStanding(chat, before) : "waiting";
  if (target !== "waiting") return refuse(target, before ?? id);
  // The edit first: it may be refused for what it says, and then nothing has moved.
  const edited = content === undefined ? "edited" : editInbox(chat, id, content, storeIdentity(identity));
  if (edited !== "edited") return refuse(edited, id);
  const moved = before === undefined ? "moved" : moveInbox(chat, id, before);
  if (moved !== "moved") return refuse(moved, id);
  return Response.json({ items: listInbox(chat) });
}

interface Wish {
  readonly content: string | readonly unknown[] | undefined;
  readonly before: string | null | undefined;
}

function readWish(wish: unknown): Wish {
  if (!isRecord(wish)) throw new PerdureError("bad_input", "The body must be a JSON object.");
  const { text, parts, before } = wish;
  if (text !== undefined && parts !== undefined)
    throw new PerdureError("bad_input", "Give either `text` or `parts`, not both.");
  if (text !== undefined && typeof text !== "string") throw new PerdureError("bad_input", "`text` must be text.");
  if (parts !== undefined && !Array.isArray(parts)) throw new PerdureError("bad_input", "`parts` must be a list.");
  if (before !== undefined && before !== null && typeof before !== "string")
    throw new PerdureError("bad_input", "`before` must be the id of what waits, or null for the end.");
  const content = text ?? (parts as unknown[] | undefined);
  if (content === undefined && before === undefined)
    throw new PerdureError("bad_input", "Say what to change: `text`, `parts` or `before`.");
  return { content, before };
}

function refuse(why: NotWaiting, id: string): Response {
  const error =
    why === "started"
      ? { code: "bad_state", message: `"${id}" has started. Stop it instead.` }
      : { code: "not_found", message: `"${id}" does not wait.` };
  return Response.json({ error }, { status: why === "started" ? 409 : 404 });
}

function notAllowed(allow: string): Response {
  return new Response("Method Not Allowed", { status: 405, headers: { allow } });
}
