import { expect, test } from "vitest";
import { parseFrame } from "./parse.ts";
import {
  isSessionState,
  MAX_FOCUS_LENGTH,
  MAX_HITS,
  MAX_LISTED,
  MAX_QUERY_LENGTH,
  MAX_SESSION_NAME,
  MAX_SUMMARY_LENGTH,
} from "./session-frames.ts";

function parse(fields: object) {
  return parseFrame(JSON.stringify({ type: "perdure_session", id: "q1", ...fields }));
}

const understood: [asked: object, ask: object][] = [
  [{ op: "sessions" }, { op: "sessions" }],
  [
    { op: "sessions", limit: MAX_LISTED, after: "s" },
    { op: "sessions", limit: MAX_LISTED, after: "s" },
  ],
  [{ op: "create" }, { op: "create" }],
  [{ op: "create", name: null }, { op: "create" }],
  [
    { op: "create", name: "x".repeat(MAX_SESSION_NAME) },
    { op: "create", name: "x".repeat(MAX_SESSION_NAME) },
  ],
  [
    { op: "rename", name: "n", more: 1 },
    { op: "rename", name: "n" },
  ],
  [
    { op: "rename", session: "s", name: "n" },
    { op: "rename", session: "s", name: "n" },
  ],
  [
    { op: "delete", session: "s" },
    { op: "delete", session: "s" },
  ],
  [{ op: "clear" }, { op: "clear" }],
  [
    { op: "attach", session: null },
    { op: "attach", session: null },
  ],
  [
    { op: "attach", session: "s" },
    { op: "attach", session: "s" },
  ],
  [{ op: "fork" }, { op: "fork" }],
  [
    { op: "fork", session: "s", at: "m", name: "n" },
    { op: "fork", session: "s", at: "m", name: "n" },
  ],
  [
    { op: "branches", messageId: "m" },
    { op: "branches", messageId: "m" },
  ],
  [
    { op: "switchBranch", messageId: "m" },
    { op: "switchBranch", messageId: "m", own: true, named: false },
  ],
  [
    { op: "switchBranch", messageId: "m", own: false, named: true },
    { op: "switchBranch", messageId: "m", own: false, named: true },
  ],
  [
    { op: "search", query: "x".repeat(MAX_QUERY_LENGTH), limit: MAX_HITS, session: "all" },
    { op: "search", query: "x".repeat(MAX_QUERY_LENGTH), limit: MAX_HITS, session: "all" },
  ],
  [{ op: "report" }, { op: "report" }],
  [{ op: "compact" }, { op: "compact", preview: false }],
  [
    { op: "compact", focus: "f", preview: true },
    { op: "compact", focus: "f", preview: true },
  ],
  [
    { op: "applyCompaction", summary: "s", messageId: "m", parts: null },
    { op: "applyCompaction", summary: "s", messageId: "m" },
  ],
  [
    { op: "applyCompaction", summary: "s", messageId: "m", parts: 0 },
    { op: "applyCompaction", summary: "s", messageId: "m", parts: 0 },
  ],
  [
    { op: "undoCompaction", compaction: "c" },
    { op: "undoCompaction", compaction: "c" },
  ],
  [
    { op: "pin", messageId: "m" },
    { op: "pin", messageId: "m" },
  ],
  [
    { op: "unpin", messageId: "m" },
    { op: "unpin", messageId: "m" },
  ],
  [{ op: "title" }, { op: "title" }],
];

test.each(understood)("%j is understood", (asked, ask) => {
  expect(parse(asked)).toEqual({ kind: "session", id: "q1", ask });
});

const LONG_ID = "x".repeat(257);
const HALF = "\ud800";

