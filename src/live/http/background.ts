import { PerdureError } from "../../base/error.ts";
import { toBackgroundState } from "../session-news.ts";
import { type ChatDoor, sessionFor } from "./turns.ts";
import type { Route } from "../../door/routes.ts";

/*
 * Tool calls that go on without their turns, over plain HTTP, under the agent's own address:
 *
 *   GET    …/chat/background         those of the session, the oldest first
 *   DELETE …/chat/background/{call}  stops one; 404: none of that id goes on in the session
 */

/** What the model reads of a call that somebody outside has stopped. */
export const STOPPED_BY_PERSON = "A person stopped it.";

/** The routes of calls in the background. */
export const BACKGROUND_ROUTES: readonly Route<ChatDoor>[] = [
  {
    method: "GET",
    shape: "chat/background",
    acts: ["background.read"],
    answer({ caller }, { room: { chat } }) {
      const calls = chat.answerer.steps?.background.list(sessionFor(chat, caller)) ?? [];
      return Response.json({ calls: calls.map(toBackgroundState) });
    },
  },
  {
    method: "DELETE",
    shape: "chat/background/{call}",
    acts: ["background.stop"],
    ask: ({ params }) => ({ act: "background.stop", on: { toolCallId: params.call } }),
    answer({ params, caller }, { room: { chat } }) {
      const toolCallId = params.call ?? "";
      const options = { session: sessionFor(chat, caller), reason: STOPPED_BY_PERSON };
      if (chat.answerer.steps?.background.stop(toolCallId, options) === true)
        return Response.json({ toolCallId, stopped: true });
      throw new PerdureError("not_found", `No call "${toolCallId}" runs in the background.`);
    },
  },
];
