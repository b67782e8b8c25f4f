import { openTab, readyTab, type Tab, type TabOptions } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { createToolsFromClientSchemas } from "perdure";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk, type TalkOptions } from "./talk.ts";

/*
 * The answering tab and its second message
 *
 * The tab that answers a call gets what follows as a resumed stream, and the AI SDK starts a resumed stream from an
 * empty message (unless the last one waits for an approved tool). So this tab, and no other, shows the continuation as
 * a second answer under a random id until the end of the turn, when the whole conversation comes and puts it right.
 * `stray` allows that second message, and nothing else.
 */

const input = { inputSchema: jsonSchema<{ q?: string }>({ type: "object" }) };
/** Declared on the server, run by the client. */
const place = tool({ ...input, outputSchema: jsonSchema<unknown>({}) });
const asks = (...calls: string[]) => ({
  toolCalls: calls.map((toolCallId) => ({ toolName: "place", input: { q: toolCallId }, toolCallId })),
});

const answering = (output: unknown = "Paris"): TabOptions => ({
  stray: 1,
  onToolCall: ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output }),
});

function startPlace(options: Partial<TalkOptions> = {}) {
  const script: TalkOptions["script"] = ({ step }) => (step === 0 ? asks("c1") : "You are in Paris.");
  return startTalk({ script, tools: { place }, ...options });
}

const DONE = ["user: where?", 'assistant: [place output-available "Paris"] You are in Paris.'];
const results = (tab: Tab) => tab.line.sent.filter(({ type }) => type === "cf_agent_tool_result");

test("a tool without execute is run by the page, and the answer goes on in the same message", async () => {
  const { host, agent, turns, model } = await startPlace();
  const tab = await readyTab(host, answering());
  const other = await readyTab(host);
  tab.send("where?");
  for (const one of [tab, other]) {
    await one.settles(DONE);
    await one.matches(agent);
  }
  expect(turns.map(({ continuation }) => continuation)).toEqual([false, true]);
  expect(model.calls).toHaveLength(2);
  expect(tab.views.some(({ isToolContinuation }) => isToolContinuation)).toBe(true);
  expect(other.views.some(({ isToolContinuation }) => isToolContinuation)).toBe(false);
  await eventually(() => expect(tab.ends.map(({ outcome }) => outcome)).toEqual(["completed", "completed"]));
  await eventually(() => expect(other.ends).toHaveLength(2));
});

test("while the page runs a tool it is busy, and the other tab is not asked to wait", async () => {
  const { host, agent } = await startPlace();
  const running = latch();
  const tab = await readyTab(host, {
    stray: 1,
    async onToolCall({ toolCall, addToolOutput }) {
      await running.opened;
      addToolOutput({ toolCallId: toolCall.toolCallId, output: "Paris" });
    },
  });
  const other = await readyTab(host);
  tab.send("where?");
  await tab.waitFor(({ status, isServerStreaming }) => status === "ready" && isServerStreaming);
  await other.waitFor(
    ({ lines, isServerStreaming }) => lines[1] === "assistant: [place input-available]" && !isServerStreaming,
  );
  expect(await agent.hasPendingInteraction()).toBe(true);
  running.open();
  await tab.settles(DONE);
  await other.settles(DONE);
  expect(await agent.hasPendingInteraction()).toBe(false);
});

test("the answering tab streams what follows, and is not ready before it ends", async () => {
  const { host, say } = await startPlace({
    script: ({ step }) => (step === 0 ? asks("c1") : { text: ["You are ", "in Paris."], delayMs: 1 }),
  });
  const tab = await readyTab(host, answering());
  const other = await readyTab(host);
  tab.send("where?");
  await say();
  await tab.waitFor(({ status, lines }) => status === "streaming" && lines.at(-1)?.endsWith("You are ") === true);
  expect(tab.view().isToolContinuation).toBe(true);
  await other.waitFor(({ lines }) => lines[1] === 'assistant: [place output-available "Paris"] You are ');
  await say();
  await tab.settles(DONE);
  await other.settles(DONE);
});

