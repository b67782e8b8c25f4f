import { openPage } from "./page.tsx";
import { jsonSchema, tool } from "ai";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";
import { useAgent, useAgentChat } from "../../src/client/react.ts";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "../chat-client/talk.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const WHOLE = ["user: count", "assistant: one two three four"];

test("a line that is cut mid-answer shows nothing but the answer", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const page = await openPage(host);
  void page.chat().sendMessage({ text: "count" });
  await say(2);
  await page.shows(["user: count", "assistant: one two "], "streaming");
  page.line.cut();
  await eventually(() => expect(page.line.closes).toBe(1));
  await say();
  expect(page.chat()).toMatchObject({ status: "streaming", error: undefined });
  page.line.mend();
  await page.shows(["user: count", "assistant: one two three "], "streaming");
  await say();
  await page.shows(WHOLE);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
  // The text never shrinks.
  const lengths = page.shown.map(([, answer = ""]) => answer.length);
  expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
});

test("a message that was lost on its way is sent again, once", async () => {
  const { host, agent, turns } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const page = await openPage(host);
  await eventually(() => expect(page.agent()?.identified).toBe(true));
  page.lose(true);
  void page.chat().sendMessage({ text: "a" });
  page.line.cut();
  await eventually(() => expect(page.line.closes).toBe(1));
  page.lose(false);
  page.line.mend();
  await page.shows(["user: a", "assistant: re a"]);
  expect(turns).toHaveLength(1);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("an answer that was lost on its way is given again, once", async () => {
  const { host, agent, turns } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : "Done."),
    tools: {
      pay: tool({ inputSchema: jsonSchema<object>({ type: "object" }), needsApproval: true, execute: () => "paid" }),
    },
  });
  const page = await openPage(host);
  void page.chat().sendMessage({ text: "pay" });
  await page.shows(["user: pay", "assistant: [pay approval-requested]"]);
  page.lose(true);
  page.chat().addToolApprovalResponse({ id: "c1", approved: true });
  page.line.cut();
  await eventually(() => expect(page.line.closes).toBe(1));
  page.lose(false);
  page.line.mend();
  await page.shows(["user: pay", 'assistant: [pay output-available "paid"] Done.']);
  expect(turns).toHaveLength(2);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
});

test("who may not approve reads why, is shown the question again, and nothing is sent again", async () => {
  let asked = 0;
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : "Done."),
    tools: {
      pay: tool({ inputSchema: jsonSchema<object>({ type: "object" }), needsApproval: true, execute: () => "paid" }),
    },
    settings: { authorizeApproval: async () => ++asked > 1 },
  });
  const page = await openPage(host);
  void page.chat().sendMessage({ text: "pay" });
  const open = ["user: pay", "assistant: [pay approval-requested]"];
  await page.shows(open);
  page.chat().addToolApprovalResponse({ id: "c1", approved: true });
  await eventually(() => expect(page.chat().error).toMatchObject({ code: "not_allowed" }));
  expect(page.chat().error?.message).toContain('may not approve the call of "pay"');
  await page.shows(open, "error");
  expect(page.chat()).toMatchObject({ status: "error", isToolContinuation: false });
  page.line.cut();
  await eventually(() => expect(page.line.closes).toBe(1));
  page.line.mend();
  await page.shows(open, "error");
  expect(await agent.hasPendingInteraction()).toBe(true);
  expect(asked).toBe(1);
  page.chat().addToolApprovalResponse({ id: "c1", approved: true });
  await page.shows(["user: pay", 'assistant: [pay output-available "paid"] Done.']);
  expect(asked).toBe(2);
});

test("an answer to a question that this tab does not have is an error of the chat, and sends nothing", async () => {
  const { host, agent } = await startTalk({ script: ["Hello."] });
  const told: Error[] = [];
  const page = await openPage(host, { onError: (error) => void told.push(error) });
  void page.chat().sendMessage({ text: "hi" });
  await page.shows(["user: hi", "assistant: Hello."]);
  const before = page.chat().messages;
  page.chat().addToolApprovalResponse({ id: "c9", approved: true });
  const refused = { code: "not_found", message: expect.stringContaining('"c9"') };
  await eventually(() => expect(page.chat().error).toMatchObject(refused));
  expect(told).toMatchObject([refused]);
  expect(page.chat().messages).toEqual(before);
  expect(before).toEqual(await agent.stored());
});

test("what follows an answered call grows in the same message, with no other beside it", async () => {
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "place", input: {} }] } : "You are here."),
    tools: {
      place: tool({ inputSchema: jsonSchema<object>({ type: "object" }), outputSchema: jsonSchema<unknown>({}) }),
    },
  });
  const page = await openPage(host, {
    onToolCall: ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output: "here" }),
  });
  void page.chat().sendMessage({ text: "where?" });
  await page.shows(["user: where?", 'assistant: [place output-available "here"] You are here.']);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
  expect(Math.max(...page.shown.map((lines) => lines.length))).toBe(2);
});

