import { agentFetch } from "agents/client";
import { expect, test } from "vitest";
import { type AddressOptions, MAX_STEPS, parseAddress, parseChildAddress } from "./address.ts";
import { MAX_NAME_LENGTH } from "./agent-name.ts";
import { classTable } from "./class-table.ts";

const options: AddressOptions = {
  isRootClass: classTable(["ChatAgent", "SCREAMING_CASE", "Café"]),
  isClass: classTable(["ChatAgent", "ChatRoom", "Café"]),
};

/** `Class:name>Class:name rest`, or the kind of what was not an agent. */
function read(pathname: string, extra: Partial<AddressOptions> = {}): string {
  const address = parseAddress(pathname, { ...options, ...extra });
  if (address.kind !== "agent") return address.kind;
  return `${address.path.map((step) => `${step.className}:${step.name}`).join(">")} ${address.rest}`;
}

test.each([
  ["/agents/chat-agent/default", "ChatAgent:default /"],
  ["/agents/screaming-case/x", "SCREAMING_CASE:x /"],
  ["/agents/chat-agent/r/a/b", "ChatAgent:r /a/b"],
  ["//agents///chat-agent//r//a//", "ChatAgent:r /a"],
  ["/agents/caf%C3%A9/r", "Café:r /"],
  // names at the root
  ["/agents/chat-agent/room%20one", "ChatAgent:room one /"],
  ["/agents/chat-agent/100%%20sure", "ChatAgent:100% sure /"],
  ["/agents/chat-agent/50%25", "ChatAgent:50% /"],
  ["/agents/chat-agent/%ff%20%C3%A9", "ChatAgent:%ff é /"],
  ["/agents/chat-agent/%C0%80", "ChatAgent:%C0%80 /"],
  ["/agents/chat-agent/a%2Fb/c%20d", "ChatAgent:a/b /c%20d"],
  ["/agents/chat-agent/%F0%9F%98%80", "ChatAgent:😀 /"],
  // not ours
  ["", "not-ours"],
  ["/", "not-ours"],
  ["/agents", "not-ours"],
  ["/agents/chat-agent", "not-ours"],
  ["/agents/chat-agent/", "not-ours"],
  ["/other/chat-agent/r", "not-ours"],
  ["/x/agents/chat-agent/r", "not-ours"],
  // unknown class
  ["/agents/nope/r", "unknown-class"],
  ["/agents/ChatAgent/r", "unknown-class"],
  ["/agents/__proto__/r", "unknown-class"],
  ["/agents/constructor/r", "unknown-class"],
  ["/agents/chat-room/r", "unknown-class"],
  // children
  ["/agents/chat-agent/r/sub/chat-room/x", "ChatAgent:r>ChatRoom:x /"],
  ["/agents/chat-agent/r/sub/chat-room/x/get-messages", "ChatAgent:r>ChatRoom:x /get-messages"],
  ["/agents/chat-agent/r/sub/chat-room/x/sub/chat-agent/y/e", "ChatAgent:r>ChatRoom:x>ChatAgent:y /e"],
  ["/agents/chat-agent/r/sub/chat-room/a%20b%2Fc", "ChatAgent:r>ChatRoom:a b/c /"],
  ["/agents/chat-agent/r/sub/chat-room/%25%23%3F%C3%A9", "ChatAgent:r>ChatRoom:%#?é /"],
  ["/agents/chat-agent/r/sub/caf%C3%A9/x", "ChatAgent:r>Café:x /"],
  // the marker
  ["/agents/chat-agent/sub", "ChatAgent:sub /"],
  ["/agents/chat-agent/sub/sub/chat-room/x", "ChatAgent:sub>ChatRoom:x /"],
  ["/agents/chat-agent/sub/chat-room/x", "ChatAgent:sub /chat-room/x"],
  ["/agents/chat-agent/r/sub/chat-room/sub", "ChatAgent:r>ChatRoom:sub /"],
  ["/agents/chat-agent/r/sub/chat-room/sub/sub/chat-room/z", "ChatAgent:r>ChatRoom:sub>ChatRoom:z /"],
  ["/agents/chat-agent/r/sub/chat-room/sub/chat-room/x", "ChatAgent:r>ChatRoom:sub /chat-room/x"],
  ["/agents/chat-agent/r/sub", "ChatAgent:r /sub"],
  ["/agents/chat-agent/r/sub/chat-room", "ChatAgent:r /sub/chat-room"],
  ["/agents/chat-agent/r/sub/chat-room/", "ChatAgent:r /sub/chat-room"],
  ["/agents/chat-agent/r/sub/nope/x", "ChatAgent:r /sub/nope/x"],
  ["/agents/chat-agent/r/sub/sub/chat-room/x", "ChatAgent:r>ChatRoom:x /"],
  ["/agents/chat-agent/r/sub/nope/x/sub/chat-room/y", "ChatAgent:r>ChatRoom:y /"],
  ["/agents/chat-agent/r/a/sub/chat-room/x/b", "ChatAgent:r>ChatRoom:x /b"],
  ["/agents/chat-agent/r/%73ub/chat-room/x", "ChatAgent:r /%73ub/chat-room/x"],
  // names that cannot be
  ["/agents/chat-agent/a%00b", "refused"],
  ["/agents/chat-agent/%2E%2E", "refused"],
  ["/agents/chat-agent/.", "refused"],
  ["/agents/chat-agent/r/sub/chat-room/%00", "refused"],
  ["/agents/chat-agent/r/sub/chat-room/%E0%A4%A", "refused"],
  ["/agents/chat-agent/r/sub/chat-room/..", "refused"],
])("%s", (pathname, expected) => {
  expect(read(pathname)).toBe(expected);
});

