import { PerdureError } from "../base/error.ts";
import type { Work } from "../work/work.ts";
import { storeIdentity } from "../base/identity.ts";
import { type ChatRoom, openRoom } from "../live/chat-room.ts";
import { noOlderFrame, olderFrame } from "../live/conversation-frames.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentHost, Socket } from "../port.ts";
import { isOpen, readTurn } from "../store/turn.ts";
import { persist } from "../turn/intake/accept.ts";
import type { AgentSide } from "../turn/engine/conversations.ts";
import { isOfSession } from "../turn/engine/mend.ts";
import { judgeAnswer, type JudgedAnswer } from "../turn/intake/judge-answer.ts";
import { MAX_NEW_MESSAGES, notStored, notTaken, submit } from "../turn/intake/submit.ts";
import { answerTool, findAsked, type ToolAnswer } from "../turn/intake/tool-answers.ts";
import { encodeFrame } from "../wire/encode.ts";
import { sessionIn, wantsPages } from "../wire/history.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { SessionOp } from "../wire/session-frames.ts";
import { type Ask, askHook, type Caller, readOnlyError, type Refusal } from "../door/authorize.ts";
import { BACKGROUND_ROUTES, STOPPED_BY_PERSON } from "../live/http/background.ts";
import { type ChatDoor, sessionFor, TURN_ROUTES } from "../live/http/turns.ts";
import { type Connection, socketOf } from "../door/connection.ts";
import type { AgentPart } from "./part.ts";
import type { AgentParts } from "./agent-parts.ts";
import { type Route, type RouteTable, routeTable } from "../door/routes.ts";
import { inPieces, LOOKED_AT_ONCE, newUserMessages } from "../turn/intake/submit.ts";
import { answerSessionFrame, refuseSessionFrame, type SessionServant } from "../live/session-frames.ts";
import { hasSession, noSession } from "../session/session-changes.ts";
import { FILE_ROUTES } from "../live/http/files.ts";
import { INBOX_ROUTES } from "../live/http/inbox.ts";
import { TRANSCRIPT_ROUTES } from "../live/http/messages.ts";

const NOTHING_SAID_YET = `{"type":"cf_agent_chat_messages","connect":true,"messages":[]}`;

/** Acts that are about the conversation that somebody is in. */
const IN_SESSION = /^(?:chat|tool|background|inbox|file)\./;

const CHAT_KINDS: ReadonlySet<ParsedFrame["kind"]> = new Set([
  ...(["chat-request", "chat-refused", "chat-messages", "chat-clear", "chat-cancel", "chat-older"] as const),
  ...(["chat-long", "transcript-long"] as const),
  ...(["resume-request", "resume-ack", "tool-result", "tool-approval", "tool-stop"] as const),
  ...(["session", "session-refused"] as const),
]);

/** All that a chat answers by HTTP. */
export const CHAT_ROUTES: readonly Route<ChatDoor & { readonly host: AgentHost }>[] = [
  ...TRANSCRIPT_ROUTES,
  ...FILE_ROUTES,
  ...TURN_ROUTES,
  ...INBOX_ROUTES,
  ...BACKGROUND_ROUTES,
];

type ChatOwner = Pick<AgentParts<unknown>, "host" | "rearm" | "draining" | "parts" | "connections">;

/** Joins a chat to its agent: frames and requests in. The chat is made when something is said, or was. */
export class ChatPart implements AgentPart {
  readonly #own: ChatOwner;
  readonly #side: () => AgentSide;
  readonly #servant: () => SessionServant | undefined;
  readonly kinds = CHAT_KINDS;
  readonly routes: RouteTable;
  #room: ChatRoom | undefined;

  constructor(own: ChatOwner, side: () => AgentSide, servant: () => SessionServant | undefined) {
    this.#own = own;
    this.#side = side;
    this.#servant = servant;
    this.routes = routeTable(CHAT_ROUTES, this);
  }

  get host(): AgentHost {
    return this.#own.host;
  }

