import { parseChunk } from "../message/parse-chunk.ts";
import { tryParseJson, isRecord } from "../base/json.ts";
import { isToolPart, type ToolPart, type UIMessage, type UIMessageChunk } from "../message/types.ts";
import type { BranchPlaces, ClientFrame, TurnOutcome } from "../wire/frames.ts";
import { type JsonObject, writeJson } from "../wire/json.ts";
import { isSessionState, type SessionStateFrame } from "../wire/session-frames.ts";

/** The part of an `AgentClient` that a chat needs. */
export interface ChatConnection {
  /** 1 when open. */
  readonly readyState: number;
  /** Sends now or, without a connection, as soon as there is one; `sent` is called when it is on its way. */
  send(data: string, sent?: () => void): void;
  /**
   * The session to ask for with every connection from now on; undefined: whichever is the current one. @returns whether
   * it has to be asked for on the connection under way too.
   */
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

/** A piece of a turn, its end, or its error. */
export interface ResponseFrame {
  readonly kind: "response";
  readonly id: string;
  readonly chunk: UIMessageChunk | undefined;
  /** The chunk's number in the stored stream. */
  readonly seq: number | undefined;
  readonly done: boolean;
  /** The text of an error. */
  readonly error: string | undefined;
  readonly continuation: boolean;
  readonly replay: boolean;
  /** All that was said before has been told. */
  readonly caughtUp: boolean;
  readonly messageIds: readonly string[] | undefined;
  readonly outcome: TurnOutcome | undefined;
}

/** A frame of the server that is about the chat. */
export type ChatFrame =
  | ResponseFrame
  | {
      readonly kind: "transcript";
      readonly messages: readonly UIMessage[];
      readonly connect: boolean;
      /** These are the newest only. */
      readonly before: number | undefined;
      /** The session that it is the conversation of, when that is said. */
      readonly session: string | undefined;
      readonly branches: BranchPlaces | undefined;
    }
  | {
      readonly kind: "older";
      readonly before: number;
      readonly messages: readonly UIMessage[];
      readonly next: number | undefined;
      readonly branches: BranchPlaces | undefined;
    }
  | { readonly kind: "session"; readonly state: SessionStateFrame }
  | { readonly kind: "cleared" }
  | { readonly kind: "renamed"; readonly from: string; readonly to: string }
  | {
      readonly kind: "refused";
      readonly toolCallId: string;
      readonly reason: string;
      readonly part: ToolPart | undefined;
    }
  | { readonly kind: "updated"; readonly message: UIMessage }
  | { readonly kind: "resuming"; readonly id: string; readonly probeId: string | undefined }
  | { readonly kind: "pending"; readonly id: string | undefined; readonly probeId: string | undefined }
  | { readonly kind: "none"; readonly reason: unknown; readonly probeId: string | undefined }
  | { readonly kind: "recovering"; readonly recovering: boolean };

/** Reads what came from the server; undefined when it is not about the chat. Never throws. */
export function readChatFrame(data: unknown): ChatFrame | undefined {
  if (typeof data !== "string" || !/"(?:cf_agent|perdure_chat|perdure_session|perdure_message)_/.test(data))
    return undefined;
  const frame = tryParseJson(data);
  if (!isRecord(frame)) return undefined;
  const id = text(frame.id);
  const probeId = text(frame.probeId);
  switch (frame.type) {
    case "cf_agent_use_chat_response":
      return id === undefined ? undefined : response(id, frame);
    case "cf_agent_chat_messages":
      if (!Array.isArray(frame.messages)) return undefined;
      return {
        kind: "transcript",
        messages: frame.messages.filter(isMessage),
        connect: frame.connect === true,
        before: number(frame.before),
        session: text(frame.session),
        branches: places(frame.branches),
      };
    case "perdure_chat_older": {
      const before = number(frame.before);
      if (before === undefined || !Array.isArray(frame.messages)) return undefined;
      const messages = frame.messages.filter(isMessage);
      return { kind: "older", before, messages, next: number(frame.next), branches: places(frame.branches) };
    }
    case "perdure_session_state":
      return isSessionState(frame) ? { kind: "session", state: frame } : undefined;
    case "cf_agent_chat_clear":
      return { kind: "cleared" };
    case "perdure_message_renamed": {
      const [from, to] = [text(frame.from), text(frame.to)];
      return from === undefined || to === undefined ? undefined : { kind: "renamed", from, to };
    }
    case "perdure_chat_approval_refused": {
      const [toolCallId, reason] = [text(frame.toolCallId), text(frame.reason)];
      if (toolCallId === undefined || reason === undefined) return undefined;
      return { kind: "refused", toolCallId, reason, part: toolPartOf(frame.part) };
    }
    case "cf_agent_message_updated":
      return isMessage(frame.message) ? { kind: "updated", message: frame.message } : undefined;
    case "cf_agent_stream_resuming":
      return id === undefined ? undefined : { kind: "resuming", id, probeId };
    case "cf_agent_stream_pending":
      return { kind: "pending", id, probeId };
    case "cf_agent_stream_resume_none":
      return { kind: "none", reason: frame.reason, probeId };
    case "cf_agent_chat_recovering":
      return { kind: "recovering", recovering: frame.recovering === true };
    default:
      return undefined;
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

function response(id: string, frame: JsonObject): ResponseFrame {
  const body = text(frame.body) ?? "";
  const failed = frame.error === true;
  return {
    kind: "response",
    id,
    chunk: failed || body === "" ? undefined : parseChunk(tryParseJson(body)),
    seq: number(frame.seq),
    done: frame.done === true,
    error: failed ? body || DEFAULT_ERROR : undefined,
    continuation: frame.continuation === true,
    replay: frame.replay === true,
    caughtUp: frame.replayComplete === true,
    messageIds: Array.isArray(frame.messageIds) ? (frame.messageIds as string[]) : undefined,
    outcome: text(frame.outcome) as TurnOutcome | undefined,
  };
}

function toolPartOf(value: unknown): ToolPart | undefined {
  if (!isRecord(value) || typeof value.type !== "string") return undefined;
  const part = { ...value, type: value.type };
  return isToolPart(part) ? part : undefined;
}

function places(value: unknown): BranchPlaces | undefined {
  return isRecord(value) ? (value as BranchPlaces) : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
