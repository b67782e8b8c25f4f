import { openTab, readyTab } from "./harness.tsx";
import { Agent } from "perdure";
import { expect, test } from "vitest";
import { startHost } from "../clients/harness.ts";
import { startTalk, talk } from "./talk.ts";

const long = { text: ["one ", "two ", "three"], delayMs: 1 };

test("a child of an agent holds a conversation of its own, with messages, streams and reloads", async () => {
  class Parent extends Agent {
    static override readonly subAgents = ["Talk"];
  }
  const { Talk, say } = talk({ script: [long] });
  const host = await startHost({ agents: { Parent, Talk } });
  const address = { agent: "Parent", name: "p", sub: [{ agent: "Talk", name: "a room/1" }] };
  const tab = await readyTab(host, address);
  tab.send("count");
  await say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  const again = await openTab(host, address);
  expect(again.views[0]?.lines).toEqual(["user: count"]);
  await again.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await say();
  for (const one of [tab, again]) await one.settles(["user: count", "assistant: one two three"]);
  expect(again.chat().messages).toEqual(tab.chat().messages);
  // The agent of the same class and name at the root is another one.
  const root = await readyTab(host, { name: "a%20room%2F1" });
  expect(root.lines()).toEqual([]);
});

test("a name with a space", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host, { name: "room one" });
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  const again = await openTab(host, { name: "room one" });
  expect(again.views[0]?.lines).toEqual(["user: a", "assistant: ok"]);
});

test("StrictMode: a page that is mounted twice streams, resumes and answers once", async () => {
  const { host, agent, say, turns } = await startTalk({ script: [long, long] });
  const tab = await openTab(host, { strict: true });
  tab.send("count");
  await say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  const again = await openTab(host, { strict: true });
  await again.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await say();
  for (const one of [tab, again]) {
    await one.settles(["user: count", "assistant: one two three"]);
    await one.matches(agent);
  }
  expect(turns).toHaveLength(1);
});
