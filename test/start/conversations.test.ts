import { expect, test } from "vitest";
import { Assistant } from "../../examples/start/assistant.ts";
import { helpers } from "../../examples/start/helpers.ts";
import { MAX_CONVERSATIONS, MAX_TITLE, UNTITLED } from "../../examples/start/contract.ts";
import { Conversations, cutTitle } from "../../examples/start/conversations.ts";
import { connect, openHost, tempDir } from "../host/open-host.ts";
import { eventually, openList, openTalk, settings, startAgents, watchLog } from "./talk.ts";

const agents = { agents: { Conversations }, subAgents: { Assistant, ...helpers } };

test("a conversation is listed once something was said, with its first message as title", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const id = (await list.call("create")) as string;
  const talk = await openTalk(host, id);
  expect(list.items()).toEqual([]);
  await talk.ask("  Hello\n there  ");
  await expect.poll(() => list.items()).toMatchObject([{ id, title: "Hello there", named: false }]);
  await talk.ask("another message");
  expect(list.items()).toHaveLength(1);
  expect(list.items()[0]?.title).toBe("Hello there");
});

test("the title is there before the answer", async () => {
  settings({ PERDURE_GUIDE_DELAY: "50" });
  const host = await startAgents();
  const list = await openList(host);
  const talk = await openTalk(host, "slow");
  talk.request("r1", [{ id: "m1", role: "user", parts: [{ type: "text", text: "Give me a long answer" }] }]);
  await eventually(() => list.items()[0]?.title === "Give me a long answer", "the title");
  expect(talk.of("r1").some(({ done }) => done === true)).toBe(false);
  talk.cancel("r1");
  await talk.done("r1");
});

test("the one where something happened last comes first", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const [a, b] = [await openTalk(host, "a"), await openTalk(host, "b")];
  await a.ask("first");
  await b.ask("second");
  await eventually(() => list.items()[0]?.id === "b", "b is in front");
  await a.ask("third");
  await eventually(() => list.items()[0]?.id === "a", "a is in front");
  const [newest, older] = list.items();
  expect(newest?.updatedAt).toBeGreaterThanOrEqual(older?.updatedAt ?? Infinity);
});

test("a title that the user gave stays", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const talk = await openTalk(host, "x");
  await talk.ask("hello");
  await list.call("rename", "x", "  My\ntalk ");
  await expect.poll(() => list.items()).toMatchObject([{ id: "x", title: "My talk", named: true }]);
  talk.clear();
  await talk.ask("something new");
  await expect.poll(() => list.items()).toMatchObject([{ id: "x", title: "My talk", named: true }]);
});

test("without a name the title follows the first message, also after a clear", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const talk = await openTalk(host, "x");
  await talk.ask("hello");
  talk.clear();
  await talk.flushed();
  await talk.ask("something new");
  await expect.poll(() => list.items()).toMatchObject([{ id: "x", title: "something new", named: false }]);
});

test("a message without words is called after its file, or nothing", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const file = { type: "file", mediaType: "text/plain", url: "data:text/plain,x" } as const;
  await (await openTalk(host, "a")).ask({ id: "m", role: "user", parts: [{ ...file, filename: "plan.txt" }] });
  await (await openTalk(host, "b")).ask({ id: "m", role: "user", parts: [file] });
  await expect.poll(() => list.items().map(({ title }) => title)).toEqual([UNTITLED, "plan.txt"]);
});

test("removing deletes the agent with its rows", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  const talk = await openTalk(host, "x");
  await talk.ask("hello");
  expect(host.listAgents().some((id) => id.includes("x"))).toBe(true);
  await list.call("remove", "x");
  expect(list.items()).toEqual([]);
  expect(host.listAgents().filter((id) => /assistant/i.test(id))).toEqual([]);
  // Again, and for one that never was: nothing happens.
  await list.call("remove", "x");
  await list.call("remove", "never-was");
  // Its address is a fresh conversation now.
  expect(await (await openTalk(host, "x")).stored()).toEqual([]);
});

test("one that is removed while it answers stays removed", async () => {
  settings({ PERDURE_GUIDE_DELAY: "5" });
  const host = await startAgents();
  watchLog();
  const list = await openList(host);
  const talk = await openTalk(host, "x");
  talk.request("r1", [{ id: "m1", role: "user", parts: [{ type: "text", text: "Give me a long answer" }] }]);
  await talk.frame(({ body }) => body?.includes("text-delta") === true, "the first words");
  await list.call("remove", "x");
  expect(list.items()).toEqual([]);
  await eventually(() => !talk.isOpen, "its clients are let go");
  // Its last words arrive late, if at all.
  const main = host.getAgentByName(Conversations, "main");
  await main.heard("x", "late");
  await main.touched("x");
  expect(list.items()).toEqual([]);
});