test("a tool of the page runs by itself, and its failure is the call's error", async () => {
  const { host } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "place", input: { q: 1 } }] } : "Thanks."),
    tools: {
      place: tool({ inputSchema: jsonSchema<object>({ type: "object" }), outputSchema: jsonSchema<unknown>({}) }),
    },
  });
  const page = await openPage(host, { tools: { place: { execute: (input: unknown) => ({ got: input }) } } });
  void page.chat().sendMessage({ text: "where?" });
  await page.shows(["user: where?", 'assistant: [place output-available {"got":{"q":1}}] Thanks.']);
  const broken = await openPage(host, {
    connection: { name: "y" },
    onToolCall: () => {
      throw new Error("no permission");
    },
  });
  void broken.chat().sendMessage({ text: "where?" });
  await broken.shows(["user: where?", "assistant: [place output-error]"]);
  expect(broken.chat().messages[1]?.parts.at(-1)).toMatchObject({ errorText: "no permission" });
});

test("two components on one agent show the same chat", async () => {
  const { host, agent, turns } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const page = await openPage(host, { hooks: 2 });
  void page.chat(1).sendMessage({ text: "a" });
  for (const index of [0, 1]) await page.shows(["user: a", "assistant: re a"], "ready", index);
  void page.chat(0).sendMessage({ text: "b" });
  const all = ["user: a", "assistant: re a", "user: b", "assistant: re b"];
  for (const index of [0, 1]) await page.shows(all, "ready", index);
  expect(page.chat(0).messages).toBe(page.chat(1).messages);
  await eventually(async () => expect(page.chat().messages).toEqual(await agent.stored()));
  expect(turns).toHaveLength(2);
});

test("StrictMode: one connection, one question, one answer", async () => {
  const { host, turns } = await startTalk({ script: () => "ok" });
  const page = await openPage(host, { strict: true });
  void page.chat().sendMessage({ text: "a" });
  await page.shows(["user: a", "assistant: ok"]);
  expect(page.line.opens).toBe(1);
  expect(page.line.sent.filter(({ type }) => type === "cf_agent_use_chat_request")).toHaveLength(1);
  expect(turns).toHaveLength(1);
});

test("only the new message is sent, whatever the length of the chat", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const page = await openPage(host);
  for (const text of ["a", "b", "c"]) await page.chat().sendMessage({ text });
  const requests = page.line.sent.filter(({ type }) => type === "cf_agent_use_chat_request");
  const bodies = requests.map(({ init }) => JSON.parse((init as { body: string }).body) as { messages: unknown[] });
  expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 1, 1]);
});

test("messages that did not change stay the same objects", async () => {
  const { host, say } = await startTalk({ script: [{ text: "first" }, long] });
  const page = await openPage(host);
  await page.chat().sendMessage({ text: "a" });
  const before = page.chat().messages;
  void page.chat().sendMessage({ text: "count" });
  await say(2);
  await eventually(() => expect(page.lines().at(-1)).toBe("assistant: one two "));
  expect(page.chat().messages[0]).toBe(before[0]);
  expect(page.chat().messages[1]).toBe(before[1]);
  await say(2);
  await eventually(() => expect(page.chat().status).toBe("ready"));
});

test("leaving the page with cancelOnClientAbort stops the turn", async () => {
  const { host, say, ends } = await startTalk({ script: [long] });
  const page = await openPage(host, { cancelOnClientAbort: true });
  void page.chat().sendMessage({ text: "count" });
  await say(2);
  await page.shows(["user: count", "assistant: one two "], "streaming");
  await page.unmount();
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
});

test("data that cannot be made ready is an error of the chat, and the next message works", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const auth: { token?: string } = {};
  const page = await openPage(host, {
    body: async () => {
      if (auth.token === undefined) throw new Error("no token");
      return auth;
    },
  });
  await page.chat().sendMessage({ text: "a" });
  await eventually(() => expect(page.chat()).toMatchObject({ status: "error", error: { message: "no token" } }));
  auth.token = "t";
  void page.chat().sendMessage({ text: "b" });
  await page.shows(["user: a", "user: b", "assistant: ok"]);
});

test("a server can draw the page: nothing is loaded or opened there", () => {
  const { document: page } = globalThis;
  Reflect.deleteProperty(globalThis, "document");
  try {
    const Page = () => {
      const agent = useAgent({ agent: "Talk" });
      const { messages, status } = useAgentChat({ agent });
      return createElement("p", null, `${messages.length} ${status}`);
    };
    expect(renderToString(createElement(Page))).toBe("<p>0 ready</p>");
  } finally {
    Object.assign(globalThis, { document: page });
  }
});

test("an agent that cannot be reached fails the page that loads its messages", async () => {
  const page = await openPage({ port: 1 }, { connection: { maxRetries: 0 } });
  expect(page.error()).toBeInstanceOf(TypeError);
});
