// The public hook knows nothing of sessions and branches: it sees one conversation, which is the current one.
import { readyTab } from "../chat-client/harness.tsx";
import { expect, test } from "vitest";
import { startTalk } from "../chat-client/talk.ts";
import { eventually } from "../clients/harness.ts";

const echo = { script: ({ userText }: { userText: string }) => `re ${userText}` };
const SLOW = { text: ["one ", "two ", "three"], delayMs: 1 };

test("each regenerate and each edit leaves what was there as a branch", async () => {
  let answers = 0;
  const { host, agent } = await startTalk({ script: ({ userText }) => `${++answers} to ${userText}` });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: 1 to a"]);
  for (const n of [2, 3]) {
    void tab.chat().regenerate();
    await tab.settles(["user: a", `assistant: ${n} to a`]);
  }
  const [question] = tab.chat().messages;
  expect(await agent.getBranches(question?.id ?? "")).toHaveLength(3);
  void tab.chat().sendMessage({ text: "b", messageId: question?.id ?? "" });
  await tab.settles(["user: b", "assistant: 4 to b"]);
  const questions = await agent.getBranches(null);
  expect(questions.map(({ parts }) => parts[0])).toMatchObject([{ text: "a" }, { text: "b" }]);
  // The version of now has the id that the client knows.
  expect(questions[1]?.id).toBe(question?.id);
  expect(await agent.getBranches(questions[0]?.id ?? "")).toHaveLength(3);
  await tab.matches(agent);
  await agent.switchBranch(questions[0]?.id ?? "");
  await tab.settles(["user: a", "assistant: 3 to a"]);
  await tab.matches(agent);
});

test("when another session is the current one, the tab shows that, and talks there", async () => {
  const { host, agent } = await startTalk(echo);
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: re a"]);
  const { id } = await agent.createSession("Research");
  await agent.switchSession(id);
  await tab.settles([]);
  tab.send("b");
  await tab.settles(["user: b", "assistant: re b"]);
  await tab.matches(agent);
  await agent.switchSession("main");
  await tab.settles(["user: a", "assistant: re a"]);
  // A tab that comes now sees the same.
  const other = await readyTab(host);
  await other.settles(["user: a", "assistant: re a"]);
  expect(await agent.getSessions()).toMatchObject([{ name: "Research" }, { name: "a" }]);
});

test("a turn goes on in its session, unseen by those who have left it, and is there when they come back", async () => {
  const { host, agent, say } = await startTalk({ script: [SLOW, "quick"] });
  const tab = await readyTab(host);
  tab.send("count");
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  const { id } = await agent.createSession("Elsewhere");
  await agent.switchSession(id);
  await tab.settles([]);
  await say();
  // It waits for its turn behind the one that runs elsewhere.
  tab.send("b");
  await eventually(() => expect(tab.lines()).toEqual(["user: b"]));
  await say();
  await tab.settles(["user: b", "assistant: quick"]);
  await agent.switchSession("main");
  await tab.settles(["user: count", "assistant: one two three"]);
  await tab.matches(agent);
});

test("who comes back while the turn runs gets the rest of it", async () => {
  const { host, agent, say } = await startTalk({ script: [SLOW] });
  const tab = await readyTab(host);
  tab.send("count");
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  const { id } = await agent.createSession();
  await agent.switchSession(id);
  await tab.settles([]);
  await say();
  await agent.switchSession("main");
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await say();
  await tab.settles(["user: count", "assistant: one two three"]);
  await tab.matches(agent);
});

test("a clear clears one session", async () => {
  const { host, agent } = await startTalk(echo);
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: re a"]);
  const fork = await agent.forkSession();
  const { id } = await agent.createSession("Other");
  await agent.switchSession(id);
  await tab.settles([]);
  tab.send("b");
  await tab.settles(["user: b", "assistant: re b"]);
  await agent.switchSession("main");
  await tab.settles(["user: a", "assistant: re a"]);
  tab.chat().clearHistory();
  await tab.settles([]);
  expect(await agent.getHistory(null, { session: "main" })).toEqual([]);
  expect(await agent.getHistory(null, { session: id })).toHaveLength(2);
  expect(await agent.getHistory(null, { session: fork.id })).toHaveLength(2);
});

test("when the current session is deleted, the tab shows the one that is the current one then", async () => {
  const { host, agent } = await startTalk(echo);
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: re a"]);
  const { id } = await agent.createSession();
  await agent.switchSession(id);
  await tab.settles([]);
  tab.send("b");
  await tab.settles(["user: b", "assistant: re b"]);
  expect(await agent.deleteSession(id)).toBe(true);
  await tab.settles(["user: a", "assistant: re a"]);
  expect(await agent.getCurrentSessionId()).toBe("main");
});