  get room(): ChatRoom {
    const own = this.#own;
    return (this.#room ??= openRoom(own.host, this.#side(), {
      work: { changed: () => own.rearm(), stopped: () => own.draining },
      context: (session) => this.#servant()?.contextState(session) ?? null,
      moved: (socket) => {
        for (const part of own.parts) part.moved?.(own.connections.of(socket));
      },
    }));
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

  /** Asking about sessions, and entering a named one, needs the app's permission. */
  consents(caller: Caller, ask: Ask): Refusal | Promise<Refusal> {
    const { act, on } = ask;
    if (on?.op !== undefined) return this.#allows(caller, ask, on.op);
    // A connection was asked when it came, or when it went there.
    const enters = act === "connect" || ("request" in caller && IN_SESSION.test(act));
    const session = enters ? sessionIn(caller.uri) : undefined;
    if (session === undefined) return undefined;
    const enter = (refusal: Refusal): Refusal =>
      refusal ?? (hasSession(this.host, session) ? undefined : noSession(session));
    const refusal = this.#allows(caller, ask, { op: "attach", session });
    return refusal instanceof Promise ? refusal.then(enter) : enter(refusal);
  }

  #allows(caller: Caller, ask: Ask, op: SessionOp): Refusal | Promise<Refusal> {
    const servant = this.#servant();
    if (servant === undefined) return undefined;
    return askHook(
      () => servant.allow(caller, op),
      "allowSessionOp()",
      ask,
      (thrown, stage) => this.room.chat.agent.failed(thrown, { stage }),
    );
  }

  sessionOf(caller: Caller): string {
    const { audience, chat } = this.room;
    return "request" in caller ? sessionFor(chat, caller) : audience.sessionOf(socketOf(caller));
  }

  closed(connection: Connection): void {
    this.#room?.resume.closed(socketOf(connection));
  }

  frame(connection: Connection, frame: ParsedFrame): void | Promise<void> {
    const { session } = this.room.audience.of(socketOf(connection));
    // It is being closed. What it sends meanwhile must not make the session that it names.
    if (session !== undefined && !hasSession(this.host, session)) return;
    const servant = this.#servant();
    if (frame.kind !== "session" && frame.kind !== "session-refused") return handleFrame(this.room, connection, frame);
    if (servant !== undefined) return answerSessionFrame(this.room, servant, connection, frame);
  }

  refuse(connection: Connection, frame: ParsedFrame, error: PerdureError): void {
    refuseFrame(this.room, socketOf(connection), frame, error);
  }

  drain(): void {
    this.#room?.live.drain();
  }

  halt(reason: unknown): void {
    this.#room?.chat.halt(reason);
    this.#room?.live.halt();
  }
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

