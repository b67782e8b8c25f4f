import { errorText, PerdureError } from "../../../base/error.ts";
import type { ClientSdk } from "../load-sdk.ts";
import { LOST_CODE } from "./lost-streams.ts";

/**
 * What a failed request says of the connection.
 *
 * - `unauthorized`: a person has to sign in.
 * - `unreached`: the server did not take the request; after connecting again it can be sent again.
 * - `lost`: the connection broke while the request was under way; nobody knows what became of it.
 * - `refused`: the place is one that may not be reached.
 * - `answered`: the server said no, or took too long; the connection is fine.
 */
type Failure = "unauthorized" | "unreached" | "lost" | "refused" | "answered";

const MAX_REASON = 500;
/** What fetch implementations call a connection that never was. */
const UNREACHED = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/;

/** Sorts what a request of the client package threw. */
export function failureOf(sdk: ClientSdk, thrown: unknown): Failure {
  if (sdk.UnauthorizedError.isInstance(thrown)) return "unauthorized";
  for (let at: unknown = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (PerdureError.is(at, "not_allowed") || PerdureError.is(at, "bad_config")) return "refused";
    if (PerdureError.is(at, "limit") || PerdureError.is(at, "timeout")) return "answered";
    const code: unknown = "code" in at ? at.code : undefined;
    if (UNREACHED.test(at.message) || (typeof code === "string" && UNREACHED.test(code))) return "unreached";
  }
  if (sdk.SdkHttpError.isInstance(thrown)) return httpFailure(thrown.status, thrown.message);
  if (sdk.SdkError.isInstance(thrown)) {
    const { NotConnected, ConnectionClosed, SendFailed, RequestTimeout } = sdk.SdkErrorCode;
    if (thrown.code === NotConnected) return "unreached";
    if (thrown.code === ConnectionClosed || thrown.code === SendFailed) return "lost";
    if (thrown.code === RequestTimeout) return "answered";
  }
  if (sdk.ProtocolError.isInstance(thrown)) return thrown.code === LOST_CODE ? "lost" : "answered";
  return thrown instanceof TypeError || PerdureError.is(thrown, "call_failed") ? "lost" : "answered";
}

/** 404: a session that a server does not know any more, because it was restarted or has forgotten us. */
function httpFailure(status: number | undefined, message: string): Failure {
  if (status === 401) return "unauthorized";
  if (status === 404 || (status === 400 && /session/i.test(message))) return "unreached";
  return status !== undefined && status >= 502 && status <= 504 ? "unreached" : "answered";
}

/** Whether another try to connect may end better. */
export function mayPass(sdk: ClientSdk, thrown: unknown): boolean {
  if (PerdureError.is(thrown) && thrown.code !== "call_failed" && thrown.code !== "timeout") return false;
  const failure = failureOf(sdk, thrown);
  if (failure === "unauthorized" || failure === "refused") return false;
  if (!sdk.SdkHttpError.isInstance(thrown)) return true;
  const { status } = thrown;
  return status === 408 || status === 429 || status >= 500;
}

/** Whether a server that did not take streamable HTTP may be one of the older kind. */
export function maySpeakSse(sdk: ClientSdk, thrown: unknown): boolean {
  if (sdk.SdkHttpError.isInstance(thrown)) {
    const { status } = thrown;
    return status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
  }
  return sdk.SdkError.isInstance(thrown) && thrown.code === sdk.SdkErrorCode.ClientHttpUnexpectedContent;
}

/** Stands before the last words of a program. */
export const WROTE = " It wrote: ";

/** A reason without the last words of a program: those are for the log, since they may hold paths and secrets. */
export function withoutWords(reason: string): string {
  const at = reason.indexOf(WROTE);
  return at === -1 ? reason : reason.slice(0, at);
}

/** What was thrown, in one line for people, with the cause that fetch hides. Never a stack. */
export function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? ` (${errorText(thrown.cause)})` : "";
  const text = `${errorText(thrown)}${cause}`.replaceAll(/\s+/g, " ").trim();
  return text.length <= MAX_REASON ? text : `${text.slice(0, MAX_REASON - 1)}…`;
}
