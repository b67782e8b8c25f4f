import { closeCode } from "../wire/close-code.ts";

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
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;

  constructor({ code, reason, wasClean }: ConnectionCloseEvent) {
    super(`The connection was closed for good (${code}${reason === "" ? "" : `: ${reason}`}).`);
    this.code = code;
    this.reason = reason;
    this.wasClean = wasClean;
  }
}
