import { openTab, readyTab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

const long = { text: ["one ", "two ", "three"], delayMs: 1 };

test("another tab sees the message, the live stream, and the same end", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("count");
  await other.waitFor(({ lines }) => lines[0] === "user: count");
  await say();
  await other.waitFor(({ lines, isServerStreaming }) => lines[1] === "assistant: one " && isServerStreaming);
  expect(other.view()).toMatchObject({ status: "ready", isStreaming: true });
  await say();
  await other.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await say();
  for (const one of [tab, other]) {
    await one.settles(["user: count", "assistant: one two three"]);
    await one.matches(agent);
    expect(one.view().isStreaming).toBe(false);
  }
  const [request] = tab.line.sent.filter(({ type }) => type === "cf_agent_use_chat_request");
  const [message] = tab.chat().messages;
  const end = { requestId: request?.id, outcome: "completed", messageIds: [message?.id], replay: false };
  await eventually(() => expect(tab.ends).toEqual([end]));
  expect(other.ends).toEqual([end]);
});

test("in a long conversation another tab is told what is said and what is answered, not all again", async () => {
  const words = "long ".repeat(1_000);
  const { host, agent, say } = await startTalk({ script: ({ userText }) => (userText === "count" ? long : words) });
  // A message that is told alone has no words for a moment, and counts as an answer.
  const tabs = [await readyTab(host), await readyTab(host, { stray: 1 })];
  const [tab, other] = tabs;
  const lines: string[] = [];
  for (const text of ["a", "b", "c", "d", "e", "f"]) {
    tab?.send(text);
    lines.push(`user: ${text}`, `assistant: ${words}`);
    for (const one of tabs) await one.settles(lines);
  }
  const told = other?.line.received.length;
  tab?.send("count");
  lines.push("user: count");
  await other?.waitFor((view) => view.lines.at(-1) === "user: count");
  await say(3);
  lines.push("assistant: one two three");
  for (const one of tabs) {
    await one.settles(lines);
    await one.matches(agent);
  }
  const whole = other?.line.received
    .slice(told)
    .filter(({ messages }) => Array.isArray(messages) && messages.length > 11);
  expect(whole).toEqual([]);
  await eventually(() => expect(other?.ends).toEqual(tab?.ends));
});

test("a turn that the server starts streams to every tab", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const tabs = [await readyTab(host), await readyTab(host)];
  const noted = agent.note("wake up");
  await say(2);
  for (const tab of tabs) {
    await tab.waitFor(({ lines, isServerStreaming }) => lines[1] === "assistant: one two " && isServerStreaming);
    expect(tab.lines()[0]).toBe("user: wake up");
  }
  await say();
  expect(await noted).toBe("completed");
  for (const tab of tabs) {
    await tab.settles(["user: wake up", "assistant: one two three"]);
    await tab.matches(agent);
    await eventually(() => expect(tab.ends).toMatchObject([{ outcome: "completed", messageIds: ["note-wake up"] }]));
  }
  await eventually(() => expect(ends).toHaveLength(1));
});

test("an answer that goes on by the server's wish grows in place", async () => {
  const { host, agent } = await startTalk({ script: ["first", "second"] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await other.settles(["user: a", "assistant: first"]);
  expect(await agent.continueLastTurn()).toMatchObject({ status: "completed" });
  for (const one of [tab, other]) {
    await one.settles(["user: a", "assistant: first second"]);
    await one.matches(agent);
  }
});

test("two tabs take turns", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const tabs = [await readyTab(host), await readyTab(host)];
  const lines: string[] = [];
  for (const [i, text] of ["a", "b", "c", "d"].entries()) {
    tabs[i % 2]?.send(text);
    lines.push(`user: ${text}`, `assistant: re ${text}`);
    for (const tab of tabs) await tab.settles(lines);
  }
  for (const tab of tabs) await tab.matches(agent);
});

test("two tabs send at the same moment: both messages stay on both screens, and both are answered", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  for (let round = 0; round < 5; round++) {
    tab.send(`a${round}`);
    other.send(`b${round}`);
    await eventually(async () => expect(await agent.stored()).toHaveLength(4 * (round + 1)));
    for (const one of [tab, other]) {
      await one.waitFor(({ status, isServerStreaming }) => status === "ready" && !isServerStreaming);
      await eventually(() => expect([...one.lines()].sort()).toEqual(everything(round)));
    }
  }
});

function everything(rounds: number): string[] {
  const lines: string[] = [];
  for (let i = 0; i <= rounds; i++) {
    for (const who of ["a", "b"]) lines.push(`user: ${who}${i}`, `assistant: re ${who}${i}`);
  }
  return lines.sort();
}

test("a message that crosses the end of another tab's turn stays on the screen", async () => {
  const { host, agent, say } = await startTalk({ script: [long, "second"] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await say(2);
  await other.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  const end = say();
  other.send("b");
  await end;
  await other.settles(["user: a", "assistant: one two three", "user: b", "assistant: second"]);
  await tab.settles(["user: a", "assistant: one two three", "user: b", "assistant: second"]);
  await tab.matches(agent);
});

test("a tab that comes late sees a finished conversation without a probe left open", async () => {
  const { host, agent } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  const late = await openTab(host);
  expect(late.lines()).toEqual(["user: a", "assistant: ok"]);
  await eventually(() => expect(late.line.received.map(({ type }) => type)).toContain("cf_agent_stream_resume_none"));
  await late.matches(agent);
  expect(late.view().status).toBe("ready");
});

test("agents of different names do not hear of each other", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host, { name: "one" });
  const other = await readyTab(host, { name: "two" });
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  expect(other.lines()).toEqual([]);
  expect(other.line.received.some(({ type }) => type === "cf_agent_use_chat_response")).toBe(false);
});
