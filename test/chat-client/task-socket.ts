/*
 * Node's WebSocket hands on all frames that one read brought in one go. A browser gives each frame a task of its
 * own, and what happens between them (promises, renders) is part of how the public hook works. So the hook is given
 * this socket, by the option that its own package has for that.
 */

export interface Frame {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** What lies between a tab and the host. */
export interface Line {
  /** Frames of the tab, in order, of all its sockets. */
  readonly sent: Frame[];
  /** Frames that the tab was given. */
  readonly received: Frame[];
  /** How often a socket opened. */
  opens: number;
  /** How often an open socket was lost, or given up. */
  closes: number;
  /** Loses the connection, and all tries fail until {@link Line.mend}. Nothing that is under way arrives any more. */
  cut(code?: number, reason?: string): void;
  mend(): void;
  /** For the `WebSocket` option of `useAgent`. */
  readonly Socket: new (url: string, protocols?: string | string[]) => EventTarget;
}

const GONE = 1006;

export function newLine(): Line {
  let down = false;
  const live = new Set<{ lose(code: number, reason: string): void }>();
  const line: Line = {
    sent: [],
    received: [],
    opens: 0,
    closes: 0,
    cut(code = GONE, reason = "") {
      down = true;
      for (const socket of live) socket.lose(code, reason);
    },
    mend() {
      down = false;
    },
    Socket: class TaskSocket extends EventTarget {
      readonly #inner: WebSocket;
      readonly #events: Event[] = [];
      readyState: number = WebSocket.CONNECTING;

      constructor(url: string, protocols?: string | string[]) {
        super();
        if (down) throw new Error("The line is cut.");
        this.#inner = new WebSocket(url, protocols);
        live.add(this);
        this.#inner.addEventListener("open", () => this.#soon(new Event("open")));
        this.#inner.addEventListener("message", ({ data }) => this.#soon(new MessageEvent("message", { data })));
        this.#inner.addEventListener("error", () => this.#soon(new Event("error")));
        this.#inner.addEventListener("close", ({ code, reason, wasClean }) =>
          this.#soon(new CloseEvent("close", { code, reason, wasClean })),
        );
      }

      set binaryType(type: BinaryType) {
        this.#inner.binaryType = type;
      }
      get binaryType(): BinaryType {
        return this.#inner.binaryType;
      }
      get url(): string {
        return this.#inner.url;
      }
      get bufferedAmount(): number {
        return this.#inner.bufferedAmount;
      }

      send(data: string): void {
        line.sent.push(JSON.parse(data) as Frame);
        this.#inner.send(data);
      }

      close(code?: number, reason?: string): void {
        if (this.readyState === WebSocket.OPEN) line.closes++;
        if (this.readyState < WebSocket.CLOSING) this.readyState = WebSocket.CLOSING;
        this.#inner.close(code, reason);
      }

      lose(code: number, reason: string): void {
        this.#events.length = 0;
        this.#soon(new CloseEvent("close", { code, reason }));
        this.#inner.close();
      }

      /** One event per turn of the event loop. */
      #soon(event: Event): void {
        this.#events.push(event);
        if (this.#events.length === 1) setImmediate(() => this.#next());
      }

      #next(): void {
        const event = this.#events.shift();
        if (event === undefined) return;
        if (this.#events.length > 0) setImmediate(() => this.#next());
        if (this.readyState === WebSocket.CLOSED) return;
        if (event.type === "open") {
          this.readyState = WebSocket.OPEN;
          line.opens++;
        } else if (event.type === "close") {
          if (this.readyState === WebSocket.OPEN) line.closes++;
          this.readyState = WebSocket.CLOSED;
          live.delete(this);
        } else if (event instanceof MessageEvent) line.received.push(JSON.parse(event.data as string) as Frame);
        this.dispatchEvent(event);
      }
    },
  };
  return line;
}
