import type { Socket } from "../port.ts";
import { sessionIn } from "../wire/history.ts";

/** How far a client is with going on with a stream. It is the socket's memo: so it outlives a life, in which a turn may go on. */
interface Standing {
  /** The turn whose stream it was offered and has yet to take: until then it gets nothing of any. */
  readonly withheld: string | undefined;
  /** It waits for a stream to begin. */
  readonly parked: boolean;
  /** It has asked for a stream, and takes the next one as its own. Without asking it only watches. */
  readonly asked: boolean;
  /** It stopped a turn after it had asked: it still takes what it is offered, but not as its own. */
  readonly gaveUp: boolean;
  /** Which turn it took last, how, and when. */
  readonly taken: { readonly turn: string; readonly own: boolean; readonly at: number } | undefined;
  /** The turn that ended before it took it. It was given all of it then. */
  readonly given: string | undefined;
  /** The session that it is in; undefined: whichever is the current one. */
  readonly session: string | undefined;
}

/** Everybody who is connected, and how far they are with the stream. */
export class Audience {
  readonly #sockets: () => Iterable<Socket>;
  readonly #current: () => string;

  /** @param sockets who is connected now. @param current the session of those who name none. */
  constructor(sockets: () => Iterable<Socket>, current: () => string) {
    this.#sockets = sockets;
    this.#current = current;
  }

  /** The session that a client is in. */
  sessionOf(socket: Socket): string {
    return this.of(socket).session ?? this.#current();
  }

  /** Moves a client to another session; undefined: whichever is the current one. What it waited for is over. */
  attach(socket: Socket, session: string | undefined): void {
    this.change(socket, { session, parked: false, withheld: undefined, asked: false });
  }

  of(socket: Socket): Standing {
    return known(socket) ?? this.change(socket, {});
  }

  /** Notes how far a client is now. */
  change(socket: Socket, now: Partial<Standing>): Standing {
    const standing = { ...(known(socket) ?? newStanding(socket)), ...now };
    socket.memo = standing;
    return standing;
  }

  /** Everyone, whatever session they are in. */
  all(): Iterable<Socket> {
    return this.#sockets();
  }

  /** To everyone in a session, but for one socket. */
  tell(session: string, frame: string, except?: Socket): void {
    for (const socket of this.others(session, except)) socket.send(frame);
  }

  /** Everyone in a session but one. */
  *others(session: string, except?: Socket): Generator<Socket> {
    for (const socket of this.#sockets()) if (socket !== except && this.sessionOf(socket) === session) yield socket;
  }

  /** To everyone in a session who is up to date with the stream. */
  tellListeners(session: string, frame: string): void {
    for (const socket of this.others(session)) if (!this.isWithheld(socket)) socket.send(frame);
  }

  /** Chunks of the stream, to everyone in the session who is up to date with it. */
  stream(session: string, frames: readonly string[]): void {
    for (const socket of this.others(session)) if (!this.isWithheld(socket)) socket.sendAll(frames);
  }

  /** Whether anybody but `except` is in a session. */
  hasOthers(session: string, except?: Socket): boolean {
    return this.others(session, except).next().done !== true;
  }

  /** Whether it waits for a stream, or was offered one. */
  isWaiting(socket: Socket): boolean {
    const standing = known(socket);
    return standing?.withheld !== undefined || standing?.parked === true;
  }

  isWithheld(socket: Socket): boolean {
    return known(socket)?.withheld !== undefined;
  }

  /** Those who were offered the stream of this turn and have not taken it. */
  withheldFrom(turn: string): Socket[] {
    return [...this.#sockets()].filter((socket) => known(socket)?.withheld === turn);
  }

  /** Those who wait for a stream to begin: in one session, or all. */
  parked(session?: string): Socket[] {
    return [...this.#sockets()].filter(
      (socket) => known(socket)?.parked === true && (session === undefined || this.sessionOf(socket) === session),
    );
  }
}

function known(socket: Socket): Standing | undefined {
  return socket.memo as Standing | undefined;
}

function newStanding(socket: Socket): Standing {
  return {
    ...{ parked: false, asked: false, gaveUp: false },
    ...{ withheld: undefined, taken: undefined, given: undefined, session: sessionIn(socket.uri) },
  };
}