function handleFrame(room: ChatRoom, connection: Connection, frame: ParsedFrame): void | Promise<void> {
  const { chat, resume, audience } = room;
  const socket = socketOf(connection);
  const session = audience.sessionOf(socket);
  const { identity } = socket;
  switch (frame.kind) {
    case "chat-request": {
      const trigger = frame.trigger === "regenerate-message" ? "regenerate" : "submit";
      try {
        const refusal = submit(chat, { ...frame, trigger, session, identity }, socket);
        if (refusal !== undefined) refuse(room, socket, frame.id, new PerdureError(refusal.code, refusal.reason));
      } catch (thrown) {
        // Nothing of it was stored; its sender would wait for an end that never comes.
        if (!chat.knows(frame.id)) refuse(room, socket, frame.id, notStored(thrown), "persist");
        throw thrown;
      }
      return;
    }
    case "chat-refused": {
      // A request that was understood before is the same request, whatever it says now.
      const found = readTurn(chat.host, frame.id);
      const known = found && isOfSession(chat.host, found, session) ? found : undefined;
      if (known === undefined)
        refuse(room, socket, frame.id, new PerdureError(frame.code ?? "bad_input", frame.reason));
      else if (!isOpen(known)) room.live.repeated(known, socket);
      return;
    }
    case "chat-cancel":
      if (orAgain(room, socket, () => chat.cancel(frame.id, session))) resume.stopping(socket, frame.id);
      return;
    case "chat-clear":
      orAgain(room, socket, () => chat.clear(socket, session));
      return;
    case "chat-messages": {
      const refused = (reason: string) => chat.host.emit("frame:refused", { connectionId: connection.id, reason });
      const take = (messages: readonly UIMessage[]) => {
        if (messages.length > MAX_NEW_MESSAGES)
          refused(`pushed messages: more than ${MAX_NEW_MESSAGES} are new or changed`);
        else {
          const options = { origin: socket, session, identity: storeIdentity(identity) };
          orAgain(room, socket, () => persist(chat, messages, options));
        }
      };
      const { messages } = frame;
      if (messages.length <= LOOKED_AT_ONCE) return take(newUserMessages(chat, session, messages, identity, refused));
      return inPieces(chat, messages, (piece) => newUserMessages(chat, session, piece, identity, refused)).then(take);
    }
    case "chat-older":
      socket.send(olderFrame(chat, session, frame.before));
      return;
    case "resume-request":
      resume.request(socket, frame.probeId);
      return;
    case "resume-ack":
      resume.acknowledge(socket, frame.id);
      return;
    case "tool-result": {
      const { toolCallId, result, autoContinue, clientTools } = frame;
      const answer = { kind: "result", result } as const;
      return answerCall(room, { toolCallId, answer, autoContinue, clientTools, session, identity }, connection);
    }
    case "tool-approval": {
      const { toolCallId, approved, autoContinue, approvalId, digest } = frame;
      const answer = { kind: "approval", approved } as const;
      const given = { toolCallId, answer, about: { approvalId }, digest, autoContinue, session, identity };
      return answerCall(room, given, connection);
    }
    case "tool-stop":
      chat.answerer.steps?.background.stop(frame.toolCallId, { session, reason: STOPPED_BY_PERSON });
      return;
    default:
  }
}

/** What could not be stored has not happened: a client that shows it is given the conversation as it is. */
function orAgain<T>({ live }: ChatRoom, socket: Socket, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    live.again(socket);
    throw thrown;
  }
}

function answerCall(room: ChatRoom, given: ToolAnswer, connection: Connection): void | Promise<void> {
  const { chat, live } = room;
  const socket = socketOf(connection);
  const conclude = (judged: JudgedAnswer) => {
    // It may have taken its time: whoever was sent away meanwhile, or may only read by now, has answered nothing.
    if (socket.dismissed) return;
    if ("refusal" in judged) live.approvalRefused(given.toolCallId, judged.refusal, socket);
    else if (connection.isReadonly)
      live.approvalRefused(given.toolCallId, { reason: readOnlyError(connection).message }, socket);
    else orAgain(room, socket, () => answerTool(chat, judged.answer, socket));
  };
  const judged = judgeAnswer(chat, given);
  return judged instanceof Promise ? judged.then(conclude) : conclude(judged);
}

/** Refuses a frame in the frame that its client waits for, and gives it the conversation as it is. */
function refuseFrame(room: ChatRoom, socket: Socket, frame: ParsedFrame, error: PerdureError): void {
  const { chat, live, resume, audience } = room;
  switch (frame.kind) {
    case "session":
      return refuseSessionFrame(room, socket, frame.id, error);
    case "chat-request":
    case "chat-long":
      return refuse(room, socket, frame.id, error);
    case "transcript-long":
    case "chat-messages":
    case "chat-clear":
    case "chat-cancel":
    case "tool-stop":
      return live.again(socket);
    case "chat-older":
      return socket.send(noOlderFrame(frame.before));
    case "resume-request":
      return resume.none(socket, "idle", frame.probeId);
    case "resume-ack":
      return resume.nothingOf(socket, frame.id);
    case "tool-result":
    case "tool-approval": {
      const { toolCallId } = frame;
      const answer = { kind: "approval", approved: false } as const;
      const session = audience.sessionOf(socket);
      const open = findAsked(chat, { toolCallId, answer, autoContinue: false, session });
      if (open !== undefined) socket.send(encodeFrame({ type: "cf_agent_message_updated", message: open.message }));
      return live.approvalRefused(toolCallId, { reason: error.message, part: open?.part }, socket);
    }
    default:
  }
}
