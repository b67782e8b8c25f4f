import type {
  AuthInfo,
  EventStore,
  McpServer,
  McpServerFactory,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { ServerSdk } from "../load-sdk.ts";
import { refusal } from "./access.ts";
import { RecentEvents } from "./event-store.ts";

const DEFAULT_MAX = 256;
const DEFAULT_IDLE_MS = 30 * 60 * 1000;

/** How clients of the older revisions are remembered between their requests. */
export interface McpSessionOptions {
  /** More make the one that was quiet for longest go. Default 256. */
  readonly max?: number;
  /** One that was quiet for so long is forgotten. Default: half an hour. */
  readonly idleMs?: number;
  /** Where a session keeps what a client may have missed. Default: in memory, the last 500 messages. */
  readonly eventStore?: (sessionId: string) => EventStore;
  /** How soon clients come back to a stream that was closed, in milliseconds. */
  readonly retryMs?: number;
  /** For tests. */
  readonly now?: () => number;
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer | Server;
  /** To be called when the client has opened a stream for what it did not ask for. */
  readonly heard: () => Promise<void>;
  /** Who began it. Nobody else may go on with it. */
  readonly owner: string;
  /** Answers that are under way. */
  open: number;
  usedAt: number;
}

/** More than any server says before its client listens; the oldest go first. */
const MAX_KEPT = 100;

/** The sessions of a server. In memory: after a restart clients are told that theirs is gone, and begin anew. */
export class McpSessions {
  readonly #sdk: ServerSdk;
  readonly #factory: McpServerFactory;
  readonly #options: McpSessionOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(sdk: ServerSdk, factory: McpServerFactory, options: McpSessionOptions) {
    this.#sdk = sdk;
    this.#factory = factory;
    this.#options = options;
  }

  get servers(): (McpServer | Server)[] {
    return [...this.#sessions.values()].map(({ server }) => server);
  }

  /** Answers a request of an older revision. @param body what a POST said */
  async answer(request: Request, body: unknown, auth: AuthInfo | undefined): Promise<Response> {
    this.#sweep();
    const options = { ...(body !== undefined && { parsedBody: body }), authInfo: auth };
    const id = request.headers.get("mcp-session-id");
    const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
    const begins = request.method === "POST" && messages.some((message) => this.#sdk.isInitializeRequest(message));
    if (begins) return (await this.#begin(request, auth)).handleRequest(request, options);
    const session = id === null ? undefined : this.#sessions.get(id);
    // Somebody else's session is one that is not there.
    if (session === undefined || session.owner !== ownerOf(auth)) {
      return id === null
        ? refusal(400, "This request belongs to no session. Send initialize first.")
        : refusal(404, "There is no such session. Begin a new one with initialize.");
    }
    session.usedAt = this.#now();
    session.open++;
    const ended = () => {
      session.open--;
      session.usedAt = this.#now();
    };
    try {
      const response = await session.transport.handleRequest(request, options);
      if (request.method === "GET" && response.ok) await session.heard();
      return whenEnded(response, ended);
    } catch (thrown) {
      ended();
      throw thrown;
    }
  }

  async close(): Promise<void> {
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map(({ server }) => server.close().catch(() => {})));
  }

  async #begin(request: Request, auth: AuthInfo | undefined): Promise<WebStandardStreamableHTTPServerTransport> {
    const server = await this.#factory({ era: "legacy", requestInfo: request, authInfo: auth });
    const id = crypto.randomUUID();
    const { eventStore, retryMs } = this.#options;
    const transport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      eventStore: eventStore?.(id) ?? new RecentEvents(),
      ...(retryMs !== undefined && { retryInterval: retryMs }),
      onsessioninitialized: () => {
        this.#sessions.set(id, { transport, server, heard, owner: ownerOf(auth), open: 0, usedAt: this.#now() });
        this.#sweep();
      },
      onsessionclosed: () => void this.#sessions.delete(id),
    });
    const heard = keepUntilHeard(transport);
    await server.connect(transport);
    return transport;
  }

  #sweep(): void {
    const { max = DEFAULT_MAX, idleMs = DEFAULT_IDLE_MS } = this.#options;
    const oldest = [...this.#sessions].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [index, [id, session]] of oldest.entries()) {
      const tooMany = index < oldest.length - max;
      if (!tooMany && (session.open > 0 || this.#now() - session.usedAt < idleMs)) continue;
      this.#sessions.delete(id);
      void session.server.close().catch(() => {});
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Calls `ended` once, when the body was read or is not wanted any more. */
function whenEnded(response: Response, ended: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) {
    ended();
    return response;
  }
  // The types do not know `cancel` yet: it comes when either side has given up.
  const watcher: Transformer<Uint8Array, Uint8Array> & { cancel(): void } = { flush: ended, cancel: ended };
  const watched = body.pipeThrough(new TransformStream(watcher));
  return new Response(watched, { status, statusText, headers });
}

function ownerOf(auth: AuthInfo | undefined): string {
  return auth === undefined ? "" : JSON.stringify([auth.clientId, auth.extra?.sub ?? null]);
}

/**
 * Keeps what a server says of its own accord until its client first listens. The SDK drops it, including what a request's handler
 * asks its client: a client that calls a tool just before it opens its stream would never be asked, and the call would time out.
 * @returns to be called when the client listens. Calling it again does nothing.
 */
function keepUntilHeard(transport: WebStandardStreamableHTTPServerTransport): () => Promise<void> {
  type Message = Parameters<typeof transport.send>;
  const send = transport.send.bind(transport);
  const kept: Message[] = [];
  let heard = false;
  transport.send = async (...message: Message) => {
    const [said, options] = message;
    const isForStream = "method" in said && options?.relatedRequestId === undefined;
    if (heard || !isForStream) return send(...message);
    kept.push(message);
    if (kept.length > MAX_KEPT) kept.shift();
  };
  return async () => {
    heard = true;
    for (const message of kept.splice(0)) await send(...message);
  };
}
