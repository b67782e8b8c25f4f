import type { ClientFrame } from "../../src/wire/frames.ts";
import type { RowCursor, RowRequestFrame } from "../../src/wire/row-frames.ts";
import type { SessionOp, SessionOpName } from "../../src/wire/session-frames.ts";
import type { Random } from "../support/seeded.ts";
import { pick } from "./breaking.ts";

/** In every text that is made up here: who is not concerned must never be sent it. */
export const MARK = "«fuzz»";

/** What frames refer to, as far as a client of the agent could know it. */
export interface Known {
  /** A name that was not used before. */
  fresh(): string;
  /** Ids of messages, newest last. */
  readonly messages: readonly string[];
  readonly calls: readonly string[];
  readonly sessions: readonly string[];
  readonly turns: readonly string[];
}

type FrameType = (ClientFrame | RowRequestFrame)["type"];
type FrameOf<T extends FrameType> = Extract<ClientFrame | RowRequestFrame, { readonly type: T }>;
type Maker<T> = (random: Random, known: Known) => T;

const flag = (random: Random) => random(2) === 0;
const some = (random: Random, list: readonly string[]) =>
  list.length > 0 && random(8) > 0 ? pick(random, list) : "none";
const words = (random: Random) =>
  `${MARK} ${pick(random, ["hello", "pay", "where", "look", "slow", "long", "fail", "both", "🌊 sea", "\t\n"])}`;

/** A message of a user, as clients write it. */
export function message(random: Random, known: Known): object {
  const parts: object[] = [{ type: "text", text: words(random) }];
  if (random(12) === 0)
    parts.push({ type: "file", mediaType: "text/plain", url: "data:text/plain,x", filename: "a.txt" });
  return { id: random(10) === 0 ? some(random, known.messages) : `m-${known.fresh()}`, role: "user", parts };
}

/** An answer as a client may send it back. */
function answer(random: Random, known: Known): object {
  const toolCallId = some(random, known.calls);
  const state = pick(random, ["output-available", "output-error", "approval-responded", "input-available"]);
  const part = {
    type: "tool-pay",
    toolCallId,
    state,
    input: {},
    output: MARK,
    errorText: MARK,
    approval: { id: toolCallId, approved: flag(random) },
  };
  return { id: some(random, known.messages), role: "assistant", parts: [{ type: "text", text: MARK }, part] };
}

/** The body of a request for a turn. */
export function chatBody(random: Random, known: Known): object {
  const messages = [message(random, known)];
  if (random(6) === 0) messages.unshift(answer(random, known));
  if (random(12) === 0) messages.push(answer(random, known));
  return {
    messages,
    trigger: random(8) === 0 ? "regenerate-message" : "submit-message",
    ...(random(4) === 0 && { clientTools: [{ name: "place", description: "d", parameters: { type: "object" } }] }),
    ...(random(6) === 0 && { zone: "UTC" }),
  };
}

const change = (random: Random, known: Known) => ({
  table: pick(random, ["notes", "tasks", "a b"]),
  key: pick(random, ["k1", "k2", known.fresh()]),
  operation: pick(random, ["insert", "update", "upsert", "delete"] as const),
  value: { text: MARK, n: random(9) },
});

/** One of each type that clients send. A type without a line here is an error of the compiler. */
export const FRAMES: { readonly [T in Exclude<FrameType, "perdure_session">]: Maker<FrameOf<T>> } = {
  cf_agent_state: (random) => ({ type: "cf_agent_state", state: { count: random(99), text: MARK } }),
  rpc: (random, known) => ({
    type: "rpc",
    id: known.fresh(),
    method: pick(random, [
      "add",
      "echo",
      "count",
      "fail",
      "nothing",
      "setState",
      "onStart",
      "constructor",
      "__proto__",
      "dump",
    ]),
    args: pick(random, [[], [1], [MARK, { a: [1] }], [null, true]]),
  }),
  cf_agent_use_chat_request: (random, known) => ({
    type: "cf_agent_use_chat_request",
    id: known.fresh(),
    init: { method: "POST", body: JSON.stringify(chatBody(random, known)) },
  }),
  cf_agent_chat_messages: (random, known) => ({
    type: "cf_agent_chat_messages",
    messages: [message(random, known), answer(random, known)].slice(random(2)) as never,
  }),
  cf_agent_chat_clear: () => ({ type: "cf_agent_chat_clear" }),
  cf_agent_chat_request_cancel: (random, known) => ({
    type: "cf_agent_chat_request_cancel",
    id: some(random, known.turns),
  }),
  perdure_tool_stop: (random, known) => ({ type: "perdure_tool_stop", toolCallId: some(random, known.calls) }),
  cf_agent_stream_resume_request: (random, known) => ({
    type: "cf_agent_stream_resume_request",
    ...(flag(random) && { probeId: known.fresh() }),
  }),
  cf_agent_stream_resume_ack: (random, known) => ({
    type: "cf_agent_stream_resume_ack",
    id: some(random, known.turns),
  }),
  cf_agent_tool_result: (random, known) => ({
    type: "cf_agent_tool_result",
    toolCallId: some(random, known.calls),
    toolName: pick(random, ["place", "pay", ""]),
    ...(flag(random) ? { output: MARK } : { state: "output-error", errorText: MARK }),
    autoContinue: flag(random),
    ...(random(4) === 0 && { clientTools: [{ name: "place" }] }),
  }),
  cf_agent_tool_approval: (random, known) => ({
    type: "cf_agent_tool_approval",
    toolCallId: some(random, known.calls),
    approved: flag(random),
    autoContinue: flag(random),
  }),
  perdure_chat_older: (random) => ({ type: "perdure_chat_older", before: random(500) - 50 }),
  perdure_rows_subscribe: (random, known) => ({
    type: "perdure_rows_subscribe",
    id: known.fresh(),
    since: pick<Record<string, RowCursor>>(random, [{}, { notes: 0 }, { notes: [1, "k1"], tasks: 3 }, { none: 9_999 }]),
    ...(flag(random) && { all: flag(random) }),
    ...(flag(random) && { life: "another" }),
  }),
  perdure_rows_unsubscribe: (random) => ({
    type: "perdure_rows_unsubscribe",
    ...(flag(random) && { collections: ["notes"] }),
  }),
  perdure_rows_write: (random, known) => ({
    type: "perdure_rows_write",
    txid: known.fresh(),
    changes: Array.from({ length: 1 + random(3) }, () => change(random, known)),
    ...(random(3) === 0 && { when: [{ table: "notes", key: "k1", version: random(4) }] }),
    ...(random(4) === 0 && { producer: { id: "p", epoch: random(4) } }),
  }),
};

