import { openPage } from "../client/page.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import type { UseAgentChat } from "../../src/client/react.ts";
import { PAGE_MESSAGES } from "../../src/wire/history.ts";
import { readyTab } from "../chat-client/harness.tsx";
import { startTalk } from "../chat-client/talk.ts";
import { eventually } from "../clients/harness.ts";

const echo = { script: ({ userText }: { userText: string }) => `re ${userText}` };
const SLOW = { text: ["one ", "two ", "three"], delayMs: 1 };

type Page = Awaited<ReturnType<typeof openPage>>;

/** A conversation with two answers to its question; the page shows the second. */
async function withTwoAnswers() {
  let answers = 0;
  const talk = await startTalk({ script: ({ userText }) => `${++answers} to ${userText}` });
  const page = await openPage(talk.host);
  await page.chat().sendMessage({ text: "a" });
  await page.chat().regenerate();
  await page.shows(["user: a", "assistant: 2 to a"]);
  return { ...talk, page };
}

const answerOf = (chat: UseAgentChat, index = 1) => chat.messages[index]?.id ?? "";
const branchOf = (page: Page, index = 1) => page.chat().branches(answerOf(page.chat(), index));

test("which of several answers it is comes with the messages, and another can be shown", async () => {
  const { page, host } = await withTwoAnswers();
  await eventually(() => expect(branchOf(page)).toEqual({ index: 1, count: 2 }));
  expect(page.chat().branches(page.chat().messages[0]?.id ?? "")).toBeUndefined();
  const list = await page.chat().listBranches(answerOf(page.chat()));
  expect(list).toMatchObject([
    { preview: "1 to a", role: "assistant", index: 0, shown: false },
    { preview: "2 to a", role: "assistant", index: 1, shown: true },
  ]);
  await page.chat().previousBranch(answerOf(page.chat()));
  await page.shows(["user: a", "assistant: 1 to a"]);
  expect(branchOf(page)).toEqual({ index: 0, count: 2 });
  await eventually(() => expect(page.chat().session).toMatchObject({ viewOf: "main" }));
  // At the first there is none before it.
  await page.chat().previousBranch(answerOf(page.chat()));
  await page.shows(["user: a", "assistant: 1 to a"]);
  // Back where all are: it is in the session itself again.
  await page.chat().nextBranch(answerOf(page.chat()));
  await page.shows(["user: a", "assistant: 2 to a"]);
  await eventually(() => expect(page.chat().session).toEqual({ id: "main", name: "a", namedBy: "derived" }));
  const late = await openPage(host);
  await late.shows(["user: a", "assistant: 2 to a"]);
  await eventually(() => expect(branchOf(late)).toEqual({ index: 1, count: 2 }));
});

test("an edit keeps what was said before as another branch", async () => {
  const { host } = await startTalk(echo);
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "a" });
  await page.chat().sendMessage({ text: "b" });
  const asked = page.chat().messages[0]?.id ?? "";
  await page.chat().sendMessage({ text: "other", messageId: asked });
  await page.shows(["user: other", "assistant: re other"]);
  await eventually(() => expect(page.chat().branches(asked)).toEqual({ index: 1, count: 2 }));
  const [first] = await page.chat().listBranches(asked);
  await page.chat().switchBranch(first?.messageId ?? "");
  await page.shows(["user: a", "assistant: re a", "user: b", "assistant: re b"]);
});

test("two tabs on different branches speak at the same time, and each hears its own", async () => {
  const { page, host, agent } = await withTwoAnswers();
  const other = await openPage(host);
  const hook = await readyTab(host);
  await other.shows(["user: a", "assistant: 2 to a"]);
  await other.chat().previousBranch(answerOf(other.chat()));
  await other.shows(["user: a", "assistant: 1 to a"]);
  const seen = { page: page.line.received.length, other: other.line.received.length };
  await Promise.all([page.chat().sendMessage({ text: "here" }), other.chat().sendMessage({ text: "there" })]);
  const here = ["user: a", "assistant: 2 to a", "user: here", expect.stringMatching(/^assistant: \d to here$/)];
  const there = ["user: a", "assistant: 1 to a", "user: there", expect.stringMatching(/^assistant: \d to there$/)];
  await eventually(() => expect(page.lines()).toEqual(here));
  await eventually(() => expect(other.lines()).toEqual(there));
  // Nothing of the other's stream or messages ever came.
  const texts = (tab: Page, from: number) => JSON.stringify(tab.line.received.slice(from));
  expect(texts(page, seen.page)).not.toContain("there");
  expect(texts(other, seen.other)).not.toMatch(/[^t]here/);
  // The public hook sees the session, in a line, and no frame that it does not know.
  await eventually(() => expect(hook.lines()).toEqual(here));
  expect(hook.line.received.filter(({ type }) => type.startsWith("perdure_"))).toEqual([]);
  expect(JSON.stringify(hook.line.received)).not.toContain('"branches"');
  expect(JSON.stringify(hook.line.received)).not.toContain("there");
  expect((await agent.stored()).map(({ id }) => id)).toEqual(page.chat().messages.map(({ id }) => id));
});

