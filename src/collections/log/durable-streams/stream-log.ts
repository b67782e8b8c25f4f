import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PerdureError } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import { asError, reporter } from "../../retry.ts";
import {
  type PlainConfig,
  type PlainOptions,
  type SchemaConfig,
  type SchemaOptions,
  type UntypedLogConfig,
  untypedLogOptions,
} from "../collection-options.ts";
import { contentOf, usedAgain } from "../receipts.ts";
import type { QuarantinedMessage, RowLog, RowTable, WriteReceipt } from "../row-log.ts";
import type { RowWrite } from "../../../wire/row-frames.ts";
import { requireWrite } from "../row-write.ts";
import { encodeWrite } from "./state-events.ts";
import { StreamHttp, type StreamHeaders } from "./stream-http.ts";
import { followStream } from "./stream-reader.ts";
import { START, StreamState } from "./stream-state.ts";
import { StreamWriter, type Outgoing } from "./stream-writer.ts";

/** @throws PerdureError `bad_config` for what cannot be fetched. */
function requireUrl(url: string | URL): string {
  const text = String(url);
  // In a page, addresses may be relative to it. Deno has the name, and nothing in it.
  const page = (globalThis as { location?: { readonly href: string } }).location?.href;
  if (URL.canParse(text, page) && /^https?:$/.test(new URL(text, page).protocol)) return text;
  throw new PerdureError(
    "bad_config",
    `"${text}" is not the address of a stream. Use one like https://host/v1/stream/name.`,
  );
}

interface StreamLogOptions {
  /** The stream: any server that speaks the Durable Streams protocol, with streams of `application/json`. */
  readonly url: string | URL;
  readonly headers?: StreamHeaders;
  readonly fetch?: typeof fetch;
  /** Whether a stream that is not there is created. Default true. */
  readonly create?: boolean;
  /**
   * Told of each outage once (it recovers by itself), of a stream gone for good, and of listeners' errors. May not throw.
   * Default: `console.error`.
   */
  readonly onError?: (error: unknown) => void;
  /** Told of each message that nobody can apply. What it throws goes to `onError`. */
  readonly onQuarantine?: (message: QuarantinedMessage) => void;
}

/**
 * Opens a log on a Durable Stream. It reads the stream from its start and follows it across lost connections and server restarts,
 * without repeats or gaps. Writes are sent in order, retried until the server has answered, and count once.
 *
 * Events follow the State Protocol, so other readers see the rows, but they do not judge conditions: what was refused here looks
 * applied there. Plain events of other writers are applied as they are.
 *
 * `write` also throws `not_found` when the stream was deleted, `read_only` when it was closed, `not_allowed`, `too_large` or
 * `call_failed` when the server refuses it. A writer with a producer needs an epoch for each of its lives: of two that share id
 * and epoch, the second is `fenced`.
 * @throws PerdureError `bad_config` when `url` is no address.
 */
export function openStreamLog(options: StreamLogOptions): RowLog {
  return new StreamLog(options);
}

interface Pending extends Outgoing {
  /** What it writes. */
  readonly content: string;
  readonly promise: Promise<WriteReceipt>;
  resolve(receipt: WriteReceipt): void;
}

class StreamLog implements RowLog {
  readonly kind = "durable-streams";
  readonly source: string;
  readonly ready: Promise<void>;
  readonly #state: StreamState;
  readonly #writer: StreamWriter;
  readonly #stop = new AbortController();
  readonly #pending = new Map<string, Pending>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #caughtUp = Promise.withResolvers<void>();
  readonly #reading: Promise<void>;
  readonly #onError: (error: unknown) => void;
  /** How far it was read, also behind the beginning of a write whose end is not there yet. */
  #read = START;
  #waiting: { readonly offset: string; readonly resolve: () => void }[] = [];
  #live = false;
  #ended: PerdureError | undefined;

