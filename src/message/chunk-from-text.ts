import type { UIMessageChunk } from "./types.ts";

/** Turns a plain-text answer into chunks as it arrives. */
interface TextChunker {
  /** The chunks for the next piece of the answer. Bytes are UTF-8 and may end inside a character. */
  push(piece: string | Uint8Array): UIMessageChunk[];
  /** The chunks that end the answer. Nothing may be pushed after it; calling it again gives none. */
  end(): UIMessageChunk[];
}

/** Starts one message with one text part. @param id the id of the text part, by custom the id of the request. */
export function textChunker(id: string): TextChunker {
  const decoder = new TextDecoder();
  let state: "new" | "started" | "open" | "ended" = "new";
  const text = (delta: string): UIMessageChunk[] => {
    const chunks: UIMessageChunk[] = state === "new" ? [{ type: "start" }] : [];
    if (state === "new") state = "started";
    if (delta === "") return chunks;
    if (state === "started") chunks.push({ type: "text-start", id });
    state = "open";
    chunks.push({ type: "text-delta", id, delta });
    return chunks;
  };
  return {
    push: (piece) => {
      if (state === "ended") return [];
      return text(typeof piece === "string" ? piece : decoder.decode(piece, { stream: true }));
    },
    end: () => {
      if (state === "ended") return [];
      const chunks = text(decoder.decode());
      if (state === "open") chunks.push({ type: "text-end", id });
      chunks.push({ type: "finish", finishReason: "stop" });
      state = "ended";
      return chunks;
    },
  };
}
