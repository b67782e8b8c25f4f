import type { AgentHost, Socket } from "../port.ts";
import type { ChatHooks } from "../turn/engine/chat-types.ts";
import { Conversations } from "../turn/engine/conversations.ts";
import type { ContextState } from "../wire/session-frames.ts";
import { Audience } from "./audience.ts";
import { LiveChat } from "./live-chat.ts";
import { Resume } from "./resume.ts";
import { SessionNews } from "./session-news.ts";

/** A chat and those who listen to it. */
export interface ChatRoom {
  readonly chat: Conversations;
  readonly live: LiveChat;
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
export function openRoom(host: AgentHost, hooks: ChatHooks, { work, context, moved }: RoomAround): ChatRoom {
  const audience = new Audience(
    () => host.sockets.all(),
    () => chat.transcripts.current,
  );
  const live = new LiveChat(
    audience,
    () => chat,
    () => resume,
  );
  const over = (turnId: string) => {
    hooks.over?.(turnId);
    news.changed({ kind: "turn" });
  };
  const repairToolPart: ChatHooks["repairToolPart"] = (part, message) => {
    try {
      return hooks.repairToolPart(part, message);
    } catch (thrown) {
      hooks.failed(thrown);
      return undefined;
    }
  };
  const chat: Conversations = new Conversations(host, { ...hooks, over, repairToolPart }, live, work);
  const resume: Resume = new Resume(chat, audience, live);
  const news: SessionNews = new SessionNews(chat, audience, () => resume, context, moved);
  live.onSessions = (change) => news.changed(change);
  return { chat, live, resume, audience, news };
}
