import type { JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** The code of the answer that we give in the place of one that will never come. */
export const LOST_CODE = -32_099;

/**
 * An answer may come on its own stream. If that ends without one, the package waits for its timeout; this fails the call at once.
 * After a real answer, ours is dropped.
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
