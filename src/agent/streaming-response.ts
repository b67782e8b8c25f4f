import { encodeFrame } from "../wire/encode.ts";
import type { Connection } from "./connection.ts";

/** What a streaming callable answers through: any number of chunks, then one end. */
export class StreamingResponse<Chunk = unknown, Final = unknown> {
  readonly #connection: Connection;
  readonly #id: string;
  #closed = false;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.#id = id;
  }

  /** Ended, or the caller has left. Sending then does nothing; a long producer should look now and then. */
  get isClosed(): boolean {
    return this.#closed || !this.#connection.open;
  }

  /** Sends one chunk. @throws PerdureError `bad_input` when JSON cannot hold it; the stream stays open. */
  send(chunk: Chunk): void {
    if (this.isClosed) return;
    this.#connection.send(encodeFrame({ type: "rpc", id: this.#id, success: true, result: chunk, done: false }));
  }

  /** Ends the call with a last value. @throws PerdureError `bad_input` when JSON cannot hold it. */
  end(final?: Final): void {
    if (this.#closed) return;
    const frame = encodeFrame({ type: "rpc", id: this.#id, success: true, result: final, done: true });
    this.#closed = true;
    this.#connection.send(frame);
  }

  /** Ends the call with an error. */
  error(message: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connection.send(encodeFrame({ type: "rpc", id: this.#id, success: false, error: message }));
  }
}
