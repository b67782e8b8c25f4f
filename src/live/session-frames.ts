import type { ContextReport } from "../wire/session-types.ts";
import { PerdureError } from "../base/error.ts";
import type { ChatRoom } from "./chat-room.ts";
import { firstChars } from "../message/cut-value.ts";
import type { UIMessage } from "../message/types.ts";
import type { Socket } from "../port.ts";
import type { SessionManager } from "../session/session-manager.ts";
import { readMessage, standsAbove } from "../store/message.ts";
import { readSessionLine } from "../store/session.ts";
import { openTurns } from "../store/turn.ts";
import { encodeFrame } from "../wire/encode.ts";
import {
  ALL_SESSIONS,
  type BranchInfo,
  type ContextState,
  MAX_BRANCHES,
  MAX_LISTED,
  type ParsedSessionFrame,
  PREVIEW_LENGTH,
  type SessionOp,
} from "../wire/session-frames.ts";
import type { Caller } from "../door/authorize.ts";
import { type Connection, socketOf } from "../door/connection.ts";
import { hasSession, noSession } from "../session/session-changes.ts";

/** Methods of an agent that knows what its model reads. */
export interface WindowMethods {
  contextReport(of: { readonly session: string }): Promise<ContextReport>;
  compact(of: { readonly session: string; readonly focus?: string; readonly preview: boolean }): Promise<unknown>;
  applyCompaction(draft: {
    readonly session: string;
    readonly summary: string;
    readonly messageId: string;
    readonly parts?: number;
  }): unknown;
  undoCompaction(id: string, of: { readonly session: string }): unknown;
}

/** What an agent can do with its sessions when a client asks. */
export interface SessionServant {
  readonly sessions: SessionManager;
  /** Whether a client may ask for this. */
  allow(caller: Caller, op: SessionOp): boolean | Promise<boolean>;
  /** How much of the window the next request takes, as far as is known without work. */
  contextState(session: string): ContextState | null;
  /** What it can do with what its model reads; undefined where it does not know that. */
  readonly window: WindowMethods | undefined;
  /** Finds a name for a session, and gives it to it. */
  title(session: string): Promise<string | null>;
}

/** Answers a client's questions about sessions. Errors are told to the client and are no failure of the agent. */
export function answerSessionFrame(
  room: ChatRoom,
  servant: SessionServant,
  connection: Connection,
  frame: ParsedSessionFrame,
): void | Promise<void> {
  const socket = socketOf(connection);
  const { id } = frame;
  const refuse = (thrown: unknown) => refuseSessionFrame(room, socket, id, thrown);
  if (frame.kind === "session-refused") return refuse(new PerdureError(frame.code ?? "bad_input", frame.reason));
  // Without a wait where none is needed: what comes behind this frame is about what it did.
  try {
    const value = perform({ room, servant, socket }, frame.ask);
    if (!(value instanceof Promise)) return answer(socket, id, value);
    return value.then((result: unknown) => answer(socket, id, result)).catch(refuse);
  } catch (thrown) {
    return refuse(thrown);
  }
}

interface Asked {
  readonly room: ChatRoom;
  readonly servant: SessionServant;
  readonly socket: Socket;
}

function perform(asked: Asked, ask: SessionOp): unknown {
  const { room, servant, socket } = asked;
  const { sessions } = servant;
  const here = room.audience.sessionOf(socket);
  switch (ask.op) {
    case "sessions":
      return sessions.list({ limit: ask.limit ?? MAX_LISTED, ...(ask.after !== undefined && { after: ask.after }) });
    case "create":
      return sessions.create(named(ask.name)).info;
    case "rename":
      sessions.rename(ask.session ?? here, ask.name);
      return sessions.info(sessions.ownerOf(ask.session ?? here));
    case "delete":
      return remove(asked, sessions.ownerOf(ask.session ?? here));
    case "clear":
      sessions.clear(ask.session ?? here);
      return null;
    case "attach":
      return attach(asked, ask.session);
    case "fork":
      return sessions.fork(ask.session ?? here, { ...named(ask.name), ...(ask.at !== undefined && { at: ask.at }) })
        .info;
    case "branches":
      return branches(asked, here, ask.messageId);
    case "switchBranch":
      return ask.own ? switchOwn(asked, here, ask) : switchAll(asked, here, ask);
    case "search": {
      const where = ask.session === ALL_SESSIONS ? {} : { session: ask.session ?? here };
      return sessions.search(ask.query, { ...where, ...(ask.limit !== undefined && { limit: ask.limit }) });
    }
    case "report":
      return windowOf(servant).contextReport({ session: here });
    case "compact":
      return windowOf(servant).compact({
        ...{ session: here, preview: ask.preview },
        ...(ask.focus !== undefined && { focus: ask.focus }),
      });
    case "applyCompaction": {
      const { summary, messageId, parts } = ask;
      return windowOf(servant).applyCompaction({
        session: here,
        summary,
        messageId,
        ...(parts !== undefined && { parts }),
      });
    }
    case "undoCompaction":
      return windowOf(servant).undoCompaction(ask.compaction, { session: here });
    case "pin":
    case "unpin":
      sessions.of(here)[ask.op](ask.messageId);
      return null;
    case "title":
      return servant.title(sessions.ownerOf(ask.session ?? here));
  }
}

