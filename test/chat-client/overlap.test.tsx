import { openTab, readyTab, type Tab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk, type TalkOptions } from "./talk.ts";

const long = { text: ["one ", "two ", "three"], delayMs: 1 };
const outcomes = (tab: Tab) => tab.ends.map(({ outcome }) => outcome);

/** The first turn has begun to answer; those after it answer at once with the text that they were asked. */
async function busy(settings: TalkOptions["settings"]) {
  const script: TalkOptions["script"] = ({ index, userText }) => (index === 0 ? long : `re ${userText}`);
  const kit = await startTalk({ script, settings });
  const other = await readyTab(kit.host);
  const tab = await readyTab(kit.host);
  tab.send("a");
  await kit.say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  return { ...kit, tab, other };
}

const FIRST = ["user: a", "assistant: one two three"];

test("queue: a second message while the first is answered waits its turn; one answer each, in order", async () => {
  const { tab, other, agent, say } = await busy({ messageConcurrency: "queue" });
  tab.send("b");
  await other.waitFor(({ lines }) => lines.includes("user: b"));
  await say(2);
  for (const one of [tab, other]) {
    await one.settles([...FIRST, "user: b", "assistant: re b"]);
    await one.matches(agent);
  }
});

test("queue: several messages sent at once are answered in order, and stand in order", async () => {
  const { host, agent, model } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  const texts = ["a", "b", "c", "d"];
  for (const text of texts) tab.send(text);
  const all = texts.flatMap((text) => [`user: ${text}`, `assistant: re ${text}`]);
  for (const one of [tab, other]) {
    await one.settles(all);
    await one.matches(agent);
  }
  // Each turn reads a conversation that ends with its own message.
  expect(model.calls.map(({ prompt }) => prompt.length)).toEqual([1, 3, 5, 7]);
  await eventually(() => expect(outcomes(tab)).toEqual(["completed", "completed", "completed", "completed"]));
});

test("queue: a message sent the moment that the queue is done stays on the screen", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  let sent = false;
  const tab: Tab = await readyTab(host, {
    onTurnEnd() {
      if (sent || tab.ends.length < 2) return;
      sent = true;
      tab.send("c");
    },
  });
  tab.send("a");
  tab.send("b");
  await tab.settles(["a", "b", "c"].flatMap((text) => [`user: ${text}`, `assistant: re ${text}`]));
  await tab.matches(agent);
});

test("queue: a message that a reloaded tab sends meanwhile waits its turn", async () => {
  const { tab, host, agent, say } = await busy({});
  const late = await openTab(host);
  await late.waitFor(({ status }) => status === "streaming");
  late.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  await say(2);
  for (const one of [tab, late]) {
    await one.settles([...FIRST, "user: b", "assistant: re b"]);
    await one.matches(agent);
  }
});

test("queue: a turn that waits can be stopped, and the one before it goes on", async () => {
  const { tab, other, agent, say, model } = await busy({});
  other.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  await other.chat().stop();
  await say(2);
  await tab.settles([...FIRST, "user: b"]);
  await other.settles([...FIRST, "user: b"]);
  await eventually(() => expect(outcomes(other).sort()).toEqual(["aborted", "completed"]));
  expect(model.calls).toHaveLength(1);
  await tab.matches(agent);
});

test("drop: a message while another is answered is turned away and leaves the screen", async () => {
  const { tab, other, agent, say, turns } = await busy({ messageConcurrency: "drop" });
  tab.send("b");
  await eventually(() => expect(tab.views.some(({ lines }) => lines.includes("user: b"))).toBe(true));
  await tab.waitFor(({ lines }) => !lines.includes("user: b"));
  await say(2);
  await eventually(() => expect(outcomes(tab).sort()).toEqual(["completed", "skipped"]));
  for (const one of [tab, other]) await one.settles(FIRST);
  expect(other.views.some(({ lines }) => lines.includes("user: b"))).toBe(false);
  expect(turns).toHaveLength(1);
  tab.send("c");
  for (const one of [tab, other]) {
    await one.settles([...FIRST, "user: c", "assistant: re c"]);
    await one.matches(agent);
  }
});

test("latest: of the messages that wait only the newest gets a turn; all are kept", async () => {
  const { tab, other, agent, say, turns, model } = await busy({ messageConcurrency: "latest" });
  for (const text of ["b", "c", "d"]) tab.send(text);
  await other.waitFor(({ lines }) => lines.includes("user: d"));
  await say(2);
  for (const one of [tab, other]) {
    await one.settles([...FIRST, "user: b", "user: c", "user: d", "assistant: re d"]);
    await one.matches(agent);
  }
  expect(turns).toHaveLength(2);
  await eventually(() => expect(outcomes(tab).sort()).toEqual(["completed", "completed", "skipped", "skipped"]));
  expect(model.calls.at(-1)?.prompt.filter(({ role }) => role === "user")).toHaveLength(4);
});

test("merge: the messages that wait become one, on the screen too", async () => {
  const { tab, other, agent, say, turns } = await busy({ messageConcurrency: "merge" });
  for (const text of ["b", "c"]) tab.send(text);
  await other.waitFor(({ lines }) => lines.includes("user: b c"));
  await say(2);
  for (const one of [tab, other]) {
    await one.settles([...FIRST, "user: b c", "assistant: re bc"]);
    await one.matches(agent);
  }
  expect(turns).toHaveLength(2);
});

test("debounce: messages in quick succession get one turn", async () => {
  const { tab, other, agent, say, turns } = await busy({
    messageConcurrency: { strategy: "debounce", debounceMs: 1_000 },
  });
  for (const text of ["b", "c"]) tab.send(text);
  await other.waitFor(({ lines }) => lines.includes("user: c"));
  await say(2);
  for (const one of [tab, other]) {
    await one.settles([...FIRST, "user: b", "user: c", "assistant: re c"]);
    await one.matches(agent);
  }
  expect(turns).toHaveLength(2);
});

test("drop: a regenerate is never turned away", async () => {
  const { tab, other, agent, say } = await busy({ messageConcurrency: "drop" });
  void tab.chat().regenerate();
  await other.waitFor(({ lines }) => lines.length === 1 || lines[1] === "assistant: one ");
  await say(2);
  for (const one of [tab, other]) {
    await one.settles(["user: a", "assistant: re a"]);
    await one.matches(agent);
  }
});
