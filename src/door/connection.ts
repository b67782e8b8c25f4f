import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { Socket } from "../port.ts";
import { writeJson } from "../wire/json.ts";

/** What comes in on a socket. */
export type WSMessage = string | Uint8Array;

/** What comes with a new connection. */
export interface ConnectionContext {
  /** The upgrade request: headers, cookies, query. */
  readonly request: Request;
}

const socket: unique symbol = Symbol("perdure.socket");

interface Attachment {
  /** What the app keeps with the connection. */
  state?: unknown;
  readonly?: boolean;
  /** No identity, state or MCP frames. */
  quiet?: boolean;
  /** Whose rows it is told. */
  rows?: Following;
}

/** The collections that a connection is told of. */
interface Following {
  readonly names: readonly string[];
  /** And all others that it may read. */
  readonly all: boolean;
}

const NO_ROWS: Following = { names: [], all: false };

/** One client's socket on this agent. What is kept with it survives evictions of the agent, and ends with the socket. */
export class Connection<State = unknown> {
  /** @internal */
  readonly [socket]: Socket;

  constructor(own: Socket) {
    this[socket] = own;
  }

  /** What the client calls itself. The same after a reconnect, but neither unique nor proof of anything. */
  get id(): string {
    return this[socket].id;
  }

  /** The URL that it connected with, query included. */
  get uri(): string {
    return this[socket].uri;
  }

  /** Who it belongs to, as `onBeforeConnect` of the host, or `onBeforeSubAgent`, has said; undefined when none did. */
  get identity(): Identity | undefined {
    return this[socket].identity;
  }

  get tags(): readonly string[] {
    return this[socket].tags;
  }

  get open(): boolean {
    return this[socket].open;
  }

  /** What {@link Connection.setState} kept, or `null`. */
  get state(): State | null {
    return (this.#attached.state as State | undefined) ?? null;
  }

  /** Keeps a JSON value with the connection. @throws PerdureError `bad_input` when JSON cannot hold it. */
  setState(next: State | null | ((previous: State | null) => State | null)): State | null {
    const value = typeof next === "function" ? (next as (previous: State | null) => State | null)(this.state) : next;
    const copy = value === null ? undefined : (JSON.parse(writeJson(value, "The connection's state")) as unknown);
    this.#attach({ state: copy });
    return this.state;
  }

  /** Sends text or bytes, after everything that the agent has written so far is durable. */
  send(message: string | Uint8Array): void {
    this[socket].send(message);
  }

  /** Closes it. Clients return, except after 1008 and 4000 to 4999. @throws PerdureError `bad_input` for an unsendable code. */
  close(code = 1000, reason = ""): void {
    if (
      code !== 1000 &&
      !(code >= 1001 && code <= 1014 && ![1004, 1005, 1006].includes(code)) &&
      !(code >= 3000 && code < 5000)
    ) {
      throw new PerdureError(
        "bad_input",
        `${code} is not a close code that may be sent. Use 1000, 1001, 1008, 1011 to 1014, or 3000 to 4999.`,
      );
    }
    this[socket].close(code, reason);
  }

  /** @internal Whether the client may not change state. */
  get isReadonly(): boolean {
    return this.#attached.readonly ?? false;
  }

  set isReadonly(value: boolean) {
    this.#attach({ readonly: value });
  }

  /** @internal Whether identity, state and MCP frames are kept from it. */
  get isQuiet(): boolean {
    return this.#attached.quiet ?? false;
  }

  set isQuiet(value: boolean) {
    this.#attach({ quiet: value });
  }

  /** @internal The collections that it is told of. Kept with the socket: it is told also by later lives of the agent. */
  get following(): Following {
    return this.#attached.rows ?? NO_ROWS;
  }

  set following(value: Following) {
    this.#attach({ rows: value });
  }

  get #attached(): Attachment {
    return (this[socket].attachment ?? {}) as Attachment;
  }

  #attach(change: Attachment): void {
    this[socket].attachment = { ...this.#attached, ...change };
  }
}

/** The socket behind a connection. */
export function socketOf(connection: Connection): Socket {
  return connection[socket];
}

/** The connections of one life: the same object for the same socket. */
export class Connections {
  readonly #bySocket = new WeakMap<Socket, Connection>();

  of(own: Socket): Connection {
    let connection = this.#bySocket.get(own);
    if (connection === undefined) this.#bySocket.set(own, (connection = new Connection(own)));
    return connection;
  }
}
