import { PerdureError } from "../base/error.ts";
import { closeCode, refusedStatus } from "../wire/close-code.ts";

/** How a connection was closed. Not every platform has `CloseEvent`, so this is our own. */
export class ConnectionCloseEvent extends Event {
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;

  constructor(close: { readonly code?: number; readonly reason?: string; readonly wasClean?: boolean }) {
    super("close");
    this.code = close.code ?? closeCode.abnormal;
    this.reason = close.reason ?? "";
    this.wasClean = close.wasClean ?? false;
  }
}

/** Why a connection is closed for good: the server refused it, or the client gave up. */
export class AgentConnectionError extends Error {
  override readonly name = "AgentConnectionError";
  /** The close code: 4401, say, when a hook answered 401. */
  readonly code: number;
  /** What the server said: the text of a hook's answer, or that there is no such class. */
  readonly reason: string;
  readonly wasClean: boolean;
  /** The HTTP status that the code stands for, if it does. */
  readonly status: number | undefined;

  constructor({ code, reason, wasClean }: ConnectionCloseEvent) {
    super(`The connection was closed for good (${code}${reason === "" ? "" : `: ${reason}`}).`);
    this.code = code;
    this.reason = reason;
    this.wasClean = wasClean;
    this.status = refusedStatus(code);
  }
}

/** What a question is rejected with whose answer cannot come. @param refusal why there is no connection any more. */
export function disconnected(text: string, refusal?: Error | null): PerdureError {
  if (refusal === undefined || refusal === null) return new PerdureError("disconnected", text);
  return new PerdureError("disconnected", refusal.message, { cause: refusal });
}
