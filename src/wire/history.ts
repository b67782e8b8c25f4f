/*
 * History in pages, an addition to the public wire.
 *
 * A client that connects with `?_history=pages` is told only the end of the conversation where others are told all of
 * it; `before` in the frame says that there is more, and asks for it:
 *
 *   client   { "type": "perdure_chat_older", "before": 4711 }
 *   server   { "type": "perdure_chat_older", "before": 4711, "messages": […], "next": 4671 }
 *
 * What such a frame holds replaces the client's list from its first message on; what stands before that has not
 * changed. Without `before` it is the whole conversation. So what is sent does not grow with the conversation.
 */

/** The parameter of a socket's URL that asks for pages. */
export const HISTORY_PARAM = "_history";
/** Its value. */
export const HISTORY_PAGES = "pages";
/** How a client wants to be told of the conversation: its end, or all of it every time. */
export type HistoryMode = "pages" | "whole";

/** How many messages a page holds at most: one screen and some to scroll. */
export const PAGE_MESSAGES = 40;
/** How many messages are told after a change, to a client that has the rest. */
export const TAIL_MESSAGES = 10;

/** The parameter of a socket's URL that names the session; without it, it is in whichever is the current one. */
export const SESSION_PARAM = "_session";

/** The session that the client with this URL asks for. */
export function sessionIn(uri: string): string | undefined {
  if (!uri.includes(`${SESSION_PARAM}=`)) return undefined;
  return new URL(uri, "ws://host").searchParams.get(SESSION_PARAM) || undefined;
}

/** Whether the client with this URL wants pages. */
export function wantsPages(uri: string): boolean {
  return uri.includes(`${HISTORY_PARAM}=${HISTORY_PAGES}`);
}
