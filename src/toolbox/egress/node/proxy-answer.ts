import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { PerdureError, type PerdureErrorCode } from "../../../base/error.ts";

const statuses: Partial<Record<PerdureErrorCode, number>> = {
  not_allowed: 403,
  bad_input: 400,
  limit: 429,
  timeout: 504,
  call_failed: 502,
};

/** How the proxy answers when it does not, and why. Never says more than a guest may know. */
export function refusalOf(thrown: unknown): { readonly status: number; readonly text: string } {
  if (!PerdureError.is(thrown)) return { status: 502, text: "The request failed.\n" };
  return { status: statuses[thrown.code] ?? 502, text: `${thrown.message}\n` };
}

/** Answers on a socket that is no HTTP exchange any more, and ends it. */
export function answerPlainly(socket: Socket, status: number, text: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = Buffer.from(text);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}\r\ncontent-type: text/plain; charset=utf-8\r\n` +
      `content-length: ${body.byteLength}\r\nconnection: close\r\n\r\n${text}`,
    () => socket.destroy(),
  );
}