test("tools that only the page knows", async () => {
  const { host, agent, turns, model } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "color", input: { hue: 3 } }] } : "red it is"),
    tools: ({ clientTools }) => createToolsFromClientSchemas(clientTools),
  });
  const parameters = { type: "object" as const, properties: { hue: { type: "number" as const } } };
  const color = { description: "A color.", parameters, execute: () => Promise.resolve("red") };
  const tab = await readyTab(host, {
    stray: 1,
    tools: { color },
    async onToolCall({ toolCall, addToolOutput }) {
      addToolOutput({ toolCallId: toolCall.toolCallId, output: await color.execute() });
    },
  });
  tab.send("pick");
  await tab.settles(["user: pick", 'assistant: [color output-available "red"] red it is']);
  await tab.matches(agent);
  const declared = [{ name: "color", description: "A color.", parameters }];
  expect(turns.map(({ clientTools }) => clientTools)).toEqual([declared, declared]);
  expect(model.calls[0]?.tools).toMatchObject([{ name: "color", description: "A color.", inputSchema: parameters }]);
});

test("tools of a page are gone with a request that has none", async () => {
  const { host, turns } = await startTalk({ script: () => "ok" });
  const tab = await readyTab(host, { tools: { color: { parameters: { type: "object" }, execute: () => "red" } } });
  tab.send("a");
  await tab.settles(["user: a", "assistant: ok"]);
  await tab.unmount();
  const plain = await readyTab(host);
  plain.send("b");
  await plain.waitFor(({ lines, status }) => lines.length === 4 && status === "ready");
  expect(turns.map(({ clientTools }) => clientTools?.length)).toEqual([1, undefined]);
});

test("an error as the result ends the call and starts nothing; the next message goes on", async () => {
  const { host, agent, model } = await startPlace({
    script: ({ index }) => (index === 0 ? asks("c1") : "Never mind."),
  });
  const tab = await readyTab(host, {
    onToolCall: ({ toolCall, addToolOutput }) =>
      addToolOutput({ toolCallId: toolCall.toolCallId, state: "output-error", errorText: "no permission" }),
  });
  tab.send("where?");
  const failed = 'assistant: [place output-error "no permission"]';
  await tab.waitFor(({ lines, status }) => lines[1] === failed && status === "ready");
  await tab.matches(agent);
  expect(model.calls).toHaveLength(1);
  tab.send("ok");
  await tab.settles(["user: where?", failed, "user: ok", "assistant: Never mind."]);
  await tab.matches(agent);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("no permission");
});

for (const order of [
  ["c1", "c2", "c3"],
  ["c3", "c1", "c2"],
]) {
  test(`parallel calls are all awaited, answered in the order ${order.join(" ")}; then one turn follows`, async () => {
    const { host, agent, turns, model } = await startPlace({
      script: ({ step }) => (step === 0 ? asks("c1", "c2", "c3") : "All three."),
    });
    const tab = await readyTab(host, { stray: 1 });
    tab.send("where?");
    await tab.waitFor(({ lines, status }) => status === "ready" && lines[1]?.match(/input-available/g)?.length === 3);
    for (const [i, toolCallId] of order.entries()) {
      expect(turns).toHaveLength(1);
      tab.chat().addToolOutput({ toolCallId, toolName: "place", output: i });
      const answered = new RegExp(`output-available ${i}`);
      await eventually(async () => expect(JSON.stringify(await agent.stored())).toContain(`"output":${i}`));
      await eventually(() => expect(tab.lines()[1]).toMatch(answered));
    }
    const outputs = ["c1", "c2", "c3"].map((id) => `[place output-available ${order.indexOf(id)}]`).join(" ");
    await tab.settles(["user: where?", `assistant: ${outputs} All three.`]);
    await tab.matches(agent);
    expect(turns).toHaveLength(2);
    expect(model.calls).toHaveLength(2);
  });
}

test("an error among parallel answers completes the batch", async () => {
  const { host, turns } = await startPlace({ script: ({ step }) => (step === 0 ? asks("c1", "c2") : "One of two.") });
  const tab = await readyTab(host, {
    stray: 1,
    onToolCall({ toolCall: { toolCallId }, addToolOutput }) {
      if (toolCallId === "c1") addToolOutput({ toolCallId, output: "Paris" });
      else addToolOutput({ toolCallId, state: "output-error", errorText: "lost" });
    },
  });
  tab.send("where?");
  const calls = '[place output-available "Paris"] [place output-error "lost"]';
  await tab.settles(["user: where?", `assistant: ${calls} One of two.`]);
  expect(turns).toHaveLength(2);
});

