import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/** More than any server says before its client listens; the oldest go first. */
const MAX_KEPT = 100;

/**
 * Keeps what a server says of its own accord until its client listens for the first time. The SDK drops it, and what the
 * handler of a request asks its client goes that way too: a client that calls a tool at once, and opens its stream a
 * moment later, would never be asked, and the call would end by its timeout.
 * @returns to be called when the client listens. Calling it again does nothing.
 */
export function keepUntilHeard(transport: WebStandardStreamableHTTPServerTransport): () => Promise<void> {
  type Message = Parameters<typeof transport.send>;
  const send = transport.send.bind(transport);
  const kept: Message[] = [];
  let heard = false;
  transport.send = async (...message: Message) => {
    const [said, options] = message;
    const isForStream = "method" in said && options?.relatedRequestId === undefined;
    if (heard || !isForStream) return send(...message);
    kept.push(message);
    if (kept.length > MAX_KEPT) kept.shift();
  };
  return async () => {
    heard = true;
    for (const message of kept.splice(0)) await send(...message);
  };
}
