import { readyTab, type Tab } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk } from "./talk.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const WHOLE = ["user: count", "assistant: one two three four"];
const acks = (tab: Tab) => tab.line.sent.filter(({ type }) => type === "cf_agent_stream_resume_ack").length;

async function drop(tab: Tab): Promise<void> {
  const { closes } = tab.line;
  tab.line.cut();
  await eventually(() => expect(tab.line.closes).toBe(closes + 1));
}

/** Cuts the line, and waits until it is open again. */
async function blink(tab: Tab): Promise<void> {
  await drop(tab);
  const { opens } = tab.line;
  tab.line.mend();
  await eventually(() => expect(tab.line.opens).toBeGreaterThan(opens));
}

test("mid-stream: what was said meanwhile is there, nothing is doubled, and the stream goes on", async () => {
  const { host, agent, say, model } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  await drop(tab);
  await tab.lost();
  expect(tab.lines()).toEqual(["user: count", "assistant: one "]);
  await say();
  tab.line.mend();
  await tab.waitFor(({ status, lines }) => status === "streaming" && lines[1] === "assistant: one two ");
  await say(2);
  await tab.settles(WHOLE);
  await tab.matches(agent);
  expect(acks(tab)).toBe(1);
  expect(model.calls).toHaveLength(1);
  await eventually(() => expect(tab.ends).toMatchObject([{ outcome: "completed" }]));
});

test("mid-stream, after every piece", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  for (let piece = 1; piece <= 4; piece++) {
    await say();
    const shown = `assistant: ${long.text.slice(0, piece).join("")}`;
    await tab.waitFor(({ lines }) => lines[1] === shown);
    if (piece < 4) await blink(tab);
  }
  await tab.settles(WHOLE);
  await tab.matches(agent);
});

test("before the turn has begun to answer", async () => {
  const thinking = latch();
  const { host, agent } = await startTalk({
    script: () => "at last",
    answer: async () => {
      await thinking.opened;
      return undefined;
    },
  });
  const tab = await readyTab(host);
  tab.send("count");
  await tab.waitFor(({ status }) => status === "submitted");
  await eventually(() => expect(host.status().live).toBe(1));
  await eventually(async () => expect(await agent.stored()).toHaveLength(1));
  await blink(tab);
  await eventually(() => expect(tab.line.received.some(({ type }) => type === "cf_agent_stream_pending")).toBe(true));
  thinking.open();
  await tab.settles(["user: count", "assistant: at last"]);
  await tab.matches(agent);
  expect(acks(tab)).toBe(1);
});

test("after the model was asked and before its first piece", async () => {
  const { host, agent, model, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  await eventually(() => expect(model.calls).toHaveLength(1));
  await blink(tab);
  await tab.waitFor(({ status }) => status === "submitted");
  await say(4);
  await tab.settles(WHOLE);
  await tab.matches(agent);
});

test("the turn ends while the line is cut: the whole answer is there when it is mended", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("count");
  await say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await drop(tab);
  await say(2);
  await eventually(() => expect(ends).toHaveLength(1));
  tab.line.mend();
  await tab.settles(WHOLE);
  await tab.matches(agent);
  expect(tab.ends).toMatchObject([{ outcome: "completed", replay: true }]);
});

