import { describe, expect, test } from "vitest";
import type { ClientFrame } from "./frames.ts";
import { MAX_JSON_DEPTH, MAX_JSON_LENGTH, MAX_JSON_VALUES } from "./json.ts";
import { MAX_ID_LENGTH } from "./id.ts";
import { type ParsedFrame, parseFrame, readLongFrame } from "./parse.ts";

const longest = "x".repeat(MAX_ID_LENGTH);
const tooLong = `${longest}x`;

function chat(body: unknown, id: unknown = "Y", init: object = {}): unknown {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { type: "cf_agent_use_chat_request", id, init: { method: "POST", body: text, ...init } };
}

const tool = { name: "loc", description: "Where", parameters: { type: "object" } };
const message = { id: "u1", role: "user", parts: [] } as const;

const valid: [string, ClientFrame | object, ParsedFrame][] = [
  ["state", { type: "cf_agent_state", state: { count: 2 } }, { kind: "state", state: { count: 2 } }],
  ...[null, 0, false, "", []].map((state): [string, object, ParsedFrame] => [
    `state ${JSON.stringify(state)}`,
    { type: "cf_agent_state", state },
    { kind: "state", state },
  ]),
  ["rpc", { type: "rpc", id: "1", method: "add", args: [1, 2] }, { kind: "rpc", id: "1", method: "add", args: [1, 2] }],
  [
    "rpc with more",
    { type: "rpc", id: "1", method: "m", args: [], x: 1 },
    { kind: "rpc", id: "1", method: "m", args: [] },
  ],
  [
    "rpc constructor",
    { type: "rpc", id: "__proto__", method: "constructor", args: [] },
    { kind: "rpc", id: "__proto__", method: "constructor", args: [] },
  ],
  [
    "rpc long id",
    { type: "rpc", id: longest, method: longest, args: [] },
    { kind: "rpc", id: longest, method: longest, args: [] },
  ],
  [
    "chat request",
    chat({ messages: [message], trigger: "submit-message" }) as object,
    {
      kind: "chat-request",
      id: "Y",
      messages: [message],
      trigger: "submit-message",
      clientTools: undefined,
      body: undefined,
    },
  ],
  [
    "chat request with all",
    chat({ messages: [], trigger: "regenerate-message", clientTools: [tool], model: "m", n: 1 }) as object,
    {
      kind: "chat-request",
      id: "Y",
      messages: [],
      trigger: "regenerate-message",
      clientTools: [tool],
      body: { model: "m", n: 1 },
    },
  ],
  [
    "chat request with odd trigger, odd messages and no tools",
    chat({ messages: [1, null, "x"], trigger: 7, clientTools: [] }) as object,
    {
      kind: "chat-request",
      id: "Y",
      messages: [1, null, "x"],
      trigger: "submit-message",
      clientTools: [],
      body: undefined,
    },
  ],
  [
    "transcript",
    { type: "cf_agent_chat_messages", messages: [message] },
    { kind: "chat-messages", messages: [message] },
  ],
  ["clear", { type: "cf_agent_chat_clear" }, { kind: "chat-clear" }],
  ["cancel", { type: "cf_agent_chat_request_cancel", id: "Y" }, { kind: "chat-cancel", id: "Y" }],
  ["probe", { type: "cf_agent_stream_resume_request", probeId: "p" }, { kind: "resume-request", probeId: "p" }],
  ["bare probe", { type: "cf_agent_stream_resume_request" }, { kind: "resume-request", probeId: undefined }],
  [
    "null probe",
    { type: "cf_agent_stream_resume_request", probeId: null },
    { kind: "resume-request", probeId: undefined },
  ],
  ["ack", { type: "cf_agent_stream_resume_ack", id: "Y" }, { kind: "resume-ack", id: "Y" }],
  [
    "tool result",
    {
      type: "cf_agent_tool_result",
      toolCallId: "c1",
      toolName: "loc",
      output: { lat: 1 },
      autoContinue: true,
      clientTools: [tool],
    },
    {
      ...{ kind: "tool-result", toolCallId: "c1", toolName: "loc", autoContinue: true, clientTools: [tool] },
      result: { state: "output-available", output: { lat: 1 } },
    },
  ],
  [
    "tool error",
    {
      type: "cf_agent_tool_result",
      toolCallId: "c1",
      toolName: "",
      state: "output-error",
      errorText: "denied",
      autoContinue: false,
    },
    {
      ...{ kind: "tool-result", toolCallId: "c1", toolName: "", autoContinue: false, clientTools: undefined },
      result: { state: "output-error", errorText: "denied" },
    },
  ],
  [
    "smallest tool result",
    {
      type: "cf_agent_tool_result",
      toolCallId: "c1",
      toolName: null,
      state: null,
      errorText: null,
      autoContinue: null,
      clientTools: null,
    },
    {
      ...{ kind: "tool-result", toolCallId: "c1", toolName: "", autoContinue: false, clientTools: undefined },
      result: { state: "output-available", output: undefined },
    },
  ],
  [
    "approval",
    { type: "cf_agent_tool_approval", toolCallId: "c1", approved: true, autoContinue: true },
    { kind: "tool-approval", toolCallId: "c1", approved: true, autoContinue: true },
  ],
  [
    "denial",
    { type: "cf_agent_tool_approval", toolCallId: "c1", approved: false },
    { kind: "tool-approval", toolCallId: "c1", approved: false, autoContinue: false },
  ],
];

