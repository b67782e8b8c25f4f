// The platform, as far as this host uses it.

/** Rows that a statement gave. */
interface SqlCursor {
  toArray(): Record<string, string | number | null | ArrayBuffer>[];
}

/** One object's storage: SQL, small values beside it, and one alarm. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...args: unknown[]): SqlCursor };
  readonly kv: {
    get(key: string): unknown;
    put(key: string, value: unknown): void;
    delete(key: string): boolean;
    list(options: { readonly prefix: string }): Iterable<[string, unknown]>;
  };
  transactionSync<T>(work: () => T): T;
  sync(): Promise<void>;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
  deleteAll(): Promise<void>;
}

/** A bucket of the platform (R2), as far as this host uses it. */
export interface Bucket {
  put(key: string, bytes: Uint8Array): Promise<unknown>;
  get(key: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | null>;
  delete(keys: string | string[]): Promise<void>;
  list(options: { readonly prefix: string }): Promise<{ readonly objects: readonly { readonly key: string }[] }>;
}

/** The platform's end of a socket that may outlive the object's stay in memory. */
export interface PlatformSocket {
  readonly readyState: number;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  accept(): void;
  serializeAttachment(value: unknown): void;
  deserializeAttachment(): unknown;
}

/** What an object gets of the platform. */
export interface ObjectState {
  readonly id: { readonly name?: string };
  readonly storage: ObjectStorage;
  acceptWebSocket(socket: PlatformSocket): void;
  getWebSockets(): PlatformSocket[];
  waitUntil(work: Promise<unknown>): void;
}

/** The binding of an object class. */
export interface ObjectNamespace<Stub> {
  idFromName(name: string): object;
  get(id: object): Stub;
}

/** Both ends of a new socket: the client's, and ours. */
export function socketPair(): { readonly client: PlatformSocket; readonly server: PlatformSocket } {
  const { WebSocketPair: Pair } = globalThis as unknown as {
    WebSocketPair: new () => { readonly 0: PlatformSocket; readonly 1: PlatformSocket };
  };
  const pair = new Pair();
  return { client: pair[0], server: pair[1] };
}

/** The answer that hands the client its end of a socket. @param request what asked for it */
export function upgraded(client: PlatformSocket, request: Request): Response {
  // Browsers fail the handshake unless one of the offered sub-protocols is chosen.
  const protocol = request.headers.get("sec-websocket-protocol")?.split(",")[0]?.trim();
  const headers = protocol === undefined ? {} : { "sec-websocket-protocol": protocol };
  return new Response(null, { status: 101, headers, webSocket: client } as ResponseInit);
}
