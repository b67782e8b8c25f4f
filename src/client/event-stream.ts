/** One event of a server-sent stream. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly data: string;
}

/** Reads server-sent events. Ends with the body, or when the signal aborts; throws what reading the body throws. */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", leave);
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      // Half an event, or half a line break.
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // Also when the consumer leaves early: the request must not stay open.
    leave();
  }
}

function parseEvent(block: string): StreamEvent | undefined {
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^([^:]+):? ?(.*)$/.exec(line) ?? [];
    if (name === "id") id = value;
    if (name === "data") data.push(value);
  }
  return data.length > 0 ? { id, data: data.join("\n") } : undefined;
}
