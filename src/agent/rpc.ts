import { errorText, PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import { encodeFrame } from "../wire/encode.ts";
import { findCallable } from "./callable.ts";
import type { Connection } from "../door/connection.ts";

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

/** A call that a client asks for. */
interface RpcCall {
  readonly id: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Runs a call and answers it exactly once, to the connection that asked. Never rejects. Calls run side by side. */
export async function answerCall(host: AgentHost, agent: object, connection: Connection, call: RpcCall): Promise<void> {
  const begun = host.clock.now();
  let error: string | undefined;
  try {
    const method = findCallable(agent, call.method);
    if (method.streaming === true) error = await stream(host, connection, call, method.run);
    else {
      const result = await method.run(...call.args);
      connection.send(encodeFrame({ type: "rpc", id: call.id, success: true, result, done: true }));
    }
  } catch (thrown) {
    error = rpcError(thrown);
    report(host, call, thrown);
    connection.send(encodeFrame({ type: "rpc", id: call.id, success: false, error }));
  }
  host.emit("rpc:called", {
    method: call.method,
    durationMs: host.clock.now() - begun,
    ok: error === undefined,
    error,
  });
}

/** Answers a call that was not understood, or may not be made. */
export function refuseCall(connection: Connection, id: string, error: string): void {
  connection.send(encodeFrame({ type: "rpc", id, success: false, error }));
}

/** @returns the error that the stream was ended with, if any. */
async function stream(
  host: AgentHost,
  connection: Connection,
  call: RpcCall,
  run: (...args: unknown[]) => unknown,
): Promise<string | undefined> {
  const response = new StreamingResponse(connection, call.id);
  try {
    await run(response, ...call.args);
    // A method that returns without ending has nothing more to say.
    response.end();
    return undefined;
  } catch (thrown) {
    const error = rpcError(thrown);
    report(host, call, thrown);
    response.error(error);
    return error;
  }
}

/** What is refused on purpose is the caller's business alone. */
function report(host: AgentHost, { method }: RpcCall, thrown: unknown): void {
  if (!PerdureError.is(thrown)) host.report(thrown, { stage: `call of ${method}` });
}

function rpcError(thrown: unknown): string {
  return PerdureError.is(thrown) ? thrown.message : errorText(thrown);
}
