import type { ChatBody, ChatRefusal } from "./chat-body.ts";
import { isShortChat, readChat, readLongChat, readLongText, readLongTranscript } from "./chat-text.ts";
import { clientToolsProblem, parseClientTools } from "./client-tools.ts";
import type { ClientTool } from "./frames.ts";
import { isRecord } from "../base/json.ts";
import { isId, MAX_ID_LENGTH } from "./id.ts";
import { type JsonObject, MAX_JSON_DEPTH, MAX_JSON_LENGTH, MAX_JSON_VALUES, notReadWords, readJson } from "./json.ts";
import { JsonScan } from "./json-scan.ts";
import { MAX_ROW_WRITE_LENGTH, type ParsedRowFrame, parseRowFrame } from "./row-frames.ts";
import type { SentBefore } from "./sent-before.ts";
import { type ParsedSessionFrame, parseSessionFrame } from "./session-frames.ts";

/** The longest state that a client may set, in UTF-16 units: it is stored whole, and sent to everybody. */
const MAX_STATE_LENGTH = 4 * 1024 * 1024;

/** How a client-side tool ended. */
type ToolOutcome =
  | { readonly state: "output-available"; readonly output: unknown }
  | { readonly state: "output-error"; readonly errorText: string | undefined };

/** A frame of a client, checked. */
export type ParsedFrame =
  | { readonly kind: "state"; readonly state: unknown }
  /** A state that is too much to be looked at: who sent it believes that it is set. */
  | { readonly kind: "state-refused"; readonly reason: string }
  | { readonly kind: "rpc"; readonly id: string; readonly method: string; readonly args: readonly unknown[] }
  /** A call that cannot be understood, and why: whoever sent it waits for its result. */
  | { readonly kind: "rpc-refused"; readonly id: string; readonly reason: string }
  | ({ readonly kind: "chat-request"; readonly id: string } & ChatBody)
  /** A chat request that cannot be understood, and why: whoever sent it waits for its end. */
  | ({ readonly kind: "chat-refused"; readonly id: string } & ChatRefusal)
  /** A chat request whose body is still to be read, in pieces: `readLongFrame`. As it stands in the frame: with its escapes. */
  | { readonly kind: "chat-long"; readonly id: string; readonly text: string; readonly isEscaped?: true }
  | { readonly kind: "chat-messages"; readonly messages: readonly unknown[] }
  | { readonly kind: "chat-clear" }
  /** The same of many messages, still to be read, in pieces: `readLongFrame`. */
  | { readonly kind: "transcript-long"; readonly text: string }
  | { readonly kind: "chat-cancel"; readonly id: string }
  | { readonly kind: "resume-request"; readonly probeId: string | undefined }
  | { readonly kind: "resume-ack"; readonly id: string }
  | {
      readonly kind: "tool-result";
      readonly toolCallId: string;
      /** May be `""`. */
      readonly toolName: string;
      readonly result: ToolOutcome;
      readonly autoContinue: boolean;
      readonly clientTools: readonly ClientTool[] | undefined;
    }
  | {
      readonly kind: "tool-approval";
      readonly toolCallId: string;
      readonly approved: boolean;
      readonly autoContinue: boolean;
      /** The question that it answers, and of what input; undefined: the client did not say. */
      readonly approvalId?: string;
      readonly digest?: string;
    }
  /** A call that goes on without its turn is to be stopped. */
  | { readonly kind: "tool-stop"; readonly toolCallId: string }
  | { readonly kind: "chat-older"; readonly before: number }
  | ParsedSessionFrame
  | ParsedRowFrame
  /** Not ours: hand the raw data to app code. `reason` is set when its `type` was ours and the rest was not. */
  | { readonly kind: "other"; readonly reason?: string }
  /** Must not reach app code either. The connection stays open. */
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Reads one frame of a client. Never throws. Binary frames, text that is not JSON, unknown types and malformed fields are
 * `other`; JSON too deep, too long or with too many values is `refused`. A malformed frame with an id that somebody waits on is answered:
 * `…-refused`. Unknown fields are ignored; optional ones may be null. Contents of states, arguments and messages are not checked,
 * but hold no `__proto__` keys and no infinite numbers.
 * @param before what the same client has sent of a long conversation: that is not parsed again.
 */
