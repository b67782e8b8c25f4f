/**
 * The codes that sockets are closed with. After a {@link isTerminalCloseCode terminal} one the public clients stop; after any
 * other, or an HTTP error on the upgrade, they reconnect forever.
 */
export const closeCode = {
  /** Asked for, nothing wrong. Clients connect again. */
  normal: 1000,
  /** The host stops, or the agent was deleted. Clients connect again. */
  goingAway: 1001,
  /** No close frame was seen. Never sent, only reported. */
  abnormal: 1006,
  /** Refused for good, without an HTTP status to tell. Terminal. */
  policyViolation: 1008,
  /** A frame larger than the host takes. Clients connect again. */
  tooLarge: 1009,
  /** Setting up the connection failed. Clients connect again. */
  internalError: 1011,
  /** The host restarts. Clients connect again. */
  serviceRestart: 1012,
  /** Too busy, or this client reads too slowly. Clients connect again. */
  tryAgainLater: 1013,
  /** The client asked for a wire that this host does not speak. Terminal. */
  unsupportedTransport: 4400,
  /** The client names a session that is not there, or not any more. Terminal. */
  unknownSession: 4404,
} as const;

/** The reason that goes with it: other things that are not found have the same code. */
export const UNKNOWN_SESSION = "unknown session";

/** Whether a connection was closed because its session is not there. */
export function isUnknownSession(close: object): boolean {
  return (
    "code" in close && close.code === closeCode.unknownSession && "reason" in close && close.reason === UNKNOWN_SESSION
  );
}

const FIRST_APPLICATION_CODE = 4000;
const LAST_APPLICATION_CODE = 4999;

/** Whether the public clients give up after `code` instead of connecting again. */
export function isTerminalCloseCode(code: number): boolean {
  return code === closeCode.policyViolation || (code >= FIRST_APPLICATION_CODE && code <= LAST_APPLICATION_CODE);
}

/** The code for an upgrade answered with HTTP `status`. A 4xx is final, so it is terminal (401 → 4401); others are retried. */
export function refusalCode(status: number): number {
  const clientError = Number.isInteger(status) && status >= 400 && status <= 499;
  return clientError ? FIRST_APPLICATION_CODE + status : closeCode.internalError;
}

/** The other way: the status that `code` stands for, if it does. */
export function refusedStatus(code: number): number | undefined {
  const status = code - FIRST_APPLICATION_CODE;
  return status >= 400 && status <= 499 ? status : undefined;
}

/** How many bytes of reason a close frame holds. */
export const CLOSE_WORDS = 123;

/** The code to close with when a socket is to be closed with `code`: some are only ever reported. */
export function sendableCode(code: number): number {
  const sendable =
    code === 1000 || (code >= 1001 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || code >= 3000;
  return sendable ? code : closeCode.internalError;
}

/** As much of a reason as a close frame holds. */
export function cutReason(reason: string): string {
  const encoder = new TextEncoder();
  let cut = reason;
  while (encoder.encode(cut).length > CLOSE_WORDS) cut = cut.slice(0, -1);
  return cut;
}
