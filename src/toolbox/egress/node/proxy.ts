import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PerdureError } from "../../../base/error.ts";
import { createDeadline } from "../deadline.ts";
import { shownUrl } from "../decision.ts";
import type { Engine } from "../egress.ts";
import { guestHeaders, responseHeaders } from "../headers.ts";
import { parseTarget } from "../target.ts";
import { exchange } from "./exchange.ts";
import { admit, refusal } from "./pin.ts";
import { answerPlainly, refusalOf } from "./proxy-answer.ts";
import { openTunnel } from "./tunnel.ts";

const MAX_HEADER_BYTES = 32_768;
/** Open at once, with or without a request. */
const MAX_CONNECTIONS = 512;
/** What a unix socket can be called; the system cuts longer names off and listens elsewhere. */
const MAX_SOCKET_PATH = 107;

/**
 * A forward proxy on a unix socket. Plain requests (`GET http://host/…`, or `https://`, which the host then speaks) are decided
 * like `fetch`, with injected headers. `CONNECT` is decided by host and port alone.
 * @throws PerdureError `bad_config` for a path that is too long, `conflict` for one that is taken
 */
export async function listen(engine: Engine, socketPath: string): Promise<{ close(): Promise<void> }> {
  if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH) {
    throw new PerdureError(
      "bad_config",
      `The path of a socket may have at most ${MAX_SOCKET_PATH} bytes. Use a shorter path.`,
    );
  }
  const sockets = new Set<Socket>();
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, insecureHTTPParser: false });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", (request, response) => void forward(engine, request, response));
  server.on(
    "connect",
    (request: IncomingMessage, socket: Socket, head: Buffer) => void openTunnel(engine, request, socket, head),
  );
  // A plain request that wants to become something else. Programs that speak WebSocket through a proxy use CONNECT.
  server.on("upgrade", (_request, socket: Socket) => answerPlainly(socket, 403, "Upgrades go through CONNECT."));
  server.on("clientError", (_error, socket: Socket) => answerPlainly(socket, 400, "This is no request to a proxy."));
  await startListening(server, socketPath);
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function startListening(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const code = error.code === "EADDRINUSE" ? "conflict" : "bad_config";
      reject(new PerdureError(code, `The proxy cannot listen there: ${error.code ?? "unknown"}.`, { cause: error }));
    });
    server.listen(socketPath, resolve);
  });
}

async function forward(engine: Engine, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { limits } = engine;
  const left = new AbortController();
  response.once("close", () => left.abort(new PerdureError("disconnected", "The client of the proxy left.")));
  const deadline = createDeadline(limits.totalMs, left.signal);
  try {
    const leave = await engine.enter(deadline.signal);
    try {
      const upstream = await send(engine, request, deadline.signal);
      // Packed as it came, so the limit is one of bytes on the wire.
      response.writeHead(upstream.statusCode ?? 502, responseHeaders(upstream.headers));
      await pipeline(upstream, countBytes(limits.responseBytes, "response"), response);
    } finally {
      leave();
    }
  } catch (thrown) {
    const { status, text } = refusalOf(deadline.signal.aborted ? deadline.signal.reason : thrown);
    if (response.headersSent) response.destroy();
    else {
      // What is left of the request is not read any more.
      response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" });
      response.end(text, () => request.destroy());
    }
  } finally {
    deadline.clear();
  }
}

async function send(engine: Engine, request: IncomingMessage, signal: AbortSignal): Promise<IncomingMessage> {
  const { limits } = engine;
  const method = (request.method ?? "GET").toUpperCase();
  const text = request.url ?? "";
  const about = (url: URL | string) => ({ via: "proxy", method, url: shownUrl(url), hop: 0 }) as const;
  const target = parseTarget(text);
  if ("fault" in target) throw refusal(engine, about(text), target.fault);
  const verdict = engine.policy.request(target, method);
  const pinned = await admit(engine, verdict, target, about(target.url), signal);
  const cleaned = guestHeaders(plain(request), { keepMethod: engine.keepMethod, ownEncoding: false });
  const headers = await engine.inject(target, cleaned);
  const hasBody = request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
  const body = hasBody ? request.pipe(countBytes(limits.requestBytes, "request")) : undefined;
  return exchange({ target, pinned, method, headers, body, idleMs: limits.idleMs, signal, ca: engine.ca });
}

function plain(request: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = typeof value === "string" ? value : value.join(", ");
  }
  return headers;
}

/** Lets bytes through and fails with `limit` after `maxBytes`. */
function countBytes(maxBytes: number, what: string): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      size += chunk.byteLength;
      if (size <= maxBytes) done(null, chunk);
      else done(new PerdureError("limit", `The ${what} is larger than ${maxBytes} bytes.`));
    },
  });
}