export function parseFrame(data: string | Uint8Array, before?: SentBefore): ParsedFrame {
  if (typeof data !== "string") return { kind: "other" };
  const rest = before?.rest(data);
  if (rest !== undefined) {
    const frame = parseFrame(rest);
    const whole = frame.kind === "chat-request" ? before?.whole(data, rest, frame) : undefined;
    if (whole !== undefined) return whole;
  }
  const read = readJson(data, MAX_JSON_DEPTH, MAX_JSON_VALUES, isTold);
  if (!read.ok) {
    if (read.why === "not-json") return { kind: "other" };
    const long = read.why === "too-long" && read.scan !== undefined ? longFrame(data, read.scan) : undefined;
    return long ?? tooMuch(data, `The frame ${notReadWords(read.why)}.`, read.scan?.told);
  }
  const frame = read.value;
  if (!isRecord(frame)) return { kind: "other" };

  switch (frame.type) {
    case "cf_agent_state":
      if (data.length > MAX_STATE_LENGTH)
        return tooMuch(data, `The state is longer than ${MAX_STATE_LENGTH} characters.`);
      // A missing state is what `setState(undefined)` sends. There is no such state, and null is another one.
      return Object.hasOwn(frame, "state") ? { kind: "state", state: frame.state } : malformed(frame, "state");
    case "rpc":
      return rpc(frame);
    case "cf_agent_use_chat_request":
      return chatRequest(frame);
    case "cf_agent_chat_messages":
      return Array.isArray(frame.messages)
        ? { kind: "chat-messages", messages: frame.messages as unknown[] }
        : malformed(frame, "messages");
    case "cf_agent_chat_clear":
      return { kind: "chat-clear" };
    case "cf_agent_chat_request_cancel":
      return isId(frame.id) ? { kind: "chat-cancel", id: frame.id } : malformed(frame, "id");
    case "cf_agent_stream_resume_request": {
      const probeId = frame.probeId ?? undefined;
      if (probeId !== undefined && !isId(probeId)) return malformed(frame, "probeId");
      return { kind: "resume-request", probeId };
    }
    case "cf_agent_stream_resume_ack":
      return isId(frame.id) ? { kind: "resume-ack", id: frame.id } : malformed(frame, "id");
    case "cf_agent_tool_result":
      return toolResult(frame);
    case "cf_agent_tool_approval":
      return toolApproval(frame);
    case "perdure_tool_stop":
      return isId(frame.toolCallId)
        ? { kind: "tool-stop", toolCallId: frame.toolCallId }
        : malformed(frame, "toolCallId");
    case "perdure_chat_older":
      return Number.isSafeInteger(frame.before)
        ? { kind: "chat-older", before: frame.before as number }
        : malformed(frame, "before");
    case "perdure_session":
      return parseSessionFrame(frame) ?? malformed(frame, "id");
    case "perdure_rows_subscribe":
    case "perdure_rows_unsubscribe":
    case "perdure_rows_write":
      if (data.length > MAX_ROW_WRITE_LENGTH)
        return tooMuch(data, `The frame is longer than ${MAX_ROW_WRITE_LENGTH} characters.`);
      return parseRowFrame(frame) ?? { kind: "other" };
    default:
      return { kind: "other" };
  }
}

/** The types of frames that are for us. Others are for the app. */
const OURS = /^(?:rpc$|cf_agent_|perdure_)/;
/** Stands for the body of a chat request while the frame around it is parsed. */
const CUT = "cut";

/** A frame that is too long to be parsed in one go. Undefined: it is ours, and may not be that long. */
function longFrame(data: string, { told, longest: { start, end } }: JsonScan): ParsedFrame | undefined {
  const type = told.get("type");
  if (type === undefined || !OURS.test(type)) return { kind: "other" };
  if (type === "cf_agent_chat_messages") return { kind: "transcript-long", text: data };
  if (type !== "cf_agent_use_chat_request" || data.length - (end - start) > MAX_JSON_LENGTH) return undefined;
  const around = readJson(`${data.slice(0, start)}"${CUT}"${data.slice(end + 1)}`, MAX_JSON_DEPTH);
  if (!around.ok || !isRecord(around.value)) return { kind: "other" };
  const { init } = around.value;
  return isRecord(init) && init.body === CUT ? chatRequest(around.value, data.slice(start, end + 1)) : undefined;
}

function rpc(frame: JsonObject): ParsedFrame {
  const { id, method, args } = frame;
  // The id is only echoed and the method only looked up, so any text will do. Without an id there is nobody to answer.
  if (typeof id !== "string") return malformed(frame, "id");
  const refused = (reason: string): ParsedFrame => ({ kind: "rpc-refused", id, reason });
  if (id.length > MAX_ID_LENGTH)
    return refused(`The call's \`id\` must be text of at most ${MAX_ID_LENGTH} characters.`);
  if (typeof method !== "string" || method.length > MAX_ID_LENGTH)
    return refused(`The call's \`method\` must be text of at most ${MAX_ID_LENGTH} characters.`);
  return Array.isArray(args) ? { kind: "rpc", id, method, args } : refused("The call's `args` must be a list.");
}

/** @param escaped the body as it stands in the frame, where that was not parsed. */
function chatRequest(frame: JsonObject, escaped?: string): ParsedFrame {
  const { id, init } = frame;
  // Without an id there is nobody to answer.
  if (typeof id !== "string" || id === "") return malformed(frame, "id");
  const refused = (reason: string): ParsedFrame => ({ kind: "chat-refused", id, reason });
  if (!isId(id)) return refused(`The request's \`id\` must be text of at most ${MAX_ID_LENGTH} characters.`);
  if (!isRecord(init)) return refused("The request's `init` is missing or not an object.");
  if (init.method !== "POST") return refused('The request\'s `init.method` must be "POST".');
  if (typeof init.body !== "string") return refused("The request's `init.body` must be JSON as text.");
  if (escaped !== undefined) return { kind: "chat-long", id, text: escaped, isEscaped: true };
  return isShortChat(init.body) ? chatFrame(id, readChat(init.body)) : { kind: "chat-long", id, text: init.body };
}

