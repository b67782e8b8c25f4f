import type { Socket } from "../port.ts";

/** Everybody who is connected, and who of them has to wait for a replay before hearing more of a stream. */
export class Audience {
  readonly #sockets: () => Iterable<Socket>;
  readonly #withheld = new Set<Socket>();

  /** @param sockets who is connected now. */
  constructor(sockets: () => Iterable<Socket>) {
    this.#sockets = sockets;
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
    for (const socket of this.#sockets()) if (!this.#withheld.has(socket)) socket.send(frame);
  }

  /** Chunks of the stream, to everyone who is up to date with it. */
  stream(frames: readonly string[]): void {
    for (const socket of this.#sockets()) if (!this.#withheld.has(socket)) socket.sendAll(frames);
  }

  /** Whether anybody but `except` is connected. */
  hasOthers(except?: Socket): boolean {
    for (const socket of this.#sockets()) if (socket !== except) return true;
    return false;
  }

  has(socket: Socket): boolean {
    for (const one of this.#sockets()) if (one === socket) return true;
    return false;
  }

  withhold(socket: Socket): void {
    this.#withheld.add(socket);
  }

  isWithheld(socket: Socket): boolean {
    return this.#withheld.has(socket);
  }

  release(socket: Socket): void {
    this.#withheld.delete(socket);
  }

  releaseAll(): void {
    this.#withheld.clear();
  }
}
