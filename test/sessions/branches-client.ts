// A client of the wire without a network: it shows what it was told, and knows of every stream whose it is.
import type { UIMessage } from "ai";
import type { Resident } from "../../src/host/resident.ts";
import { HostSocket } from "../../src/host/host-socket.ts";

const BUFFER = 1e9;

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly body?: string;
  readonly done?: boolean;
  readonly before?: number;
  readonly messages?: readonly UIMessage[];
  readonly message?: UIMessage;
  readonly from?: string;
  readonly to?: string;
  readonly value?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

/** What a socket was told in answer to a question. */
export type Answer = Pick<Frame, "value" | "error">;

export interface Place {
  readonly session: string;
  readonly named: string | null;
}

export class Client {
  readonly name: string;
  readonly pages: boolean;
  /** The conversation, as far as this client knows; its beginning may be missing. */
  list: UIMessage[] = [];
  whole = true;
  /** The session that it names; undefined: whichever is the current one. */
  named: string | undefined;
  /** Whether it is being put into another session, and streams of both are its own. */
  moving = false;
  /** Is asked about each piece of a stream. */
  heard: (turn: string) => void = () => {};
  readonly answers = new Map<string, Answer>();
  #socket: HostSocket | undefined;
  #cell: Resident | undefined;
  #powered: () => boolean = () => false;
  #streams = new Map<string, UIMessage>();
  /** The last frames, for whoever looks at a run that failed. */
  readonly log: string[] = [];

  constructor(name: string, pages: boolean) {
    this.name = name;
    this.pages = pages;
  }

  get connected(): boolean {
    return this.#socket !== undefined;
  }

  connect(cell: Resident, powered: () => boolean): void {
    const session = this.named === undefined ? "" : `&_session=${this.named}`;
    const uri = `http://host.test/agents/talk/one?_pk=${this.name}${this.pages ? "&_history=pages" : ""}${session}`;
    const socket: HostSocket = new HostSocket(
      { id: this.name, uri },
      {
        buffered: 0,
        send: (data) => this.#receive(socket, data),
        sendAll: (frames) => frames.forEach((frame) => this.#receive(socket, frame)),
        close: () => this.lost(socket, true),
        terminate: () => this.lost(socket),
      },
      BUFFER,
    );
    this.#socket = socket;
    this.#cell = cell;
    this.#powered = powered;
    this.#streams = new Map();
    // As a page that is loaded again.
    this.list = [];
    this.log.push(`connect ${uri}`);
    cell.connect(socket, new Request(uri));
    this.send({ type: "cf_agent_stream_resume_request" });
  }

  disconnect(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#socket = undefined;
    this.#cell?.disconnected(socket, 1006, "", false);
  }

  /** The other end is gone; `sent` away: what it was in is gone too. */
  lost(socket = this.#socket, sent = false): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    if (sent) this.named = undefined;
  }

  send(frame: object): void {
    this.log.push(`> ${JSON.stringify(frame).slice(0, 300)}`);
    if (this.#socket !== undefined) this.#cell?.message(this.#socket, JSON.stringify(frame));
  }

  request(id: string, messages: readonly UIMessage[], trigger: "submit-message" | "regenerate-message"): void {
    this.list = [...messages];
    const body = JSON.stringify({ messages, trigger });
    this.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
  }

  #receive(socket: HostSocket, data: string | Uint8Array): void {
    if (socket !== this.#socket || !this.#powered() || typeof data !== "string") return;
    this.log.push(`< ${data.slice(0, 2000)}`);
    const frame = JSON.parse(data) as Frame;
    switch (frame.type) {
      case "cf_agent_chat_messages":
        return this.#conversation(frame.messages ?? [], frame.before !== undefined);
      case "cf_agent_chat_clear":
        this.list = [];
        this.whole = true;
        return;
      case "cf_agent_message_updated":
        if (frame.message !== undefined) this.#update(frame.message, false);
        return;
      case "perdure_message_renamed":
        this.list = this.list.map((message) =>
          message.id === frame.from ? { ...message, id: frame.to ?? message.id } : message,
        );
        return;
      case "cf_agent_stream_resuming":
        queueMicrotask(
          () => socket === this.#socket && this.send({ type: "cf_agent_stream_resume_ack", id: frame.id }),
        );
        return;
      case "perdure_session_result":
        return this.#answered(frame);
      case "cf_agent_use_chat_response":
        return this.#piece(frame);
    }
  }

  #answered({ id = "", value, error }: Frame): void {
    this.answers.set(id, error === undefined ? { value } : { error });
    this.moving = false;
    const place = value as Partial<Place> | null;
    if (typeof place === "object" && place !== null && "named" in place) this.named = place.named ?? undefined;
  }

  #conversation(messages: readonly UIMessage[], partial: boolean): void {
    const [first] = messages;
    const at = partial ? this.list.findIndex(({ id }) => id === first?.id) : 0;
    if (partial && at === -1) this.whole = false;
    else if (!partial) this.whole = true;
    this.list = [...this.list.slice(0, Math.max(0, at)), ...messages];
  }

  #piece({ id = "", body = "", done }: Frame): void {
    if (done === true) return void this.#streams.delete(id);
    if (body === "") return;
    this.heard(id);
    const chunk = JSON.parse(body) as { type: string; messageId?: string; delta?: string };
    if (chunk.type === "start" && chunk.messageId !== undefined) {
      const known = this.list.find((message) => message.id === chunk.messageId);
      this.#streams.set(id, known ?? { id: chunk.messageId, role: "assistant", parts: [] });
    }
    const open = this.#streams.get(id);
    if (open !== undefined && chunk.type === "start") this.#update(open, true);
  }

  #update(message: UIMessage, add: boolean): void {
    const at = this.list.findIndex(({ id }) => id === message.id);
    if (at !== -1) this.list[at] = message;
    else if (add) this.list.push(message);
  }
}
