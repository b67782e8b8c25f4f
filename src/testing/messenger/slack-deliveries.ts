import { createHmac } from "node:crypto";
import type { Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";

type Json = Record<string, unknown>;

/** Something that Slack tells the app. */
export interface SlackDelivery {
  readonly kind: "events_api" | "interactive" | "slash_commands";
  readonly payload: Json;
}

/** What became of it, each time that it was delivered. */
export interface SlackReceipt {
  readonly kind: SlackDelivery["kind"];
  readonly retry: number;
  /** 0: nobody answered in time. Over a socket an acknowledgement is 200. */
  readonly status: number;
}

const DEADLINE_MS = 3_000;
const REDELIVERY_MS = 50;
const NOBODY = { status: 0, answer: undefined } as const;

/** Brings what happens to the app: to its webhook, signed, or over one of its sockets. Events come again until they are taken. */
export class SlackDeliveries {
  readonly receipts: SlackReceipt[] = [];
  readonly sockets = new Set<WebSocket>();
  readonly #secret: string;
  readonly #acknowledged = new Map<string, (payload: unknown) => void>();
  #url: string | undefined;
  #isOpen = false;
  #woken = Promise.withResolvers<void>();
  #next = 1;

  constructor(secret: string) {
    this.#secret = secret;
  }

  get url(): string | undefined {
    return this.#url;
  }

  set url(url: string | undefined) {
    this.#url = url;
    this.#wake();
  }

  /** From now on the app may connect. */
  open(server: Server): void {
    const upgrades = new WebSocketServer({ noServer: true });
    server.on("upgrade", (request, duplex, head) =>
      upgrades.handleUpgrade(request, duplex, head, (socket) => this.#connected(socket)),
    );
    this.#isOpen = true;
    this.#wake();
  }

  close(): void {
    this.#isOpen = false;
    for (const socket of this.sockets) socket.terminate();
  }

  /** Delivers it, again and again if it is an event. @returns what the app said to it at last */
  async bring(delivery: SlackDelivery): Promise<{ readonly receipt: SlackReceipt; readonly answer: unknown }> {
    for (let retry = 0; ; retry++) {
      while (!this.#isOpen || (this.#url === undefined && this.sockets.size === 0)) await this.#woken.promise;
      const { status, answer } =
        this.#url === undefined ? await this.#send(delivery, retry) : await this.#post(this.#url, delivery, retry);
      const receipt = { kind: delivery.kind, retry, status };
      this.receipts.push(receipt);
      if ((status >= 200 && status < 300) || delivery.kind !== "events_api") return { receipt, answer };
      await new Promise((resolve) => setTimeout(resolve, REDELIVERY_MS));
    }
  }

  /** A signed request. `old`: of an hour ago. */
  async request(
    url: string,
    body: string,
    { type = "application/json", signature = "good", headers = {} }: RequestOptions = {},
  ): Promise<Response> {
    const time = Math.floor(Date.now() / 1000) - (signature === "old" ? 3_600 : 0);
    const secret = signature === "bad" ? "another" : this.#secret;
    const hash = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
    const signed = { "x-slack-request-timestamp": String(time), "x-slack-signature": `v0=${hash}` };
    return fetch(url, {
      ...{ method: "POST", body, signal: AbortSignal.timeout(DEADLINE_MS) },
      headers: { "content-type": type, ...signed, ...headers },
    });
  }

  async #post(url: string, { kind, payload }: SlackDelivery, retry: number) {
    const retried = { "x-slack-retry-num": String(retry), "x-slack-retry-reason": "http_error" };
    const headers = retry > 0 ? { headers: retried } : {};
    const form = kind === "interactive" ? { payload: JSON.stringify(payload) } : (payload as Record<string, string>);
    const type = "application/x-www-form-urlencoded";
    const sent =
      kind === "events_api"
        ? this.request(url, JSON.stringify(payload), headers)
        : this.request(url, new URLSearchParams(form).toString(), { type, ...headers });
    return sent.then(
      async (response) => {
        const text = await response.text();
        return { status: response.status, answer: text.startsWith("{") ? (JSON.parse(text) as unknown) : undefined };
      },
      () => NOBODY,
    );
  }

  async #send({ kind, payload }: SlackDelivery, retry: number) {
    // The newest: the one before it may be about to go.
    const socket = [...this.sockets].at(-1);
    if (socket === undefined) return NOBODY;
    const id = `envelope${this.#next++}`;
    const taken = Promise.withResolvers<{ status: number; answer: unknown }>();
    this.#acknowledged.set(id, (answer) => taken.resolve({ status: 200, answer }));
    const lost = () => taken.resolve(NOBODY);
    const timer = setTimeout(lost, DEADLINE_MS);
    socket.once("close", lost);
    socket.send(JSON.stringify({ type: kind, envelope_id: id, payload, retry_attempt: retry }));
    try {
      return await taken.promise;
    } finally {
      clearTimeout(timer);
      socket.off("close", lost);
      this.#acknowledged.delete(id);
    }
  }

  #connected(socket: WebSocket): void {
    // One for each delivery under way.
    socket.setMaxListeners(0);
    socket.on("message", (data) => {
      const { envelope_id: id, payload } = JSON.parse((data as Buffer).toString()) as Json;
      this.#acknowledged.get(String(id))?.(payload);
    });
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => socket.terminate());
    socket.send(JSON.stringify({ type: "hello", num_connections: this.sockets.size + 1 }));
    this.sockets.add(socket);
    this.#wake();
  }

  #wake(): void {
    const { resolve } = this.#woken;
    this.#woken = Promise.withResolvers<void>();
    resolve();
  }
}

interface RequestOptions {
  readonly type?: string;
  readonly signature?: "good" | "bad" | "old";
  readonly headers?: Readonly<Record<string, string>>;
}