test("bad calls are told what is wrong", async () => {
  settings();
  const host = await startAgents();
  const list = await openList(host);
  await (await openTalk(host, "x")).ask("hello");
  await expect(list.call("rename", "x", "  ")).rejects.toThrow("A title needs some text.");
  await expect(list.call("rename", "x")).rejects.toThrow("A title needs some text.");
  await expect(list.call("rename", "x", { toString: "no" })).rejects.toThrow("A title needs some text.");
  await expect(list.call("rename", "y", "title")).rejects.toThrow("no such conversation");
  await expect(list.call("rename", 7, "title")).rejects.toThrow("not the id of a conversation");
  await expect(list.call("remove", "../x")).rejects.toThrow("not the id of a conversation");
  await expect(list.call("remove")).rejects.toThrow("not the id of a conversation");
  for (const method of ["heard", "touched", "setState", "deleteSubAgent"]) {
    await expect(list.call(method, "x", "title")).rejects.toThrow();
  }
  await expect.poll(() => list.items()).toMatchObject([{ id: "x", title: "hello", named: false }]);
  await list.call("rename", "x", "y".repeat(5000));
  expect(list.items()[0]?.title).toHaveLength(MAX_TITLE);
});

test("only addresses of conversations lead to one, and only through the list", async () => {
  settings();
  const host = await startAgents();
  const open = (path: string) => fetch(`${host.url}${path}`).then(({ status }) => status);
  expect(await open("/agents/conversations/main/sub/assistant/any-link/get-messages")).toBe(200);
  expect(await open(`/agents/conversations/main/sub/assistant/${"x".repeat(100)}/get-messages`)).toBe(404);
  expect(await open("/agents/conversations/main/sub/assistant/a%20b/get-messages")).toBe(404);
  expect(await open("/agents/assistant/x/get-messages")).toBe(400);
});

test("the list has an end, which is told", async () => {
  settings();
  const host = await startAgents();
  watchLog();
  const list = await openList(host);
  const first = await openTalk(host, "first");
  await first.ask("hello");
  const main = host.getAgentByName(Conversations, "main");
  const items = Array.from({ length: MAX_CONVERSATIONS }, (_, i) => ({
    id: i === 0 ? "first" : `c${i}`,
    title: "t",
    updatedAt: 0,
    named: false,
  }));
  await main.setState({ items });
  await expect(list.call("create")).rejects.toThrow("Remove one first.");
  const oneMore = await openTalk(host, "one-more");
  const { error } = await oneMore.ask("hello");
  expect(error).toContain("Remove one first.");
  // Those that are there go on.
  expect((await first.ask("and now?")).error).toBeUndefined();
  await list.call("remove", "c7");
  expect((await oneMore.ask("hello again")).error).toBeUndefined();
  await expect.poll(() => list.items()).toHaveLength(MAX_CONVERSATIONS);
});

test("everything is there after a restart", async () => {
  settings();
  const dir = tempDir();
  const host = await openHost({ ...agents, dir });
  await (await openTalk(host, "x")).ask("hello");
  await host.getAgentByName(Conversations, "main").rename("x", "Kept");
  await host.stop();
  const again = await openHost({ ...agents, dir });
  const list = await connect(again, "/agents/conversations/main");
  await expect.poll(() => list.states().at(-1)).toMatchObject({ items: [{ id: "x", title: "Kept", named: true }] });
  expect(await (await openTalk(again, "x")).stored()).toHaveLength(2);
});

test("titles are cut by characters, not in the middle of one", () => {
  expect(cutTitle("a".repeat(MAX_TITLE))).toBe("a".repeat(MAX_TITLE));
  const family = "👩‍👩‍👧";
  expect(cutTitle(family.repeat(MAX_TITLE))).toBe(family.repeat(MAX_TITLE));
  expect(cutTitle(family.repeat(MAX_TITLE + 1))).toBe(`${family.repeat(MAX_TITLE - 1)}…`);
  expect(cutTitle("word ".repeat(20))).not.toContain(" …");
});
