import { expect, test } from "vitest";
import { MAX_ID_LENGTH, type ParsedFrame, parseFrame } from "./parse.ts";
import { MAX_FOLLOWED } from "./row-frames.ts";

/** Small and seeded, so that a failure can be run again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const chatBody = {
  messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] }],
  trigger: "submit-message",
  x: 1,
};
const seeds: object[] = [
  { type: "cf_agent_state", state: { count: 1, list: [1, 2, { a: null }] } },
  { type: "rpc", id: "1", method: "add", args: [1, { two: 2 }] },
  { type: "cf_agent_use_chat_request", id: "Y", init: { method: "POST", body: JSON.stringify(chatBody) } },
  { type: "cf_agent_chat_messages", messages: chatBody.messages },
  { type: "cf_agent_chat_clear" },
  { type: "perdure_chat_older", before: 12 },
  { type: "perdure_session", id: "q", op: "search", query: "word", session: "all", limit: 5 },
  { type: "perdure_session", id: "q", op: "switchBranch", messageId: "m", own: false },
  { type: "perdure_session", id: "q", op: "applyCompaction", summary: "s", messageId: "m", parts: 2 },
  { type: "perdure_rows_subscribe", id: "q", life: "l", since: { a: 0, b: [3, "k"] }, all: true },
  { type: "perdure_rows_unsubscribe", collections: ["a"] },
  {
    type: "perdure_rows_write",
    txid: "t",
    changes: [{ table: "a", key: "k", operation: "upsert", value: { n: 1 } }],
    when: [{ table: "a", key: "k", version: 1 }],
    producer: { id: "p", epoch: 1 },
  },
  { type: "cf_agent_chat_request_cancel", id: "Y" },
  { type: "cf_agent_stream_resume_request", probeId: "p" },
  { type: "cf_agent_stream_resume_ack", id: "Y" },
  {
    type: "cf_agent_tool_result",
    toolCallId: "c",
    toolName: "t",
    output: 1,
    autoContinue: true,
    clientTools: [{ name: "t" }],
  },
  { type: "cf_agent_tool_approval", toolCallId: "c", approved: true, autoContinue: true },
];

/** JSON texts put in the place of a field. */
const wrongValues = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "-1",
  "1.5",
  "1e999",
  "-1e999",
  "1e-999",
  "123456789012345678901234567890",
  '""',
  '"x"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"__proto__"',
  '"constructor"',
  '"POST"',
  '"null"',
  '"{}"',
  '"[]"',
  '"{"',
  "[]",
  "{}",
  "[[]]",
  "[null]",
  "[[],{}]",
  '{"length":1}',
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"toString":null}',
  '{"toJSON":1}',
  '{"then":1}',
  '{"valueOf":{}}',
  `"${"x".repeat(100_000)}"`,
  `"${"é".repeat(300)}"`,
  `${"[".repeat(400)}${"]".repeat(400)}`,
  `${'{"a":'.repeat(400)}1${"}".repeat(400)}`,
  '{"messages":[],"__proto__":{"polluted":1}}',
];

const pick = <T>(rand: () => number, list: readonly T[]): T => list[Math.floor(rand() * list.length)] as T;
const at = (rand: () => number, text: string) => Math.floor(rand() * (text.length + 1));

/** Each makes a text out of a good frame; together with the values above, well over 35 kinds of bad ones. */
const mutators: ((rand: () => number, frame: object) => string)[] = [
  (_, frame) => JSON.stringify(frame),
  (rand, frame) => replaceField(rand, frame, pick(rand, wrongValues)),
  (rand, frame) => replaceField(rand, frame, pick(rand, wrongValues)),
  (rand, frame) => replaceField(rand, frame, pick(rand, wrongValues)),
  (rand, frame) => JSON.stringify(without(rand, frame)),
  (rand, frame) => JSON.stringify({ ...without(rand, frame), type: pick(rand, seeds as { type: string }[]).type }),
  (rand, frame) => `{"__proto__":${pick(rand, wrongValues)},${JSON.stringify(frame).slice(1)}`,
  (rand, frame) => `{"constructor":${pick(rand, wrongValues)},${JSON.stringify(frame).slice(1)}`,
  (rand, frame) => `${JSON.stringify(frame).slice(0, -1)},"type":${pick(rand, wrongValues)}}`,
  (rand, frame) => `${JSON.stringify(frame).slice(0, -1)},"extra":${pick(rand, wrongValues)}}`,
  (rand, frame) => JSON.stringify(frame).slice(0, at(rand, JSON.stringify(frame))),
  (rand, frame) => JSON.stringify(frame).slice(at(rand, JSON.stringify(frame))),
  (rand, frame) =>
    splice(
      rand,
      JSON.stringify(frame),
      pick(rand, ["\0", '"', "\\", "{", "}", "\ud800", "\u2028", "\ufeff", "💥", ","]),
    ),
  (rand, frame) => splice(rand, JSON.stringify(frame), String.fromCharCode(Math.floor(rand() * 0x10000))),
  (_, frame) => JSON.stringify([frame]),
  (_, frame) => JSON.stringify(JSON.stringify(frame)),
  (_, frame) => JSON.stringify(frame) + JSON.stringify(frame),
  (_, frame) => JSON.stringify({ init: frame, ...frame, body: frame }),
  (rand, frame) => JSON.stringify({ ...frame, init: { method: "POST", body: pick(rand, wrongValues) } }),
  (rand, frame) =>
    JSON.stringify({ ...frame, init: { method: "POST", body: replaceField(rand, chatBody, pick(rand, wrongValues)) } }),
  (rand) => Array.from({ length: 50 }, () => String.fromCharCode(Math.floor(rand() * 0x10000))).join(""),
  (rand) => pick(rand, wrongValues),
  () => "",
];

