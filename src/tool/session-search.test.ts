import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { say, user } from "../../test/support/tree-messages.ts";
import { SessionSearch } from "../search/search.ts";
import { toolOptionsOf } from "./define.ts";
import { type SessionSearchInput, sessionSearchTool } from "./session-search.ts";

async function setUp(scope?: "session" | "agent") {
  const { host } = await probeHost();
  say(host, "main", user("m1", "My cat is called Whiskers."), 1_000);
  say(host, "main", user("m2", "page ".repeat(3_000)), 2_000);
  say(host, "other", user("o1", "The cat of my neighbour is Tom."), 3_000);
  const made = sessionSearchTool({ search: new SessionSearch(host), session: () => "main", ...(scope && { scope }) });
  const call = (input: SessionSearchInput) =>
    made.execute?.(input, { toolCallId: "c", messages: [], context: undefined });
  return { made, call };
}

test("finds earlier messages of the session, with ids to read them by", async () => {
  const { call } = await setUp();
  expect(await call({ query: "cat name" })).toEqual({
    hits: [
      { messageId: "m1", role: "user", at: "1970-01-01T00:00:01.000Z", excerpt: "My **cat** is called Whiskers." },
    ],
  });
  expect(await call({ read: "m1" })).toMatchObject({ text: "My cat is called Whiskers.", page: 1, pages: 1 });
});

test("a long message is read page by page", async () => {
  const { call } = await setUp();
  expect(await call({ read: "m2" })).toMatchObject({ page: 1, pages: 2, note: "Read on with page 2." });
  expect(await call({ read: "m2", page: 2 })).not.toHaveProperty("note");
  expect(await call({ read: "m2", page: 3 })).toEqual({ error: expect.stringContaining("pages 1 to 2") });
});

test("what other sessions hold is neither found nor read, unless the app says so", async () => {
  const own = await setUp();
  expect(await own.call({ query: "tom" })).toMatchObject({ hits: [], note: expect.any(String) });
  expect(await own.call({ read: "o1" })).toEqual({ error: expect.stringContaining("no message") });
  const all = await setUp("agent");
  expect(await all.call({ query: "tom" })).toMatchObject({ hits: [{ messageId: "o1", session: "other" }] });
  expect(await all.call({ read: "o1" })).toMatchObject({ text: "The cat of my neighbour is Tom." });
});

test("wrong input is explained to the model", async () => {
  const { call } = await setUp();
  expect(await call({})).toEqual({ error: expect.stringContaining("`query`") });
  expect(await call({ query: "!?" })).toEqual({ error: expect.stringContaining("no words") });
});

test("a call that was cut runs again", async () => {
  const { made } = await setUp();
  expect(toolOptionsOf(made).replay).toBe("safe");
});
