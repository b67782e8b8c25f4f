import { PerdureError } from "../error.ts";
import type { Work } from "../fiber/work.ts";
import { type Identity, storeIdentity } from "../identity.ts";
import { Audience } from "../live/audience.ts";
import { olderFrame } from "../live/conversation-frames.ts";
import { LiveChat } from "../live/live-chat.ts";
import { Resume } from "../live/resume.ts";
import { SessionNews } from "../live/session-news.ts";
import { isRecord, sameJson } from "../message/json.ts";
import { withoutReserved } from "../message/steered.ts";
import { parseUserMessage } from "../message/validate.ts";
import type { UIMessage } from "../message/types.ts";
import type { Socket } from "../port.ts";
import { isSaidIn } from "../session/siblings.ts";
import { isOpen, readTurn } from "../store/turn.ts";
import { Chat } from "../turn/chat.ts";
import type { ChatHooks } from "../turn/chat-types.ts";
import { judgeAnswer, type JudgedAnswer } from "../turn/judge-answer.ts";
import { notStored, notTaken } from "../turn/not-taken.ts";
import { persist } from "../turn/save.ts";
import { MAX_NEW_MESSAGES } from "../turn/submit.ts";
import type { ToolAnswer } from "../turn/tool-answers.ts";
import { lastSegment } from "../wire/address.ts";
import { closeCode, refusalCode, UNKNOWN_SESSION } from "../wire/close-code.ts";
import { sessionIn, wantsPages } from "../wire/history.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { ContextState } from "../wire/session-frames.ts";
import { answerFileRequest } from "./chat-files.ts";
import { answerChatRequest } from "./chat-http.ts";
import { storedMessages } from "./chat-messages.ts";
import { type Connection, socketOf } from "./connection.ts";
import type { Feature } from "./feature.ts";
import type { AgentParts } from "./parts.ts";
import { answerSessionFrame, movesClient, type SessionServant } from "./session-frames.ts";

const NOTHING_SAID_YET = `{"type":"cf_agent_chat_messages","connect":true,"messages":[]}`;
const FORBIDDEN = 403;
/** So many messages of a transcript that a client pushes are looked at in one go. */
const LOOKED_AT_ONCE = 500;

/** A chat and those who listen to it. */
export interface ChatRoom {
  readonly chat: Chat;
  readonly live: LiveChat;
  readonly resume: Resume;
  readonly audience: Audience;
  readonly news: SessionNews;
}

/** Joins a chat to its agent: frames and requests in. The chat is made when something is said, or was. */
export class ChatFeature implements Feature {
  readonly #own: Pick<AgentParts<unknown>, "host" | "rearm" | "draining">;
  readonly #hooks: () => ChatHooks;
  readonly #servant: () => SessionServant | undefined;
  /**
   * Clients that are about to be put into another session, or whose long transcript is being looked through: what they
   * send meanwhile is about what comes of it.
   */
  readonly #moving = new WeakMap<Socket, Promise<void>>();
  #room: ChatRoom | undefined;

  constructor(
    own: Pick<AgentParts<unknown>, "host" | "rearm" | "draining">,
    hooks: () => ChatHooks,
    servant: () => SessionServant | undefined = () => undefined,
  ) {
    this.#own = own;
    this.#hooks = hooks;
    this.#servant = servant;
  }

