import { PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";
import { newId } from "../base/id.ts";
import { isRecord } from "../base/json.ts";
import { type JsonObject, writeJson } from "../wire/json.ts";
import type { CallOptions, CallStream } from "./call-types.ts";
import { disconnected } from "./connection-error.ts";

/** How long a call that does not stream may take. */
export const CALL_TIMEOUT_MS = 30_000;

/** Names that are asked of any object by the language or by tools, and never mean a call. */
const NEVER_CALLED: ReadonlySet<string> = new Set(
  "then catch finally toJSON toString valueOf constructor prototype $$typeof asymmetricMatch nodeType".split(" "),
);

interface Pending {
  /** On its way: its answer is lost when the connection is. */
  sent: boolean;
  readonly chunk: ((chunk: unknown) => void) | undefined;
  done(result: unknown): void;
  fail(error: PerdureError): void;
}

/** The calls of one client that are not answered yet. */
export class Calls {
  readonly #send: (data: string, sent: () => void) => void;
  readonly #refusal: () => Error | null;
  readonly #clock: Clock;
  readonly #timeout: number;
  readonly #pending = new Map<string, Pending>();

  /** @param refusal why there will be no connection. */
  constructor(
    send: (data: string, sent: () => void) => void,
    refusal: () => Error | null,
    clock: Clock,
    timeout: number,
  ) {
    this.#send = send;
    this.#refusal = refusal;
    this.#clock = clock;
    this.#timeout = timeout;
  }

  /**
   * @throws (rejects) PerdureError `call_failed` with what the server says, `timeout`, `disconnected`, `bad_input` for
   *   arguments that JSON cannot hold; the signal's reason.
   */
  call(method: string, args: readonly unknown[], options: CallOptions = {}): Promise<unknown> {
    const { stream, signal } = options;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = newId();
    const timeout = options.timeout ?? (stream === undefined ? this.#timeout : 0);
    const end = () => {
      this.#pending.delete(id);
      cancelTimer?.();
      signal?.removeEventListener("abort", aborted);
    };
    const aborted = () => {
      end();
      reject(signal?.reason as Error);
    };
    const call: Pending = {
      sent: false,
      chunk: stream?.onChunk,
      done(result) {
        end();
        stream?.onDone?.(result);
        resolve(result);
      },
      fail(error) {
        end();
        stream?.onError?.(error.message);
        reject(error);
      },
    };
    const cancelTimer =
      timeout > 0
        ? this.#clock.after(timeout, () =>
            call.fail(new PerdureError("timeout", `${method} got no answer within ${timeout} ms.`)),
          )
        : undefined;
    if (signal?.aborted) {
      aborted();
      return promise;
    }
    signal?.addEventListener("abort", aborted);
    this.#pending.set(id, call);
    if (this.#refusal() !== null) {
      call.fail(disconnected("Connection closed", this.#refusal()));
      return promise;
    }
    try {
      const frame = writeJson({ type: "rpc", id, method, args }, `The arguments of ${method}`);
      this.#send(frame, () => (call.sent = true));
    } catch (error) {
      call.fail(PerdureError.is(error) ? error : new PerdureError("bad_input", String(error), { cause: error }));
    }
    return promise;
  }

  /** The pieces of a streaming call as they come. They are kept until they are asked for. */
  stream(method: string, args: readonly unknown[]): CallStream<unknown, unknown> {
    const queue = new ChunkQueue();
    const left = new AbortController();
    const stream = { onChunk: (chunk: unknown) => queue.push(chunk) };
    const result = this.call(method, args, { stream, signal: left.signal });
    result.then(
      () => queue.end(),
      (error: unknown) => queue.end(error),
    );
    const iterate = (): AsyncIterator<unknown> => ({
      next: () => queue.next(),
      return: () => {
        left.abort(new PerdureError("disconnected", `The stream of ${method} was closed before its end.`));
        return Promise.resolve({ done: true, value: undefined });
      },
    });
    return { result, [Symbol.asyncIterator]: iterate };
  }

  /** An `rpc` frame of the server. An answer that nobody waits for is dropped. */
  answered(frame: JsonObject): void {
    const call = typeof frame.id === "string" ? this.#pending.get(frame.id) : undefined;
    if (call === undefined) return;
    if (frame.success !== true) {
      return call.fail(
        new PerdureError("call_failed", typeof frame.error === "string" ? frame.error : "The call failed."),
      );
    }
    if (frame.done === false) call.chunk?.(frame.result);
    else call.done(frame.result);
  }

  /** The connection is lost. @param all also those that were never sent and could have waited. */
  lost(all: boolean): void {
    for (const call of [...this.#pending.values()]) {
      if (all || call.sent) call.fail(disconnected("Connection closed", this.#refusal()));
    }
  }
}

/** An object whose every method is a call. */
export function stubOf(call: (method: string, args: unknown[]) => Promise<unknown>): object {
  return new Proxy(Object.create(null) as object, {
    get: (_, name) =>
      typeof name === "symbol" || NEVER_CALLED.has(name) ? undefined : (...args: unknown[]) => call(name, args),
  });
}

/** Reads the options of a call, also in the older form where the callbacks stood there by themselves. */
export function callOptions(value: unknown): CallOptions | undefined {
  if (!isRecord(value)) return undefined;
  const isOld = ["onChunk", "onDone", "onError"].some((name) => typeof value[name] === "function");
  return (isOld ? { stream: value } : value) as CallOptions;
}

/** Pieces between who brings them and who reads them. */
class ChunkQueue {
  readonly #chunks: unknown[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  push(chunk: unknown): void {
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(error?: unknown): void {
    this.#ended = error === undefined ? {} : { error };
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<unknown>> {
    while (this.#chunks.length === 0 && this.#ended === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    if (this.#chunks.length > 0) return { done: false, value: this.#chunks.shift() };
    if (this.#ended !== undefined && "error" in this.#ended) throw this.#ended.error;
    return { done: true, value: undefined };
  }
}
