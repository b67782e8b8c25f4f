import type { ChatTransport } from "ai";
import { PerdureError } from "../base/error.ts";
import { type Clock, sleep, systemClock, backOff } from "../base/time.ts";
import { newId } from "../base/id.ts";
import { type MessageBuilder, newBuilder } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import { parseChunk } from "../message/parse-chunk.ts";
import { tryParseJson, isRecord } from "../base/json.ts";
import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import { agentHttpUrl, type AgentLocation, type Query, withQuery } from "./agent-url.ts";
import { readMessages } from "./agent-messages.ts";
import { catchUp, findAnswer } from "./catch-up.ts";
import { bodyOf, type ChatBodySource, type ChatTool, clientToolsOf, requestBody } from "./chat-request.ts";
import { END_OF_STREAM, readEvents, type StreamEvent } from "../wire/event-stream.ts";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10_000;
/** Tries without a single new chunk before the stream fails. */
const MAX_FAILURES = 8;

/** Options of {@link HttpChatTransport}. */
export interface HttpChatTransportOptions extends AgentLocation {
  readonly query?: Query | (() => Query | Promise<Query>);
  readonly headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  readonly credentials?: RequestCredentials;
  /** Data for the agent with every request. What a single message brings wins over it. */
  readonly body?: ChatBodySource;
  readonly tools?: Readonly<Record<string, ChatTool>>;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ReconnectOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];

/**
 * The AI SDK's chat over plain HTTP, for networks without WebSocket. Sends only the new message. A broken stream resumes behind
 * the last chunk; a broken request is repeated under the same id, so the message counts once. `stop()` stops the turn on the
 * server, also a resumed one.
 */
