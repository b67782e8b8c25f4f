import { openPage } from "./page.tsx";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { History } from "../../src/client/history.ts";
import { PAGE_MESSAGES, TAIL_MESSAGES } from "../../src/wire/history.ts";
import { addressOf, eventually } from "../clients/harness.ts";
import { startTalk } from "../chat-client/talk.ts";

const LENGTHS = [500, 5_000];

function message(i: number): UIMessage {
  const role = i % 2 === 0 ? ("user" as const) : ("assistant" as const);
  return { id: `m${i}`, role, parts: [{ type: "text", text: `message ${i}` }] };
}

function messages(count: number): UIMessage[] {
  return Array.from({ length: count }, (_, i) => message(i));
}

async function startLong(length: number) {
  const talk = await startTalk({ script: ({ userText }) => `re ${userText}` });
  await talk.agent.persistMessages(messages(length));
  return talk;
}

const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id);
const bytes = (frames: readonly unknown[]) => frames.reduce<number>((sum, one) => sum + JSON.stringify(one).length, 0);

test("a page begins with the end of a conversation, and gets the rest on demand", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host);
  await eventually(() => expect(page.chat()).toMatchObject({ hasOlder: true, isLoadingOlder: false }));
  expect(page.chat().messages).toHaveLength(PAGE_MESSAGES);
  const loading = page.chat().loadOlder();
  await eventually(() => expect(page.chat().messages).toHaveLength(2 * PAGE_MESSAGES));
  await loading;
  expect(page.chat()).toMatchObject({ hasOlder: true, isLoadingOlder: false });
  await page.chat().loadOlder();
  await eventually(() => expect(page.chat()).toMatchObject({ hasOlder: false }));
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
  // Nothing is left: nothing is asked.
  const asked = page.line.sent.length;
  await page.chat().loadOlder();
  expect(page.line.sent).toHaveLength(asked);
});

test("an empty conversation is known to be empty, and a greeting of the app stays", async () => {
  const { host } = await startTalk({ script: [] });
  const greeting = message(1);
  const page = await openPage(host, { getInitialMessages: null, messages: [greeting] });
  await eventually(() => expect(page.chat().isLoaded).toBe(true));
  expect(page.chat().messages).toEqual([greeting]);
});

test("two who ask at once are given one page", async () => {
  const { host } = await startLong(100);
  const page = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  await Promise.all([page.chat().loadOlder(), page.chat().loadOlder()]);
  await eventually(() => expect(page.chat().messages).toHaveLength(2 * PAGE_MESSAGES));
  expect(page.line.sent.filter(({ type }) => type === "perdure_chat_older")).toHaveLength(1);
});

