import type { AgentHost } from "../../port.ts";
import { filesOf } from "../../media/files.ts";

/**
 * Keeps pictures and documents that a model has seen, by SHA-256 in hex, so a conversation still means the same bytes after the
 * file changed. Both methods may be slow and may reject.
 */
export interface KeptFiles {
  /** Stores bytes and resolves to their name. */
  put(bytes: Uint8Array, mediaType: string): Promise<string>;
  /** The bytes, or undefined when they are gone. */
  get(name: string): Promise<Uint8Array | undefined>;
}

/** Among the files of an agent's messages: they are erased with the session whose messages name them. */
export function keptIn(host: AgentHost): KeptFiles {
  const files = filesOf(host);
  return {
    put: async (bytes, mediaType) => (await files.put(bytes, mediaType)).name,
    get: async (name) => (await files.read(name))?.bytes,
  };
}