export class HttpChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream comes from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #options: HttpChatTransportOptions;
  readonly #clock: Clock;

  constructor(options: HttpChatTransportOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** @throws PerdureError `bad_input` when the agent refuses the request, `disconnected` when it cannot be reached. */
  async sendMessages(
    options: Omit<SendOptions, "messages"> & { messages: M[] },
  ): Promise<ReadableStream<UIMessageChunk>> {
    const { tools, body } = this.#options;
    const own = await bodyOf(body);
    const id = newId();
    const request = requestBody(options.messages, options.trigger, clientToolsOf(tools), [own, options.body]);
    const init: RequestInit = {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", "idempotency-key": id },
      body: JSON.stringify(request),
    };
    return this.#stream(id, () => this.#fetch("chat", init, options), options.abortSignal);
  }

  /** Goes on with the turn that runs or waits; `null` when there is none. */
  async reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<UIMessageChunk> | null> {
    const response = await this.#fetch("chat", { method: "GET" }, options);
    const chat: unknown = response.ok ? await response.json() : undefined;
    if (!isRecord(chat)) return null;
    const [waiting] = Array.isArray(chat.waiting) ? (chat.waiting as unknown[]) : [];
    const id = chat.running ?? waiting;
    if (typeof id !== "string") return null;
    return this.#stream(id, () => this.#fetch(streamPath(id), { method: "GET" }, options), options.abortSignal);
  }

  /** @param first the request that starts it; what follows it after a break is always the same. */
  async #stream(
    id: string,
    first: () => Promise<Response>,
    signal: AbortSignal | undefined,
  ): Promise<ReadableStream<UIMessageChunk>> {
    const left = new AbortController();
    const starting = this.#retrying(first, left.signal);
    const stop = () => {
      left.abort();
      // Stopped here at once. The server is told behind the request itself, as soon as it can be reached.
      const cancel = () =>
        this.#retrying(() => this.#fetch(`chat/${encodeURIComponent(id)}/cancel`, { method: "POST" }));
      void starting.then(cancel, cancel).catch(() => {});
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    const begun = await starting;
    if (!begun.ok) throw await refusal(begun);
    const chunks = this.#chunks(id, begun, left.signal);
    return new ReadableStream<UIMessageChunk>({
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (left.signal.aborted) controller.close();
          else controller.error(error);
        }
      },
      async cancel() {
        left.abort();
        await chunks.return(undefined);
      },
    });
  }

  async *#chunks(id: string, begun: Response, left: AbortSignal): AsyncGenerator<UIMessageChunk, void> {
    let response = begun;
    let after = -1;
    const built = newBuilder("");
    for (let failures = 0; ; failures++) {
      try {
        if (response.body === null) return;
        for await (const event of readBodyEvents(response.body, left)) {
          if (left.aborted || event.data === END_OF_STREAM) return;
          const chunk = parseChunk(tryParseJson(event.data));
          const number = event.id === undefined ? undefined : Number(event.id);
          if (chunk === undefined || (number !== undefined && number <= after)) continue;
          if (number !== undefined) after = number;
          failures = 0;
          // The end of the turn. A turn that was over when we came back does not tell again what it said.
          if (chunk.type === "data-turn") yield* this.#missed(built, chunk);
          applyChunk(built, chunk);
          yield chunk;
        }
        if (left.aborted) return;
      } catch (error) {
        if (left.aborted) return;
        if (failures >= MAX_FAILURES) throw error;
      }
      // Without its end mark the stream was cut off, however politely.
      if (failures >= MAX_FAILURES)
        throw new PerdureError("disconnected", "The stream broke off and could not be resumed.");
      await sleep(this.#clock, backOff(failures + 1, FIRST_DELAY_MS, LONGEST_DELAY_MS), left);
      const from = `${streamPath(id)}?after=${after}`;
      response = await this.#retrying(() => this.#fetch(from, { method: "GET" }), left);
      if (!response.ok) throw await refusal(response);
    }
  }

  async *#missed(built: MessageBuilder, end: UIMessageChunk): AsyncGenerator<UIMessageChunk, void> {
    if (built.finishReason !== undefined) return;
    const data = "data" in end && isRecord(end.data) ? end.data : {};
    const messageIds = Array.isArray(data.messageIds) ? (data.messageIds as string[]) : undefined;
    const messages = await readMessages(await this.#retrying(() => this.#fetch("get-messages", { method: "GET" })));
    const answer = findAnswer(messages, built, messageIds);
    if (answer !== undefined) yield* catchUp(built, answer);
  }

  /** Repeats what fails for want of a network, or because the server is not up. */
  async #retrying(work: () => Promise<Response>, left?: AbortSignal): Promise<Response> {
    for (let failures = 0; ; failures++) {
      try {
        const response = await work();
        if (response.status < 502 || response.status > 504 || failures >= MAX_FAILURES) return response;
      } catch (error) {
        if (left?.aborted === true || failures >= MAX_FAILURES) {
          throw new PerdureError("disconnected", "The agent could not be reached.", { cause: error });
        }
      }
      await sleep(this.#clock, backOff(failures + 1, FIRST_DELAY_MS, LONGEST_DELAY_MS), left);
    }
  }

  async #fetch(
    suffix: string,
    init: RequestInit,
    request: { headers?: Record<string, string> | Headers } = {},
  ): Promise<Response> {
    const { query, headers, credentials } = this.#options;
    const asked = typeof query === "function" ? await query() : query;
    const own = typeof headers === "function" ? await headers() : headers;
    const all = new Headers(own);
    for (const more of [request.headers, init.headers])
      new Headers(more).forEach((value, name) => all.set(name, value));
    const url = withQuery(`${agentHttpUrl(this.#options)}/${suffix}`, asked ?? {});
    const send = this.#options.fetch ?? globalThis.fetch;
    return send(url, { ...init, headers: all, ...(credentials !== undefined && { credentials }) });
  }
}

function streamPath(id: string): string {
  return `chat/${encodeURIComponent(id)}/stream`;
}

async function refusal(response: Response): Promise<PerdureError> {
  const body = tryParseJson(await response.text());
  const error = isRecord(body) && isRecord(body.error) ? body.error : {};
  const reason = typeof error.message === "string" ? error.message : `The agent answered ${response.status}.`;
  return new PerdureError("bad_input", reason);
}

/** Reads server-sent events. Ends with the body, or when the signal aborts; throws what reading the body throws. */
export function readBodyEvents(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
  return readEvents(piecesOf(body, signal));
}

async function* piecesOf(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", leave);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // Also when the consumer leaves early: the request must not stay open.
    leave();
  }
}
