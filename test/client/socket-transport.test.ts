import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { SocketChatTransport, type SocketChatTransportOptions } from "../../src/client/index.ts";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk } from "../chat-client/talk.ts";
import { connect } from "./harness.ts";
import { chatOver } from "./talk-client.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const WHOLE = ["user: count", "assistant: one two three four"];

function open(host: { readonly port: number }, options: Partial<SocketChatTransportOptions> = {}) {
  const { client, line } = connect<unknown>(host, { agent: "Talk" });
  return { client, line, ...chatOver(new SocketChatTransport({ agent: client, ...options })) };
}

test("a message is sent and its answer streamed; only the new message goes over the wire", async () => {
  const { host, agent, turns } = await startTalk({ script: ({ turn }) => `answer ${turn}` });
  const tab = open(host, { body: () => ({ zone: "UTC", level: "hook" }) });
  for (const turn of [0, 1, 2]) {
    await tab.chat.sendMessage({ text: `question ${turn}` }, turn === 1 ? { body: { level: "message" } } : undefined);
  }
  const all = [0, 1, 2].flatMap((n) => [`user: question ${n}`, `assistant: answer ${n}`]);
  await tab.settles(all);
  expect(tab.chat.messages).toEqual(await agent.stored());
  const bodies = tab.line.sent.map(
    ({ init }) => JSON.parse((init as { body: string }).body) as { messages: unknown[] },
  );
  expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 1, 1]);
  expect(turns.map(({ body }) => body?.level)).toEqual(["hook", "message", "hook"]);
});

test("regenerate and edit", async () => {
  const { host, agent } = await startTalk({ script: ({ index, userText }) => `${userText}-${index}` });
  const tab = open(host);
  await tab.chat.sendMessage({ text: "a" });
  await tab.chat.sendMessage({ text: "b" });
  await tab.chat.regenerate({ messageId: tab.chat.messages[1]?.id });
  await tab.settles(["user: a", "assistant: a-2"]);
  await tab.chat.sendMessage({ text: "A", messageId: tab.chat.messages[0]?.id });
  await tab.settles(["user: A", "assistant: A-3"]);
  expect(tab.chat.messages).toEqual(await agent.stored());
});

test("a line that is cut mid-stream goes unnoticed", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  for (const shown of ["one ", "one two ", "one two three "]) {
    await say();
    await tab.shows("user: count", `assistant: ${shown}`);
    const { opens } = tab.line;
    tab.line.cut();
    await eventually(() => expect(tab.client.readyState).toBe(0));
    expect(tab.chat.status).toBe("streaming");
    tab.line.mend();
    await eventually(() => expect(tab.line.opens).toBe(opens + 1));
  }
  await say();
  await tab.settles(WHOLE);
  expect(tab.chat.messages).toEqual(await agent.stored());
});

test("the turn ends while the line is cut: its end is there when it is mended", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  await say(2);
  await tab.shows("user: count", "assistant: one two ");
  tab.line.cut();
  await say(2);
  await eventually(() => expect(ends).toHaveLength(1));
  tab.line.mend();
  await tab.settles(WHOLE);
  expect(tab.chat.messages).toEqual(await agent.stored());
});

test("a new page goes on with the stream from its beginning, and can stop it", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  await say(2);
  await tab.shows("user: count", "assistant: one two ");
  const again = open(host);
  again.chat.messages = (await agent.stored()).slice(0, 1);
  void again.chat.resumeStream();
  await again.shows("user: count", "assistant: one two ");
  await say();
  await again.shows("user: count", "assistant: one two three ");
  await again.chat.stop();
  await again.settles(["user: count", "assistant: one two three "]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await tab.settles(["user: count", "assistant: one two three "]);
});

test("a page that comes before the first chunk waits for it; one that comes when nothing runs does not", async () => {
  const thinking = latch();
  const { host, agent } = await startTalk({
    script: () => "at last",
    answer: async () => {
      await thinking.opened;
      return undefined;
    },
  });
  const idle = open(host);
  await idle.chat.resumeStream();
  expect(idle.chat.status).toBe("ready");
  void idle.chat.sendMessage({ text: "a" });
  await eventually(async () => expect(await agent.stored()).toHaveLength(1));
  const late = open(host);
  late.chat.messages = await agent.stored();
  void late.chat.resumeStream();
  await eventually(() => expect(late.line.received.map(({ type }) => type)).toContain("cf_agent_stream_pending"));
  thinking.open();
  await late.settles(["user: a", "assistant: at last"]);
});

test("stop ends the turn on the server and keeps what there was", async () => {
  const { host, agent, say, ends, model } = await startTalk({ script: [long, "again"] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  await say(2);
  await tab.shows("user: count", "assistant: one two ");
  await tab.chat.stop();
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
  await tab.chat.sendMessage({ text: "more" });
  await tab.settles(["user: count", "assistant: one two ", "user: more", "assistant: again"]);
  expect((await agent.stored()).length).toBe(4);
});

test("an error of the turn is the chat's error, and the next message works", async () => {
  const { host } = await startTalk({ script: ({ index }) => (index === 0 ? { error: new Error("boom") } : "fine") });
  const tab = open(host);
  await tab.chat.sendMessage({ text: "a" });
  expect(tab.chat).toMatchObject({ status: "error", error: { message: "boom" } });
  await tab.chat.sendMessage({ text: "b" });
  await tab.settles(["user: a", "user: b", "assistant: fine"]);
});

test("tools that run here are announced", async () => {
  const { host, turns } = await startTalk({
    script: () => "ok",
    tools: { other: tool({ inputSchema: jsonSchema<object>({ type: "object" }) }) },
  });
  const parameters = { type: "object" };
  const tab = open(host, { tools: { here: { description: "d", parameters, execute: () => 1 }, there: {} } });
  await tab.chat.sendMessage({ text: "a" });
  expect(turns[0]?.clientTools).toEqual([{ name: "here", description: "d", parameters }]);
});