test("what was loaded stays through turns, edits and other tabs", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host);
  const other = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  await page.chat().loadOlder();
  await page.chat().sendMessage({ text: "one" });
  await other.chat().sendMessage({ text: "two" });
  const all = await agent.stored();
  await eventually(() => expect(page.chat().messages).toEqual(all.slice(-2 * PAGE_MESSAGES - 4)));
  await eventually(() => expect(other.chat().messages).toEqual(all.slice(-PAGE_MESSAGES - 4)));
  // An edit far up cuts what came after it, in both.
  await page.chat().sendMessage({ text: "other", messageId: "m70" });
  await eventually(async () => expect(page.chat().messages).toEqual((await agent.stored()).slice(20)));
  await eventually(() =>
    expect(ids(other.chat().messages)).toEqual(ids(page.chat().messages).slice(-other.chat().messages.length)),
  );
  await page.chat().loadOlder();
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("a page that missed more than the end holds shows the end, and loads what lies between", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  page.line.cut();
  await agent.persistMessages(Array.from({ length: 3 * PAGE_MESSAGES }, (_, i) => message(1_000 + i)));
  page.line.mend();
  await eventually(() => expect(page.chat().messages.at(-1)?.id).toBe(`m${1_000 + 3 * PAGE_MESSAGES - 1}`));
  while (page.chat().hasOlder) {
    await page.chat().loadOlder();
    await eventually(() => expect(page.chat().isLoadingOlder).toBe(false));
  }
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("a page that is cut off while it loads can load again", async () => {
  const { host, agent } = await startLong(60);
  const page = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  page.lose(true);
  const lost = page.chat().loadOlder();
  page.line.cut();
  await lost;
  page.lose(false);
  page.line.mend();
  await eventually(() => expect(page.agent()?.identified).toBe(true));
  await page.chat().loadOlder();
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("a change far up reaches a page that has loaded it", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  await page.chat().loadOlder();
  await agent.persistMessages([{ ...message(61), parts: [{ type: "text", text: "corrected" }] }]);
  await eventually(() =>
    expect(page.chat().messages.find(({ id }) => id === "m61")?.parts).toMatchObject([{ text: "corrected" }]),
  );
});

test("clearing leaves nothing to load", async () => {
  const { host } = await startLong(100);
  const page = await openPage(host);
  const other = await openPage(host);
  await eventually(() => expect(page.chat().hasOlder && other.chat().hasOlder).toBe(true));
  page.chat().clearHistory();
  await eventually(() => expect(other.chat()).toMatchObject({ messages: [], hasOlder: false }));
  await eventually(() => expect(page.chat()).toMatchObject({ messages: [], hasOlder: false }));
});

test("a list of the app's own is not taken for all there is", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host, { getInitialMessages: async () => messages(100).slice(30) });
  await eventually(() => expect(page.chat().hasOlder).toBe(true));
  expect(page.chat().messages).toHaveLength(70);
  while (page.chat().hasOlder) {
    await page.chat().loadOlder();
    await eventually(() => expect(page.chat().isLoadingOlder).toBe(false));
  }
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("who wants the whole conversation is told it", async () => {
  const { host, agent } = await startLong(100);
  const page = await openPage(host, { connection: { history: "whole" } });
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
  expect(page.chat().hasOlder).toBe(false);
});

test("what is sent on open and for a turn does not grow with the conversation", async () => {
  const counts: { open: number; turn: number; watch: number; http: number }[] = [];
  for (const length of LENGTHS) {
    const { host } = await startLong(length);
    const page = await openPage(host);
    const other = await openPage(host);
    await eventually(() => expect(other.chat().hasOlder && page.chat().hasOlder).toBe(true));
    const open = bytes(page.line.received);
    const before = [page, other].map(({ line }) => line.received.length);
    await page.chat().sendMessage({ text: "more" });
    await eventually(() => expect(other.chat().messages.at(-1)?.parts.at(-1)).toMatchObject({ text: "re more" }));
    expect(page.chat().messages).toHaveLength(PAGE_MESSAGES + 2);
    const [turn, watch] = [page, other].map(({ line }, i) => bytes(line.received.slice(before[i])));
    const response = await fetch(`http://${addressOf(host)}/agents/talk/x/get-messages?last=${PAGE_MESSAGES}`);
    const http = (await response.text()).length;
    counts.push({ open, turn: turn ?? 0, watch: watch ?? 0, http });
  }
  const [short, long] = counts;
  // Numbers in texts are longer, and a tab may ask twice whether anything streams.
  const slack = 1_000;
  for (const what of ["open", "turn", "watch", "http"] as const) {
    expect(long?.[what], what).toBeLessThanOrEqual((short?.[what] ?? 0) + slack);
  }
});

test("pages over HTTP", async () => {
  const { host, agent } = await startLong(100);
  const url = `http://${addressOf(host)}/agents/talk/x/get-messages`;
  const read: UIMessage[] = [];
  let query = "?last=30";
  for (;;) {
    const response = await fetch(url + query);
    read.unshift(...((await response.json()) as UIMessage[]));
    const before = response.headers.get("perdure-before");
    if (before === null) break;
    query = `?last=30&before=${before}`;
  }
  expect(read).toEqual(await agent.stored());
  for (const bad of ["?last=0", "?last=x", "?before=-1", "?last="]) {
    const response = await fetch(url + bad);
    expect(response.status, bad).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "bad_input" } });
  }
});

test("the end meets what is shown, whatever the two hold", () => {
  const list = messages(30);
  const history = () => new History({ readyState: 1, send() {}, addEventListener() {}, removeEventListener() {} });
  const end = list.slice(-TAIL_MESSAGES);
  expect(history().told([], end, 5)).toEqual(end);
  expect(history().told(list, end, 5)).toEqual(list);
  expect(history().told(list, end, undefined)).toEqual(end);
  expect(history().told(list.slice(0, 5), end, 5)).toEqual(end);
  expect(history().told(list, [], undefined)).toEqual([]);
  // A list that was cut here, and an agent that has not heard of it.
  const crossed = history();
  expect(crossed.told(list, end, 5)).toEqual(list);
  expect(crossed.told(list.slice(0, 15), end, 21)).toEqual(end);
  expect(crossed.told(end, list.slice(5, 15), 6)).toEqual(list.slice(0, 15));
});