test.each(valid)("%s", (_name, frame, expected) => {
  expect(parseFrame(JSON.stringify(frame))).toEqual(expected);
});

test.each([
  "",
  " ",
  "hello",
  "{",
  "null",
  "1",
  '"rpc"',
  "[]",
  '[{"type":"rpc"}]',
  "{}",
  '{"type":null}',
  '{"type":["rpc"]}',
  '{"type":"RPC"}',
  '{"type":"__proto__"}',
  '{"type":"constructor"}',
  '{"type":"mine","x":1}',
  '{"__proto__":{"type":"cf_agent_chat_clear"}}',
  '{"type":"cf_agent_identity","name":"x","agent":"y"}',
])("%j is for the app", (text) => {
  expect(parseFrame(text)).toEqual({ kind: "other" });
});

test("binary frames are for the app", () => {
  expect(parseFrame(new TextEncoder().encode('{"type":"cf_agent_chat_clear"}'))).toEqual({ kind: "other" });
  expect(parseFrame(new Uint8Array())).toEqual({ kind: "other" });
});

const notIds: unknown[] = [undefined, null, 1, true, [], {}, "", tooLong, "\ud800"];
const rpc = { type: "rpc", id: "1", method: "m", args: [] };
const result = { type: "cf_agent_tool_result", toolCallId: "c", toolName: "t" };
const approval = { type: "cf_agent_tool_approval", toolCallId: "c", approved: true };

const notClientTools: unknown[] = [
  ...["x", {}, [1], [null], [[]], [{}]],
  ...[[{ name: "" }], [{ name: 1 }], [{ name: tooLong }], [tool, { name: 2 }]],
  ...[[{ name: "a", description: 1 }], [{ name: "a", parameters: [] }], [{ name: "a", parameters: "{}" }]],
];

const malformed: [field: string, frame: unknown][] = [
  ...notIds
    .filter((id) => typeof id !== "string" || id === "")
    .map((id): [string, unknown] => ["id", { ...(chat({ messages: [] }) as object), id }]),
  ["before", { type: "perdure_chat_older" }],
  ["before", { type: "perdure_chat_older", before: "12" }],
  ["before", { type: "perdure_chat_older", before: 1.5 }],
  ["state", { type: "cf_agent_state" }],
  ...[undefined, null, 1, {}, ["1"]].map((value): [string, unknown] => ["id", { ...rpc, id: value }]),
  ...notIds.flatMap((id): [string, unknown][] => [
    ["id", { type: "cf_agent_chat_request_cancel", id }],
    ["id", { type: "cf_agent_stream_resume_ack", id }],
    ["toolCallId", { ...result, toolCallId: id }],
    ["toolCallId", { ...approval, toolCallId: id }],
  ]),
  ...[1, true, [], {}, "", tooLong, "\udc00"].map((probeId): [string, unknown] => [
    "probeId",
    { type: "cf_agent_stream_resume_request", probeId },
  ]),
  ...notClientTools.map((clientTools): [string, unknown] => ["clientTools", { ...result, clientTools }]),
  ...[undefined, null, {}, "x", 1].map((messages): [string, unknown] => [
    "messages",
    { type: "cf_agent_chat_messages", messages },
  ]),
  ...[1, {}, tooLong, "\ud800"].map((toolName): [string, unknown] => ["toolName", { ...result, toolName }]),
  ...["done", 1, "output-denied", "input-available", {}].map((state): [string, unknown] => [
    "state",
    { ...result, state },
  ]),
  ...[1, {}, ["x"]].map((errorText): [string, unknown] => ["errorText", { ...result, errorText }]),
  ...["true", 1, {}].flatMap((autoContinue): [string, unknown][] => [
    ["autoContinue", { ...result, autoContinue }],
    ["autoContinue", { ...approval, autoContinue }],
  ]),
  ...[undefined, null, 1, "true", {}].map((approved): [string, unknown] => ["approved", { ...approval, approved }]),
];

