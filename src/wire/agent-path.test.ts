import { expect, test } from "vitest";
import { PerdureError } from "../base/error.ts";
import type { AgentPath, AgentStep } from "../port.ts";
import { MAX_STEPS, parseAddress } from "./address.ts";
import { MAX_NAME_LENGTH } from "./agent-name.ts";
import { agentId, buildAgentPath, parseAgentId } from "./agent-path.ts";
import { classTable } from "./class-table.ts";

const chat = (name: string): AgentStep => ({ className: "ChatAgent", name });
const room = (name: string): AgentStep => ({ className: "ChatRoom", name });

function codeOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return PerdureError.is(error) ? error.code : error;
  }
}

/** Names that are easy to get wrong. */
const names = [
  "default",
  "a b",
  "a/b",
  "%",
  "%20",
  "100% sure",
  "#?&=",
  "é",
  "日本語",
  "😀",
  "sub",
  "...",
  ".hidden",
  "a.",
  "-",
  "_",
  "!'()*",
  "~",
  "\\",
  "\n",
  "\u007f",
  "con",
  "A",
  "a",
  "__proto__",
  "x".repeat(MAX_NAME_LENGTH),
  "é".repeat(MAX_NAME_LENGTH),
];

test.each([
  [[chat("r")], {}, "/agents/chat-agent/r"],
  [[chat("r"), room("a b/c")], {}, "/agents/chat-agent/r/sub/chat-room/a%20b%2Fc"],
  [[chat("a b"), room("x"), chat("y")], {}, "/agents/chat-agent/a%20b/sub/chat-room/x/sub/chat-agent/y"],
  [[chat("r")], { leafPath: "callbacks/job" }, "/agents/chat-agent/r/callbacks/job"],
  [[chat("r"), room("x")], { leafPath: "/callbacks/job/" }, "/agents/chat-agent/r/sub/chat-room/x/callbacks/job"],
  [[chat("r")], { leafPath: "/a/sub/b" }, "/agents/chat-agent/r/a/sub/b"],
  [[chat("r")], { leafPath: "/" }, "/agents/chat-agent/r"],
  [[chat("r")], { prefix: "/api/v1/" }, "/api/v1/chat-agent/r"],
  [[{ className: "Café", name: "r" }], {}, "/agents/caf%C3%A9/r"],
] as [AgentPath, object, string][])("buildAgentPath %#", (path, options, expected) => {
  expect(buildAgentPath(path, options)).toBe(expected);
});

test("what buildAgentPath makes, parseAddress reads, through a URL parser", () => {
  const find = classTable(["ChatAgent", "ChatRoom"]);
  for (const root of names) {
    for (const child of names) {
      const path: AgentPath = [chat(root), room(child), chat(root)];
      const { pathname } = new URL(buildAgentPath(path, { leafPath: "e/f" }), "ws://host");
      expect(parseAddress(pathname, { isRootClass: find, isClass: find })).toMatchObject({
        kind: "agent",
        path,
        rest: "/e/f",
      });
    }
  }
});

test.each([
  [() => buildAgentPath([chat("")])],
  [() => buildAgentPath([chat("."), room("x")])],
  [() => buildAgentPath([chat("r"), room("..")])],
  [() => buildAgentPath([chat("a\0b")])],
  [() => buildAgentPath([chat("\ud800")])],
  [() => buildAgentPath([chat("x".repeat(MAX_NAME_LENGTH + 1))])],
  [() => buildAgentPath([chat("r"), { className: "Sub", name: "x" }])],
  [() => buildAgentPath([{ className: "_", name: "x" }])],
  [() => buildAgentPath([chat("r")], { leafPath: "a?b" })],
  [() => buildAgentPath([chat("r")], { leafPath: "a#b" })],
  [() => buildAgentPath([chat("r")], { leafPath: "a b" })],
  [() => buildAgentPath([chat("r")], { leafPath: "../b" })],
  [() => buildAgentPath([chat("r")], { leafPath: "a//b" })],
  [() => buildAgentPath([chat("r")], { leafPath: "//evil.example" })],
  [() => buildAgentPath([chat("r")], { leafPath: "x/sub/chat-room/y" })],
  [() => buildAgentPath([chat("r")], { prefix: "../x" })],
  [() => agentId([] as unknown as AgentPath)],
  [() => agentId([chat("r"), ...Array.from({ length: MAX_STEPS }, () => room("x"))])],
  [() => agentId([{ className: "", name: "x" }])],
  [() => agentId([chat("\udc00")])],
])("bad input %#", (work) => {
  expect(codeOf(work)).toBe("bad_input");
});

test("ids", () => {
  expect(agentId([chat("room-1")])).toBe("ChatAgent/room-1");
  expect(agentId([chat("a b"), room("c/d")])).toBe("ChatAgent/a%20b/ChatRoom/c%2Fd");
  expect(agentId([chat(".x"), room("...")])).toBe("ChatAgent/%2Ex/ChatRoom/%2E..");
});

test("ids are safe, unique and come back", () => {
  const seen = new Set<string>();
  for (const root of names) {
    for (const child of names) {
      for (const path of [[chat(root)], [chat(root), room(child)]] as AgentPath[]) {
        const id = agentId(path);
        expect(id).toMatch(/^[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*(\/[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*)+$/);
        expect(parseAgentId(id)).toEqual(path);
        seen.add(id);
      }
    }
  }
  expect(seen.size).toBe(names.length + names.length ** 2);
});

test.each([
  "",
  "/",
  "ChatAgent",
  "ChatAgent/",
  "/r",
  "ChatAgent/r/ChatRoom",
  "ChatAgent/a b",
  "ChatAgent/%2e",
  "ChatAgent/%",
  "ChatAgent/%61",
  "ChatAgent/..",
  "ChatAgent/.x",
  "ChatAgent/%00",
  "../../etc/passwd",
  "ChatAgent//r",
  "\ud800/x",
])("%j is no id", (id) => {
  expect(codeOf(() => parseAgentId(id))).toBe("bad_input");
});
