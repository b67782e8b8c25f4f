import { openTab, readyTab } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };

test("clear when nothing runs empties every tab and the store", async () => {
  const { host, agent } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await other.settles(["user: a", "assistant: ok"]);
  tab.chat().clearHistory();
  await tab.settles([]);
  await other.settles([]);
  expect(await agent.stored()).toEqual([]);
  const again = await readyTab(host);
  await again.settles([]);
  tab.send("b");
  for (const one of [tab, other, again]) await one.settles(["user: b", "assistant: ok"]);
});

for (const who of ["the tab that asked", "another tab"] as const) {
  test(`clear mid-stream by ${who} stops the turn, and nothing of it comes back`, async () => {
    const { host, agent, say, model } = await startTalk({ script: [long, "fresh"] });
    const tab = await readyTab(host);
    const other = await readyTab(host);
    tab.send("a");
    await say(2);
    for (const one of [tab, other]) await one.waitFor(({ lines }) => lines[1] === "assistant: one two ");
    (who === "another tab" ? other : tab).chat().clearHistory();
    await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
    await tab.settles([]);
    await other.settles([]);
    expect(await agent.stored()).toEqual([]);
    tab.send("b");
    await tab.settles(["user: b", "assistant: fresh"]);
    await other.settles(["user: b", "assistant: fresh"]);
    await tab.matches(agent);
  });
}

test("clear ends turns that wait, and they never run", async () => {
  const { host, agent, say, model } = await startTalk({ script: [long, "fresh"] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await say(1);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  other.send("b");
  await tab.waitFor(({ lines }) => lines.includes("user: b"));
  tab.chat().clearHistory();
  await tab.settles([]);
  await other.settles([]);
  expect(other.ends.map(({ outcome }) => outcome).sort()).toEqual(["aborted", "skipped"]);
  other.send("c");
  await other.settles(["user: c", "assistant: fresh"]);
  await tab.settles(["user: c", "assistant: fresh"]);
  expect(model.calls).toHaveLength(2);
  await other.matches(agent);
});

test("clear before the first piece", async () => {
  const { host, agent, model } = await startTalk({ script: [{ hang: "before" }, "fresh"] });
  const tab = await readyTab(host);
  tab.send("a");
  await eventually(() => expect(model.calls).toHaveLength(1));
  const late = await openTab(host);
  await late.waitFor(({ status }) => status === "submitted");
  tab.chat().clearHistory();
  await tab.settles([]);
  await late.settles([]);
  tab.send("b");
  await tab.settles(["user: b", "assistant: fresh"]);
  await late.settles(["user: b", "assistant: fresh"]);
  await tab.matches(agent);
});

test("clear while an approval is asked for: nobody can answer it any more", async () => {
  const { host, agent, turns } = await startTalk({
    script: [{ toolCalls: [{ toolName: "pay", input: {} }] }],
    tools: {
      pay: tool({ inputSchema: jsonSchema<object>({ type: "object" }), needsApproval: true, execute: () => "paid" }),
    },
  });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("pay");
  await other.waitFor(
    ({ lines, isServerStreaming }) => lines[1] === "assistant: [pay approval-requested]" && !isServerStreaming,
  );
  const part = tab.chat().messages[1]?.parts.find((one) => "approval" in one);
  const id = part !== undefined && "approval" in part ? String(part.approval?.id) : "";
  tab.chat().clearHistory();
  await other.settles([]);
  other.line.sent.length = 0;
  tab.chat().addToolApprovalResponse({ id, approved: true });
  expect(await agent.answerApproval(id, true)).toBe(false);
  // Perdure's own hook says that there is no such question.
  tab.chat().clearError();
  await tab.settles([]);
  expect(turns).toHaveLength(1);
});

test("server code clears every tab", async () => {
  const { host, agent, say } = await startTalk({ script: [long] });
  const tab = await readyTab(host);
  tab.send("a");
  await say(1);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one ");
  await agent.clearMessages();
  await tab.settles([]);
  expect(await agent.stored()).toEqual([]);
});

test("a tab that was cut off while another one cleared is empty when it comes back", async () => {
  const { host, agent } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await other.settles(["user: a", "assistant: ok"]);
  other.line.cut();
  await eventually(() => expect(other.line.closes).toBe(1));
  tab.chat().clearHistory();
  await eventually(async () => expect(await agent.stored()).toEqual([]));
  other.line.mend();
  await other.settles([]);
});

test("a greeting of the page's own stays while nothing was said", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const first = await readyTab(host);
  first.send("a");
  await first.settles(["user: a", "assistant: ok"]);
  first.chat().clearHistory();
  const greeting = { id: "g", role: "assistant" as const, parts: [{ type: "text" as const, text: "Welcome!" }] };
  const tab = await readyTab(host, { getInitialMessages: null, messages: [greeting], stray: 1 });
  await tab.settles(["assistant: Welcome!"]);
});