test.each(malformed)("malformed %s %#", (field, frame) => {
  const { type } = frame as { type: string };
  expect(parseFrame(JSON.stringify(frame))).toEqual({
    kind: "other",
    reason: `${type}: "${field}" is missing or malformed`,
  });
});

const chatRequests: [says: string, frame: unknown][] = [
  ...[tooLong, "\ud800"].map((id): [string, unknown] => ["`id`", { ...(chat({ messages: [] }) as object), id }]),
  ...[undefined, null, [], "POST"].map((init): [string, unknown] => [
    "`init`",
    { type: "cf_agent_use_chat_request", id: "Y", init },
  ]),
  ...["GET", "post", undefined, null, 1].map((method): [string, unknown] => [
    "`init.method`",
    chat({ messages: [] }, "Y", { method }),
  ]),
  ...[undefined, null, 1, {}, []].map((body): [string, unknown] => ["`init.body`", chat("", "Y", { body })]),
  ...["", "nope", "{"].map((body): [string, unknown] => ["not JSON", chat(body)]),
  ...["null", "[]", "1", '"x"'].map((body): [string, unknown] => ["a JSON object", chat(body)]),
  ...[{}, { messages: null }, { messages: {} }, { messages: "[]" }, { messages: { length: 1 } }].map(
    (body): [string, unknown] => ["`messages`", chat(body)],
  ),
  ...notClientTools.map((clientTools): [string, unknown] => ["`clientTools`", chat({ messages: [], clientTools })]),
];

test.each(chatRequests)("a chat request with an id is refused under it, with words about %s %#", (says, frame) => {
  const { id } = frame as { id: string };
  expect(parseFrame(JSON.stringify(frame))).toEqual({
    kind: "chat-refused",
    id,
    reason: expect.stringContaining(says) as unknown,
  });
});

test("app fields named like inherited ones are data, and __proto__ is gone", () => {
  const body = '{"messages":[],"constructor":{"prototype":{"x":1}},"toString":1,"__proto__":{"x":1}}';
  const frame = parseFrame(JSON.stringify(chat(body)));
  expect(frame).toMatchObject({ kind: "chat-request" });
  if (frame.kind !== "chat-request") return;
  expect(Object.keys(frame.body ?? {})).toEqual(["constructor", "toString"]);
  expect(Object.getPrototypeOf(frame.body)).toBe(Object.prototype);
  const only = parseFrame(JSON.stringify(chat('{"messages":[],"__proto__":{"x":1}}')));
  expect(only).toMatchObject({ kind: "chat-request", body: undefined });
});

