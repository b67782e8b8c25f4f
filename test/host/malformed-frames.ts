import { seeded } from "../support/seeded.ts";

/** One frame that no honest client sends, and what is wrong with it. */
export interface MalformedFrame {
  readonly what: string;
  readonly data: string | Uint8Array;
}

const TYPES = [
  "rpc",
  "cf_agent_state",
  "cf_agent_use_chat_request",
  "cf_agent_chat_messages",
  "cf_agent_chat_request_cancel",
  "cf_agent_stream_resume_request",
  "cf_agent_stream_resume_ack",
  "cf_agent_tool_result",
  "cf_agent_tool_approval",
];
/** What servers send: no client may. */
const SERVER_TYPES = [
  "cf_agent_identity",
  "cf_agent_state_error",
  "cf_agent_mcp_servers",
  "cf_agent_use_chat_response",
  "cf_agent_message_updated",
  "cf_agent_stream_resuming",
  "cf_agent_chat_recovering",
];
const WRONG: readonly unknown[] = [null, true, 0, -1, 1e308, "", " ", "x", [], [[]], {}, { a: 1 }, "\ud800", "\u0000"];
const FIELDS = [
  "id",
  "method",
  "args",
  "init",
  "messages",
  "toolCallId",
  "approved",
  "probeId",
  "state",
  "type",
  "output",
  "clientTools",
];

/** What a frame is longer than its longest value. */
const ENVELOPE = 100;

/** At least `count` frames of many kinds, always the same ones. @param hugeBytes the longest of them. */
export function malformedFrames(count: number, hugeBytes: number): MalformedFrame[] {
  const random = seeded(20_250_101);
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const frames: MalformedFrame[] = [...notJson(hugeBytes), ...wrongShapes(), ...poisoned()];
  while (frames.length < count) {
    const frame: Record<string, unknown> = { type: pick([...TYPES, ...SERVER_TYPES, "unknown"]) };
    for (let fields = random(5); fields > 0; fields--) frame[pick(FIELDS)] = pick(WRONG);
    if (isHonest(frame)) continue;
    const text = JSON.stringify(frame);
    const cut = text.slice(0, random(text.length));
    frames.push({ what: "random fields", data: text });
    frames.push({ what: "cut off", data: cut });
    frames.push({ what: "bytes", data: Uint8Array.from({ length: 20 }, () => random(256)) });
  }
  return frames;
}

function notJson(hugeBytes: number): MalformedFrame[] {
  const texts = [
    "",
    " ",
    "{",
    "}",
    "[",
    "nul",
    "undefined",
    "NaN",
    "{'type':'rpc'}",
    '{"type":"rpc",}',
    "\u0000",
    "\ufeff{}",
    "💥",
  ];
  return [
    ...texts.map((data) => ({ what: "not JSON", data })),
    { what: "binary JSON", data: new TextEncoder().encode('{"type":"rpc","id":"1","method":"add","args":[1]}') },
    { what: "empty binary", data: new Uint8Array() },
    { what: "huge text", data: "x".repeat(hugeBytes) },
    { what: "huge binary", data: new Uint8Array(hugeBytes) },
    { what: "huge state", data: JSON.stringify({ type: "cf_agent_state", state: "s".repeat(hugeBytes - ENVELOPE) }) },
    {
      what: "huge call",
      data: JSON.stringify({ type: "rpc", id: "1", method: "m".repeat(hugeBytes - ENVELOPE), args: [] }),
    },
    { what: "deep arrays", data: "[".repeat(50_000) + "]".repeat(50_000) },
    { what: "deep objects", data: '{"a":'.repeat(20_000) + "1" + "}".repeat(20_000) },
    {
      what: "deep arguments",
      data: `{"type":"rpc","id":"1","method":"add","args":${"[".repeat(5000)}${"]".repeat(5000)}}`,
    },
    { what: "deep state", data: `{"type":"cf_agent_state","state":${"[".repeat(5000)}${"]".repeat(5000)}}` },
  ];
}

function wrongShapes(): MalformedFrame[] {
  const frames: MalformedFrame[] = [];
  const add = (what: string, value: unknown) => frames.push({ what, data: JSON.stringify(value) });
  for (const value of WRONG) {
    add("no frame", value);
    add("wrong type of type", { type: value });
    add("rpc id", { type: "rpc", id: typeof value === "string" ? 7 : value, method: "add", args: [1] });
    add("rpc args", { type: "rpc", id: "1", method: "add", args: Array.isArray(value) ? "[1]" : value });
    add("rpc method", { type: "rpc", id: "1", method: value, args: [] });
    add("chat body", { type: "cf_agent_use_chat_request", id: "1", init: { method: "POST", body: value } });
    add("chat init", { type: "cf_agent_use_chat_request", id: "1", init: value });
    add("tool result", { type: "cf_agent_tool_result", toolCallId: value, output: value, state: value });
    add("tool approval", {
      type: "cf_agent_tool_approval",
      toolCallId: "t",
      approved: typeof value === "boolean" ? "yes" : value,
    });
    add("cancel", { type: "cf_agent_chat_request_cancel", id: value });
    add("resume", { type: "cf_agent_stream_resume_ack", id: value });
    add("messages", { type: "cf_agent_chat_messages", messages: Array.isArray(value) ? "[]" : value });
    add("state that no client may set", { type: "cf_agent_state", state: value });
  }
  for (const type of [...TYPES, ...SERVER_TYPES]) add("nothing but a type", { type });
  add("id too long", { type: "rpc", id: "i".repeat(10_000), method: "add", args: [1] });
  add("method too long", { type: "rpc", id: "1", method: "m".repeat(10_000), args: [] });
  return frames;
}

/** Names that reach around, if anyone is careless with them. */
function poisoned(): MalformedFrame[] {
  const names = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "then",
    "setState",
    "sql",
    "destroy",
    "onStart",
    "state",
  ];
  return names.flatMap((name) => [
    { what: "method", data: JSON.stringify({ type: "rpc", id: "1", method: name, args: [{ count: 666 }] }) },
    { what: "key", data: `{"type":"cf_agent_state","state":{"${name}":{"polluted":true}}}` },
    { what: "argument", data: `{"type":"rpc","id":"1","method":"nothing","args":[{"${name}":{"polluted":true}}]}` },
    { what: "frame key", data: `{"${name}":{"type":"rpc","id":"1","method":"add","args":[1]}}` },
    { what: "proto type", data: `{"__proto__":{"type":"rpc"},"id":"1","method":"${name}","args":[]}` },
  ]);
}

/** A call that the agent would rightly answer. */
function isHonest({ type, method }: Record<string, unknown>): boolean {
  return type === "rpc" && method === "add";
}
