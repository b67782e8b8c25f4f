import type { ChatTransport } from "ai";
import { PerdureError } from "../error.ts";
import { newId } from "../id.ts";
import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import { type ChatConnection, type ChatFrame, readChatFrame, type ResponseFrame, sendFrame } from "./chat-frames.ts";
import { bodyOf, type ChatBodySource, type ChatTool, clientToolsOf, requestBody } from "./chat-request.ts";

/** Options of {@link SocketChatTransport}. */
export interface SocketChatTransportOptions {
  /** An `AgentClient`. */
  readonly agent: ChatConnection;
  /** Data for the agent with every request. What a single message brings wins over it. */
  readonly body?: ChatBodySource;
  readonly tools?: Readonly<Record<string, ChatTool>>;
}

interface Stream {
  readonly id: string;
  readonly controller: ReadableStreamDefaultController<UIMessageChunk>;
  /** The number of the next chunk: what comes again after a reconnect is known by it. */
  next: number;
}

interface Probe {
  readonly id: string;
  found(turn: string | undefined): void;
}

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ReconnectOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];

/**
 * The AI SDK's chat over an agent's connection, for any framework: `new Chat({ transport })`. Only the new message is
 * sent. A stream goes on by itself after a reconnect, where it was; `stop()` stops the turn on the server, also one
 * that was resumed.
 */
export class SocketChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream comes from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #options: SocketChatTransportOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #probes = new Set<Probe>();
  readonly #listeners: readonly (() => void)[];

  constructor(options: SocketChatTransportOptions) {
    this.#options = options;
    const { agent } = options;
    const message = ({ data }: MessageEvent<unknown>) => {
      const frame = readChatFrame(data);
      if (frame !== undefined) this.#received(frame);
    };
    const open = () => this.#opened();
    agent.addEventListener("message", message);
    agent.addEventListener("open", open);
    this.#listeners = [() => agent.removeEventListener("message", message), () => agent.removeEventListener("open", open)];
  }

  /** Lets go of the connection, which stays open. Streams that are under way end; their turns go on. */
  close(): void {
    for (const remove of this.#listeners) remove();
    for (const stream of this.#streams.values()) stream.controller.close();
    this.#streams.clear();
    for (const probe of this.#probes) probe.found(undefined);
  }

  /** @throws PerdureError `bad_input` when JSON cannot hold the message or the data. */
  async sendMessages(options: Omit<SendOptions, "messages"> & { messages: M[] }): Promise<ReadableStream<UIMessageChunk>> {
    const { agent, tools, body } = this.#options;
    const own = await bodyOf(body);
    const request = requestBody(options.messages, options.trigger, clientToolsOf(tools), [own, options.body]);
    const id = newId();
    const stream = this.#follow(id, options.abortSignal);
    try {
      sendFrame(agent, { type: "cf_agent_use_chat_request", id, init: { method: "POST", body: JSON.stringify(request) } });
    } catch (error) {
      this.#streams.delete(id);
      throw error;
    }
    return stream;
  }

  /** Goes on with the turn that runs or waits; `null` when there is none. */
  async reconnectToStream({ abortSignal }: ReconnectOptions): Promise<ReadableStream<UIMessageChunk> | null> {
    const turn = await this.#ask(abortSignal);
    if (turn === undefined) return null;
    const stream = this.#follow(turn, abortSignal);
    sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_ack", id: turn });
    return stream;
  }

  #follow(id: string, signal: AbortSignal | undefined): ReadableStream<UIMessageChunk> {
    return new ReadableStream<UIMessageChunk>({
      start: (controller) => {
        this.#streams.set(id, { id, controller, next: 0 });
        const stop = () => {
          if (!this.#streams.delete(id)) return;
          sendFrame(this.#options.agent, { type: "cf_agent_chat_request_cancel", id });
          controller.close();
        };
        if (signal?.aborted) stop();
        else signal?.addEventListener("abort", stop, { once: true });
      },
      cancel: () => void this.#streams.delete(id),
    });
  }

  #ask(signal: AbortSignal | undefined): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#probes.delete(probe);
        signal?.removeEventListener("abort", aborted);
      };
      const aborted = () => {
        end();
        reject(new PerdureError("disconnected", "The question for a stream was given up."));
      };
      const probe: Probe = {
        id: newId(),
        found(turn) {
          end();
          resolve(turn);
        },
      };
      if (signal?.aborted) return aborted();
      signal?.addEventListener("abort", aborted);
      this.#probes.add(probe);
      // Without a connection, `#opened` asks.
      if (this.#options.agent.readyState === 1) this.#send(probe);
    });
  }

  #send(probe: Probe): void {
    sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_request", probeId: probe.id });
  }

  /** Questions are asked again, and streams that were cut off are looked for. */
  #opened(): void {
    for (const probe of this.#probes) this.#send(probe);
    if (this.#streams.size > 0) sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_request" });
  }

  #received(frame: ChatFrame): void {
    switch (frame.kind) {
      case "response":
        return this.#response(frame);
      case "resuming": {
        const waits = [...this.#probes].filter(({ id }) => frame.probeId === undefined || frame.probeId === id);
        for (const probe of waits) probe.found(frame.id);
        // A stream of ours that goes on. What it had seen is passed over by number.
        if (waits.length === 0 && this.#streams.has(frame.id)) {
          sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_ack", id: frame.id });
        }
        return;
      }
      case "none":
        for (const probe of this.#probes) {
          if (frame.probeId === undefined || frame.probeId === probe.id) probe.found(undefined);
        }
        // Ours have ended meanwhile. Asked for by name, they tell the rest and how.
        if (frame.reason === "idle" && frame.probeId === undefined) {
          for (const id of this.#streams.keys()) {
            sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_ack", id });
          }
        }
        return;
      default:
        return;
    }
  }

  #response({ id, chunk, seq, error, done }: ResponseFrame): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    const isNew = seq === undefined || seq >= stream.next;
    if (seq !== undefined && isNew) stream.next = seq + 1;
    if (chunk !== undefined && isNew) stream.controller.enqueue(chunk);
    if (error !== undefined) stream.controller.enqueue({ type: "error", errorText: error });
    if (!done) return;
    this.#streams.delete(id);
    stream.controller.close();
  }
}
