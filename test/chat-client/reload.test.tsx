import { openTab, readyTab, type Tab } from "./harness.tsx";
import { getAgentMessages } from "@cloudflare/ai-chat/react";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk } from "./talk.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const WHOLE = ["user: count", "assistant: one two three four"];
const ofType = (tab: Tab, type: string) => tab.line.received.filter((frame) => frame.type === type);

test("mid-stream: the new page has the message at once, then the answer so far, then the rest", async () => {
  const { host, agent, say, model } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  await say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  const id = tab.chat().messages[1]?.id;
  await tab.unmount();
  const again = await openTab(host);
  expect(again.views[0]?.lines).toEqual(["user: count"]);
  await again.waitFor(({ lines, status }) => lines[1] === "assistant: one two " && status === "streaming");
  expect(again.chat().messages[1]?.id).toBe(id);
  // Told of the stream twice, when it connected and when it asked; it goes on with it once.
  expect(ofType(again, "cf_agent_stream_resuming").length).toBeGreaterThan(0);
  expect(again.line.sent.filter(({ type }) => type === "cf_agent_stream_resume_ack")).toHaveLength(1);
  await say(2);
  await again.settles(WHOLE);
  await again.matches(agent);
  expect(model.calls).toHaveLength(1);
  await eventually(() =>
    expect(again.ends).toMatchObject([{ outcome: "completed", messageIds: [again.chat().messages[0]?.id] }]),
  );
});

test("mid-stream, after every piece", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  let tab = await readyTab(host);
  tab.send("count");
  for (let piece = 1; piece <= 4; piece++) {
    await say();
    const shown = `assistant: ${long.text.slice(0, piece).join("")}`;
    await tab.waitFor(({ lines }) => lines[1] === shown);
    await tab.unmount();
    tab = await openTab(host);
  }
  await tab.settles(WHOLE);
  await tab.matches(agent);
});

test("before the turn has begun to answer, the new page waits for it", async () => {
  const thinking = latch();
  const { host, agent } = await startTalk({
    script: () => "at last",
    answer: async () => {
      await thinking.opened;
      return undefined;
    },
  });
  const tab = await readyTab(host);
  tab.send("count");
  await eventually(async () => expect(await agent.stored()).toHaveLength(1));
  await tab.unmount();
  const again = await openTab(host);
  await eventually(() => expect(ofType(again, "cf_agent_stream_pending").length).toBeGreaterThan(0));
  thinking.open();
  await again.settles(["user: count", "assistant: at last"]);
  await again.matches(agent);
});

test("a page that waits for a turn that is stopped before it began is ready again", async () => {
  const { host, agent, model } = await startTalk({ script: [{ hang: "before" }] });
  const tab = await readyTab(host);
  tab.send("count");
  await eventually(() => expect(model.calls).toHaveLength(1));
  const late = await openTab(host);
  await late.waitFor(({ status }) => status === "submitted");
  await agent.abortAllRequests();
  await late.settles(["user: count"]);
  await tab.settles(["user: count"]);
});

test("several pages that are opened mid-stream all follow it", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  await say(1);
  const tabs = [tab, await openTab(host), await openTab(host), await openTab(host)];
  await say(1);
  for (const one of tabs) await one.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await say(2);
  for (const one of tabs) {
    await one.settles(WHOLE);
    await one.matches(agent);
  }
});

test("resume: false: the page shows at most what there was when it came, and the end", async () => {
  const { host, agent, say } = await startTalk({ script: [long, "next"] });
  const tab = await readyTab(host);
  tab.send("count");
  await say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  const plain = await openTab(host, { resume: false });
  await eventually(() => expect(ofType(plain, "cf_agent_stream_resuming").length).toBeGreaterThan(0));
  await say(1);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two three ");
  // The transcript on connect may come before the page listens; the stream itself is nothing to it either way.
  expect([["user: count"], ["user: count", "assistant: one two "]]).toContainEqual(plain.lines());
  await say(1);
  await plain.settles(WHOLE);
  await plain.matches(agent);
  expect(plain.line.sent).toEqual([]);
  plain.send("more");
  await plain.settles([...WHOLE, "user: more", "assistant: next"]);
  await plain.matches(agent);
});

test("resume: false: after a drop mid-turn the page comes to the end of it too", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const plain = await openTab(host, { resume: false });
  plain.send("count");
  await say(2);
  await plain.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  plain.line.cut();
  await plain.lost();
  const { opens } = plain.line;
  plain.line.mend();
  await eventually(() => expect(plain.line.opens).toBeGreaterThan(opens));
  await eventually(() => expect(ofType(plain, "cf_agent_stream_resuming").length).toBeGreaterThan(0));
  await say(2);
  // The public hook shows that it was cut off for good: it was told not to look for what goes on.
  await plain.waitFor(({ status, isStreaming }) => (status === "ready" || status === "error") && !isStreaming);
  await plain.matches(agent);
  expect(plain.lines()).toEqual(WHOLE);
});

test("the messages of a page come from get-messages, also when the app answers requests itself", async () => {
  const asked: string[] = [];
  const { host, agent } = await startTalk({
    script: () => "ok",
    onRequest(request) {
      asked.push(new URL(request.url).pathname);
      return new Response("the app", { status: 418 });
    },
  });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  const again = await openTab(host, { query: { token: "t" } });
  expect(again.views[0]?.lines).toEqual(["user: a", "assistant: ok"]);
  await again.matches(agent);
  expect(await getAgentMessages({ host: host.url, agent: "Talk", name: "x" })).toEqual(await agent.stored());
  expect(asked).toEqual([]);
  expect((await fetch(`${host.url}/agents/talk/x/other`)).status).toBe(418);
  expect(asked).toEqual(["/agents/talk/x/other"]);
});

test("get-messages of an agent that nobody used is an empty list", async () => {
  const { host } = await startTalk({ script: [] });
  const response = await fetch(`${host.url}/agents/talk/new/get-messages`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("application/json");
  expect(await response.json()).toEqual([]);
});

test("a page with its own messages, or none, is brought up to date when it connects", async () => {
  const { host, agent } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  const blank = await openTab(host, { getInitialMessages: null });
  expect(blank.views[0]?.lines).toEqual([]);
  await blank.settles(["user: a", "assistant: ok"]);
  const given = await openTab(host, { getInitialMessages: () => agent.stored() });
  expect(given.views[0]?.lines).toEqual(["user: a", "assistant: ok"]);
  blank.send("b");
  for (const one of [tab, blank, given]) {
    await one.settles(["user: a", "assistant: ok", "user: b", "assistant: ok"]);
    await one.matches(agent);
  }
});

test("a message that is sent before the socket is open is kept and answered", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const first = await readyTab(host);
  first.send("a");
  await first.settles(["user: a", "assistant: re a"]);
  const tab = await openTab(host, { getInitialMessages: null });
  tab.send("b");
  await tab.settles(["user: a", "assistant: re a", "user: b", "assistant: re b"]);
  await tab.matches(agent);
});
