import { readyTab } from "./harness.tsx";
import { createUIMessageStream, createUIMessageStreamResponse, jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

test("a message is sent, streamed piece by piece, and stored as it was shown", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [{ text: ["Hel", "lo ", "there"], delayMs: 1 }] });
  const tab = await readyTab(host);
  expect(tab.view()).toMatchObject({ status: "ready", lines: [], isStreaming: false });
  tab.send("hi");
  await tab.waitFor(({ status }) => status === "submitted");
  await say();
  await tab.waitFor(({ status, lines }) => status === "streaming" && lines[1] === "assistant: Hel");
  expect(tab.view()).toMatchObject({ isStreaming: true, isServerStreaming: false });
  const [, live] = tab.chat().messages;
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: Hello ");
  await say();
  await tab.settles(["user: hi", "assistant: Hello there"]);
  expect(tab.chat().messages[1]?.id).toBe(live?.id);
  await tab.matches(agent);
  expect(statuses(tab.views)).toEqual(["ready", "submitted", "streaming", "ready"]);
  await eventually(() =>
    expect(ends).toMatchObject([{ status: "completed", continuation: false, message: { id: live?.id } }]),
  );
  // Who asked has the answer from the stream, and needs no transcript.
  const told = tab.line.received.filter(({ type, connect }) => type === "cf_agent_chat_messages" && connect !== true);
  expect(told).toEqual([]);
});

function statuses(views: readonly { status: string }[]): string[] {
  return views.map(({ status }) => status).filter((status, i, all) => status !== all[i - 1]);
}

test("several turns stand one after the other, and the model is given all of them", async () => {
  const { host, agent, model } = await startTalk({ script: ({ turn }) => `answer ${turn}` });
  const tab = await readyTab(host);
  for (const turn of [0, 1, 2]) {
    tab.send(`question ${turn}`);
    await tab.waitFor(({ lines, status }) => lines.length === 2 * turn + 2 && status === "ready");
  }
  expect(tab.lines()).toEqual([0, 1, 2].flatMap((n) => [`user: question ${n}`, `assistant: answer ${n}`]));
  await tab.matches(agent);
  expect(model.calls.at(-1)?.prompt).toHaveLength(5);
});

