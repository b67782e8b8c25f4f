import { expect, test } from "vitest";
import { parseChunk } from "./parse-chunk.ts";
import { isToolPart } from "./types.ts";
import { MAX_DEPTH, MAX_ID_LENGTH, parseMessage, parseMessages, parseUserMessage } from "./validate.ts";

const good = { id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] };

test("a message with id, role and parts passes as it is, unknown fields and empty parts included", () => {
  const message = { ...good, parts: [], metadata: { a: 1 }, createdAt: "then" };
  expect(parseMessage(message)).toBe(message);
});

const broken: [string, unknown][] = [
  ["null", null],
  ["a list", []],
  ["a string", "x"],
  ["no id", { ...good, id: undefined }],
  ["an empty id", { ...good, id: "" }],
  ["a number as id", { ...good, id: 5 }],
  ["a long id", { ...good, id: "x".repeat(MAX_ID_LENGTH + 1) }],
  ["an unknown role", { ...good, role: "tool" }],
  ["no role", { id: "1", parts: [] }],
  ["no parts", { id: "1", role: "user" }],
  ["parts that are no list", { ...good, parts: { length: 1 } }],
  ["a part that is null", { ...good, parts: [null] }],
  ["a part that is a list", { ...good, parts: [[]] }],
  ["a part without type", { ...good, parts: [{ text: "x" }] }],
  ["a part with a number as type", { ...good, parts: [{ type: 1 }] }],
  ["a prototype key", JSON.parse('{"id":"1","role":"user","parts":[{"type":"text","text":"x"}],"__proto__":{"x":1}}')],
  [
    "a prototype key in a part",
    JSON.parse('{"id":"1","role":"user","parts":[{"type":"text","text":"x","__proto__":{}}]}'),
  ],
  ["inherited fields", Object.create(good)],
];

test.each(broken)("refuses a message with %s", (_name, value) => {
  expect(parseMessage(value)).toBeUndefined();
  const parsed = parseUserMessage(value);
  expect("reason" in parsed && parsed.reason).toBeTruthy();
});

test("a list keeps its valid messages in order", () => {
  const other = { ...good, id: "u2" };
  expect(parseMessages([good, null, { id: "x" }, other])).toEqual([good, other]);
  expect(parseMessages("no list")).toEqual([]);
});

test("a user may send text, files and data", () => {
  const message = {
    ...good,
    parts: [
      { type: "text", text: "" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA==", filename: "a" },
      { type: "file", mediaType: "image/png", url: "https://x.test/a.png" },
      { type: "data-cursor", data: null, id: "c" },
    ],
    metadata: { any: ["thing"] },
  };
  expect(parseUserMessage(message)).toEqual({ message });
});

let deep: unknown = 1;
for (let level = 0; level < 5_000; level++) deep = [deep];

test.each([
  ["role", { ...good, role: "assistant" }],
  ["parts must not be empty", { ...good, parts: [] }],
  ["parts[0]: text", { ...good, parts: [{ type: "text" }] }],
  ["parts[0]: text", { ...good, parts: [{ type: "text", text: { a: 1 } }] }],
  [
    "parts[1]: mediaType",
    {
      ...good,
      parts: [
        { type: "text", text: "" },
        { type: "file", url: "https://x.test" },
      ],
    },
  ],
  ["parts[0]: url", { ...good, parts: [{ type: "file", mediaType: "a/b" }] }],
  ["parts[0]: url", { ...good, parts: [{ type: "file", mediaType: "a/b", url: "not a url" }] }],
  ["parts[0]: data is missing", { ...good, parts: [{ type: "data-x" }] }],
  ["parts[0]: id", { ...good, parts: [{ type: "data-x", data: 1, id: 5 }] }],
  ["tool calls", { ...good, parts: [{ type: "tool-x", toolCallId: "c", state: "output-available", output: 1 }] }],
  ['type "step-start"', { ...good, parts: [{ type: "step-start" }] }],
  [`deeper than ${MAX_DEPTH}`, { ...good, parts: [{ type: "data-x", data: deep }] }],
  ["__proto__", { ...good, parts: [{ type: "data-x", data: JSON.parse('{"a":{"__proto__":1}}') }] }],
])("tells why it refuses: %s", (reason, value) => {
  const parsed = parseUserMessage(value);
  expect("reason" in parsed ? parsed.reason : "accepted").toContain(reason);
});

test("chunks need what their type needs; unknown types pass", () => {
  const delta = { type: "text-delta", id: "t", delta: "x" };
  expect(parseChunk(delta)).toBe(delta);
  expect(parseChunk({ type: "from-the-future", x: 1 })).toEqual({ type: "from-the-future", x: 1 });
  expect(parseChunk({ type: "constructor" })).toEqual({ type: "constructor" });
  for (const bad of [
    null,
    "text",
    {},
    { type: 5 },
    { type: "text-delta", id: "t" },
    { type: "text-delta", id: "t", delta: 5 },
    { type: "text-start" },
    { type: "tool-input-start", toolCallId: "c" },
    { type: "tool-input-available", toolCallId: "", toolName: "t" },
    { type: "tool-approval-response", approvalId: "a", approved: "yes" },
    { type: "steering-message", id: "s", parts: {} },
  ]) {
    expect(parseChunk(bad), JSON.stringify(bad)).toBeUndefined();
  }
});

test("a tool part has a name, a call id and a known state", () => {
  const tool = { type: "tool-x", toolCallId: "c", state: "input-available" };
  expect(isToolPart(tool)).toBe(true);
  const dynamic = { ...tool, type: "dynamic-tool", toolName: "x" };
  expect(isToolPart(dynamic)).toBe(true);
  for (const bad of [
    { type: "tool-" },
    { type: "dynamic-tool" },
    { toolCallId: 5 },
    { state: "done" },
    { type: "text" },
  ]) {
    expect(isToolPart({ ...tool, ...bad }), JSON.stringify(bad)).toBe(false);
  }
});

const file = (url: string) => ({ id: "m", role: "user", parts: [{ type: "file", mediaType: "image/png", url }] });

test.each([
  ...["https://example.com/a.png", "HTTP://example.com", "data:image/png;base64,AA", "DATA:image/png,x"],
  `/agents/chat/a/files/${"0123456789abcdef".repeat(4)}`,
])("a file at %s is taken", (url) => {
  expect(parseUserMessage(file(url))).toHaveProperty("message");
});

test.each([
  ...[
    "ftp://example.com/a",
    "file:///etc/passwd",
    "blob:https://example.com/1",
    "javascript:alert(1)",
    "gs://bucket/a",
  ],
  ...["chrome://version", "x:", "/etc/passwd", "//example.com/a", "http://", "/files/../../etc"],
])("a file at %s is refused with words", (url) => {
  expect(parseUserMessage(file(url))).toMatchObject({
    code: "bad_input",
    reason: "parts[0]: url must begin with https:, http: or data:, or be that of a file of this conversation",
  });
});
