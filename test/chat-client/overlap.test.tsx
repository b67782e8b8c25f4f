import { readyTab, type Tab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk, type TalkOptions } from "./talk.ts";

const long = { text: ["one ", "two ", "three"], delayMs: 1 };
const outcomes = (tab: Tab) => tab.ends.map(({ outcome }) => outcome);

/** The first turn has begun to answer; those after it answer at once with the text that they were asked. */
async function busy(settings: TalkOptions["settings"]) {
  const script: TalkOptions["script"] = ({ index, userText }) => (index === 0 ? long : `re ${userText}`);
  const kit = await startTalk({ script, settings });
  const tab = await readyTab(kit.host);
  tab.send("a");
  await kit.say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  return { ...kit, tab };
}

const FIRST = ["user: a", "assistant: one two three"];

test("queue: a second message while the first is answered waits its turn; one answer each, in order", async () => {
  const { tab, host, agent, say } = await busy({ messageConcurrency: "queue" });
  const other = await readyTab(host).catch(() => undefined);
  expect(other).toBeUndefined();
  tab.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  await say(2);
  const all = [...FIRST, "user: b", "assistant: re b"];
  await tab.settles(all);
  await tab.matches(agent);
});

test("queue: several messages sent at once are answered in order", async () => {
  const { host, agent, turns } = await startTalk({ script: ({ turn }) => `answer ${turn}` });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  for (const text of ["a", "b", "c", "d"]) tab.send(text);
  await eventually(async () => expect(await agent.stored()).toHaveLength(8));
  await tab.waitFor(({ status }) => status === "ready");
  await other.waitFor(({ isServerStreaming }) => !isServerStreaming);
  await other.matches(agent);
  expect(turns).toHaveLength(4);
  await eventually(() => expect(outcomes(tab)).toEqual(["completed", "completed", "completed", "completed"]));
  expect(tab.lines().filter((line) => line.startsWith("user"))).toEqual(["a", "b", "c", "d"].map((text) => `user: ${text}`));
  expect(new Set(tab.lines())).toEqual(new Set(other.lines()));
});

test("queue: a message that another tab sends meanwhile waits its turn", async () => {
  const { tab, host, agent, say } = await busy({});
  const { openTab } = await import("./harness.tsx");
  const other = await openTab(host);
  await other.waitFor(({ status }) => status === "streaming");
  other.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  await say(2);
  const all = [...FIRST, "user: b", "assistant: re b"];
  await tab.settles(all);
  await other.settles(all);
  await tab.matches(agent);
});

test("drop: a message while another is answered is turned away and leaves the screen", async () => {
  const { tab, agent, say, turns } = await busy({ messageConcurrency: "drop" });
  tab.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  await tab.waitFor(({ lines }) => !lines.includes("user: b"));
  await say(2);
  await eventually(() => expect(outcomes(tab)).toContain("skipped"));
  await eventually(async () => expect(await agent.stored()).toHaveLength(2));
  await tab.waitFor(({ status }) => status === "ready");
  expect(turns).toHaveLength(1);
  tab.send("c");
  await tab.settles([...FIRST, "user: c", "assistant: re c"]);
  await tab.matches(agent);
});

test("latest: of the messages that wait only the newest gets a turn; all are kept", async () => {
  const { tab, agent, say, turns, model } = await busy({ messageConcurrency: "latest" });
  for (const text of ["b", "c", "d"]) tab.send(text);
  await tab.waitFor(({ lines }) => lines.includes("user: d"));
  await eventually(async () => expect((await agent.stored()).filter(({ role }) => role === "user")).toHaveLength(4));
  await say(2);
  await eventually(() => expect(turns).toHaveLength(2));
  await tab.waitFor(({ status, lines }) => status === "ready" && lines.includes("assistant: re d"));
  await eventually(() => expect(outcomes(tab).sort()).toEqual(["completed", "completed", "skipped", "skipped"]));
  expect(model.calls.at(-1)?.prompt.filter(({ role }) => role === "user")).toHaveLength(4);
  const again = await readyTab((await agentHost(tab)) ?? { port: 0 }).catch(() => undefined);
  expect(again).toBeUndefined();
});

async function agentHost(_tab: Tab): Promise<undefined> {
  return undefined;
}

test("merge: the messages that wait become one", async () => {
  const { tab, host, agent, say, turns } = await busy({ messageConcurrency: "merge" });
  for (const text of ["b", "c"]) tab.send(text);
  await eventually(async () => expect((await agent.stored()).filter(({ role }) => role === "user")).toHaveLength(2));
  await say(2);
  await eventually(() => expect(turns).toHaveLength(2));
  await eventually(async () => expect(await agent.stored()).toHaveLength(4));
  const again = await readyTab(host);
  expect(again.lines()).toEqual([...FIRST, "user: b c", "assistant: re bc"]);
});

test("debounce: messages in quick succession get one turn", async () => {
  const { host, agent, turns } = await startTalk({
    script: ({ userText }) => `re ${userText}`,
    settings: { messageConcurrency: { strategy: "debounce", debounceMs: 40 } },
  });
  const tab = await readyTab(host);
  for (const text of ["a", "b", "c"]) tab.send(text);
  await tab.waitFor(({ lines, status }) => lines.includes("assistant: re c") && status === "ready");
  expect(turns.length).toBeLessThanOrEqual(2);
  await eventually(async () => expect((await agent.stored()).filter(({ role }) => role === "user")).toHaveLength(3));
});

test("drop: a regenerate is never turned away", async () => {
  const { tab, agent, say } = await busy({ messageConcurrency: "drop" });
  void tab.chat().regenerate();
  await say(2);
  await tab.waitFor(({ lines, status }) => lines.at(-1) === "assistant: re a" && status === "ready");
  await tab.matches(agent);
});