type OpOf<N extends SessionOpName> = Extract<SessionOp, { readonly op: N }>;

/** One of each thing that clients ask about sessions. */
export const SESSION_OPS: { readonly [N in SessionOpName]: Maker<OpOf<N>> } = {
  sessions: (random) => ({ op: "sessions", ...(flag(random) && { limit: 1 + random(9) }) }),
  create: (random) => ({ op: "create", ...(flag(random) && { name: `${MARK} created` }) }),
  rename: (random, known) => ({ op: "rename", session: some(random, known.sessions), name: `${MARK} renamed` }),
  delete: (random, known) => ({ op: "delete", session: some(random, known.sessions) }),
  clear: (random, known) => ({ op: "clear", ...(flag(random) && { session: some(random, known.sessions) }) }),
  attach: (random, known) => ({ op: "attach", session: flag(random) ? null : some(random, known.sessions) }),
  fork: (random, known) => ({ op: "fork", ...(flag(random) && { at: some(random, known.messages) }) }),
  branches: (random, known) => ({ op: "branches", messageId: some(random, known.messages) }),
  switchBranch: (random, known) => ({
    op: "switchBranch",
    messageId: some(random, known.messages),
    own: flag(random),
    named: flag(random),
  }),
  search: (random) => ({
    op: "search",
    query: pick(random, ["hello", "fuzz", '"', "a* OR b", "NEAR("]),
    session: "all",
  }),
  report: () => ({ op: "report" }),
  compact: (random) => ({ op: "compact", preview: flag(random), ...(flag(random) && { focus: MARK }) }),
  applyCompaction: (random, known) => ({
    op: "applyCompaction",
    summary: `${MARK} summary`,
    messageId: some(random, known.messages),
    ...(flag(random) && { parts: random(3) }),
  }),
  undoCompaction: () => ({ op: "undoCompaction", compaction: "none" }),
  pin: (random, known) => ({ op: "pin", messageId: some(random, known.messages) }),
  unpin: (random, known) => ({ op: "unpin", messageId: some(random, known.messages) }),
  title: (random, known) => ({ op: "title", ...(flag(random) && { session: some(random, known.sessions) }) }),
};

const MAKERS: readonly Maker<object>[] = [
  ...Object.values(FRAMES),
  ...Object.values(SESSION_OPS).map((make): Maker<object> => (random, known) => ({
    type: "perdure_session",
    id: known.fresh(),
    ...(make as Maker<SessionOp>)(random, known),
  })),
  // What a conversation is made of comes more often than what ends it.
  ...Array.from({ length: 6 }, () => FRAMES.cf_agent_use_chat_request),
  ...Array.from({ length: 3 }, () => FRAMES.cf_agent_tool_approval),
  ...Array.from({ length: 3 }, () => FRAMES.cf_agent_tool_result),
];

/** A frame that a client could send. */
export function goodFrame(random: Random, known: Known): object {
  const frame = pick(random, MAKERS)(random, known);
  // Mostly something is there to be spoilt.
  const ends = "type" in frame && (frame.type === "cf_agent_chat_clear" || ("op" in frame && frame.op === "clear"));
  return ends && random(8) > 0 ? FRAMES.cf_agent_use_chat_request(random, known) : frame;
}