function replaceField(rand: () => number, frame: object, valueJson: string): string {
  const target = pick(rand, Object.keys(frame));
  const fields = Object.entries(frame).map(([key, value]) => {
    return `${JSON.stringify(key)}:${key === target ? valueJson : JSON.stringify(value)}`;
  });
  return `{${fields.join(",")}}`;
}

function without(rand: () => number, frame: object): object {
  const gone = pick(rand, Object.keys(frame));
  return Object.fromEntries(Object.entries(frame).filter(([key]) => key !== gone));
}

function splice(rand: () => number, text: string, inserted: string): string {
  const start = at(rand, text);
  return text.slice(0, start) + inserted + text.slice(start + (rand() < 0.5 ? 1 : 0));
}

/** What holds for a frame of each kind, however it came about. */
function check(frame: ParsedFrame): boolean {
  const id = (value: string) =>
    typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH && value.isWellFormed();
  switch (frame.kind) {
    case "state":
      return frame.state !== undefined;
    case "session":
      return id(frame.id);
    case "session-refused":
      return frame.id !== "" && frame.reason !== "";
    case "rows-subscribe":
      return id(frame.id) && frame.since.size <= MAX_FOLLOWED;
    case "rows-write":
      return id(frame.txid) && frame.write.changes.length > 0;
    case "rows-unsubscribe":
      return frame.collections === undefined || Array.isArray(frame.collections);
    case "rows-refused":
      return frame.reason !== "";
    case "state-refused":
      return frame.reason !== "";
    case "rpc-refused":
      return typeof frame.id === "string" && frame.reason !== "";
    case "chat-long":
      return id(frame.id) && frame.text !== "";
    case "transcript-long":
      return frame.text !== "";
    case "chat-older":
      return Number.isSafeInteger(frame.before);
    case "rpc":
      return frame.id.length <= MAX_ID_LENGTH && frame.method.length <= MAX_ID_LENGTH && Array.isArray(frame.args);
    case "chat-request":
      return (
        id(frame.id) &&
        Array.isArray(frame.messages) &&
        ["submit-message", "regenerate-message"].includes(frame.trigger) &&
        (frame.body === undefined ||
          Object.keys(frame.body).every((key) => !["messages", "trigger", "clientTools"].includes(key)))
      );
    case "chat-refused":
      return frame.id !== "" && frame.reason !== "";
    case "chat-messages":
      return Array.isArray(frame.messages);
    case "chat-clear":
      return true;
    case "chat-cancel":
    case "resume-ack":
      return id(frame.id);
    case "resume-request":
      return frame.probeId === undefined || id(frame.probeId);
    case "tool-result":
      return id(frame.toolCallId) && typeof frame.toolName === "string" && typeof frame.autoContinue === "boolean";
    case "tool-approval":
      return id(frame.toolCallId) && typeof frame.approved === "boolean" && typeof frame.autoContinue === "boolean";
    case "other":
      return frame.reason === undefined || (frame.reason.length < 200 && frame.reason.length > 0);
    case "refused":
      return frame.reason.length > 0 && frame.reason.length < 200;
  }
}

const ROUNDS = 6000;
const SEED = 20_260_301;

test("no frame, however broken, throws or changes a prototype", () => {
  const rand = random(SEED);
  const before = [Object.prototype, Array.prototype, Function.prototype, String.prototype].map((it) =>
    Reflect.ownKeys(it),
  );
  const kinds = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const mutate = mutators[round % mutators.length];
    const text = mutate?.(rand, pick(rand, seeds)) ?? "";
    let frame: ParsedFrame;
    try {
      frame = parseFrame(text);
      // What passed must be storable: this throws on what is too deep or cyclic.
      expect(JSON.stringify(frame)).not.toContain('"__proto__":');
    } catch (error) {
      throw new Error(`round ${round}: ${text.slice(0, 300)}`, { cause: error });
    }
    if (!check(frame))
      throw new Error(`round ${round} gave ${JSON.stringify(frame).slice(0, 300)} for ${text.slice(0, 300)}`);
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    // The copy that careless app code makes must not get a strange prototype either.
    expect(Object.getPrototypeOf(Object.assign({}, frame))).toBe(Object.prototype);
    kinds.add(frame.kind);
  }
  const after = [Object.prototype, Array.prototype, Function.prototype, String.prototype].map((it) =>
    Reflect.ownKeys(it),
  );
  expect(after).toEqual(before);
  expect(kinds.size).toBe(23);
});

test("bytes of every kind are for the app", () => {
  const rand = random(SEED);
  for (let round = 0; round < 200; round++) {
    const bytes = Uint8Array.from({ length: Math.floor(rand() * 100) }, () => Math.floor(rand() * 256));
    expect(parseFrame(bytes)).toEqual({ kind: "other" });
  }
});
