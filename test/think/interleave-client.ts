// A client of the wire without a network: it knows what it was told, and sends what a run tells it to.
import type { UIMessage } from "ai";
import type { Resident } from "../../src/host/resident.ts";
import { HostSocket } from "../../src/host/host-socket.ts";
import { CLIENT_TOOL } from "./interleave-model.ts";

const BUFFER = 1e9;
const RESPONSE = "cf_agent_use_chat_response";

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly body?: string;
  readonly done?: boolean;
  readonly replay?: boolean;
  readonly messages?: readonly UIMessage[];
}

export class Client {
  readonly name: string;
  /** The conversation, as far as this client knows. */
  list: UIMessage[] = [];
  /** Requests that were sent on the present connection. */
  asked = new Set<string>();
  /** How often the end of a turn was told on the present connection, but for repetitions of old ones. */
  ends = new Map<string, number>();
  #socket: HostSocket | undefined;
  #cell: Resident | undefined;
  /** Whether the host at the other end is alive. */
  #powered: () => boolean = () => false;

  constructor(name: string) {
    this.name = name;
  }

  get connected(): boolean {
    return this.#socket !== undefined;
  }

  connect(cell: Resident, powered: () => boolean): void {
    const uri = `http://host.test/agents/talk/one?_pk=${this.name}`;
    const socket: HostSocket = new HostSocket(
      { id: this.name, uri },
      {
        buffered: 0,
        send: (data) => this.#receive(socket, data),
        sendAll: (frames) => frames.forEach((frame) => this.#receive(socket, frame)),
        close: () => this.lost(socket),
        terminate: () => this.lost(socket),
      },
      BUFFER,
    );
    this.#socket = socket;
    this.#cell = cell;
    this.#powered = powered;
    this.asked = new Set();
    this.ends = new Map();
    cell.connect(socket, new Request(uri));
    this.send({ type: "cf_agent_stream_resume_request" });
  }

  disconnect(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#socket = undefined;
    this.#cell?.disconnected(socket, 1006, "", false);
  }

  /** The other end is gone. */
  lost(socket = this.#socket): void {
    if (this.#socket === socket) this.#socket = undefined;
  }

  send(frame: object): void {
    if (this.#socket !== undefined) this.#cell?.message(this.#socket, JSON.stringify(frame));
  }

  request(id: string, messages: readonly UIMessage[], trigger: "submit-message" | "regenerate-message"): void {
    const clientTools = [{ name: CLIENT_TOOL, description: "Where the user is.", parameters: { type: "object" } }];
    const body = JSON.stringify({ messages, trigger, clientTools });
    this.asked.add(id);
    this.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
  }

  #receive(socket: HostSocket, data: string | Uint8Array): void {
    if (socket !== this.#socket || !this.#powered() || typeof data !== "string") return;
    // Most frames are pieces of a stream, of which only the name of the answer is of interest here.
    if (data.includes(RESPONSE) && !data.includes('"done":true') && !data.includes('\\"type\\":\\"start\\"')) return;
    const frame = JSON.parse(data) as Frame;
    if (frame.type === "cf_agent_chat_messages") this.list = [...(frame.messages ?? [])];
    if (frame.type === "cf_agent_stream_resuming")
      queueMicrotask(() => socket === this.#socket && this.send({ type: "cf_agent_stream_resume_ack", id: frame.id }));
    if (frame.type !== RESPONSE || frame.id === undefined) return;
    if (frame.done === true) {
      if (frame.replay !== true) this.ends.set(frame.id, (this.ends.get(frame.id) ?? 0) + 1);
      return;
    }
    const { messageId } = JSON.parse(frame.body ?? "{}") as { messageId?: string };
    if (messageId !== undefined && !this.list.some(({ id }) => id === messageId))
      this.list.push({ id: messageId, role: "assistant", parts: [] });
  }
}
