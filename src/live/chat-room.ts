import { unitsOfText } from "../context/text-units.ts";
import type { SessionChange, SessionGround } from "../session/session-ground.ts";
import { emptySubmitted } from "../store/submission.ts";
import type { AgentHost, Socket } from "../port.ts";
import { type AgentSide, Conversations } from "../turn/engine/conversations.ts";
import type { ContextState } from "../wire/session-frames.ts";
import { Audience } from "./audience.ts";
import { Broadcast } from "./broadcast.ts";
import { Resume } from "./resume.ts";
import { SessionNews } from "./session-news.ts";

/** A chat and those who listen to it. */
export interface ChatRoom {
  readonly chat: Conversations;
  readonly live: Broadcast;
  readonly resume: Resume;
  readonly audience: Audience;
  readonly news: SessionNews;
}

/** What a chat needs of the agent that it is in. */
interface RoomAround {
  /** Asks it to look at its alarm again, and whether it takes no more work. */
  readonly work: { changed(): void; stopped(): boolean };
  /** How full the window of a session is. */
  readonly context: (session: string) => ContextState | null;
  /** A client has gone to another conversation, and was told of it. */
  readonly moved: (socket: Socket) => void;
}

/** Opens a chat: all of its parts know each other from the start. */
export function openRoom(host: AgentHost, side: AgentSide, { work, context, moved }: RoomAround): ChatRoom {
  const audience = new Audience(
    () => host.sockets.all(),
    () => chat.transcripts.current,
  );
  const live = new Broadcast(
    audience,
    () => chat,
    () => resume,
  );
  const chat: Conversations = new Conversations(host, side, live, work);
  const resume: Resume = new Resume(chat, audience, live);
  const news: SessionNews = new SessionNews(chat, audience, () => resume, context, moved);
  live.onSessions = (change) => news.changed(change);
  return { chat, live, resume, audience, news };
}

/** Sessions of a chat: their turns end with them, and clients hear what happens to them. */
export function sessionGround({ chat, live }: ChatRoom): SessionGround {
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