const refused: [field: string, asked: object][] = [
  ["limit", { op: "sessions", limit: 0 }],
  ["limit", { op: "sessions", limit: MAX_LISTED + 1 }],
  ["limit", { op: "sessions", limit: 1.5 }],
  ["limit", { op: "sessions", limit: "5" }],
  ["after", { op: "sessions", after: 1 }],
  ["name", { op: "create", name: "" }],
  ["name", { op: "create", name: "  \n" }],
  ["name", { op: "create", name: "x".repeat(MAX_SESSION_NAME + 1) }],
  ["name", { op: "create", name: HALF }],
  ["name", { op: "rename" }],
  ["name", { op: "rename", name: 5 }],
  ["session", { op: "rename", session: LONG_ID, name: "n" }],
  ["session", { op: "delete", session: "" }],
  ["session", { op: "clear", session: {} }],
  ["session", { op: "attach" }],
  ["session", { op: "attach", session: 7 }],
  ["session", { op: "attach", session: LONG_ID }],
  ["at", { op: "fork", at: [] }],
  ["name", { op: "fork", name: true }],
  ["session", { op: "fork", session: HALF }],
  ["messageId", { op: "branches" }],
  ["messageId", { op: "branches", messageId: LONG_ID }],
  ["messageId", { op: "switchBranch", messageId: null }],
  ["own", { op: "switchBranch", messageId: "m", own: "yes" }],
  ["named", { op: "switchBranch", messageId: "m", named: 1 }],
  ["query", { op: "search" }],
  ["query", { op: "search", query: "" }],
  ["query", { op: "search", query: "x".repeat(MAX_QUERY_LENGTH + 1) }],
  ["limit", { op: "search", query: "x", limit: MAX_HITS + 1 }],
  ["limit", { op: "search", query: "x", limit: -1 }],
  ["session", { op: "search", query: "x", session: ["all"] }],
  ["focus", { op: "compact", focus: "x".repeat(MAX_FOCUS_LENGTH + 1) }],
  ["preview", { op: "compact", preview: 1 }],
  ["summary", { op: "applyCompaction", messageId: "m" }],
  ["summary", { op: "applyCompaction", messageId: "m", summary: "x".repeat(MAX_SUMMARY_LENGTH + 1) }],
  ["messageId", { op: "applyCompaction", summary: "s" }],
  ["parts", { op: "applyCompaction", summary: "s", messageId: "m", parts: -1 }],
  ["parts", { op: "applyCompaction", summary: "s", messageId: "m", parts: 1e300 }],
  ["compaction", { op: "undoCompaction" }],
  ["messageId", { op: "pin", messageId: 1 }],
  ["messageId", { op: "unpin" }],
  ["session", { op: "title", session: 0 }],
];

test.each(refused)("%s of %j is refused, and its sender is told", (field, asked) => {
  const parsed = parse(asked);
  expect(parsed).toMatchObject({ kind: "session-refused", id: "q1" });
  expect(parsed).toHaveProperty("reason", expect.stringContaining(`"${field}"`));
});

test.each([undefined, null, 1, "", "drop", "constructor", "__proto__", {}, ["sessions"]])("there is no op %j", (op) => {
  expect(parse({ op })).toEqual({ kind: "session-refused", id: "q1", reason: "There is no such op." });
});

test("an id that is too long is told under it", () => {
  expect(parse({ id: LONG_ID, op: "sessions" })).toMatchObject({ kind: "session-refused", id: LONG_ID });
});

test.each([undefined, null, 1, "", HALF, {}])("without an id (%j) nobody can be answered", (id) => {
  expect(parse({ id, op: "sessions" })).toMatchObject({ kind: "other", reason: expect.stringContaining('"id"') });
});

test("what is no state of a session is known for it", () => {
  const state = { type: "perdure_session_state", session: { id: "s" }, compactions: [], pins: [], context: null };
  expect(isSessionState(state)).toBe(true);
  const wrong = [null, [], "x", { ...state, type: "x" }, { ...state, session: {} }, { ...state, compactions: {} }];
  for (const value of [...wrong, { ...state, pins: undefined }]) expect(isSessionState(value)).toBe(false);
});
