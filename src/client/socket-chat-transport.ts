import type { ChatTransport } from "ai";
import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { type MessageBuilder, newBuilder } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import { catchUp, findAnswer } from "./catch-up.ts";
import { type ChatConnection, type ChatFrame, readChatFrame, type ResponseFrame, sendFrame } from "./chat-frames.ts";
import { writeJson } from "../wire/json.ts";
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
  /** What was streamed so far, to know what is missing of it in the end. */
  readonly built: MessageBuilder;
  /** Asks for the turn. Twice is once: the agent knows the id. */
  readonly request: (() => void) | undefined;
  /** The request is on its way. */
  sent: boolean;
  /** The connection was lost since then. */
  cut: boolean;
  /** The number of the next chunk: what comes again after a reconnect is known by it. */
  next: number;
}

interface Probe {
  readonly id: string;
  found(turn: string | undefined): void;
  refused(error: Error): void;
}

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ReconnectOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];

/**
 * The AI SDK's chat over an agent's connection, for any framework: `new Chat({ transport })`. Sends only the new message. A
 * stream resumes after a reconnect; `stop()` stops the turn on the server, also a resumed one.
 */
export class SocketChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream comes from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #options: SocketChatTransportOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #probes = new Set<Probe>();
  readonly #listeners: readonly (() => void)[];
  /** The conversation as last told, while streams are under way. */
  #transcript: readonly UIMessage[] = [];

  constructor(options: SocketChatTransportOptions) {
    this.#options = options;
    const { agent } = options;
    const listen = (type: "message" | "open" | "close" | "change", listener: (event: Event) => void) => {
      agent.addEventListener(type as "open", listener);
      return () => agent.removeEventListener(type as "open", listener);
    };
    this.#listeners = [
      listen("message", (event) => {
        const frame = readChatFrame((event as MessageEvent<unknown>).data);
        if (frame !== undefined) this.#received(frame);
      }),
      listen("open", () => this.#opened()),
      listen("close", () => this.#closed()),
      // After the close: who hears of that may have opened it again.
      listen("change", () => this.#refused()),
    ];
  }

  /** Lets go of the connection, which stays open. Streams that are under way end; their turns go on. */
  close(): void {
    for (const remove of this.#listeners) remove();
    for (const stream of this.#streams.values()) stream.controller.close();
    this.#streams.clear();
    for (const probe of this.#probes) probe.found(undefined);
  }

  /**
   * @throws PerdureError `bad_input` when JSON cannot hold the message or the data; the `connectionError` of an agent whose
   *   connection is closed for good.
   */
  async sendMessages(
    options: Omit<SendOptions, "messages"> & { messages: M[] },
  ): Promise<ReadableStream<UIMessageChunk>> {
    const { agent, tools, body } = this.#options;
    const own = await bodyOf(body);
    if (agent.connectionError) throw agent.connectionError;
    const request = requestBody(options.messages, options.trigger, clientToolsOf(tools), [own, options.body]);
    const id = newId();
    const init = { method: "POST" as const, body: writeJson(request, "The body of a chat request") };
    const ask = () => {
      const sent = () => {
        const stream = this.#streams.get(id);
        if (stream !== undefined) stream.sent = true;
      };
      sendFrame(agent, { type: "cf_agent_use_chat_request", id, init }, sent);
    };
    const stream = this.#follow(id, options.abortSignal, ask);
    ask();
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

  #follow(id: string, signal: AbortSignal | undefined, request?: () => void): ReadableStream<UIMessageChunk> {
    const stream = { id, built: newBuilder(""), next: 0, cut: false, request, sent: request === undefined };
    return new ReadableStream<UIMessageChunk>({
      start: (controller) => {
        this.#streams.set(id, { ...stream, controller });
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
        reject(new PerdureError("disconnected", "The request for a stream was abandoned."));
      };
      const probe: Probe = {
        id: newId(),
        found(turn) {
          end();
          resolve(turn);
        },
        refused(error) {
          end();
          reject(error);
        },
      };
      const { connectionError } = this.#options.agent;
      if (connectionError) return reject(connectionError);
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

  #closed(): void {
    for (const stream of this.#streams.values()) stream.cut ||= stream.sent;
  }

  /** The connection is closed for good. */
  #refused(): void {
    const { connectionError } = this.#options.agent;
    if (!connectionError) return;
    for (const stream of this.#streams.values()) stream.controller.error(connectionError);
    this.#streams.clear();
    for (const probe of this.#probes) probe.refused(connectionError);
  }

  /** Questions are asked again, and streams that were cut off are looked for. */
  #opened(): void {
    for (const probe of this.#probes) this.#send(probe);
    if (this.#cut.length > 0) sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_request" });
  }

  get #cut(): Stream[] {
    return [...this.#streams.values()].filter(({ cut }) => cut);
  }

  /** Nothing runs any more: those that were cut off have ended, or never begun. Asked for by name, they tell. */
  #askByName(): void {
    for (const { id, built, request } of this.#cut) {
      if (!built.started) request?.();
      sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_ack", id });
    }
  }

  #received(frame: ChatFrame): void {
    switch (frame.type) {
      case "cf_agent_use_chat_response":
        return this.#response(frame);
      case "cf_agent_stream_resuming": {
        const waits = [...this.#probes].filter(({ id }) => frame.probeId === undefined || frame.probeId === id);
        for (const probe of waits) probe.found(frame.id);
        // A stream of ours that goes on. What it had seen is passed over by number.
        if (waits.length === 0 && this.#streams.has(frame.id)) {
          sendFrame(this.#options.agent, { type: "cf_agent_stream_resume_ack", id: frame.id });
        }
        return;
      }
      case "cf_agent_stream_resume_none":
        for (const probe of this.#probes) {
          if (frame.probeId === undefined || frame.probeId === probe.id) probe.found(undefined);
        }
        if (frame.reason === "idle") this.#askByName();
        return;
      case "cf_agent_chat_messages":
        if (this.#streams.size > 0) this.#transcript = frame.messages;
        return;
      default:
        return;
    }
  }

  #response({ id, chunk, seq, error, done, messageIds }: ResponseFrame): void {
    const stream = this.#streams.get(id);
    // Another turn was in the way of one that was cut off.
    if (stream === undefined) return done && this.#cut.length > 0 ? this.#opened() : undefined;
    const isNew = seq === undefined || seq >= stream.next;
    if (seq !== undefined && isNew) stream.next = seq + 1;
    if (chunk !== undefined && isNew) emit(stream, chunk);
    if (chunk !== undefined) stream.cut = false;
    if (error !== undefined) stream.controller.enqueue({ type: "error", errorText: error });
    if (!done) return;
    // What came while the connection was away is not told again once the turn is over. The conversation has it.
    const answer = findAnswer(this.#transcript, stream.built, messageIds);
    if (answer !== undefined) for (const missed of catchUp(stream.built, answer)) emit(stream, missed);
    this.#streams.delete(id);
    if (this.#streams.size === 0) this.#transcript = [];
    stream.controller.close();
  }
}

function emit(stream: Stream, chunk: UIMessageChunk): void {
  applyChunk(stream.built, chunk);
  stream.controller.enqueue(chunk);
}
