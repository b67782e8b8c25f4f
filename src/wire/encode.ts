import type { ServerFrame } from "./frames.ts";
import { writeJson } from "./json.ts";

/**
 * The text of a frame. Encode once and send the same text to every connection.
 * @throws PerdureError `bad_input` when the frame holds what JSON cannot, such as a cycle in an RPC result. Nothing was sent
 *   then; an RPC must still be answered, with an error frame.
 */
export function encodeFrame(frame: ServerFrame): string {
  if (frame.type === "cf_agent_state") return encodeStateFrame(writeJson(frame.state, "The state"));
  if (frame.type === "rpc" && frame.success) return writeJson(frame, "The result");
  return writeJson(frame, `A frame of type ${frame.type}`);
}

/** The state frame for a state that is JSON already, as it comes from the store. */
export function encodeStateFrame(stateJson: string): string {
  return `{"type":"cf_agent_state","state":${stateJson}}`;
}

/** Encodes one chunk of the stream that it was made for. */
export type EncodeChunk = (bodyJson: string, seq?: number, replay?: boolean) => string;

/**
 * Makes the encoder for one stream's chunks. It runs per token, so what never changes is encoded once. The body is the chunk as
 * JSON text inside a string, which the clients insist on.
 */
export function chunkFrameEncoder(requestId: string, continuation: boolean): EncodeChunk {
  const head = `{"type":"cf_agent_use_chat_response","id":${JSON.stringify(requestId)},"done":false${
    continuation ? ',"continuation":true' : ""
  },"body":`;
  return (bodyJson, seq, replay) => {
    const body = head + JSON.stringify(bodyJson);
    const numbered = seq === undefined ? body : `${body},"seq":${seq}`;
    return replay === true ? `${numbered},"replay":true}` : `${numbered}}`;
  };
}
