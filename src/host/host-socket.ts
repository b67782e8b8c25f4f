import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { Socket } from "../port.ts";
import { cutReason, sendableCode } from "../wire/close-code.ts";
import type { Delivery } from "./gate.ts";

/** A platform's socket, as little as is needed of it. */
export interface RawSocket {
  /** Bytes accepted and not yet sent. */
  readonly buffered: number;
  send(data: string | Uint8Array): void;
  /** All of them in one write. */
  sendAll(frames: readonly string[]): void;
  /** The code can be sent, and the reason fits into a close frame. */
  close(code: number, reason: string): void;
  /** Drops the connection without a handshake. */
  terminate(): void;
}

/** Where a socket's output goes: the gate of the agent's present life. */
export interface SocketOwner {
  /** Nothing is waiting: what is sent now may leave at once. */
  readonly clear: boolean;
  pass(delivery: Delivery): void;
  /** A reader that is too slow was let go. */
  dropped(socket: HostSocket, reason: string): void;
}

/** Whose socket it is. */
export type SocketClient = Pick<Socket, "id" | "uri" | "identity" | "mayOnlyRead">;

/** What a socket must not forget while its agent comes and goes. JSON, so that a platform can keep it for the host. */
export interface SocketMemory {
  tags: readonly string[];
  attachment: unknown;
  memo: unknown;
  /** Broadcasts reach it. */
  joined: boolean;
  /** Connect processing is done: frames may be handed over. */
  ready: boolean;
}

/** The memory of a socket that is new. */
export function newSocketMemory(): SocketMemory {
  return { tags: [], attachment: undefined, memo: undefined, joined: false, ready: false };
}

/** Where the memory of a socket goes when the host itself may leave memory. */
interface KeptMemory {
  readonly memory: SocketMemory;
  /** Something in it is another value now. */
  save(): void;
}

/** The socket as agents see it, kept by the host while agents come and go. */
export class HostSocket implements Socket {
  readonly id: string;
  readonly uri: string;
  readonly identity: Identity | undefined;
  readonly mayOnlyRead: boolean;
  readonly #raw: RawSocket;
  readonly #maxBuffered: number;
  readonly #memory: SocketMemory;
  readonly #save: (() => void) | undefined;
  #owner: SocketOwner | undefined;
  open = true;
  dismissed = false;
  #held: (string | Uint8Array)[] = [];
  #heldBytes = 0;
  /** What one write larger than the limit has put into the buffer, while that is too full. */
  #largeBytes = 0;

  constructor(client: SocketClient, raw: RawSocket, maxBuffered: number, kept?: KeptMemory) {
    this.id = client.id;
    this.uri = client.uri;
    this.identity = client.identity;
    this.mayOnlyRead = client.mayOnlyRead ?? false;
    this.#raw = raw;
    this.#maxBuffered = maxBuffered;
    this.#memory = kept?.memory ?? newSocketMemory();
    this.#save = kept && (() => kept.save());
  }

  get tags(): readonly string[] {
    return this.#memory.tags;
  }

  get attachment(): unknown {
    return this.#memory.attachment;
  }

  set attachment(value: unknown) {
    this.#memory.attachment = value;
    this.#save?.();
  }

  get memo(): unknown {
    return this.#memory.memo;
  }

  set memo(value: unknown) {
    this.#memory.memo = value;
    this.#save?.();
  }

  get joined(): boolean {
    return this.#memory.joined;
  }

  get ready(): boolean {
    return this.#memory.ready;
  }

  /** Connect processing is done. */
  connected(): void {
    this.#memory.ready = true;
    this.#save?.();
  }

  attach(owner: SocketOwner): void {
    this.#owner = owner;
  }

  /** Keeps a frame that came while connecting. A client that sends too much before it is let in is dropped. */
  hold(data: string | Uint8Array): void {
    if (!this.open) return;
    this.#held.push(data);
    this.#heldBytes += data.length;
    if (this.#heldBytes > this.#maxBuffered) this.#drop("came before it was connected");
  }

  /** The frames that came while connecting, in order. */
  takeHeld(): (string | Uint8Array)[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }

  join(tags: readonly string[]): void {
    this.#memory.tags = tags;
    this.#memory.joined = true;
    this.#save?.();
  }

  send(data: string | Uint8Array): void {
    checkData(data);
    if (!this.open) return;
    if (this.#owner?.clear === false) this.#owner.pass({ deliver: () => this.#write(data) });
    else this.#write(data);
  }

  sendAll(frames: readonly string[]): void {
    if (!this.open) return;
    if (this.#owner?.clear === false) this.#owner.pass({ deliver: () => this.#writeAll(frames) });
    else this.#writeAll(frames);
  }

  close(code = 1000, reason = ""): void {
    if (!this.open) return;
    if (this.#owner?.clear === false) this.#owner.pass({ deliver: () => this.#end(code, reason) });
    else this.#end(code, reason);
  }

  #write(data: string | Uint8Array): void {
    this.#measured(() => this.#raw.send(data));
  }

  #writeAll(frames: readonly string[]): void {
    this.#measured(() => this.#raw.sendAll(frames));
  }

  /** Drops a reader that is too slow. One write above the limit does not count: it would drop every reader, again and again. */
  #measured(write: () => void): void {
    if (!this.open) return;
    const before = this.#raw.buffered;
    if (before <= this.#maxBuffered) this.#largeBytes = 0;
    write();
    const { buffered } = this.#raw;
    if (this.#largeBytes === 0 && buffered - before > this.#maxBuffered) this.#largeBytes = buffered - before;
    if (buffered > this.#maxBuffered + this.#largeBytes) this.#drop();
  }

  /** The client comes back and catches up by replay; until then it costs no memory. */
  #drop(bytes = "were waiting to be read"): void {
    this.open = false;
    this.#held = [];
    this.#raw.terminate();
    this.#owner?.dropped(this, `more than ${this.#maxBuffered} bytes ${bytes}`);
  }

  #end(code: number, reason: string): void {
    this.open = false;
    this.dismissed = true;
    this.#raw.close(sendableCode(code), cutReason(reason));
  }
}

/** Refused here, where the mistake is: behind the gate it would look like a failed store. @throws PerdureError `bad_input` */
function checkData(data: unknown): void {
  if (typeof data === "string" || ArrayBuffer.isView(data) || data instanceof ArrayBuffer) return;
  throw new PerdureError(
    "bad_input",
    `A socket sends text or bytes, not ${typeof data}. Use JSON.stringify() for data.`,
  );
}