/** Reads what {@link parseFrame} has left to be read in pieces. Never throws. @param breathe is awaited between them. */
export async function readLongFrame(
  frame: Extract<ParsedFrame, { kind: "chat-long" | "transcript-long" }>,
  breathe: () => Promise<void>,
): Promise<ParsedFrame> {
  if (frame.kind === "chat-long") {
    const { id, text, isEscaped = false } = frame;
    return chatFrame(id, await readLongChat(isEscaped ? await readLongText(text, breathe) : text, breathe));
  }
  const messages = await readLongTranscript(frame.text, breathe);
  return "reason" in messages ? { kind: "refused", reason: messages.reason } : { kind: "chat-messages", messages };
}

function chatFrame(id: string, body: ChatBody | ChatRefusal): ParsedFrame {
  return "reason" in body ? { kind: "chat-refused", id, ...body } : { kind: "chat-request", id, ...body };
}

function toolResult(frame: JsonObject): ParsedFrame {
  const toolCallId = frame.toolCallId;
  const toolName = frame.toolName ?? "";
  const state = frame.state ?? "output-available";
  const errorText = frame.errorText ?? undefined;
  const autoContinue = frame.autoContinue ?? false;
  const clientTools = parseClientTools(frame.clientTools);
  if (!isId(toolCallId)) return malformed(frame, "toolCallId");
  if (toolName !== "" && !isId(toolName)) return malformed(frame, "toolName");
  if (state !== "output-available" && state !== "output-error") return malformed(frame, "state");
  if (errorText !== undefined && typeof errorText !== "string") return malformed(frame, "errorText");
  if (typeof autoContinue !== "boolean") return malformed(frame, "autoContinue");
  if (clientTools === "malformed") return malformed(frame, "clientTools");
  if (clientTools === "too many") return malformed(frame, "clientTools", clientToolsProblem(clientTools));
  const result: ToolOutcome = state === "output-error" ? { state, errorText } : { state, output: frame.output };
  return { kind: "tool-result", toolCallId, toolName, result, autoContinue, clientTools };
}

function toolApproval(frame: JsonObject): ParsedFrame {
  const { toolCallId, approved } = frame;
  const autoContinue = frame.autoContinue ?? false;
  const approvalId = frame.approvalId ?? undefined;
  const digest = frame.digest ?? undefined;
  if (!isId(toolCallId)) return malformed(frame, "toolCallId");
  if (typeof approved !== "boolean") return malformed(frame, "approved");
  if (typeof autoContinue !== "boolean") return malformed(frame, "autoContinue");
  if (approvalId !== undefined && !isId(approvalId)) return malformed(frame, "approvalId");
  if (digest !== undefined && !isId(digest)) return malformed(frame, "digest");
  return { kind: "tool-approval", toolCallId, approved, autoContinue, approvalId, digest };
}

function malformed(frame: JsonObject, field: string, what = "is missing or malformed"): ParsedFrame {
  return { kind: "other", reason: `${String(frame.type)}: "${field}" ${what}` };
}

/** Types whose senders wait under no id. */
const NOT_WAITED_FOR: ReadonlySet<string | undefined> = new Set(["cf_agent_state", "cf_agent_chat_messages"]);

/** Whether enough of a frame was looked at to know whom to answer. Of one that says it late, all is looked at. */
function isTold(told: JsonScan["told"]): boolean {
  return NOT_WAITED_FOR.has(told.get("type")) || (told.has("type") && (told.has("id") || told.has("txid")));
}

/** A frame that is not parsed, or not looked at further: whoever waits for its answer is found without that. */
function tooMuch(data: string, reason: string, told = new JsonScan(data).run().told): ParsedFrame {
  const id = told.get("id");
  const txid = told.get("txid");
  switch (told.get("type")) {
    case "cf_agent_state":
      return { kind: "state-refused", reason };
    case "cf_agent_chat_messages":
      return { kind: "transcript-long", text: data };
    case "rpc":
      return id === undefined ? { kind: "refused", reason } : { kind: "rpc-refused", id, reason };
    case "cf_agent_use_chat_request":
      return id === undefined || id === "" ? { kind: "refused", reason } : chatFrame(id, { reason, code: "too_large" });
    case "perdure_session":
      return id === undefined
        ? { kind: "refused", reason }
        : { kind: "session-refused", id, reason, code: "too_large" };
    case "perdure_rows_subscribe":
    case "perdure_rows_write":
      return { kind: "rows-refused", reason, code: "too_large", id, txid };
    default:
      return { kind: "refused", reason };
  }
}
