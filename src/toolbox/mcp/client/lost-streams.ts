import type { JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** The code of the answer that we give in the place of one that will never come. */
export const LOST_CODE = -32_099;

/**
 * The answer to a call may come on a stream of its own. When that ends without an answer, the package waits for its
 * timeout; with this, the call fails at once. Behind an answer that has come, ours is for nobody and is dropped.
 */
export function failLostStreams(transport: StreamableHTTPClientTransport): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const id = idOf(message);
    if (id === undefined) return send(message, options);
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.();
      const error = { code: LOST_CODE, message: "The stream ended without an answer." };
      transport.onmessage?.({ jsonrpc: "2.0", id, error });
    };
    return send(message, { ...options, onRequestStreamEnd });
  };
}

function idOf(message: JSONRPCMessage | JSONRPCMessage[]): number | undefined {
  if (Array.isArray(message) || !("method" in message) || !("id" in message)) return undefined;
  // Those of subscriptions are texts, and the package looks after them itself.
  return typeof message.id === "number" ? message.id : undefined;
}
