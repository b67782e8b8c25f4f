import { openTab, readyTab } from "./harness.tsx";
import { jsonSchema, lastAssistantMessageIsCompleteWithToolCalls, tool } from "ai";
import { createToolsFromClientSchemas } from "perdure";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

const inputSchema = jsonSchema<object>({ type: "object" });
const place = tool({ inputSchema, outputSchema: jsonSchema<unknown>({}) });

test("a page that continues by itself (sendAutomaticallyWhen) goes on in the same message", async () => {
  const { host, agent, turns } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "place", input: {} }] } : "You are here."),
    tools: { place },
  });
  const tab = await readyTab(host, {
    autoContinueAfterToolResult: false,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output: "here" }),
  });
  tab.send("where?");
  await tab.settles(["user: where?", 'assistant: [place output-available "here"] You are here.']);
  await tab.matches(agent);
  expect(turns).toHaveLength(2);
});

test("tools that the page resolves by itself", async () => {
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "color", input: { hue: 3 } }] } : "red it is"),
    tools: ({ clientTools }) => createToolsFromClientSchemas(clientTools),
  });
  const tab = await readyTab(host, {
    stray: 1,
    experimental_automaticToolResolution: true,
    tools: { color: { parameters: { type: "object" }, execute: (input) => JSON.stringify(input) } },
  });
  tab.send("pick");
  await tab.settles(["user: pick", `assistant: [color output-available ${JSON.stringify('{"hue":3}')}] red it is`]);
  await tab.matches(agent);
});

test("a button answers a tool that nobody runs by itself", async () => {
  const { host, agent } = await startTalk({
    script: ({ step }) =>
      step === 0 ? { toolCalls: [{ toolName: "place", input: {}, toolCallId: "c1" }] } : "Thanks.",
    tools: { place },
  });
  const tab = await readyTab(host, { stray: 1 });
  tab.send("where?");
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: [place input-available]" && status === "ready");
  void tab.chat().addToolResult({ tool: "place", toolCallId: "c1", output: "there" });
  await tab.settles(["user: where?", 'assistant: [place output-available "there"] Thanks.']);
  await tab.matches(agent);
});

test("stop before what follows an answer has begun: nothing hangs, and what follows is there in the end", async () => {
  const { host, agent } = await startTalk({
    script: ({ step }) =>
      step === 0 ? { toolCalls: [{ toolName: "place", input: {}, toolCallId: "c1" }] } : "Thanks.",
    tools: { place },
  });
  const tab = await readyTab(host, { stray: 1 });
  tab.send("where?");
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: [place input-available]" && status === "ready");
  tab.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "there" });
  // The hook does not know yet what it would have to stop.
  await tab.chat().stop();
  await tab.settles(["user: where?", 'assistant: [place output-available "there"] Thanks.']);
  await tab.matches(agent);
});

test("clear while what follows an answer streams", async () => {
  const { host, agent, say } = await startTalk({
    script: ({ step }) =>
      step === 0
        ? { toolCalls: [{ toolName: "place", input: {}, toolCallId: "c1" }] }
        : { text: ["one ", "two"], delayMs: 1 },
    tools: { place },
  });
  const tab = await readyTab(host, { stray: 2 });
  const other = await readyTab(host);
  tab.send("where?");
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: [place input-available]" && status === "ready");
  tab.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "there" });
  await say();
  await other.waitFor(({ lines }) => lines[1]?.endsWith("one ") === true);
  other.chat().clearHistory();
  await tab.settles([]);
  await other.settles([]);
  expect(await agent.stored()).toEqual([]);
});

test("a long answer is replayed whole to a page that comes late", async () => {
  const words = Array.from({ length: 3000 }, (_, i) => `${i} `);
  const { host, agent, say, clock } = await startTalk({ script: [{ text: words, delayMs: 1 }] });
  const tab = await readyTab(host, { throttle: 50 });
  tab.send("count");
  await say();
  await clock.advance(1500);
  const late = await openTab(host, { throttle: 50 });
  await late.waitFor(({ lines, status }) => status === "streaming" && (lines[1]?.length ?? 0) > 5000);
  while (clock.pending() > 0) await clock.advance(500);
  for (const one of [tab, late]) {
    await one.settles(["user: count", `assistant: ${words.join("")}`]);
    await one.matches(agent);
  }
  await eventually(() => expect(late.ends).toHaveLength(1));
});
