import { readyTab, toLine } from "./harness.tsx";
import { expect, test } from "vitest";
import { startTalk } from "./talk.ts";

const numbered = ({ index, userText }: { index: number; userText: string }) => `${userText}-${index}`;

test("regenerate replaces the last answer, again and again", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: a-0"]);
  for (const index of [1, 2, 3]) {
    void tab.chat().regenerate();
    await tab.settles(["user: a", `assistant: a-${index}`]);
    await other.settles(["user: a", `assistant: a-${index}`]);
    await tab.matches(agent);
  }
});

test("regenerate of an earlier answer forgets what came after it", async () => {
  const { host, agent, model } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: a-0"]);
  tab.send("b");
  await tab.settles(["user: a", "assistant: a-0", "user: b", "assistant: b-1"]);
  void tab.chat().regenerate({ messageId: tab.chat().messages[1]?.id });
  await tab.settles(["user: a", "assistant: a-2"]);
  await other.settles(["user: a", "assistant: a-2"]);
  await tab.matches(agent);
  expect(model.calls.at(-1)?.prompt).toHaveLength(1);
});

test("an edited message keeps its id, and what came after it is answered anew", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: a-0"]);
  tab.send("b");
  await tab.settles(["user: a", "assistant: a-0", "user: b", "assistant: b-1"]);
  const id = tab.chat().messages[0]?.id;
  void tab.chat().sendMessage({ text: "A", messageId: id });
  await tab.settles(["user: A", "assistant: A-2"]);
  await other.settles(["user: A", "assistant: A-2"]);
  expect(tab.chat().messages[0]?.id).toBe(id);
  await tab.matches(agent);
  const again = await readyTab(host);
  expect(again.lines()).toEqual(["user: A", "assistant: A-2"]);
});

test("an edit of the last message", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: a-0"]);
  tab.send("b");
  await tab.settles(["user: a", "assistant: a-0", "user: b", "assistant: b-1"]);
  void tab.chat().sendMessage({ text: "B", messageId: tab.chat().messages[2]?.id });
  await tab.settles(["user: a", "assistant: a-0", "user: B", "assistant: B-2"]);
  await tab.matches(agent);
});

const said = (id: string, text: string) => ({ id, role: "user" as const, parts: [{ type: "text" as const, text }] });

test("setMessages reaches the store and the other tabs with what a user may write", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.chat().setMessages([said("u1", "from here")]);
  await tab.settles(["user: from here"]);
  await other.settles(["user: from here"]);
  tab.send("b");
  await tab.settles(["user: from here", "user: b", "assistant: b-0"]);
  await other.settles(["user: from here", "user: b", "assistant: b-0"]);
  await tab.matches(agent);
});

test("setMessages deletes nothing from the store, and cannot rewrite an answer", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: a-0"]);
  const before = await agent.stored();
  tab
    .chat()
    .setMessages((messages) =>
      messages.map((message) =>
        message.role === "user" ? message : { ...message, parts: [{ type: "text", text: "forged" }] },
      ),
    );
  await tab.waitFor(({ lines }) => lines[1] === "assistant: forged");
  tab.chat().setMessages([]);
  await tab.settles([]);
  const again = await readyTab(host);
  expect(again.lines()).toEqual(["user: a", "assistant: a-0"]);
  expect(await agent.stored()).toEqual(before);
});

test("with syncMessagesToServer off, setMessages stays in the tab", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host, { syncMessagesToServer: false });
  tab.chat().setMessages([said("u1", "only here")]);
  await tab.settles(["user: only here"]);
  expect(tab.line.sent.some(({ type }) => type === "cf_agent_chat_messages")).toBe(false);
  expect(await agent.stored()).toEqual([]);
});

test("a limit of stored messages drops the oldest, and tabs agree with the store after a reload", async () => {
  const { host, agent } = await startTalk({ script: numbered, settings: { maxPersistedMessages: 4 } });
  const tab = await readyTab(host);
  for (const [i, text] of ["a", "b", "c"].entries()) {
    tab.send(text);
    await tab.waitFor(({ lines, status }) => lines.at(-1) === `assistant: ${text}-${i}` && status === "ready");
  }
  const again = await readyTab(host);
  const kept = ["user: b", "assistant: b-1", "user: c", "assistant: c-2"];
  expect(again.lines()).toEqual(kept);
  expect((await agent.stored()).map(toLine)).toEqual(kept);
});

test("messages that server code adds without a turn appear in every tab", async () => {
  const { host, agent } = await startTalk({ script: numbered });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  await agent.persistMessages([said("u1", "from the server")]);
  await tab.settles(["user: from the server"]);
  await other.settles(["user: from the server"]);
  await tab.matches(agent);
});
