import { PerdureError } from "../base/error.ts";
import { CLOSE_WORDS, closeCode } from "../wire/close-code.ts";

/** Nothing went wrong with the agent: it, or its host, was ended. */
export function wasEnded(error: unknown): boolean {
  return (
    PerdureError.is(error, "host_stopped") || PerdureError.is(error, "agent_gone") || PerdureError.is(error, "fenced")
  );
}

/** What a socket is closed with when its agent failed it. */
export function failureCode(error: unknown): number {
  if (PerdureError.is(error, "host_stopped") || PerdureError.is(error, "fenced")) return closeCode.serviceRestart;
  return PerdureError.is(error, "limit") ? closeCode.tryAgainLater : closeCode.internalError;
}

/** A close frame holds 123 bytes of reason; a message without its code would be cut anywhere. */
export function closeReason(error: unknown): string {
  return PerdureError.is(error) ? error.code : "setup failed";
}

/** What the answer of a hook says, as far as a close frame has room for it. Pages are not made to be read like that. */
export async function closeWords(response: Response): Promise<string> {
  const nothing = response.statusText === "" ? "refused" : response.statusText;
  const isPage = response.headers.get("content-type")?.includes("html") === true;
  const words = new TextDecoder();
  let text = "";
  try {
    const reader = isPage ? undefined : response.body?.getReader();
    while (reader !== undefined && text.length < CLOSE_WORDS) {
      const { value, done } = await reader.read();
      if (done) break;
      text += words.decode(value, { stream: true });
    }
    reader?.releaseLock();
    await response.body?.cancel();
  } catch {
    // It was read already, or fails: what came counts.
  }
  return text.trim() === "" ? nothing : text.trim();
}
