import { PerdureError } from "../base/error.ts";
import { type Clock, systemClock } from "../base/time.ts";
import { isTerminalCloseCode } from "../wire/close-code.ts";
import { ConnectionCloseEvent } from "./connection-error.ts";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10_000;
const DELAY_GROWTH = 1.6;
/** Clients that lost the same server should not all come back in the same moment. */
const JITTER = 0.3;
const HANDSHAKE_MS = 10_000;
/** A connection that held so long was a good one: the next try is a first try again. */
const GOOD_AFTER_MS = 5_000;
const MAX_WAITING_FRAMES = 10_000;
const OPEN = 1;

/** The part of the platform's `WebSocket` that is used here. */
export interface PlainSocket {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: string, listener: (event: Event) => void): void;
}

/** A class such as the platform's `WebSocket`. */
export type SocketClass = new (url: string, protocols?: string | string[]) => object;

/** How a lost connection is made again. */
export interface ReconnectOptions {
  /** Default 500 ms. The wait grows with every failed try and varies a little. */
  readonly minReconnectionDelay?: number;
  /** Default 10 s. */
  readonly maxReconnectionDelay?: number;
  readonly reconnectionDelayGrowFactor?: number;
  /** How long a try may take. Default 10 s. */
  readonly connectionTimeout?: number;
  /** Default: no end. */
  readonly maxRetries?: number;
  /** How many frames wait for a connection at most; what is sent beyond that throws. Default 10000. */
  readonly maxEnqueuedMessages?: number;
  /** Asked after each close that is not terminal by its code. `false`: stay closed. Must not throw. */
  readonly shouldReconnectOnClose?: (event: ConnectionCloseEvent) => boolean;
  readonly protocols?: string | string[];
  /** Default: the platform's. */
  readonly WebSocket?: SocketClass;
  readonly clock?: Clock;
}

/** What happens to a {@link ReconnectingSocket}. Called one at a time; must not throw. */
interface SocketEvents {
  /** What waited has been sent. */
  open(): void;
  message(data: unknown): void;
  /** @param final it stays closed until `open()` is called. */
  close(event: ConnectionCloseEvent, final: boolean): void;
  error(event: Event): void;
}

/** A WebSocket that comes back. What is sent while it is away waits and goes out, in order, when it is back. */
export class ReconnectingSocket {
  readonly #url: () => string | Promise<string>;
  readonly #options: ReconnectOptions;
  readonly #events: SocketEvents;
  readonly #clock: Clock;
  readonly #waiting: { readonly data: string; readonly sent: (() => void) | undefined }[] = [];
  #socket: PlainSocket | undefined;
  /** Which try is under way: what comes from an older one is of no interest. */
  #try = 0;
  #wanted = false;
  #retries = 0;
  #cancelTimer: (() => void) | undefined;
  #openedAt = 0;

  /** @param url asked before every try, so that a token in it can be fresh. When it fails, the try has failed. */
  constructor(url: () => string | Promise<string>, options: ReconnectOptions, events: SocketEvents) {
    this.#url = url;
    this.#options = options;
    this.#events = events;
    this.#clock = options.clock ?? systemClock;
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === OPEN;
  }

  /** Wants to be open, or is. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Connects, unless it is connected or trying already. */
  open(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#retries = 0;
    void this.#connect();
  }