test("a prefix may have several segments", () => {
  expect(read("/api/v1/chat-agent/r/x", { prefix: "api/v1" })).toBe("ChatAgent:r /x");
  expect(read("/api/v1/chat-agent/r", { prefix: "/api/v1/" })).toBe("ChatAgent:r /");
  expect(read("/my%20app/chat-agent/r", { prefix: "my app" })).toBe("ChatAgent:r /");
  expect(read("/agents/chat-agent/r", { prefix: "api/v1" })).toBe("not-ours");
  expect(read("/api/chat-agent/r", { prefix: "api/v1" })).toBe("not-ours");
});

test("names are bounded", () => {
  const longest = "x".repeat(MAX_NAME_LENGTH);
  expect(read(`/agents/chat-agent/${longest}`)).toBe(`ChatAgent:${longest} /`);
  expect(read(`/agents/chat-agent/${longest}x`)).toBe("refused");
  expect(read(`/agents/chat-agent/r/sub/chat-room/${longest}x`)).toBe("refused");
  expect(read(`/agents/chat-agent/${"%20".repeat(MAX_NAME_LENGTH)}`)).toBe(
    `ChatAgent:${" ".repeat(MAX_NAME_LENGTH)} /`,
  );
});

test("the number of steps is bounded", () => {
  const address = (children: number) => `/agents/chat-agent/r${"/sub/chat-room/x".repeat(children)}`;
  const deepest = parseAddress(address(MAX_STEPS - 1), options);
  expect(deepest.kind === "agent" && deepest.path.length).toBe(MAX_STEPS);
  expect(read(address(MAX_STEPS))).toBe("refused");
  expect(read(address(5000))).toBe("refused");
});

test("each hop tells its gate who asks for whom, and what the child will see", () => {
  const address = parseAddress("/agents/chat-agent/r/sub/chat-room/x/sub/chat-agent/y/e", options);
  const root = { className: "ChatAgent", name: "r" };
  const room = { className: "ChatRoom", name: "x" };
  const leaf = { className: "ChatAgent", name: "y" };
  expect(address).toEqual({
    kind: "agent",
    path: [root, room, leaf],
    rest: "/e",
    hops: [
      { parent: [root], child: room, rest: "/sub/chat-agent/y/e" },
      { parent: [root, room], child: leaf, rest: "/e" },
    ],
  });
});

test("refusals say the status, and the reason for the log", () => {
  expect(parseAddress("/agents/nope/r", options)).toEqual({ kind: "unknown-class", status: 400, segment: "nope" });
  expect(parseAddress("/agents/chat-agent/%00", options)).toMatchObject({
    kind: "refused",
    status: 400,
    reason: expect.stringContaining("NUL"),
  });
});

test("behind a base path the root is given and children are found", () => {
  const root = { className: "ChatAgent", name: "of the session" };
  expect(parseChildAddress(root, "/x/y/get-messages", options.isClass)).toEqual({
    kind: "agent",
    path: [root],
    rest: "/x/y/get-messages",
    hops: [],
  });
  expect(parseChildAddress(root, "/x/sub/y/sub/chat-room/a%20b/e", options.isClass)).toMatchObject({
    path: [root, { className: "ChatRoom", name: "a b" }],
    rest: "/e",
  });
  expect(parseChildAddress(root, "/x/sub/chat-room/%00", options.isClass)).toMatchObject({
    kind: "refused",
    status: 400,
  });
});

test.each([
  "default",
  "room one",
  "café",
  "日本語",
  "😀",
  "100% sure",
  "50%",
  "%",
  "%zz",
  "a+b",
  "a:b@c",
  'q"<>`',
  "{x}",
  "a|b^c",
])("the public client's name %j is the agent's name", async (name) => {
  let url = "";
  const fetch = ((target: string) => {
    url = target;
    return Promise.resolve(new Response());
  }) as typeof globalThis.fetch;
  await agentFetch({ agent: "ChatAgent", name, host: "localhost:1", path: "get-messages", fetch } as Parameters<
    typeof agentFetch
  >[0]);
  expect(read(new URL(url).pathname)).toBe(`ChatAgent:${name} /get-messages`);
});