test("a tab that leaves a turn that streams finds it again, still streaming", async () => {
  const { host, say } = await startTalk({ script: [{ text: "first" }, SLOW] });
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "a" });
  const { id } = await page.chat().fork({ at: answerOf(page.chat()), name: "fork" });
  const asked = page.chat().sendMessage({ text: "b" });
  await say(1);
  await page.shows(["user: a", "assistant: first", "user: b", "assistant: one "], "streaming");
  await page.chat().switchTo(id);
  await page.shows(["user: a", "assistant: first"]);
  // It was left, not stopped; who asked need not wait.
  await asked;
  await say(1);
  expect(page.lines()).toEqual(["user: a", "assistant: first"]);
  await page.chat().switchTo(null);
  await page.shows(["user: a", "assistant: first", "user: b", "assistant: one two "], "streaming");
  await say(1);
  await page.shows(["user: a", "assistant: first", "user: b", "assistant: one two three"]);
});

test("a switch while a turn streams in it leaves the turn alone", async () => {
  let answers = 0;
  const { host, say, page } = await (async () => {
    const talk = await startTalk({ script: () => (++answers < 3 ? `${answers}` : SLOW) });
    const tab = await openPage(talk.host);
    await tab.chat().sendMessage({ text: "a" });
    await tab.chat().regenerate();
    return { ...talk, page: tab };
  })();
  await eventually(() => expect(branchOf(page)).toEqual({ index: 1, count: 2 }));
  const other = await openPage(host);
  await other.shows(["user: a", "assistant: 2"]);
  void other.chat().sendMessage({ text: "b" });
  await say(1);
  await eventually(() => expect(page.lines()).toEqual(["user: a", "assistant: 2", "user: b", "assistant: one "]));
  await page.chat().previousBranch(answerOf(page.chat()));
  await page.shows(["user: a", "assistant: 1"]);
  expect(page.chat()).toMatchObject({ isServerStreaming: false, status: "ready" });
  await say(2);
  await other.shows(["user: a", "assistant: 2", "user: b", "assistant: one two three"]);
  expect(page.lines()).toEqual(["user: a", "assistant: 1"]);
  // For all, if it is said so.
  await page.chat().switchBranch(answerOf(page.chat()), { own: false });
  await other.shows(["user: a", "assistant: 1"]);
  await page.shows(["user: a", "assistant: 1"]);
});

test("an answer that goes on after an approval is whole when the tab comes back in the middle of it", async () => {
  const { host, say, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : SLOW),
    tools: {
      pay: tool({ inputSchema: jsonSchema<object>({ type: "object" }), needsApproval: true, execute: () => "paid" }),
    },
  });
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "pay" });
  await page.shows(["user: pay", "assistant: [pay approval-requested]"]);
  const { id } = await page.chat().fork();
  page.chat().addToolApprovalResponse({ id: "c1", approved: true });
  await say(1);
  const paid = '[pay output-available "paid"]';
  await page.shows(["user: pay", `assistant: ${paid} one `], "streaming");
  await page.chat().switchTo(id);
  await eventually(() => expect(page.chat().session).toMatchObject({ id }));
  await say(1);
  await page.chat().switchTo(null);
  await page.shows(["user: pay", `assistant: ${paid} one two `], "streaming");
  await say(1);
  await page.shows(["user: pay", `assistant: ${paid} one two three`]);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("a line that is cut in the middle of an answer on another branch", async () => {
  let answers = 0;
  const { host, say } = await startTalk({ script: () => (++answers < 3 ? `${answers}` : SLOW) });
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "a" });
  await page.chat().regenerate();
  await eventually(() => expect(branchOf(page)).toEqual({ index: 1, count: 2 }));
  await page.chat().previousBranch(answerOf(page.chat()));
  void page.chat().sendMessage({ text: "b" });
  await say(1);
  await page.shows(["user: a", "assistant: 1", "user: b", "assistant: one "], "streaming");
  page.line.cut();
  await eventually(() => expect(page.line.closes).toBe(1));
  await say(1);
  page.line.mend();
  await page.shows(["user: a", "assistant: 1", "user: b", "assistant: one two "], "streaming");
  await say(1);
  await page.shows(["user: a", "assistant: 1", "user: b", "assistant: one two three"]);
  expect(answers).toBe(3);
});

