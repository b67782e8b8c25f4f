import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import { newId } from "../../base/id.ts";
import type { AgentStep } from "../../port.ts";
import { closeCode, cutReason, refusalCode } from "../../wire/close-code.ts";
import { parseConnectQuery } from "../../wire/connect-query.ts";
import { closeWords } from "../failure.ts";
import type { Resident } from "../resident.ts";
import { HostSocket, type RawSocket, type SocketClient } from "../host-socket.ts";
import type { Router } from "../route.ts";
import type { Residents } from "../residents.ts";
import { FrameTurns } from "./frame-turns.ts";
import type { HostLimits } from "./options.ts";
import { toRequest } from "./to-request.ts";

const PING_INTERVAL_MS = 30_000;
/** The most that the `ws` package can bound; what is above means no bound to it. */
const MAX_PAYLOAD = 2 ** 31 - 1;
/** How the `ws` package calls a frame that is longer than it may be. */
const TOO_LONG = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";

/** Takes WebSocket upgrades and connects them to agents. */
export class WebSockets {
  readonly #server: WebSocketServer;
  readonly #router: Router;
  readonly #residents: Residents;
  readonly #limits: HostLimits;
  readonly #alive = new WeakSet<WebSocket>();
  readonly #turns = new FrameTurns();
  readonly #pinging: NodeJS.Timeout;

  constructor(router: Router, residents: Residents, limits: HostLimits) {
    this.#router = router;
    this.#residents = residents;
    this.#limits = limits;
    this.#server = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      // Found out from its head, before the frame is in memory.
      maxPayload: Math.min(limits.frameBytes, MAX_PAYLOAD),
      WebSocket: explaining(limits.frameBytes),
      // Browsers fail the handshake unless one of the offered sub-protocols is chosen.
      handleProtocols: (offered) => [...offered][0] ?? false,
    });
    this.#pinging = setInterval(() => this.#ping(), PING_INTERVAL_MS);
    this.#pinging.unref();
  }

  /** @returns whether the path was an agent's; if not, nothing was sent and the socket is the caller's to answer. */
  async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, root?: AgentStep): Promise<boolean> {
    // Stays also when the socket is not ours: one that breaks while nobody listens would end the process.
    socket.on("error", ignore);
    const request = toRequest(incoming);
    if (request === undefined) {
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      return true;
    }
    const destination = await this.#router.connect(request, root);
    if (destination.kind === "not-ours") return false;
    if (destination.kind === "answer") {
      await this.#refuse(incoming, socket, head, destination.response, destination.reason);
      return true;
    }
    if (this.#residents.stopping) {
      await this.#refuse(incoming, socket, head, new Response("host restarts", { status: 503 }));
      return true;
    }
    this.#server.handleUpgrade(incoming, socket, head, (ws) => {
      ws.on("error", ignore);
      const query = parseConnectQuery(new URL(request.url).searchParams);
      if (query.transport === "capnweb") return ws.close(closeCode.unsupportedTransport, "transport not supported");
      const resident = this.#residents.resident(destination.path);
      if (resident.connections >= this.#limits.connectionsPerAgent) {
        return ws.close(closeCode.tryAgainLater, "too many connections");
      }
      const { identity, mayOnlyRead, request: admitted } = destination;
      const client = {
        id: query.connectionId ?? newId(),
        uri: request.url,
        mayOnlyRead,
        ...(identity !== undefined && { identity }),
      };
      this.#attach(ws, socket, resident, client, admitted);
    });
    return true;
  }

  close(): void {
    clearInterval(this.#pinging);
    for (const ws of this.#server.clients) ws.terminate();
    this.#server.close();
  }

  #attach(ws: WebSocket, tcp: Duplex, resident: Resident, client: SocketClient, request: Request): void {
    const socket = new HostSocket(client, new WsSocket(ws, tcp), this.#limits.sendBufferBytes);
    this.#alive.add(ws);
    ws.on("error", ({ code }: Error & { code?: string }) => {
      if (code === TOO_LONG) resident.refused(socket, `a frame of more than ${this.#limits.frameBytes} bytes`);
    });
    ws.on("pong", () => this.#alive.add(ws));
    ws.on("message", (data: Buffer, isBinary: boolean) => {
      this.#alive.add(ws);
      this.#turns.take(ws, () => resident.message(socket, isBinary ? new Uint8Array(data) : data.toString("utf8")));
    });
    ws.on("close", (code, reason) =>
      this.#turns.take(ws, () => resident.disconnected(socket, code, reason.toString(), code !== closeCode.abnormal)),
    );
    resident.connect(socket, request);
  }

  /** Refuses for good by a close code, since clients retry failed upgrades; else by HTTP, or what they queued would be lost. */
  async #refuse(
    incoming: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    response: Response,
    reason?: string,
  ): Promise<void> {
    if (response.status >= 400 && response.status <= 499) {
      const said = reason ?? (await closeWords(response));
      this.#server.handleUpgrade(incoming, socket, head, (ws) => {
        ws.on("error", ignore);
        ws.close(refusalCode(response.status), cutReason(said));
      });
      return;
    }
    // The answer of a hook may have been read already, or fail to be; and `Response.error()` has no status.
    const body = await response.text().catch(() => "");
    const status = response.status === 0 ? 500 : response.status;
    socket.end(
      `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }

  #ping(): void {
    for (const ws of this.#server.clients) {
      if (!this.#alive.has(ws)) {
        ws.terminate();
        continue;
      }
      this.#alive.delete(ws);
      ws.ping();
    }
  }
}

/** Sockets whose clients are told why, when the `ws` package closes them by itself. */
function explaining(frameBytes: number): typeof WebSocket {
  return class extends WebSocket {
    override close(code?: number, reason?: string | Buffer): void {
      super.close(code, code === closeCode.tooLarge ? (reason ?? `a frame of more than ${frameBytes} bytes`) : reason);
    }
  };
}

class WsSocket implements RawSocket {
  readonly #ws: WebSocket;
  readonly #tcp: Duplex;

  constructor(ws: WebSocket, tcp: Duplex) {
    this.#ws = ws;
    this.#tcp = tcp;
  }

  get buffered(): number {
    return this.#ws.bufferedAmount;
  }

  send(data: string | Uint8Array): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(data);
  }

  sendAll(frames: readonly string[]): void {
    if (this.#ws.readyState !== WebSocket.OPEN) return;
    // One system call for the batch: ws corks around each frame by itself, and corks nest.
    this.#tcp.cork();
    for (const frame of frames) this.#ws.send(frame);
    this.#tcp.uncork();
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason);
  }

  terminate(): void {
    this.#ws.terminate();
  }
}

/** A socket that breaks is reported by its close event. */
function ignore(): void {}