test("a watched turn ends while the line is cut and another begins: the page does not go on showing the first", async () => {
  const { host, agent, say } = await startTalk({ script: [long, long] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("count");
  await say(2);
  await other.waitFor(({ lines, isServerStreaming }) => lines[1] === "assistant: one two " && isServerStreaming);
  await drop(other);
  await say(2);
  await tab.settles(WHOLE);
  tab.send("count");
  await say(2);
  other.line.mend();
  await other.waitFor(({ lines }) => lines[3] === "assistant: one two ");
  await say(2);
  for (const one of [tab, other]) {
    await one.settles([...WHOLE, ...WHOLE]);
    await one.matches(agent);
  }
});

test("the turn begins and ends while the line is cut", async () => {
  const thinking = latch();
  const { host, agent, ends } = await startTalk({
    script: () => "at last",
    answer: async () => {
      await thinking.opened;
      return undefined;
    },
  });
  const tab = await readyTab(host);
  tab.send("count");
  await eventually(async () => expect(await agent.stored()).toHaveLength(1));
  await drop(tab);
  thinking.open();
  await eventually(() => expect(ends).toHaveLength(1));
  tab.line.mend();
  await tab.settles(["user: count", "assistant: at last"]);
  await tab.matches(agent);
});

test("the turn fails while the line is cut: the error is there when it is mended", async () => {
  const { host, say, ends } = await startTalk({ script: [{ ...long, error: new Error("boom"), errorAfter: 3 }] });
  const tab = await readyTab(host);
  tab.send("count");
  await say(1);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  await drop(tab);
  await say(2);
  await eventually(() => expect(ends).toHaveLength(1));
  tab.line.mend();
  await tab.waitFor(({ error }) => error === "boom");
  await tab.settles(["user: count", "assistant: one two three "], "error");
});

test("after the end: nothing changes", async () => {
  const { host, agent } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  for (let i = 0; i < 3; i++) await blink(tab);
  await tab.settles(["user: a", "assistant: ok"]);
  expect(tab.views.at(-1)?.status).toBe("ready");
  tab.send("b");
  await tab.settles(["user: a", "assistant: ok", "user: b", "assistant: ok"]);
  await tab.matches(agent);
});

test("what others did meanwhile is there when the line is mended", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  await drop(tab);
  other.send("a");
  await other.settles(["user: a", "assistant: re a"]);
  tab.line.mend();
  await tab.settles(["user: a", "assistant: re a"]);
  await tab.matches(agent);
});

test("a message sent while the line is cut is sent when it is mended, and stays on the screen", async () => {
  const { host, agent } = await startTalk({ script: ({ userText }) => `re ${userText}` });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: re a"]);
  await drop(tab);
  tab.send("b");
  await tab.waitFor(({ lines }) => lines[2] === "user: b");
  const shown = tab.views.length;
  tab.line.mend();
  await tab.settles(["user: a", "assistant: re a", "user: b", "assistant: re b"]);
  await tab.matches(agent);
  expect(tab.views.slice(shown).every(({ lines }) => lines.includes("user: b"))).toBe(true);
});

test("a tab that watches another tab's turn goes on watching", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("count");
  await say(2);
  await other.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  await blink(other);
  await say(1);
  await other.waitFor(({ lines }) => lines[1] === "assistant: one two three ");
  await say(1);
  for (const one of [tab, other]) {
    await one.settles(WHOLE);
    await one.matches(agent);
  }
});

const pay = tool({ inputSchema: jsonSchema<object>({ type: "object" }), needsApproval: true, execute: () => "paid" });
const place = tool({ inputSchema: jsonSchema<object>({ type: "object" }), outputSchema: jsonSchema<unknown>({}) });

for (const kind of ["approval", "client tool"] as const) {
  test(`while what follows an answer (${kind}) is streamed`, async () => {
    const toolName = kind === "approval" ? "pay" : "place";
    const { host, agent, say } = await startTalk({
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName, input: {}, toolCallId: "c1" }] } : long),
      tools: { pay, place },
    });
    // Each resume is a message of its own until the end (see `client-tools.test.tsx`).
    const tab = await readyTab(host, { stray: kind === "approval" ? 1 : 2 });
    const other = await readyTab(host);
    tab.send("go");
    await tab.waitFor(({ status, lines }) => status === "ready" && lines.length === 2);
    if (kind === "client tool") tab.chat().addToolOutput({ toolCallId: "c1", toolName, output: "here" });
    else approve(tab);
    await say(2);
    await tab.waitFor(({ lines }) => lines.at(-1)?.endsWith("one two ") === true);
    await drop(tab);
    await say(1);
    tab.line.mend();
    await tab.waitFor(({ lines }) => lines.at(-1)?.endsWith("three ") === true);
    await say(1);
    const output = kind === "approval" ? '[pay output-available "paid"]' : '[place output-available "here"]';
    for (const one of [tab, other]) {
      await one.settles(["user: go", `assistant: ${output} one two three four`]);
      await one.matches(agent);
    }
  });

  test(`between an answer (${kind}) and what follows it`, async () => {
    const toolName = kind === "approval" ? "pay" : "place";
    const { host, agent } = await startTalk({
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName, input: {}, toolCallId: "c1" }] } : "on it"),
      tools: { pay, place },
    });
    const tab = await readyTab(host, { stray: 1 });
    tab.send("go");
    await tab.waitFor(({ status, lines }) => status === "ready" && lines.length === 2);
    await drop(tab);
    if (kind === "client tool") tab.chat().addToolOutput({ toolCallId: "c1", toolName, output: "here" });
    else approve(tab);
    tab.line.mend();
    const output = kind === "approval" ? '[pay output-available "paid"]' : '[place output-available "here"]';
    await tab.settles(["user: go", `assistant: ${output} on it`]);
    await tab.matches(agent);
  });
}

function approve(tab: Tab): void {
  const part = tab.chat().messages[1]?.parts.find((one) => "approval" in one);
  if (part === undefined || !("approval" in part)) throw new Error("nothing to approve");
  void tab.chat().addToolApprovalResponse({ id: String(part.approval?.id), approved: true });
}