test("an edit on one branch leaves those alone who see the older version, and they can edit that", async () => {
  const { host } = await startTalk(echo);
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "a" });
  const { id } = await page.chat().fork();
  const other = await openPage(host, { session: id });
  await other.shows(["user: a", "assistant: re a"]);
  const asked = page.chat().messages[0]?.id ?? "";
  await page.chat().sendMessage({ text: "b", messageId: asked });
  await page.shows(["user: b", "assistant: re b"]);
  await eventually(() => expect(other.chat().messages[0]?.id).not.toBe(asked));
  expect(other.lines()).toEqual(["user: a", "assistant: re a"]);
  await other.chat().sendMessage({ text: "c", messageId: other.chat().messages[0]?.id ?? "" });
  await other.shows(["user: c", "assistant: re c"]);
  await page.shows(["user: b", "assistant: re b"]);
  expect(page.chat().messages[0]?.id).toBe(asked);
});

test("a branch is paged backwards like any conversation", async () => {
  const { host, agent } = await startTalk(echo);
  const messages = Array.from({ length: 100 }, (_, i) => ({
    id: `m${i}`,
    role: i % 2 === 0 ? ("user" as const) : ("assistant" as const),
    parts: [{ type: "text" as const, text: `message ${i}` }],
  }));
  await agent.persistMessages(messages);
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "other", messageId: "m98" });
  await eventually(() => expect(page.chat().branches("m98")).toEqual({ index: 1, count: 2 }));
  const [first] = await page.chat().listBranches("m98");
  await page.chat().switchBranch(first?.messageId ?? "");
  await eventually(() => expect(page.lines().at(-1)).toBe("assistant: message 99"));
  expect(page.chat().messages).toHaveLength(PAGE_MESSAGES);
  while (page.chat().hasOlder) {
    await page.chat().loadOlder();
    await eventually(() => expect(page.chat().isLoadingOlder).toBe(false));
  }
  expect(page.lines()).toEqual(messages.map(({ role }, i) => `${role}: message ${i}`));
});

test("a tab comes back to its branch after the line was cut, and after a reload if it may remember", async () => {
  const { page, host } = await withTwoAnswers();
  const kept = new Map<string, string>();
  const rememberBranch = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  const tab = await openPage(host, { rememberBranch });
  await tab.chat().previousBranch(answerOf(tab.chat()));
  await tab.shows(["user: a", "assistant: 1 to a"]);
  tab.line.cut();
  await page.chat().sendMessage({ text: "b" });
  tab.line.mend();
  await eventually(() => expect(tab.line.opens).toBe(2));
  await tab.chat().sendMessage({ text: "c" });
  await tab.shows(["user: a", "assistant: 1 to a", "user: c", "assistant: 4 to c"]);
  await tab.unmount();
  const again = await openPage(host, { rememberBranch });
  await again.shows(["user: a", "assistant: 1 to a", "user: c", "assistant: 4 to c"]);
  // Another tab, which has nothing to remember, sees what all see.
  const other = await openPage(host);
  await other.shows(["user: a", "assistant: 2 to a", "user: b", "assistant: 3 to b"]);
  // Where all are, there is nothing to remember.
  await again.chat().nextBranch(answerOf(again.chat()));
  await again.shows(["user: a", "assistant: 2 to a", "user: b", "assistant: 3 to b"]);
  expect(kept.size).toBe(0);
});

test("a place that the agent has forgotten leads back to the session", async () => {
  const { page, agent } = await withTwoAnswers();
  await page.chat().previousBranch(answerOf(page.chat()));
  await page.shows(["user: a", "assistant: 1 to a"]);
  const view = page.chat().session?.id ?? "";
  await agent.deleteSession(view);
  await page.shows(["user: a", "assistant: 2 to a"]);
  expect(page.chat()).toMatchObject({ connectionError: null, error: undefined });
  await page.chat().sendMessage({ text: "b" });
  await page.shows(["user: a", "assistant: 2 to a", "user: b", "assistant: 3 to b"]);
});
