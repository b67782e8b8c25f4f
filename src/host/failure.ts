import { PerdureError } from "../base/error.ts";
import { closeCode } from "../wire/close-code.ts";

/** Nothing went wrong with the agent: it, or its host, was ended. */
export function wasEnded(error: unknown): boolean {
  return PerdureError.is(error, "host_stopped") || PerdureError.is(error, "agent_gone");
}

/** What a socket is closed with when its agent failed it. */
export function failureCode(error: unknown): number {
  if (PerdureError.is(error, "host_stopped")) return closeCode.serviceRestart;
  return PerdureError.is(error, "limit") ? closeCode.tryAgainLater : closeCode.internalError;
}

/** A close frame holds 123 bytes of reason; a message without its code would be cut anywhere. */
export function closeReason(error: unknown): string {
  return PerdureError.is(error) ? error.code : "setup failed";
}
