import { unitsOfText } from "../context/text-units.ts";
import type { SessionChange, SessionDesk } from "../session/session-desk.ts";
import { emptySubmitted } from "../store/submission.ts";
import type { ChatRoom } from "../live/chat-room.ts";

/** Sessions that stand on a chat: their turns end with them, and clients hear of what becomes of them. */
export function chatSessionDesk({ chat, live }: ChatRoom): SessionDesk {
  return {
    store: chat.host,
    transcripts: chat.transcripts,
    commit: (work) => chat.commit(work),
    forget: (session, also) => chat.clear(undefined, session, also),
    deleted(messageId) {
      chat.answerer.steps?.background.drop((call) => call.messageId === messageId);
      emptySubmitted(chat.host, messageId);
    },
    derivesTitles: () => chat.policy.titles !== false,
    answering(session) {
      const running = chat.turnIn(session);
      return running?.cutBy === "cleared" ? undefined : running?.builder.id;
    },
    told(change: SessionChange) {
      if (change.kind === "changed" || change.kind === "branch") live.transcript(change.session);
      live.sessions(change);
    },
    failed: (error) => chat.agent.failed(error),
    countTokens: (text) => Math.ceil(unitsOfText(text)),
  };
}