test("depth: frame and chat body are each bounded, states up to the bound pass", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const state = (levels: number) => `{"type":"cf_agent_state","state":${nested(levels - 1)}}`;
  const body = (levels: number) => JSON.stringify(chat(`{"messages":${nested(levels - 1)}}`));
  const reason = `The frame is nested deeper than ${MAX_JSON_DEPTH} levels.`;
  expect(parseFrame(state(MAX_JSON_DEPTH)).kind).toBe("state");
  expect(parseFrame(state(MAX_JSON_DEPTH + 1))).toEqual({ kind: "state-refused", reason });
  expect(parseFrame(state(300_000))).toEqual({ kind: "state-refused", reason });
  expect(parseFrame(nested(300_000))).toEqual({ kind: "refused", reason });
  expect(parseFrame(body(MAX_JSON_DEPTH)).kind).toBe("chat-request");
  expect(parseFrame(body(MAX_JSON_DEPTH + 1))).toEqual({
    kind: "chat-refused",
    id: "Y",
    reason: `The body is nested deeper than ${MAX_JSON_DEPTH} levels.`,
  });
  // Nobody looks on to see whether it is JSON at all.
  expect(parseFrame("[".repeat(300_000))).toMatchObject({ kind: "refused" });
});

test("ids have a longest length", () => {
  const ack = (id: string) => JSON.stringify({ type: "cf_agent_stream_resume_ack", id });
  expect(parseFrame(ack(longest)).kind).toBe("resume-ack");
  expect(parseFrame(ack(tooLong)).kind).toBe("other");
});

test("large content passes: only names are bounded", async () => {
  const text = "y".repeat(3_000_000);
  const frame = parseFrame(JSON.stringify(chat({ messages: [{ ...message, parts: [{ type: "text", text }] }] })));
  if (frame.kind !== "chat-long") throw new Error(frame.kind);
  const read = await readLongFrame(frame, () => Promise.resolve());
  expect(read).toMatchObject({ kind: "chat-request", id: "Y", messages: [{ parts: [{ text }] }] });
});

test.each([undefined, null, 1, {}, ["1"], tooLong])("a call of the method %j is answered under its id", (method) => {
  expect(parseFrame(JSON.stringify({ ...rpc, method }))).toMatchObject({ kind: "rpc-refused", id: "1" });
});

test.each([undefined, null, 1, {}, "[]", { length: 1 }])("a call with the arguments %j is answered", (args) => {
  expect(parseFrame(JSON.stringify({ ...rpc, args }))).toMatchObject({ kind: "rpc-refused", id: "1" });
});

test("a call under an id that is too long is answered under it", () => {
  expect(parseFrame(JSON.stringify({ ...rpc, id: tooLong }))).toMatchObject({ kind: "rpc-refused", id: tooLong });
});

const many = `[${"[],".repeat(MAX_JSON_VALUES)}1]`;
const deep = `${"[".repeat(MAX_JSON_DEPTH)}${"]".repeat(MAX_JSON_DEPTH)}`;

describe.each([
  ["too many values", many],
  ["too many levels", deep],
])("a frame with %s", (_what, value) => {
  test.each([
    [`{"type":"rpc","id":"7","method":"m","args":${value}}`, { kind: "rpc-refused", id: "7" }],
    [`{"args":${value},"id":"7\\n","method":"m","type":"rpc"}`, { kind: "rpc-refused", id: "7\n" }],
    [`{"type":"rpc","x":{"id":"no"},"args":${value}}`, { kind: "refused" }],
    [`{"type":"cf_agent_state","state":${value}}`, { kind: "state-refused" }],
    [`{"x":${value},"id":"c","type":"cf_agent_use_chat_request"}`, { kind: "chat-refused", id: "c" }],
    [`{"type":"perdure_session","id":"q","op":"x","x":${value}}`, { kind: "session-refused", id: "q" }],
    [`{"type":"perdure_rows_write","txid":"t","changes":${value}}`, { kind: "rows-refused", txid: "t" }],
    [`{"type":"perdure_rows_subscribe","id":"s","since":${value}}`, { kind: "rows-refused", id: "s" }],
    [`{"type":"cf_agent_tool_result","toolCallId":"c","output":${value}}`, { kind: "refused" }],
    [`{"type":"mine","x":${value}}`, { kind: "refused" }],
    [value, { kind: "refused" }],
  ])("%# is refused, to whom waits for its answer", (text, expected) => {
    // A text that is no object may be for the app: as deep as it may be, it passes.
    const refused = { ...expected, reason: expect.stringMatching(/than (50000 values|256 levels)\.$/) };
    expect(parseFrame(text)).toMatchObject(text === deep ? { kind: "other" } : refused);
  });
});