  get room(): ChatRoom {
    return (this.#room ??= openRoom(
      this.#own,
      this.#hooks(),
      (session) => this.#servant()?.contextState(session) ?? null,
    ));
  }

  get work(): Work {
    return this.room.chat;
  }

  started(): void {
    if (!this.#own.host.blank) this.room.chat.start();
  }

  connecting(connection: Connection): void {
    const socket = socketOf(connection);
    if (!this.#own.host.blank || sessionIn(socket.uri) !== undefined) {
      const { resume, news } = this.room;
      resume.connecting(socket);
      news.greet(socket);
    }
    // It may have been deleted since the client was here.
    else if (wantsPages(socket.uri)) socket.send(NOTHING_SAID_YET);
  }

  admit(connection: Connection): boolean | Promise<boolean> {
    const session = sessionIn(connection.uri);
    if (session === undefined) return true;
    const socket = socketOf(connection);
    const enter = (allowed: boolean): boolean => {
      if (allowed && this.room.news.knows(session)) return true;
      if (allowed) socket.close(closeCode.unknownSession, UNKNOWN_SESSION);
      else socket.close(refusalCode(FORBIDDEN), "not allowed");
      return false;
    };
    const allowed = this.#servant()?.allow(connection, { op: "attach", session }) ?? true;
    return typeof allowed === "boolean" ? enter(allowed) : allowed.then(enter);
  }

  closed(connection: Connection): void {
    this.#room?.resume.closed(socketOf(connection));
  }

  frame(connection: Connection, frame: ParsedFrame): boolean | Promise<boolean> {
    const moving = this.#moving.get(socketOf(connection));
    return moving === undefined ? this.#take(connection, frame) : moving.then(() => this.#take(connection, frame));
  }

  #take(connection: Connection, frame: ParsedFrame): boolean | Promise<boolean> {
    const { audience, news } = this.room;
    const socket = socketOf(connection);
    const { session } = audience.of(socket);
    // It is being closed. What it sends meanwhile must not make the session that it names.
    if (session !== undefined && !news.knows(session)) return true;
    if (frame.kind !== "session" && frame.kind !== "session-refused") {
      const taken = handleFrame(this.room, connection, frame);
      if (typeof taken !== "boolean" && frame.kind === "chat-messages") this.#holdUntil(socket, taken);
      return taken;
    }
    const servant = this.#servant();
    if (servant === undefined) return false;
    const taken = answerSessionFrame(this.room, servant, connection, frame);
    if (typeof taken !== "boolean" && movesClient(frame)) this.#holdUntil(socket, taken);
    return taken;
  }

  #holdUntil(socket: Socket, taken: Promise<boolean>): void {
    const over = () => void this.#moving.delete(socket);
    this.#moving.set(socket, taken.then(over, over));
  }

  request(
    request: Request,
    rest: string,
    identity: Identity | undefined,
  ): Response | undefined | Promise<Response | undefined> {
    const isTranscript = request.method === "GET" && lastSegment(rest) === "get-messages";
    if (!isTranscript) return this.#answer(request, rest, identity);
    return storedMessages(this.room.chat, new URL(request.url).searchParams);
  }

  async #answer(request: Request, rest: string, identity: Identity | undefined): Promise<Response | undefined> {
    return (
      (await answerFileRequest(this.#own.host, request, rest)) ??
      (await answerChatRequest(() => this.room, request, rest, identity))
    );
  }

  drain(): void {
    this.#room?.live.drain();
  }

  halt(reason: unknown): void {
    this.#room?.chat.halt(reason);
    this.#room?.live.halt();
  }
}

