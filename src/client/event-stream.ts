import { readEvents, type StreamEvent } from "../wire/event-stream.ts";

/** Reads server-sent events. Ends with the body, or when the signal aborts; throws what reading the body throws. */
export function readBodyEvents(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
  return readEvents(piecesOf(body, signal));
}

async function* piecesOf(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", leave);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // Also when the consumer leaves early: the request must not stay open.
    leave();
  }
}
