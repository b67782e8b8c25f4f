import { linkSignals } from "../../../base/abort.ts";
import { PerdureError, errorText } from "../../../base/error.ts";
import { pause, backOff } from "../../../base/time.ts";

/**
 * The requests of the Durable Streams protocol that a log needs, by plain fetch and long-poll. The published client
 * is not used: its SSE reader gives messages twice when it is cut between data and control, it stops reading in a
 * hidden tab, where writes would then wait for their echo, and its append wraps an array into one message.
 */

/** How long the parts of the protocol may take, until the connection counts as lost. */
const ANSWER_TIMEOUT_MS = 60_000;
const CATCH_UP_TIMEOUT_MS = 300_000;
/** Longer than servers hold a request that waits for news. */
const LIVE_TIMEOUT_MS = 90_000;

interface StreamAddress {
  readonly url: string;
  readonly headers?: StreamHeaders;
  readonly fetch?: typeof fetch;
}

/** Headers for each request, such as `authorization`. A function is asked before each; if it fails, it is asked again. */
export type StreamHeaders = Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);

/** Nothing is known: the network, the server (5xx, 429) or what it sent. Worth another try. */
export class Trouble extends Error {
  override readonly name = "Trouble";
  /** Not before that. */
  readonly waitMs: number;

  constructor(message: string, options: { cause?: unknown; waitMs?: number } = {}) {
    super(message, options);
    this.waitMs = options.waitMs ?? 0;
  }
}

/** Where a reader goes on. */
export interface ReadPlace {
  readonly offset: string;
  /** Wait for news if there are none. */
  readonly live: boolean;
  /** What the server gave for caches in between. */
  readonly cursor: string | undefined;
}

export interface Batch {
  readonly kind: "batch";
  readonly messages: readonly unknown[];
  readonly next: string;
  readonly cursor: string | undefined;
  readonly upToDate: boolean;
  /** Nothing more will come. */
  readonly closed: boolean;
}

/** There is no such stream (404), or no longer (410). */
interface Missing {
  readonly kind: "missing";
  readonly status: number;
}

/** An answer that stays the same however often it is asked for. */
interface Refused {
  readonly kind: "refused";
  readonly error: PerdureError;
}

/** Under which name a batch of writes is sent. */
interface Sequence {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

type AppendAnswer =
  | { readonly kind: "taken"; readonly next: string | undefined }
  /** A batch of this name and number was taken before. */
  | { readonly kind: "duplicate" }
  | { readonly kind: "stale"; readonly latest: number }
  | { readonly kind: "gap"; readonly expected: number }
  | Missing
  | Refused;

/** One stream's requests. Throw {@link Trouble}, anything once aborted, and PerdureError `bad_config` for other content. */
export class StreamHttp {
  readonly url: string;
  readonly #address: StreamAddress;
  readonly #signal: AbortSignal;

  constructor(address: StreamAddress, signal: AbortSignal) {
    this.url = address.url;
    this.#address = address;
    this.#signal = signal;
  }