test("reasoning, sources, files and tools of the server arrive as they are stored", async () => {
  const { host, agent } = await startTalk({
    script: ({ step }) =>
      step === 0
        ? {
            reasoning: ["so ", "then"],
            text: "let me look",
            toolCalls: [{ toolName: "add", input: { a: 1, b: 2 }, chunkSize: 3 }],
          }
        : {
            text: "it is 3",
            sources: [{ url: "https://example.com/", title: "Sums" }],
            files: [{ mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }],
          },
    tools: {
      add: tool({
        inputSchema: jsonSchema<{ a: number; b: number }>({ type: "object" }),
        execute: ({ a, b }) => a + b,
      }),
    },
  });
  const asked: string[] = [];
  const tab = await readyTab(host, { onToolCall: ({ toolCall }) => void asked.push(toolCall.toolName) });
  tab.send("1 + 2?");
  await tab.settles([
    "user: 1 + 2?",
    "assistant: (so then) let me look [add output-available 3] it is 3 <source-url> <file>",
  ]);
  // A tool that the server runs is never the client's business.
  expect(asked).toEqual([]);
  const stored = await agent.stored();
  expect(tab.chat().messages.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  const again = await readyTab(host);
  expect(again.lines()).toEqual(tab.lines());
});

test("a plain text response is one text", async () => {
  const { host, agent } = await startTalk({ script: [], answer: () => new Response("just text, with ümläuts") });
  const tab = await readyTab(host);
  tab.send("hi");
  await tab.settles(["user: hi", "assistant: just text, with ümläuts"]);
  await tab.matches(agent);
});

test("data parts: one with an id is replaced, one without is added, a transient one is shown and not kept", async () => {
  const { host, agent } = await startTalk({
    script: [],
    answer: () => {
      const stream = createUIMessageStream({
        execute({ writer }) {
          writer.write({ type: "start" });
          writer.write({ type: "data-progress", id: "p", data: 10 });
          writer.write({ type: "data-log", data: "a" });
          writer.write({ type: "data-ping", data: "now", transient: true });
          writer.write({ type: "data-progress", id: "p", data: 90 });
          writer.write({ type: "data-log", data: "b" });
          writer.write({ type: "finish" });
        },
      });
      return createUIMessageStreamResponse({ stream });
    },
  });
  const seen: unknown[] = [];
  const others: unknown[] = [];
  const tab = await readyTab(host, { onData: ({ type, data }) => void seen.push([type, data]) });
  const other = await readyTab(host, { onData: ({ type, data }) => void others.push([type, data]) });
  tab.send("go");
  const shown = ["user: go", 'assistant: {data-progress 90} {data-log "a"} {data-log "b"}'];
  await tab.settles(shown);
  await other.settles(shown);
  const all = [
    ["data-progress", 10],
    ["data-log", "a"],
    ["data-ping", "now"],
    ["data-progress", 90],
    ["data-log", "b"],
  ];
  expect(seen).toEqual(all);
  expect(others).toEqual(all);
  expect(JSON.stringify(await agent.stored())).not.toContain("data-ping");
  await tab.matches(agent);
});

test("metadata of the answer is shown and kept", async () => {
  const { host, agent } = await startTalk({
    script: [],
    answer: () => {
      const stream = createUIMessageStream({
        execute({ writer }) {
          writer.write({ type: "start", messageMetadata: { model: "m" } });
          writer.write({ type: "text-start", id: "1" });
          writer.write({ type: "text-delta", id: "1", delta: "done" });
          writer.write({ type: "text-end", id: "1" });
          writer.write({ type: "finish", messageMetadata: { tokens: 3 } });
        },
      });
      return createUIMessageStreamResponse({ stream });
    },
  });
  const tab = await readyTab(host);
  tab.send("go");
  await tab.settles(["user: go", "assistant: done"]);
  expect(tab.chat().messages[1]?.metadata).toEqual({ model: "m", tokens: 3 });
  await tab.matches(agent);
});

test("an id that the stream brings itself is the id of the stored answer", async () => {
  const { host, agent } = await startTalk({
    script: [],
    answer: () =>
      createUIMessageStreamResponse({
        stream: createUIMessageStream({
          generateId: () => "of-the-app",
          execute({ writer }) {
            writer.write({ type: "start", messageId: "of-the-app" });
            writer.write({ type: "data-x", data: 1 });
            writer.write({ type: "finish" });
          },
        }),
      }),
  });
  const tab = await readyTab(host);
  tab.send("go");
  await tab.settles(["user: go", "assistant: {data-x 1}"]);
  expect(tab.chat().messages[1]?.id).toBe("of-the-app");
  expect((await agent.stored())[1]?.id).toBe("of-the-app");
});

test("a turn without an answer ends ready, with no empty message", async () => {
  const { host, agent, ends } = await startTalk({ script: [], answer: () => new Response(null) });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("hi");
  await tab.waitFor(() => tab.ends.length === 1);
  await tab.settles(["user: hi"]);
  await other.settles(["user: hi"]);
  expect(await agent.stored()).toHaveLength(1);
  await eventually(() => expect(ends).toMatchObject([{ status: "completed", message: undefined }]));
});

test("custom data reaches the turn: the hook's, the request's, and the one of a single message", async () => {
  const { host, turns } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host, {
    body: () => ({ zone: "UTC", level: "hook" }),
    prepareSendMessagesRequest: ({ trigger }) => ({ body: { level: "request", trigger2: trigger } }),
  });
  tab.send("a", { body: { level: "message" } });
  await tab.settles(["user: a", "assistant: ok"]);
  tab.send("b");
  await tab.settles(["user: a", "assistant: ok", "user: b", "assistant: ok"]);
  expect(turns.map(({ body }) => body)).toEqual([
    { zone: "UTC", level: "message", trigger2: "submit-message" },
    { zone: "UTC", level: "request", trigger2: "submit-message" },
  ]);
  const requests = tab.line.sent.filter(({ type }) => type === "cf_agent_use_chat_request");
  expect(turns.map(({ requestId }) => requestId)).toEqual(requests.map(({ id }) => id));
});

test("what the public hook sends of prepareSendMessagesRequest is its body: a frame has no headers", async () => {
  const { host, turns } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host, {
    prepareSendMessagesRequest: async () => ({ body: { zone: "UTC" }, headers: { authorization: "Bearer x" } }),
  });
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  expect(turns.map(({ body }) => body)).toEqual([{ zone: "UTC" }]);
  const [request] = tab.line.sent.filter(({ type }) => type === "cf_agent_use_chat_request");
  expect(Object.keys(request?.["init"] as object)).toEqual(["method", "body"]);
});

test("without custom data a turn is given none", async () => {
  const { host, turns } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  expect(turns[0]).toMatchObject({ body: undefined, clientTools: undefined, continuation: false });
});

test("files and metadata of a user's message are kept", async () => {
  const { host, agent } = await startTalk({ script: () => "seen" });
  const tab = await readyTab(host);
  const file = {
    type: "file" as const,
    mediaType: "text/plain",
    filename: "a.txt",
    url: "data:text/plain;base64,aGk=",
  };
  void tab.chat().sendMessage({ text: "look", files: [file], metadata: { from: "test" } });
  await tab.settles(["user: <file> look", "assistant: seen"]);
  await tab.matches(agent);
  expect(tab.chat().messages[0]).toMatchObject({ metadata: { from: "test" } });
});

test("with the hook's own throttle the end is the same", async () => {
  const words = Array.from({ length: 300 }, (_, i) => `${i} `);
  const { host, agent } = await startTalk({ script: [{ text: words }] });
  const tab = await readyTab(host, { throttle: 50 });
  const other = await readyTab(host, { throttle: 50 });
  tab.send("count");
  const shown = ["user: count", `assistant: ${words.join("")}`];
  await tab.settles(shown);
  await other.settles(shown);
  await tab.matches(agent);
  await other.matches(agent);
});