test("two tabs answer the same call: the first answer wins, on both screens, and one turn follows", async () => {
  const { host, agent, turns } = await startPlace();
  const tabs = [await readyTab(host, answering("Paris")), await readyTab(host, answering("Rome"))];
  tabs[0]?.send("where?");
  await eventually(() => expect(turns).toHaveLength(2));
  for (const tab of tabs) {
    await tab.waitFor(({ status, isToolContinuation }) => status === "ready" && !isToolContinuation);
    await tab.matches(agent);
  }
  const [, answer] = tabs[0]?.lines() ?? [];
  expect(answer).toMatch(/^assistant: \[place output-available "(Paris|Rome)"\] You are in Paris\.$/);
  expect(turns).toHaveLength(2);
  expect(tabs.flatMap(results).length).toBeGreaterThan(0);
});

test("a late answer to a settled call changes nothing", async () => {
  const { host, agent, turns } = await startPlace();
  const tab = await readyTab(host, answering());
  tab.send("where?");
  await tab.settles(DONE);
  const other = await readyTab(host);
  other.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "Oslo" });
  await other.waitFor(({ status, isToolContinuation }) => status === "ready" && !isToolContinuation);
  expect(turns).toHaveLength(2);
  const again = await readyTab(host);
  expect(again.lines()).toEqual(DONE);
  await tab.matches(agent);
});

test("a page that is reloaded before it answered runs the tool", async () => {
  const { host, agent } = await startPlace();
  const tab = await readyTab(host, { onToolCall: () => new Promise(() => {}) });
  tab.send("where?");
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: [place input-available]" && status === "ready");
  await tab.unmount();
  const again = await openTab(host, answering());
  await again.settles(DONE);
  await again.matches(agent);
});

test("an answer while the stream still runs is kept, and what follows waits for its end", async () => {
  const { host, agent, say, turns, model } = await startPlace({
    script: ({ step }) =>
      step === 0
        ? {
            content: [
              { type: "tool-call", toolCallId: "c1", toolName: "place", input: "{}" },
              { type: "text", text: "meanwhile" },
            ],
            finishReason: "tool-calls",
            delayMs: 1,
          }
        : "You are in Paris.",
  });
  const tab = await readyTab(host, { stray: 1 });
  tab.send("where?");
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: [place input-available]");
  tab.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "Paris" });
  await tab.waitFor(({ lines }) => lines[1] === 'assistant: [place output-available "Paris"]');
  expect(turns).toHaveLength(1);
  await say();
  await tab.settles(["user: where?", 'assistant: [place output-available "Paris"] meanwhile You are in Paris.']);
  await tab.matches(agent);
  expect(model.calls).toHaveLength(2);
});

test("the page answers call after call", async () => {
  const { host, agent, turns } = await startPlace({ script: ({ step }) => (step < 3 ? asks(`c${step}`) : "Enough.") });
  const tab = await readyTab(host, answering());
  tab.send("where?");
  const call = '[place output-available "Paris"]';
  await tab.settles(["user: where?", `assistant: ${call} ${call} ${call} Enough.`]);
  await tab.matches(agent);
  expect(turns).toHaveLength(4);
});

test("without auto-continue nothing follows until the page asks for it", async () => {
  const { host, agent, turns } = await startPlace();
  const tab = await readyTab(host, { ...answering(), autoContinueAfterToolResult: false });
  tab.send("where?");
  await tab.settles(["user: where?", 'assistant: [place output-available "Paris"]']);
  await tab.matches(agent);
  expect(turns).toHaveLength(1);
  void tab.chat().sendMessage();
  await tab.settles(DONE);
  await tab.matches(agent);
  expect(turns).toHaveLength(2);
});

test("the tab that answered is gone before the turn that follows: it runs all the same", async () => {
  const { host, agent, turns } = await startPlace();
  const tab = await readyTab(host, { stray: 1 });
  tab.send("where?");
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: [place input-available]" && status === "ready");
  tab.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "Paris" });
  await eventually(async () => expect(JSON.stringify(await agent.stored())).toContain("Paris"));
  await tab.unmount();
  await eventually(() => expect(turns).toHaveLength(2));
  const again = await openTab(host);
  await again.settles(DONE);
  await again.matches(agent);
});