  async read({ offset, live, cursor }: ReadPlace): Promise<Batch | Missing | Refused> {
    const url = new URL(this.url);
    url.searchParams.set("offset", offset);
    if (live) url.searchParams.set("live", "long-poll");
    if (cursor !== undefined) url.searchParams.set("cursor", cursor);
    return this.#ask(url, { method: "GET" }, live ? LIVE_TIMEOUT_MS : CATCH_UP_TIMEOUT_MS, async (response) => {
      const refused = await this.#refusal(response);
      if (refused !== undefined) return refused;
      const { headers } = response;
      const next = headers.get("stream-next-offset");
      if (next === null) throw new Trouble(`${this.url} did not say where it goes on; is it a Durable Stream?`);
      return {
        kind: "batch",
        messages: response.status === 204 ? [] : await this.#messages(response),
        next,
        cursor: headers.get("stream-cursor") ?? undefined,
        upToDate: headers.has("stream-up-to-date"),
        closed: headers.get("stream-closed")?.toLowerCase() === "true",
      };
    });
  }

  /** `body` is a JSON array: its elements are appended together. */
  async append(body: string, { id, epoch, seq }: Sequence): Promise<AppendAnswer> {
    const headers = {
      "content-type": "application/json",
      "producer-id": headerSafe(id),
      "producer-epoch": String(epoch),
      "producer-seq": String(seq),
    };
    return this.#ask(this.url, { method: "POST", body, headers }, ANSWER_TIMEOUT_MS, async (response) => {
      const number = (name: string) => Number(response.headers.get(name) ?? Number.NaN);
      if (response.status === 204) return { kind: "duplicate" };
      if (response.ok) return { kind: "taken", next: response.headers.get("stream-next-offset") ?? undefined };
      const latest = number("producer-epoch");
      if (response.status === 403 && Number.isInteger(latest)) return { kind: "stale", latest };
      const expected = number("producer-expected-seq");
      if (response.status === 409 && Number.isInteger(expected)) return { kind: "gap", expected };
      // Whatever the server says beyond the errors of the protocol, it did not take it.
      return (await this.#refusal(response)) ?? { kind: "refused", error: this.#refusedError(response.status, "") };
    });
  }

  /** Where the stream ends now. */
  async tail(): Promise<string> {
    return this.#ask(this.url, { method: "HEAD" }, ANSWER_TIMEOUT_MS, async (response) => {
      const tail = response.headers.get("stream-next-offset");
      if (!response.ok || tail === null) throw new Trouble(`${this.url} did not say where it ends.`);
      return tail;
    });
  }

  /** Creates the stream; if it is there already, that is as good. */
  async create(): Promise<Refused | undefined> {
    const init = { method: "PUT", headers: { "content-type": "application/json" } };
    return this.#ask(this.url, init, ANSWER_TIMEOUT_MS, async (response) => {
      // 409: there is one that was made in another way. Reading it will tell.
      if (response.ok || response.status === 409) return undefined;
      const refused = await this.#refusal(response);
      return refused?.kind === "missing" ? { kind: "refused", error: this.#refusedError(404, "") } : refused;
    });
  }

  async #ask<T>(
    url: URL | string,
    init: { method: string; body?: string; headers?: Record<string, string> },
    timeoutMs: number,
    answer: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { headers, fetch: send = fetch } = this.#address;
    this.#signal.throwIfAborted();
    const cut = new AbortController();
    const unlink = linkSignals([this.#signal], cut);
    const timer = setTimeout(() => cut.abort(new Trouble(`${this.url} did not answer in time.`)), timeoutMs);
    try {
      const own = typeof headers === "function" ? await headers() : headers;
      const request = { ...init, headers: { ...own, ...init.headers }, signal: cut.signal };
      // What a cache gives could be older than what was read already.
      const response = await send(url, { ...request, cache: "no-store" });
      try {
        return await answer(response);
      } finally {
        if (!response.bodyUsed) await response.body?.cancel().catch(() => {});
      }
    } catch (error) {
      if (error instanceof Trouble || PerdureError.is(error) || this.#signal.aborted) throw error;
      throw new Trouble(`${this.url} cannot be reached: ${errorText(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
      unlink();
    }
  }

  async #refusal(response: Response): Promise<Missing | Refused | undefined> {
    const { status } = response;
    if (status === 200 || status === 201 || status === 204) return undefined;
    if (status === 404 || status === 410) return { kind: "missing", status };
    const text = (await response.text()).slice(0, 200);
    if (status >= 500 || status === 408 || status === 429 || status < 400) {
      const seconds = Number(response.headers.get("retry-after") ?? 0);
      const waitMs = Number.isFinite(seconds) ? seconds * 1000 : 0;
      throw new Trouble(`${this.url} answered ${status}: ${text}`, { waitMs });
    }
    if (response.headers.get("stream-closed")?.toLowerCase() === "true") {
      const message = `The stream ${this.url} is closed: it takes no more writes.`;
      return { kind: "refused", error: new PerdureError("read_only", message) };
    }
    return { kind: "refused", error: this.#refusedError(status, text) };
  }

  #refusedError(status: number, text: string): PerdureError {
    const code = status === 401 || status === 403 ? "not_allowed" : status === 413 ? "too_large" : "call_failed";
    return new PerdureError(code, `The stream ${this.url} refused a request with ${status}: ${text}`);
  }

  async #messages(response: Response): Promise<unknown[]> {
    const type = response.headers.get("content-type") ?? "";
    const text = await response.text();
    if (!type.includes("json")) {
      throw new PerdureError(
        "bad_config",
        `The stream ${this.url} has the type "${type}"; rows need a stream of type application/json.`,
      );
    }
    try {
      const messages: unknown = JSON.parse(text);
      return Array.isArray(messages) ? messages : [messages];
    } catch (error) {
      throw new Trouble(`${this.url} sent what is no JSON.`, { cause: error });
    }
  }
}

/** Header values are visible ASCII. */
function headerSafe(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : encodeURIComponent(text);
}

const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5_000;

/** The waits between tries, longer each time until one succeeds. */
export class Backoff {
  #failures = 0;

  /** Whether the last try succeeded, so that a failure is news. */
  get fresh(): boolean {
    return this.#failures === 0;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** Resolves after the next wait, or as soon as the signal is aborted. */
  async wait(signal: AbortSignal, atLeastMs = 0): Promise<void> {
    const full = backOff(++this.#failures, FIRST_DELAY_MS, MAX_DELAY_MS);
    // Some of it by chance, so that all who lost a server do not come back at once.
    const delay = Math.max(atLeastMs, full * (0.5 + Math.random() / 2));
    await pause(delay, signal);
  }
}
