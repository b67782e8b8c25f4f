import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import { newId } from "../../id.ts";
import type { AgentStep } from "../../port.ts";
import { closeCode, refusalCode } from "../../wire/close-code.ts";
import { parseConnectQuery } from "../../wire/connect-query.ts";
import type { Cell } from "../cell.ts";
import { HostSocket, type RawSocket } from "../host-socket.ts";
import type { Router } from "../route.ts";
import type { Runtime } from "../runtime.ts";
import type { HostLimits } from "./options.ts";
import { toRequest } from "./to-request.ts";

const PING_INTERVAL_MS = 30_000;
/** A frame above the limit is ignored; only one this many times larger costs the connection (code 1009). */
const HARD_LIMIT_FACTOR = 4;

/** Takes WebSocket upgrades and connects them to agents. */
export class WebSockets {
  readonly #server: WebSocketServer;
  readonly #router: Router;
  readonly #runtime: Runtime;
  readonly #limits: HostLimits;
  readonly #alive = new WeakSet<WebSocket>();
  readonly #pinging: NodeJS.Timeout;

  constructor(router: Router, runtime: Runtime, limits: HostLimits) {
    this.#router = router;
    this.#runtime = runtime;
    this.#limits = limits;
    this.#server = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: limits.frameBytes * HARD_LIMIT_FACTOR,
      // Browsers fail the handshake unless one of the offered sub-protocols is chosen.
      handleProtocols: (offered) => [...offered][0] ?? false,
    });
    this.#pinging = setInterval(() => this.#ping(), PING_INTERVAL_MS);
    this.#pinging.unref();
  }

  /** @returns whether the path was an agent's; if not, the socket is untouched and the caller's to answer. */
  async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, root?: AgentStep): Promise<boolean> {
    socket.on("error", ignore);
    const request = toRequest(incoming);
    const destination = await this.#router.connect(request, root);
    if (destination.kind === "not-ours") {
      socket.off("error", ignore);
      return false;
    }
    if (destination.kind === "answer") {
      await this.#refuse(incoming, socket, head, destination.response);
      return true;
    }
    this.#server.handleUpgrade(incoming, socket, head, (ws) => {
      ws.on("error", ignore);
      const query = parseConnectQuery(new URL(request.url).searchParams);
      if (query.transport === "capnweb") return ws.close(closeCode.unsupportedTransport, "transport not supported");
      if (this.#runtime.stopping) return ws.close(closeCode.serviceRestart, "host restarts");
      const cell = this.#runtime.cell(destination.path);
      if (cell.connections >= this.#limits.connectionsPerAgent) {
        return ws.close(closeCode.tryAgainLater, "too many connections");
      }
      this.#attach(ws, cell, query.connectionId ?? newId(), request.url, destination.request);
    });
    return true;
  }

  close(): void {
    clearInterval(this.#pinging);
    for (const ws of this.#server.clients) ws.terminate();
    this.#server.close();
  }

  #attach(ws: WebSocket, cell: Cell, id: string, uri: string, request: Request): void {
    const socket = new HostSocket(id, uri, new WsSocket(ws), this.#limits.sendBufferBytes);
    this.#alive.add(ws);
    ws.on("pong", () => this.#alive.add(ws));
    ws.on("message", (data: Buffer, isBinary: boolean) => {
      this.#alive.add(ws);
      if (data.length > this.#limits.frameBytes) return cell.refused(socket, `a frame of ${data.length} bytes`);
      cell.message(socket, isBinary ? new Uint8Array(data) : data.toString("utf8"));
    });
    ws.on("close", (code, reason) => cell.disconnected(socket, code, reason.toString(), code !== closeCode.abnormal));
    cell.connect(socket, request);
  }

  /** A refusal that is meant for good must be a close code: clients retry a failed upgrade for ever. */
  async #refuse(incoming: IncomingMessage, socket: Duplex, head: Buffer, response: Response): Promise<void> {
    if (response.status >= 400 && response.status <= 499) {
      this.#server.handleUpgrade(incoming, socket, head, (ws) => {
        ws.on("error", ignore);
        ws.close(refusalCode(response.status), "refused");
      });
      return;
    }
    const body = await response.text();
    socket.end(
      `HTTP/1.1 ${response.status} Refused\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
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

class WsSocket implements RawSocket {
  readonly #ws: WebSocket;

  constructor(ws: WebSocket) {
    this.#ws = ws;
  }

  get buffered(): number {
    return this.#ws.bufferedAmount;
  }

  send(data: string | Uint8Array): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(data);
  }

  close(code: number, reason: string): void {
    // Codes like 1006 may be reported but not sent.
    const sendable = code === 1000 || (code >= 1001 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || code >= 3000;
    this.#ws.close(sendable ? code : closeCode.internalError, cutReason(reason));
  }

  terminate(): void {
    this.#ws.terminate();
  }
}

/** A close frame has room for 123 bytes. */
function cutReason(reason: string): string {
  let cut = reason;
  while (Buffer.byteLength(cut) > 123) cut = cut.slice(0, -1);
  return cut;
}

/** A socket that breaks is reported by its close event. */
function ignore(): void {}
