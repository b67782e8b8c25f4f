import { isRecord } from "../base/json.ts";
import { isId, MAX_ID_LENGTH } from "./id.ts";
import type { JsonObject } from "./json.ts";
import type { CompactionKind, NamedBy } from "./session-types.ts";

/*
 * Sessions and branches, an addition to the public wire.
 *
 * A socket is in one session: the one that its URL names (`?_session=ID`), or whichever is the agent's current one.
 * What it asks for is answered to it alone, under the id of the question:
 *
 *   client   { "type": "perdure_session", "id": "q1", "op": "fork", "at": "msg_7" }
 *   server   { "type": "perdure_session_result", "id": "q1", "value": { "id": "s_9", … } }
 *   server   { "type": "perdure_session_result", "id": "q1", "error": { "code": "not_found", "message": "…" } }
 *
 * A socket that wants pages (`history.ts`) is also told, unasked, how things stand in its session
 * (`perdure_session_state`), and that the list of sessions has changed (`perdure_sessions_changed`).
 */

/** The longest name of a session, in UTF-16 units. */
export const MAX_SESSION_NAME = 200;
/** The most sessions of one page. */
export const MAX_LISTED = 200;
/** The longest query of a search. */
export const MAX_QUERY_LENGTH = 1_000;
/** The most hits of a search. */
export const MAX_HITS = 100;
/** The longest text that says what a summary should keep. */
export const MAX_FOCUS_LENGTH = 2_000;
/** The longest summary that a client may give. */
export const MAX_SUMMARY_LENGTH = 100_000;
/** As much of a summary is told. */
export const TOLD_SUMMARY_LENGTH = 20_000;
/** So many compactions of a conversation are told, the newest ones. */
export const TOLD_COMPACTIONS = 20;
/** So many of the messages that stand in one place are listed, the newest ones. */
export const MAX_BRANCHES = 200;
/** As much is shown of a message to tell it from the others of its place. */
export const PREVIEW_LENGTH = 200;

/** `search` in every session of the agent. */
export const ALL_SESSIONS = "all";

/** What a client may ask of the sessions of an agent. Without `session`, it is about the one that it is in. */
export type SessionOp =
  /** The ones that were used last. `after` is the id of the last one of the page before. */
  | { readonly op: "sessions"; readonly limit?: number; readonly after?: string }
  | { readonly op: "create"; readonly name?: string }
  | { readonly op: "rename"; readonly session?: string; readonly name: string }
  | { readonly op: "delete"; readonly session?: string }
  | { readonly op: "clear"; readonly session?: string }
  /** Moves this client. `null`: to whichever is the current one. */
  | { readonly op: "attach"; readonly session: string | null }
  /** A new session that shares what was said up to the message `at`, or all. */
  | { readonly op: "fork"; readonly session?: string; readonly at?: string; readonly name?: string }
  | { readonly op: "branches"; readonly messageId: string }
  /** `own`: for this client alone, not for its session. `named`: the client named its session; it is not just current. */
  | { readonly op: "switchBranch"; readonly messageId: string; readonly own: boolean; readonly named: boolean }
  | { readonly op: "search"; readonly query: string; readonly session?: string; readonly limit?: number }
  | { readonly op: "report" }
  | { readonly op: "compact"; readonly focus?: string; readonly preview: boolean }
  | { readonly op: "applyCompaction"; readonly summary: string; readonly messageId: string; readonly parts?: number }
  | { readonly op: "undoCompaction"; readonly compaction: string }
  | { readonly op: "pin"; readonly messageId: string }
  | { readonly op: "unpin"; readonly messageId: string }
  /** Asks for a name that says what it is about. */
  | { readonly op: "title"; readonly session?: string };

/** The name of something that can be asked. */
export type SessionOpName = SessionOp["op"];

/** A question of a client. */
export type SessionRequestFrame = { readonly type: "perdure_session"; readonly id: string } & SessionOp;

/** Its answer. */
export type SessionResultFrame = { readonly type: "perdure_session_result"; readonly id: string } & (
  | { readonly value: unknown }
  | { readonly error: { readonly code: string; readonly message: string } }
);

/** Sessions were made, named or deleted. */
export interface SessionsChangedFrame {
  readonly type: "perdure_sessions_changed";
}

/** How things stand in the session of a client. */
export interface SessionStateFrame {
  readonly type: "perdure_session_state";
  readonly session: SessionState;
  /** The newest ones, oldest first. */
  readonly compactions: readonly CompactionMark[];
  readonly context: ContextState | null;
  /** Ids of messages that are shown to the model whatever happens, as far as they are near. */
  readonly pins: readonly string[];
  /** Tool calls that go on without their turns, oldest first. */
  readonly background: readonly BackgroundState[];
}

/** A tool call that goes on without its turn. Its input is in the message. */
export interface BackgroundState {
  readonly toolCallId: string;
  /** The answer that it was asked for in. */
  readonly messageId: string;
  readonly toolName: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** What it has shown last of how far it is, shortened. */
  readonly progress?: unknown;
}

/** The session that a client is in. */
export interface SessionState {
  readonly id: string;
  readonly name: string | null;
  readonly namedBy: NamedBy | null;
  /** It is this client's own place in that session. */
  readonly viewOf?: string;
}

/** One of the messages that stand in the same place. */
export interface BranchInfo {
  readonly messageId: string;
  readonly role: string;
  /** How it begins. */
  readonly preview: string;
  readonly createdAt: number;
  /** From 0. */
  readonly index: number;
}

