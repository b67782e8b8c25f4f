import { expect, test } from "vitest";
import { agentChain, agentHttpUrl, withQuery } from "./agent-url.ts";

test.each([
  [{ agent: "ChatAgent", host: "localhost:3000" }, "http://localhost:3000/agents/chat-agent/default"],
  [{ agent: "chat-agent", name: "a b/c", host: "example.com" }, "https://example.com/agents/chat-agent/a%20b%2Fc"],
  [{ agent: "A", name: "x", host: "https://example.com/" }, "https://example.com/agents/a/x"],
  [{ agent: "A", name: "x", host: "http://example.com" }, "http://example.com/agents/a/x"],
  [{ agent: "A", name: "x", host: "example.com", protocol: "ws" as const }, "http://example.com/agents/a/x"],
  [{ agent: "A", name: "x", host: "192.168.0.7:80" }, "http://192.168.0.7:80/agents/a/x"],
  [{ agent: "A", name: "x", host: "10.example.com" }, "https://10.example.com/agents/a/x"],
  [{ agent: "A", name: "x", host: "h", prefix: "x/y", path: "extra" }, "https://h/x/y/a/x/extra"],
  [
    { agent: "A", name: "x", host: "h", sub: [{ agent: "ChatRoom", name: "1/2" }] },
    "https://h/agents/a/x/sub/chat-room/1%2F2",
  ],
  [{ agent: "A", host: "h", basePath: "/user/", path: "p" }, "https://h/user/p"],
])("%o", (location, url) => {
  expect(agentHttpUrl(location)).toBe(url);
});

test("without a page a host must be given, and a path is not absolute", () => {
  expect(() => agentHttpUrl({ agent: "A" })).toThrow(/host/);
  expect(() => agentHttpUrl({ agent: "A", host: "h", path: "/x" })).toThrow(/slash/);
});

test("a query is added to what is there, and nothing of it is lost", () => {
  expect(withQuery("http://h/a", {})).toBe("http://h/a");
  expect(withQuery("http://h/a?x=1", { t: "a b&c", n: null, u: undefined })).toBe("http://h/a?x=1&t=a+b%26c");
});

test("the chain names the leaf last", () => {
  expect(agentChain({ agent: "Inbox", name: "me", sub: [{ agent: "ChatRoom", name: "r" }] })).toEqual([
    { agent: "inbox", name: "me" },
    { agent: "chat-room", name: "r" },
  ]);
});