function attach(asked: Asked, session: string | null): Whereabouts {
  const { news, chat } = asked.room;
  if (session !== null && !hasSession(chat.host, session)) throw noSession(session);
  news.move(asked.socket, session ?? undefined);
  return whereabouts(asked);
}

/** Where a client is now, what it has to name to come back there, and whose place it is if it is its own. */
interface Whereabouts {
  readonly session: string;
  readonly named: string | null;
  readonly viewOf: string | null;
}

/** @throws PerdureError `bad_state` */
function windowOf({ window }: SessionServant): WindowMethods {
  if (window !== undefined) return window;
  throw new PerdureError("bad_state", "This agent has no context window to manage. Extend Think.");
}

function whereabouts({ room, servant, socket }: Asked): Whereabouts {
  const session = room.audience.sessionOf(socket);
  const owner = servant.sessions.ownerOf(session);
  return { session, named: room.audience.of(socket).session ?? null, viewOf: owner === session ? null : owner };
}

/** A client that deletes its own session goes to the current one. Others in it are sent away. */
function remove({ room, servant, socket }: Asked, session: string): null {
  const { session: named } = room.audience.of(socket);
  if (named !== undefined && servant.sessions.ownerOf(named) === session) room.news.move(socket, undefined);
  if (!servant.sessions.delete(session)) throw noSession(session);
  return null;
}

function branches({ room, servant }: Asked, session: string, messageId: string): BranchInfo[] {
  const { host } = room.chat;
  const all = servant.sessions.of(session).getSiblings(messageId);
  const first = Math.max(0, all.length - MAX_BRANCHES);
  return all.slice(first).map((message, i) => ({
    ...{ messageId: message.id, role: message.role, preview: previewOf(message), index: first + i },
    createdAt: readMessage(host, message.id)?.createdAt ?? 0,
  }));
}

/** How a message begins. */
function previewOf({ parts }: UIMessage): string {
  const texts = parts.map((part) => (part.type === "text" ? part.text : ""));
  const text = texts.join(" ").replace(/\s+/g, " ").trim();
  return firstChars(text === "" ? `[${parts.at(-1)?.type ?? "empty"}]` : text, PREVIEW_LENGTH);
}

type Switch = Extract<SessionOp, { op: "switchBranch" }>;

/** A place of its own for one client, which nobody else is moved by. */
function switchOwn(asked: Asked, here: string, { messageId, named: isNamed }: Switch): Whereabouts {
  const { room, servant, socket } = asked;
  const { sessions } = servant;
  const owner = sessions.ownerOf(here);
  if (shows(room, owner, messageId)) return join(asked, owner, isNamed);
  const isOwn = owner !== here && !room.audience.hasOthers(here, socket);
  const isBusy = openTurns(room.chat.host).some((turn) => turn.session === here);
  let view = here;
  if (isOwn && !isBusy) sessions.of(here).switchBranch(messageId);
  else view = sessions.openView(here, messageId);
  room.news.move(socket, view);
  return whereabouts(asked);
}

function switchAll(asked: Asked, here: string, { messageId, named: isNamed }: Switch): Whereabouts {
  const { sessions } = asked.servant;
  const owner = sessions.ownerOf(here);
  sessions.of(owner).switchBranch(messageId);
  return owner === here ? whereabouts(asked) : join(asked, owner, isNamed);
}

/** Puts a client where all are who are in a session. */
function join(asked: Asked, session: string, isNamed: boolean): Whereabouts {
  const { chat, news } = asked.room;
  news.move(asked.socket, isNamed || session !== chat.transcripts.current ? session : undefined);
  return whereabouts(asked);
}

/** Whether a message stands in the conversation as all see it. */
function shows({ chat }: ChatRoom, session: string, messageId: string): boolean {
  const message = chat.host.blank ? undefined : readMessage(chat.host, messageId);
  const leaf = message === undefined ? null : (readSessionLine(chat.host, session)?.leaf ?? null);
  return message !== undefined && leaf !== null && standsAbove(chat.host, message.seq, leaf);
}

function named(name: string | undefined): { name?: string } {
  return name === undefined ? {} : { name };
}

function answer(socket: Socket, id: string, value: unknown): void {
  socket.send(encodeFrame({ type: "perdure_session_result", id, value: value ?? null }));
}

/** Tells a client that what it asked was not done. An error of ours is told; a bug of a hook is for the log. */
export function refuseSessionFrame(room: ChatRoom, socket: Socket, id: string, thrown: unknown): void {
  const error = PerdureError.is(thrown)
    ? { code: thrown.code, message: thrown.message }
    : { code: "call_failed", message: "Something went wrong on the server." };
  if (!PerdureError.is(thrown)) room.chat.agent.failed(thrown, { stage: "session request" });
  socket.send(encodeFrame({ type: "perdure_session_result", id, error }));
}