/** A place in the conversation up to which the model reads a summary. */
export interface CompactionMark {
  readonly id: string;
  /** The last message that it covers. */
  readonly at: string;
  /** How many parts of that message it covers, if not all. */
  readonly parts?: number;
  readonly kind: CompactionKind;
  readonly trigger: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number | null;
  readonly createdAt: number;
  readonly summary: string;
  /** The model reads this one. */
  readonly active: boolean;
}

/** How much of the model's window the conversation takes. */
export interface ContextState {
  readonly tokens: number;
  /** What may be used of the window. */
  readonly usable: number;
  readonly window: number;
  readonly model: string;
  /** The provider has not counted it. */
  readonly estimated: boolean;
}

/** A question, checked; or why it cannot be answered, for who asked. */
export type ParsedSessionFrame =
  | { readonly kind: "session"; readonly id: string; readonly ask: SessionOp }
  | {
      readonly kind: "session-refused";
      readonly id: string;
      readonly reason: string;
      /** Default `bad_input`. */
      readonly code?: "too_large";
    };

/**
 * Reads a question. Never throws. Fields that an op does not have are ignored, and optional ones may be null.
 * @returns undefined when there is no id to answer under.
 */
export function parseSessionFrame(frame: JsonObject): ParsedSessionFrame | undefined {
  const { id } = frame;
  if (typeof id !== "string" || id.trim() === "" || !id.isWellFormed()) return undefined;
  if (!isText(id)) return { kind: "session-refused", id, reason: `"id" is longer than ${MAX_ID_LENGTH} characters.` };
  const fields = new Fields(frame);
  const ask = readOp(frame.op, fields);
  if (ask === undefined) return { kind: "session-refused", id, reason: "There is no such op." };
  if (fields.bad !== undefined) {
    return { kind: "session-refused", id, reason: `${ask.op}: "${fields.bad}" is missing or malformed.` };
  }
  return { kind: "session", id, ask };
}

function readOp(op: unknown, fields: Fields): SessionOp | undefined {
  switch (op) {
    case "sessions":
      return { op, ...fields.count("limit", 1, MAX_LISTED), ...fields.some("after") };
    case "report":
      return { op };
    case "create":
      return { op, ...fields.some("name", MAX_SESSION_NAME) };
    case "rename":
      return { op, ...fields.some("session"), name: fields.text("name", MAX_SESSION_NAME) };
    case "delete":
    case "clear":
    case "title":
      return { op, ...fields.some("session") };
    case "attach":
      return { op, session: fields.isNull("session") ? null : fields.text("session") };
    case "fork":
      return { op, ...fields.some("session"), ...fields.some("at"), ...fields.some("name", MAX_SESSION_NAME) };
    case "branches":
    case "pin":
    case "unpin":
      return { op, messageId: fields.text("messageId") };
    case "switchBranch":
      return {
        op,
        messageId: fields.text("messageId"),
        own: fields.flag("own", true),
        named: fields.flag("named", false),
      };
    case "search":
      return {
        op,
        query: fields.text("query", MAX_QUERY_LENGTH),
        ...fields.some("session"),
        ...fields.count("limit", 1, MAX_HITS),
      };
    case "compact":
      return { op, ...fields.some("focus", MAX_FOCUS_LENGTH), preview: fields.flag("preview", false) };
    case "applyCompaction":
      return {
        op,
        summary: fields.text("summary", MAX_SUMMARY_LENGTH),
        messageId: fields.text("messageId"),
        ...fields.count("parts", 0, Number.MAX_SAFE_INTEGER),
      };
    case "undoCompaction":
      return { op, compaction: fields.text("compaction") };
    default:
      return undefined;
  }
}

/** Reads fields and notes the first that is not as it must be; what it returns for that one means nothing. */
class Fields {
  readonly #frame: JsonObject;
  bad: string | undefined;

  constructor(frame: JsonObject) {
    this.#frame = frame;
  }

  isNull(key: string): boolean {
    return this.#frame[key] === null;
  }

  text(key: string, maxLength?: number): string {
    const value = this.#frame[key];
    return isText(value, maxLength) ? value : this.#note(key, "");
  }

  /** A text that may be absent. */
  some<K extends string>(key: K, maxLength?: number): { readonly [key in K]?: string } {
    if ((this.#frame[key] ?? undefined) === undefined) return {};
    return { [key]: this.text(key, maxLength) } as { readonly [key in K]?: string };
  }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.#frame[key] ?? otherwise;
    return typeof value === "boolean" ? value : this.#note(key, otherwise);
  }

  /** A whole number that may be absent. */
  count<K extends string>(key: K, min: number, max: number): { readonly [key in K]?: number } {
    const value = this.#frame[key] ?? undefined;
    if (value === undefined) return {};
    const isCount = typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;
    return { [key]: isCount ? value : this.#note(key, min) } as { readonly [key in K]?: number };
  }

  #note<T>(key: string, value: T): T {
    this.bad ??= key;
    return value;
  }
}

function isText(value: unknown, maxLength?: number): value is string {
  return isId(value, maxLength) && value.trim() !== "";
}

/** Whether a value from the server is how things stand in a session. */
export function isSessionState(frame: unknown): frame is SessionStateFrame {
  return (
    isRecord(frame) &&
    frame.type === "perdure_session_state" &&
    isRecord(frame.session) &&
    typeof frame.session.id === "string" &&
    Array.isArray(frame.compactions) &&
    Array.isArray(frame.pins)
  );
}
