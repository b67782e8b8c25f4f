import { WebSocket } from "ws";

interface Frame {
  readonly type?: string;
  readonly id?: string;
  readonly done?: boolean;
  readonly error?: boolean;
  readonly body?: string;
  readonly messages?: readonly { readonly id: string; readonly role: string }[];
  readonly before?: number;
  readonly next?: number;
}

/** One answer over the socket: what it took, and what went over the wire for it. */
export interface Trip {
  readonly ms: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
}

/** What Perdure's own client sends and reads, with the bytes counted; payloads only, without the frames' heads. */
export class PagedClient {
  readonly #socket: WebSocket;
  #waiting: ((frame: Frame) => void) | undefined;
  #up = 0;
  #down = 0;
  #before: number | undefined;
  #requests = 0;
  /** How many messages it has been given in pages. */
  shown = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      this.#down += data.byteLength;
      this.#waiting?.(JSON.parse(data.toString("utf8")) as Frame);
    });
  }

  /** Connects to the agent; resolves when it has the first page. */
  static async open(url: string): Promise<{ client: PagedClient; trip: Trip }> {
    const begun = performance.now();
    const socket = new WebSocket(`${url.replace("http", "ws")}/agents/long/one?_history=pages`, {
      perMessageDeflate: false,
    });
    const client = new PagedClient(socket);
    const page = await client.#next((frame) => frame.type === "cf_agent_chat_messages");
    client.#before = page.before;
    client.shown = page.messages?.length ?? 0;
    // What is fast because it is not stored counts for nothing.
    if (page.messages?.some(({ role }, at) => role !== (at % 2 === 0 ? "user" : "assistant")) === true)
      throw new Error("The conversation has lost messages.");
    return { client, trip: client.#since(begun, [0, 0]) };
  }

  /** Asks for the next older page. Undefined when there is none. */
  async older(): Promise<Trip | undefined> {
    const before = this.#before;
    if (before === undefined) return undefined;
    const [begun, bytes] = this.#begin();
    this.#send({ type: "perdure_chat_older", before });
    const page = await this.#next((frame) => frame.type === "perdure_chat_older" && frame.before === before);
    this.#before = page.next;
    this.shown += page.messages?.length ?? 0;
    return this.#since(begun, bytes);
  }

  /** A whole turn. */
  async turn(text: string): Promise<Trip> {
    const [begun, bytes] = this.#begin();
    const id = `r${process.pid}-${++this.#requests}`;
    const messages = [{ id: `u-${id}`, role: "user", parts: [{ type: "text", text }] }];
    const body = JSON.stringify({ messages, trigger: "submit-message" });
    this.#send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
    const end = await this.#next((frame) => frame.id === id && frame.done === true);
    if (end.error === true) throw new Error(end.body ?? "The turn failed.");
    return this.#since(begun, bytes);
  }

  /** What it was sent so far. */
  get bytesDown(): number {
    return this.#down;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#socket.once("close", resolve).close());
  }

  #begin(): [number, [number, number]] {
    return [performance.now(), [this.#up, this.#down]];
  }

  #since(begun: number, [up, down]: [number, number]): Trip {
    return { ms: performance.now() - begun, bytesUp: this.#up - up, bytesDown: this.#down - down };
  }

  #send(frame: object): void {
    const text = JSON.stringify(frame);
    this.#up += Buffer.byteLength(text);
    this.#socket.send(text);
  }

  #next(matches: (frame: Frame) => boolean): Promise<Frame> {
    return new Promise((resolve, reject) => {
      this.#socket.once("error", reject);
      this.#waiting = (frame) => {
        if (!matches(frame)) return;
        this.#waiting = undefined;
        this.#socket.off("error", reject);
        resolve(frame);
      };
    });
  }
}
