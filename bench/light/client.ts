import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";

interface Frame {
  readonly type?: string;
  readonly id?: string;
  readonly done?: boolean;
  readonly error?: boolean;
  readonly body?: string;
}

/** When things came, from the moment in which the request went out. */
export interface Answer {
  readonly firstMs: number;
  readonly ms: number;
}

/** Where a server has its agents: `http://host:port/agents/<class>`. */
export type Agents = string;

/**
 * A client of the public protocol: says one message at a time, and counts what it is sent. It asks for nothing else, so that
 * it works with any server of that protocol.
 */
export class ChatClient {
  readonly #address: string;
  readonly #socket: WebSocket;
  #hear: ((frame: Frame) => void) | undefined;
  #lost: (() => void) | undefined;
  bytesDown = 0;

  private constructor(agents: Agents, name: string) {
    this.#address = `${agents}/${name}`;
    this.#socket = new WebSocket(this.#address.replace("http", "ws"), { perMessageDeflate: false, maxPayload: 0 });
    this.#socket.on("message", (data: Buffer) => {
      this.bytesDown += data.byteLength;
      this.#hear?.(JSON.parse(data.toString("utf8")) as Frame);
    });
    this.#socket.on("close", () => this.#lost?.());
  }

  static async open(agents: Agents, name: string): Promise<ChatClient> {
    const client = new ChatClient(agents, name);
    await new Promise((resolve, reject) => client.#socket.once("open", resolve).once("error", reject));
    return client;
  }

  /** What a page would show. */
  async messages(): Promise<readonly unknown[]> {
    return (await (await fetch(`${this.#address}/get-messages`)).json()) as unknown[];
  }

  /**
   * A whole turn.
   * @param before messages that are sent in front of it: the public hook sends all that it shows.
   */
  async turn(text: string, before: readonly unknown[] = []): Promise<Answer> {
    const id = randomUUID();
    const said = { id: `u-${id}`, role: "user", parts: [{ type: "text", text }] };
    const body = JSON.stringify({ messages: [...before, said], trigger: "submit-message" });
    const frame = JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
    const begun = performance.now();
    let first: number | undefined;
    const ended = new Promise<void>((resolve, reject) => {
      this.#lost = () => reject(new Error("The server closed the socket in the middle of a turn."));
      this.#hear = (heard) => {
        if (heard.id !== id) return;
        if (heard.error === true) reject(new Error(heard.body ?? "The turn failed."));
        else if (heard.done === true) resolve();
        else if (heard.body?.includes('"text-delta"') === true) first ??= performance.now();
      };
    });
    this.#socket.send(frame);
    await ended;
    const ms = performance.now() - begun;
    return { firstMs: first === undefined ? ms : first - begun, ms };
  }

  /** Without goodbye: not every server answers it. */
  close(): void {
    this.#lost = undefined;
    this.#socket.terminate();
  }
}
