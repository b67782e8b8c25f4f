import { parseChunk } from "../message/parse-chunk.ts";
import { tryParseJson, isRecord } from "../base/json.ts";
import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import type { ChatResponseFrame, ClientFrame, ServerFrame } from "../wire/frames.ts";
import { writeJson } from "../wire/json.ts";
import { isSessionState } from "../wire/session-frames.ts";

/** The part of an `AgentClient` that a chat needs. */
export interface ChatConnection {
  /** 1 when open. */
  readonly readyState: number;
  /** Sends now or, without a connection, as soon as there is one; `sent` is called when it is on its way. */
  send(data: string, sent?: () => void): void;
  /** The session to ask for from now on; undefined: the current one. Returns whether to ask on this connection too. */
  useSession?(session: string | undefined): boolean;
  /** Why it is closed for good. */
  readonly connectionError?: Error | null;
  /** What every connection asks for. */
  readonly session?: string | undefined;
  /** Connects again after it was closed for good. */
  open?(): void;
  getHttpUrl?(): string;
  addEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  addEventListener(type: "open" | "close" | "change", listener: (event: Event) => void): void;
  removeEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  removeEventListener(type: "open" | "close" | "change", listener: (event: Event) => void): void;
}

/** A piece of a turn, its end, or its error: with its chunk, or the text of the error, read from the body. */
export type ResponseFrame = Omit<ChatResponseFrame, "body" | "error"> & {
  readonly chunk: UIMessageChunk | undefined;
  readonly error: string | undefined;
};

/** A frame of the server that is about the chat. */
export type ChatFrame =
  | ResponseFrame
  | Exclude<Extract<ServerFrame, { readonly type: (typeof CHAT_TYPES)[number] }>, ChatResponseFrame>;

const CHAT_TYPES = [
  ...(["cf_agent_use_chat_response", "cf_agent_chat_messages", "cf_agent_chat_clear"] as const),
  ...(["cf_agent_message_updated", "cf_agent_chat_recovering", "cf_agent_stream_resuming"] as const),
  ...(["cf_agent_stream_pending", "cf_agent_stream_resume_none", "perdure_chat_older"] as const),
  ...(["perdure_chat_approval_refused", "perdure_message_renamed", "perdure_session_state"] as const),
];

/** Reads what came from the server; undefined when it is not about the chat. Never throws. */
export function readChatFrame(data: unknown): ChatFrame | undefined {
  if (typeof data !== "string" || !/"(?:cf_agent|perdure_chat|perdure_session|perdure_message)_/.test(data))
    return undefined;
  const read = tryParseJson(data);
  if (!isRecord(read) || !CHAT_TYPES.some((type) => type === read.type)) return undefined;
  // What has one of our types was made by an agent. Only what apps put into messages may be anything.
  const frame = read as unknown as Exclude<ChatFrame, ResponseFrame> | ChatResponseFrame;
  switch (frame.type) {
    case "cf_agent_use_chat_response":
      return response(frame);
    case "cf_agent_chat_messages":
    case "perdure_chat_older":
      return Array.isArray(frame.messages) ? { ...frame, messages: frame.messages.filter(isMessage) } : undefined;
    case "cf_agent_message_updated":
      return isMessage(frame.message) ? frame : undefined;
    case "perdure_session_state":
      return isSessionState(frame) ? frame : undefined;
    default:
      return frame;
  }
}

/** Sends a frame of the chat. @throws PerdureError `bad_input` when JSON cannot hold it, `limit` */
export function sendFrame(connection: ChatConnection, frame: ClientFrame, sent?: () => void): void {
  connection.send(writeJson(frame, `A frame of type ${frame.type}`), sent);
}

/** Whether a value has what every message must have. */
export function isMessage(value: unknown): value is UIMessage {
  return (
    isRecord(value) && typeof value.id === "string" && typeof value.role === "string" && Array.isArray(value.parts)
  );
}

const DEFAULT_ERROR = "Stream error";

function response({ body, error, ...frame }: ChatResponseFrame): ResponseFrame {
  if (error === true) return { ...frame, chunk: undefined, error: body || DEFAULT_ERROR };
  return { ...frame, chunk: body === "" ? undefined : parseChunk(tryParseJson(body)), error: undefined };
}