test("a pushed transcript may hold more, and is read in pieces", async () => {
  const messages = Array.from({ length: 15_000 }, (_, n) => ({ id: `m${n}`, role: "user", parts: [[n], [n], [n]] }));
  const frame = parseFrame(JSON.stringify({ type: "cf_agent_chat_messages", messages }));
  if (frame.kind !== "transcript-long") throw new Error(frame.kind);
  let breaths = 0;
  const read = await readLongFrame(frame, async () => void breaths++);
  expect(read).toEqual({ kind: "chat-messages", messages });
  expect(breaths).toBeGreaterThan(10);
});

test("of a frame that is too much, no more is looked at than says whom to answer", () => {
  const half = `{"type":"rpc","id":"1","method":"m","args":${"[],".repeat(MAX_JSON_VALUES)}`;
  expect(parseFrame(half)).toMatchObject({ kind: "rpc-refused", id: "1" });
  const late = `{"args":[${"[],".repeat(MAX_JSON_VALUES * 2)}1],"id":"2","type":"rpc"}`;
  expect(parseFrame(late)).toMatchObject({ kind: "rpc-refused", id: "2" });
});

test("a long text that is neither an object nor a list is for the app, whatever stands in it", () => {
  expect(parseFrame("a,b,c\n".repeat(MAX_JSON_VALUES))).toEqual({ kind: "other" });
});

test("a frame with as many values as may be is taken", () => {
  const args = `[${"1,".repeat(MAX_JSON_VALUES - 10)}1]`;
  expect(parseFrame(`{"type":"rpc","id":"1","method":"m","args":${args}}`).kind).toBe("rpc");
});

const tooLongText = "x".repeat(MAX_JSON_LENGTH);

test.each([
  [`{"type":"rpc","id":"7","method":"m","args":["${tooLongText}"]}`, { kind: "rpc-refused", id: "7" }],
  [`{"args":["${tooLongText}"],"method":"m","id":"8","type":"rpc"}`, { kind: "rpc-refused", id: "8" }],
  [`{"type":"perdure_session","id":"q","op":"${tooLongText}"}`, { kind: "session-refused", id: "q" }],
  [`{"type":"cf_agent_tool_result","toolCallId":"c","output":"${tooLongText}"}`, { kind: "refused" }],
  [
    JSON.stringify({ ...(chat("{}") as object), more: tooLongText }),
    { kind: "chat-refused", id: "Y", code: "too_large" },
  ],
])("%# a frame that is too long to be parsed in one go is refused, to whom waits for its answer", (text, expected) => {
  expect(parseFrame(text)).toMatchObject({
    ...expected,
    reason: `The frame is longer than ${MAX_JSON_LENGTH} characters.`,
  });
});

test("a frame of the app may be longer", () => {
  expect(parseFrame(JSON.stringify({ type: "mine", text: tooLongText }))).toEqual({ kind: "other" });
  expect(parseFrame(JSON.stringify(tooLongText))).toEqual({ kind: "other" });
});

test("a transcript may be longer than what is parsed in one go, a message in it may not", async () => {
  const messages = Array.from({ length: 12 }, (_, n) => ({
    id: `m${n}`,
    role: "user",
    parts: [{ type: "text", text: `"\\\n\u0007ü`.repeat(200_000) }],
  }));
  const read = async (body: unknown) => {
    const frame = parseFrame(JSON.stringify(chat(body)));
    if (frame.kind !== "chat-long") throw new Error(frame.kind);
    return readLongFrame(frame, () => Promise.resolve());
  };
  expect(await read(JSON.stringify({ messages }))).toMatchObject({ kind: "chat-request", id: "Y", messages });
  const one = { ...messages[0], parts: [{ type: "text", text: tooLongText }] };
  expect(await read(JSON.stringify({ messages: [one] }))).toMatchObject({ kind: "chat-refused", code: "too_large" });
  expect(await read(JSON.stringify({ messages: [], x: tooLongText }))).toMatchObject({ code: "too_large" });
  expect(await read(JSON.stringify({ x: tooLongText }))).toMatchObject({ code: "too_large" });
  expect(await read(`{"x":"${tooLongText}"`)).toMatchObject({ kind: "chat-refused", reason: "The body is not JSON." });
});
