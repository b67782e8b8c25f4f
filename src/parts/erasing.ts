import { PerdureError } from "../base/error.ts";
import { erase, type EraseReceipt, finishErase } from "../erase/erase.ts";
import { type EraseScope, sessionsIn } from "../erase/erase-plan.ts";
import type { MediaMover } from "../media/media.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { openTurns } from "../store/turn.ts";
import type { ChatRoom } from "../live/chat-room.ts";
import { turnNow } from "./current.ts";

/** What erasing takes from the agent around it. */
interface EraseSurroundings {
  readonly room: ChatRoom;
  readonly sessions: SessionManager;
  readonly media: MediaMover;
}

/**
 * Erases a session or a subject's data: its turns are stopped first, and clients see it go.
 * @throws PerdureError `bad_state` inside of a turn of such a session: it would wait for itself.
 */
export async function eraseData(around: EraseSurroundings, scope: EraseScope): Promise<EraseReceipt> {
  const { chat } = around.room;
  const { host } = chat;
  const session = turnNow(host)?.session;
  const deps = {
    host,
    async stop(sessions: readonly string[]) {
      if (session !== undefined && sessions.includes(session))
        throw new PerdureError("bad_state", "A session cannot be erased inside of its own turn. Do it after the turn.");
      const open = openTurns(host).filter((one) => sessions.includes(one.session));
      for (const { id } of open) chat.cancel(id);
      for (const { id } of open) await chat.settled(id);
      host.tx(() => chat.answerer.steps?.background.drop((call) => sessions.includes(call.session)));
      await around.media.idle();
    },
    erased(sessions: readonly string[]) {
      for (const one of sessions) {
        around.sessions.delete(one);
        chat.transcripts.forget(one);
      }
      chat.transcripts.reload();
      for (const one of sessions) {
        chat.output.cleared(one, undefined);
        around.room.live.sessions({ kind: "deleted", session: one });
      }
    },
  };
  // So that what is wrong with the scope is said before anything stops.
  if ("session" in scope && typeof scope.session === "string" && scope.session !== "") sessionsIn(host, scope);
  return host.keepAwake(erase(deps, scope));
}

/** Does the rest of what a crash cut off, in the background. Never throws. */
export function finishErasing(room: () => ChatRoom): void {
  const { host, agent } = room().chat;
  void host.keepAwake(finishErase(host)).catch((thrown: unknown) => {
    if (!PerdureError.is(thrown, "agent_gone")) agent.failed(thrown);
  });
}