  /** Gives up the wait and tries now. */
  hurry(): void {
    if (!this.#wanted || this.#cancelTimer === undefined || this.#socket !== undefined) return;
    this.#cancelTimer();
    void this.#connect();
  }

  /**
   * Sends, or keeps it until it can be sent. @param sent called when a socket took it.
   * @throws PerdureError `limit` when too much waits already.
   */
  send(data: string, sent?: () => void): void {
    if (this.isOpen) {
      this.#socket?.send(data);
      sent?.();
      return;
    }
    if (this.#waiting.length >= (this.#options.maxEnqueuedMessages ?? MAX_WAITING_FRAMES)) {
      throw new PerdureError("limit", "Too much is waiting to be sent: the connection has been down for too long.");
    }
    this.#waiting.push({ data, sent });
  }

  /** Closes for good, and forgets what waits. `open()` begins anew. */
  close(code = 1000, reason = ""): void {
    const had = this.#wanted;
    this.#wanted = false;
    this.#waiting.length = 0;
    this.#drop(code, reason);
    if (had) this.#events.close(new ConnectionCloseEvent({ code, reason, wasClean: true }), true);
  }

  async #connect(): Promise<void> {
    this.#cancelTimer?.();
    const attempt = ++this.#try;
    this.#cancelTimer = this.#clock.after(this.#options.connectionTimeout ?? HANDSHAKE_MS, () => {
      if (attempt === this.#try) this.#lost({ reason: "No connection in time." });
    });
    let socket: PlainSocket;
    try {
      const url = this.#url();
      const ready = typeof url === "string" ? url : await url;
      if (attempt !== this.#try) return;
      socket = this.#make(ready);
    } catch (error) {
      if (attempt !== this.#try) return;
      this.#events.error(Object.assign(new Event("error"), { error }));
      return this.#lost({ reason: "The connection could not be made." });
    }
    this.#socket = socket;
    const listen = (type: string, work: (event: Event) => void) =>
      socket.addEventListener(type, (event) => {
        if (attempt === this.#try) work(event);
      });
    listen("open", () => this.#opened());
    listen("message", (event) => this.#events.message((event as MessageEvent<unknown>).data));
    listen("error", (event) => this.#events.error(event));
    listen("close", (event) => this.#lost(event));
  }

  #make(url: string): PlainSocket {
    const Socket = this.#options.WebSocket ?? (globalThis as { WebSocket?: SocketClass }).WebSocket;
    if (Socket === undefined) {
      throw new PerdureError("bad_config", "This platform has no WebSocket. Pass one as the `WebSocket` option.");
    }
    return new Socket(url, this.#options.protocols) as PlainSocket;
  }

  #opened(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#openedAt = this.#clock.now();
    while (this.isOpen) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#socket?.send(next.data);
      next.sent?.();
    }
    if (this.isOpen) this.#events.open();
  }

  #lost(close: object): void {
    const held = this.#openedAt > 0 && this.#clock.now() - this.#openedAt >= GOOD_AFTER_MS;
    this.#openedAt = 0;
    this.#drop();
    const event = new ConnectionCloseEvent(close);
    if (held) this.#retries = 0;
    const again =
      this.#wanted &&
      !isTerminalCloseCode(event.code) &&
      this.#retries < (this.#options.maxRetries ?? Number.POSITIVE_INFINITY) &&
      (this.#options.shouldReconnectOnClose?.(event) ?? true);
    this.#wanted = again;
    // Whoever waits for it is told that it was not sent.
    if (!again) this.#waiting.length = 0;
    if (again) this.#cancelTimer = this.#clock.after(this.#delay(this.#retries++), () => void this.#connect());
    this.#events.close(event, !again);
  }

  /** Lets go of the socket and of the timer, whatever they are at. */
  #drop(code?: number, reason?: string): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#try++;
    const socket = this.#socket;
    this.#socket = undefined;
    try {
      socket?.close(code, reason);
    } catch {
      // A code that the platform does not let pages send.
      socket?.close();
    }
  }

  #delay(retries: number): number {
    const { minReconnectionDelay = FIRST_DELAY_MS, maxReconnectionDelay = LONGEST_DELAY_MS } = this.#options;
    const growth = this.#options.reconnectionDelayGrowFactor ?? DELAY_GROWTH;
    const delay = Math.min(maxReconnectionDelay, minReconnectionDelay * growth ** retries);
    return delay * (1 - JITTER * Math.random());
  }
}