function openRoom(
  own: Pick<AgentParts<unknown>, "host" | "rearm" | "draining">,
  hooks: ChatHooks,
  context: (session: string) => ContextState | null,
): ChatRoom {
  const audience = new Audience(
    () => own.host.sockets.all(),
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
  const work = { changed: () => own.rearm(), stopped: () => own.draining };
  const chat: Chat = new Chat(own.host, { ...hooks, over, repairToolPart }, live, work);
  const resume: Resume = new Resume(chat, audience, live);
  const news: SessionNews = new SessionNews(chat, audience, () => resume, context);
  live.onSessions = (change) => news.changed(change);
  return { chat, live, resume, audience, news };
}

/** Tells the sender of a request that it was not taken in. */
function refuse(
  { chat, live }: ChatRoom,
  socket: Socket,
  requestId: string,
  error: PerdureError,
  stage: "parse" | "persist" = "parse",
): void {
  const told = notTaken(chat, { id: requestId, identity: socket.identity }, error, stage);
  void chat.host.keepAwake(told.then((text) => live.refused(requestId, text, socket)));
}

function handleFrame(room: ChatRoom, connection: Connection, frame: ParsedFrame): boolean | Promise<boolean> {
  const { chat, resume, audience } = room;
  const socket = socketOf(connection);
  const session = audience.sessionOf(socket);
  const { identity } = socket;
  switch (frame.kind) {
    case "chat-request": {
      const trigger = frame.trigger === "regenerate-message" ? "regenerate" : "submit";
      try {
        const refusal = chat.submit({ ...frame, trigger, session, identity }, socket);
        if (refusal !== undefined) refuse(room, socket, frame.id, new PerdureError(refusal.code, refusal.reason));
      } catch (thrown) {
        // Nothing of it was stored; its sender would wait for an end that never comes.
        if (!chat.knows(frame.id)) refuse(room, socket, frame.id, notStored(thrown), "persist");
        throw thrown;
      }
      return true;
    }
    case "chat-refused": {
      // A request that was understood before is the same request, whatever it says now.
      const known = readTurn(chat.host, frame.id);
      if (known === undefined)
        refuse(room, socket, frame.id, new PerdureError(frame.code ?? "bad_input", frame.reason));
      else if (!isOpen(known)) room.live.repeated(known, socket);
      return true;
    }
    case "chat-cancel":
      resume.stopping(socket, frame.id);
      chat.cancel(frame.id);
      return true;
    case "chat-clear":
      chat.clear(socket, session);
      return true;
    case "chat-messages": {
      const refused = (reason: string) => chat.host.emit("frame:refused", { connectionId: connection.id, reason });
      const take = (messages: readonly UIMessage[]) => {
        if (messages.length > MAX_NEW_MESSAGES)
          refused(`messages that were pushed: more than ${MAX_NEW_MESSAGES} are new or changed`);
        else persist(chat, messages, { origin: socket, session, identity: storeIdentity(identity) });
        return true as const;
      };
      const { messages } = frame;
      if (messages.length <= LOOKED_AT_ONCE) return take(newUserMessages(chat, session, messages, refused));
      return inPieces(chat, messages, (piece) => newUserMessages(chat, session, piece, refused)).then(take);
    }
    case "chat-older":
      socket.send(olderFrame(chat, session, frame.before));
      return true;
    case "resume-request":
      resume.request(socket, frame.probeId);
      return true;
    case "resume-ack":
      resume.acknowledge(socket, frame.id);
      return true;
    case "tool-result": {
      const { toolCallId, result, autoContinue, clientTools } = frame;
      const answer = { kind: "result", result } as const;
      return answerCall(room, { toolCallId, answer, autoContinue, clientTools, session, identity }, socket);
    }
    case "tool-approval": {
      const { toolCallId, approved, autoContinue } = frame;
      const answer = { kind: "approval", approved } as const;
      return answerCall(room, { toolCallId, answer, autoContinue, session, identity }, socket);
    }
    default:
      return false;
  }
}

function answerCall({ chat, live }: ChatRoom, given: ToolAnswer, socket: Socket): boolean | Promise<boolean> {
  const conclude = (judged: JudgedAnswer) => {
    if ("answer" in judged) chat.answerTool(judged.answer, socket);
    else live.approvalRefused(given.toolCallId, judged.refusal, socket);
    return true;
  };
  const judged = judgeAnswer(chat, given);
  return judged instanceof Promise ? judged.then(conclude) : conclude(judged);
}

/** Of a transcript that a client pushes only what is new of its own messages is taken, and none of another session. */
function newUserMessages(
  chat: Chat,
  session: string,
  list: readonly unknown[],
  refused: (reason: string) => void,
): UIMessage[] {
  const messages: UIMessage[] = [];
  for (const value of list) {
    if (!isRecord(value) || value.role !== "user" || typeof value.id !== "string") continue;
    const role = chat.transcript.role(value.id);
    const isOwn = role === undefined || (role === "user" && isSaidIn(chat.host, session, value.id));
    if (!isOwn || (role !== undefined && sameJson(chat.transcript.get(value.id), value))) continue;
    const parsed = parseUserMessage(value);
    if ("message" in parsed) messages.push(withoutReserved(parsed.message));
    else refused(`a message that was pushed: ${parsed.reason}`);
  }
  return messages;
}

/** Looks through a long transcript without holding up everybody else. */
async function inPieces(
  { host }: Chat,
  list: readonly unknown[],
  look: (piece: readonly unknown[]) => UIMessage[],
): Promise<UIMessage[]> {
  const found: UIMessage[] = [];
  for (let at = 0; at < list.length; at += LOOKED_AT_ONCE) {
    for (const message of look(list.slice(at, at + LOOKED_AT_ONCE))) found.push(message);
    await host.breathe();
  }
  return found;
}
