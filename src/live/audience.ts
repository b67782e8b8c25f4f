import type { Socket } from "../port.ts";

/** How far a client is with going on with a stream. */
export interface Standing {
  /** The turn whose stream it was offered and has yet to take: until then it gets nothing of any. */
  withheld: string | undefined;
  /** It waits for a stream to begin. */
  parked: boolean;
  /** It has asked for a stream, and takes the next one as its own. Who has not asked only watches. */
  asked: boolean;
  /** It stopped a turn after it had asked: it still takes what it is offered, but not as its own. */
  gaveUp: boolean;
  /** Which turn it took last, how, and when. */
  taken: { readonly turn: string; readonly own: boolean; readonly at: number } | undefined;
  /** The turn that ended before it took it. It was given all of it then. */
  given: string | undefined;
}

/** Kept with the socket: both outlive a life of the agent, in which a turn may be carried on. */
const standings = new WeakMap<Socket, Standing>();

/** Everybody who is connected, and how far they are with the stream. */
export class Audience {
  readonly #sockets: () => Iterable<Socket>;

  /** @param sockets who is connected now. */
  constructor(sockets: () => Iterable<Socket>) {
    this.#sockets = sockets;
  }

  of(socket: Socket): Standing {
    let standing = standings.get(socket);
    if (standing === undefined) {
      standing = {
        ...{ parked: false, asked: false, gaveUp: false },
        ...{ withheld: undefined, taken: undefined, given: undefined },
      };
      standings.set(socket, standing);
    }
    return standing;
  }

  /** To everyone, but for one socket. */
  tell(frame: string, except?: Socket): void {
    for (const socket of this.others(except)) socket.send(frame);
  }

  /** Everyone but one. */
  *others(except?: Socket): Generator<Socket> {
    for (const socket of this.#sockets()) if (socket !== except) yield socket;
  }

  /** To everyone who is up to date with the stream. */
  tellListeners(frame: string): void {
    for (const socket of this.#sockets()) if (!this.isWithheld(socket)) socket.send(frame);
  }

  /** Chunks of the stream, to everyone who is up to date with it. */
  stream(frames: readonly string[]): void {
    for (const socket of this.#sockets()) if (!this.isWithheld(socket)) socket.sendAll(frames);
  }

  /** Whether anybody but `except` is connected. */
  hasOthers(except?: Socket): boolean {
    for (const socket of this.#sockets()) if (socket !== except) return true;
    return false;
  }

  isWithheld(socket: Socket): boolean {
    return standings.get(socket)?.withheld !== undefined;
  }

  /** Those who were offered the stream of this turn and have not taken it. */
  withheldFrom(turn: string): Socket[] {
    return [...this.#sockets()].filter((socket) => standings.get(socket)?.withheld === turn);
  }

  /** Those who wait for a stream to begin. */
  parked(): Socket[] {
    return [...this.#sockets()].filter((socket) => standings.get(socket)?.parked === true);
  }
}