  constructor(options: StreamLogOptions) {
    this.source = requireUrl(options.url);
    this.#onError = reporter(options.onError);
    this.ready = this.#caughtUp.promise;
    // Both are known to the log itself; who awaits them hears of them too.
    this.ready.catch(() => {});
    this.#opened.promise.catch(() => {});
    const { signal } = this.#stop;
    const http = new StreamHttp({ ...options, url: this.source }, signal);
    this.#state = new StreamState({
      onError: this.#onError,
      onQuarantine: (message) => this.#quarantine(message, options.onQuarantine),
      // Whoever else has used the name first has got its outcome, and not ours.
      onOutcome: (txid, content, receipt) => this.#waitingFor(txid, content)?.resolve(receipt),
      onConflict: (txid, content, error) => this.#waitingFor(txid, content)?.fail(error),
    });
    this.#writer = new StreamWriter({
      http,
      signal,
      opened: this.#opened.promise,
      reached: (offset) => this.#reached(offset),
      onGone: () => this.#end(new PerdureError("not_found", `The stream ${this.source} was deleted.`)),
      onTrouble: this.#onError,
    });
    const events = {
      onOpen: () => this.#opened.resolve(),
      onBatch: (messages: readonly unknown[], next: string) => this.#take(messages, next),
      onUpToDate: () => this.#goLive(),
      onTrouble: this.#onError,
    };
    this.#reading = followStream({ http, create: options.create ?? true, signal, events }).catch((error: unknown) =>
      this.#end(error),
    );
  }

  get position(): string {
    return this.#state.position;
  }

  get quarantined(): readonly QuarantinedMessage[] {
    return this.#state.quarantined;
  }

  table(name: string): RowTable {
    return this.#state.table(name);
  }

  async write(write: RowWrite): Promise<WriteReceipt> {
    requireWrite(write);
    if (this.#ended !== undefined) throw this.#ended;
    const txid = write.txid ?? newId();
    const pending = this.#newPending(write, txid);
    const known = this.#state.receipt(txid, pending.content);
    if (known !== undefined) return known;
    const under = this.#pending.get(txid);
    if (under !== undefined && under.content !== pending.content) throw usedAgain(txid);
    if (under !== undefined) return under.promise;
    this.#pending.set(txid, pending);
    this.#writer.send(pending);
    return pending.promise;
  }

  #waitingFor(txid: string, content: string): Pending | undefined {
    const pending = this.#pending.get(txid);
    return pending?.content === content ? pending : undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    this.#finish(new PerdureError("disconnected", `The log on the stream ${this.source} is closed.`));
    await Promise.all([this.#reading, this.#writer.idle()]);
  }

  #take(messages: readonly unknown[], next: string): void {
    this.#state.read(messages, next);
    this.#read = next;
    this.#writer.onRead(next);
    const reached = this.#waiting.filter(({ offset }) => offset <= next);
    if (reached.length === 0) return;
    this.#waiting = this.#waiting.filter(({ offset }) => offset > next);
    for (const { resolve } of reached) resolve();
  }

  #quarantine(message: QuarantinedMessage, tell: StreamLogOptions["onQuarantine"]): void {
    try {
      tell?.(message);
    } catch (error) {
      this.#onError(error);
    }
  }

  #reached(offset: string): Promise<void> {
    if (offset <= this.#read || this.#ended !== undefined) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ offset, resolve }));
  }

  #goLive(): void {
    if (this.#live) return;
    this.#live = true;
    this.#state.goLive();
    this.#caughtUp.resolve();
  }

  /** It cannot go on. */
  #end(thrown: unknown): void {
    if (this.#ended !== undefined) return;
    const error = asError(thrown);
    this.#finish(PerdureError.is(error) ? error : new PerdureError("bad_state", error.message, { cause: error }));
    this.#onError(error);
  }

  #finish(error: PerdureError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#opened.reject(error);
    this.#caughtUp.reject(error);
    for (const pending of this.#pending.values()) pending.fail(error);
    for (const { resolve } of this.#waiting) resolve();
    this.#waiting = [];
    this.#stop.abort();
  }

  #newPending(write: RowWrite, txid: string): Pending {
    // Written down at once: what the row was made from may change behind it.
    const events = encodeWrite(write, txid);
    const { promise, resolve, reject } = Promise.withResolvers<WriteReceipt>();
    const settle = (work: () => void) => {
      pending.settled = true;
      this.#pending.delete(txid);
      work();
    };
    const pending: Pending = {
      txid,
      events,
      content: contentOf(write.changes),
      promise,
      settled: false,
      resolve: (receipt) => settle(() => resolve(receipt)),
      fail: (error) => settle(() => reject(error)),
      ...(write.producer === undefined ? {} : { producer: write.producer }),
    };
    return pending;
  }
}

/** Where the rows of a collection on a Durable Stream are. */
type StreamCollectionSource =
  /** An open log (`openStreamLog`). Close it yourself, after the collections that are on it. */
  | { readonly log: RowLog; readonly url?: never }
  /**
   * A stream. All collections of this process on the same URL share one log and connection, `collection.utils.log`. Each
   * collection's `cleanup()` releases it (do not use that collection again); the last one closes it. A stream that needs headers
   * has its own log (`openStreamLog`), so that nobody reads with somebody else's.
   */
  | { readonly url: string | URL; readonly log?: never };

/** Options for `createCollection`: rows in a Durable Stream, beside other collections. See `logCollectionOptions` for writes. */
export function durableStreamCollectionOptions<TSchema extends StandardSchemaV1>(
  config: SchemaConfig<TSchema> & StreamCollectionSource,
): SchemaOptions<TSchema>;
export function durableStreamCollectionOptions<TRow extends object>(
  config: PlainConfig<TRow> & StreamCollectionSource,
): PlainOptions<TRow>;
export function durableStreamCollectionOptions({
  url,
  log,
  ...config
}: Omit<UntypedLogConfig, "log"> & StreamCollectionSource): object {
  return untypedLogOptions(log === undefined ? { ...config, ...borrow(String(url)) } : { ...config, log });
}

/** The logs that were opened by their URL. */
const borrowed = new Map<string, { readonly log: RowLog; users: number }>();

function borrow(url: string): { log: RowLog; onCleanup: () => void } {
  let entry = borrowed.get(url);
  if (entry === undefined) borrowed.set(url, (entry = { log: openStreamLog({ url }), users: 0 }));
  const { log } = entry;
  entry.users++;
  let mine = true;
  const onCleanup = () => {
    if (!mine) return;
    mine = false;
    const now = borrowed.get(url);
    if (now?.log !== log || --now.users > 0) return;
    borrowed.delete(url);
    void log.close();
  };
  return { log, onCleanup };
}
