import { PerdureError } from "../../base/error.ts";
import { storeIdentity } from "../../base/identity.ts";
import { isRecord } from "../../base/json.ts";
import { readTurn, type TurnRow } from "../../store/turn.ts";
import type { Conversations } from "../../turn/engine/conversations.ts";
import { isOfSession } from "../../turn/engine/mend.ts";
import {
  editInbox,
  type InboxItem,
  inboxStanding,
  listInbox,
  moveInbox,
  type NotWaiting,
  withdrawInbox,
} from "../../turn/intake/inbox.ts";
import { readReceipt } from "../../turn/intake/steer.ts";
import type { Act, Ask, RequestCaller } from "../../door/authorize.ts";
import { type ChatDoor, sessionFor } from "./turns.ts";
import type { Route, RouteRequest } from "../../door/routes.ts";

/*
 * What waits for its turn, over plain HTTP, under the agent's own address:
 *
 *   GET    …/chat/inbox       what waits in the session, in the order in which it will run
 *   GET    …/chat/inbox/{id}  where one request is, and where its messages were taken to
 *   PATCH  …/chat/inbox/{id}  { text } or { parts } changes the message, { before } moves it: an id, or null for the end
 *   DELETE …/chat/inbox/{id}  takes it back
 *
 * 404: not there, or gone without having started; 409: it has started.
 */

/** The routes of the inbox. */
export const INBOX_ROUTES: readonly Route<ChatDoor>[] = [
  {
    method: "GET",
    shape: "chat/inbox",
    acts: ["inbox.read"],
    answer: ({ caller }, { room: { chat } }) => listed(chat, sessionFor(chat, caller)),
  },
  { method: "GET", shape: "chat/inbox/{request}", acts: ["inbox.read"], ask: about("inbox.read"), answer: look },
  { method: "PATCH", shape: "chat/inbox/{request}", acts: ["inbox.edit"], ask: about("inbox.edit"), answer: change },
  {
    method: "DELETE",
    shape: "chat/inbox/{request}",
    acts: ["inbox.withdraw"],
    ask: about("inbox.withdraw"),
    answer: withdraw,
  },
];

function about(act: Act) {
  return ({ params }: RouteRequest): Ask => ({ act, on: { requestId: params.request } });
}

function listed(chat: Conversations, session: string): Response {
  return Response.json({ items: itemsIn(chat, session) });
}

/** What waits in a session. How much waits elsewhere does not show. */
function itemsIn(chat: Conversations, session: string): InboxItem[] {
  const items = listInbox(chat).filter((item) => item.session === session);
  return items.map((item, position) => ({ ...item, position }));
}

/** The turn of this id, if it is of the caller's session. */
function turnIn(chat: Conversations, caller: RequestCaller, id: string): TurnRow | undefined {
  const turn = readTurn(chat.host, id);
  return turn !== undefined && isOfSession(chat.host, turn, sessionFor(chat, caller)) ? turn : undefined;
}

function look({ params, caller }: RouteRequest, { room: { chat } }: ChatDoor): Response {
  const id = params.request ?? "";
  const turn = turnIn(chat, caller, id);
  if (turn === undefined) throw notWaiting("not_found", id);
  const item = itemsIn(chat, turn.session).find(({ requestId }) => requestId === id);
  if (item !== undefined) return Response.json({ requestId: id, status: "waiting", item });
  return Response.json({ requestId: id, status: turn.status, receipt: readReceipt(chat, id) });
}

async function change({ params, caller, body }: RouteRequest, { room: { chat } }: ChatDoor): Promise<Response> {
  const id = params.request ?? "";
  const { content, before } = readWish(await body());
  for (const one of [id, before ?? id]) if (turnIn(chat, caller, one) === undefined) throw notWaiting("not_found", one);
  const target = typeof before === "string" ? inboxStanding(chat, before) : "waiting";
  if (target !== "waiting") throw notWaiting(target, before ?? id);
  // The edit first: it may be refused for what it says, and then nothing has moved.
  const edited = content === undefined ? "edited" : editInbox(chat, id, content, storeIdentity(caller.identity));
  if (edited !== "edited") throw notWaiting(edited, id);
  const moved = before === undefined ? "moved" : moveInbox(chat, id, before);
  if (moved !== "moved") throw notWaiting(moved, id);
  return listed(chat, sessionFor(chat, caller));
}

function withdraw({ params, caller }: RouteRequest, { room: { chat } }: ChatDoor): Response {
  const id = params.request ?? "";
  if (turnIn(chat, caller, id) === undefined) throw notWaiting("not_found", id);
  const taken = withdrawInbox(chat, id);
  if (taken.kind !== "withdrawn") throw notWaiting(taken.kind, id);
  return Response.json({ requestId: id, status: "withdrawn", messages: taken.messages });
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

function notWaiting(why: NotWaiting, id: string): PerdureError {
  if (why === "started") return new PerdureError("bad_state", `"${id}" has started. Stop it instead.`);
  return new PerdureError("not_found", `"${id}" is not waiting.`);
}
