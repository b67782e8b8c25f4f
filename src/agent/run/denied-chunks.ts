import { isToolPart, type UIMessage } from "../../message/types.ts";
import type { AgentToolChunk } from "./types.ts";

/**
 * What tells those who follow a run of calls that were not allowed. No turn says so: it is in the message only, and
 * they see no messages. Not stored, and the same again changes nothing.
 */
export function deniedChunks(answer: UIMessage | undefined): AgentToolChunk[] {
  return (answer?.parts ?? []).flatMap((part) =>
    isToolPart(part) && part.state === "output-denied"
      ? [{ sequence: undefined, body: JSON.stringify({ type: "tool-output-denied", toolCallId: part.toolCallId }) }]
      : [],
  );
}
