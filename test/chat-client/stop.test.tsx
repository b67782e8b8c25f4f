import { openTab, readyTab, type Tab } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk } from "./talk.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const cancels = (tab: Tab) => tab.line.sent.filter(({ type }) => type === "cf_agent_chat_request_cancel").length;

/** A turn that has said two pieces, in a tab that sees them. */
async function underWay(script: (string | typeof long)[] = [long, "again"]) {
  const kit = await startTalk({ script: (call) => script[call.index] ?? "no more" });
  const tab = await readyTab(kit.host);
  tab.send("count");
  await kit.say(2);
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  return { ...kit, tab };
}

test("stop ends the turn, keeps what there was, and the next turn works", async () => {
  const { tab, agent, model, ends, host } = await underWay();
  const other = await openTab(host);
  // A new page may have the words before it knows that more are to come.
  await other.waitFor(({ lines, isStreaming }) => lines[1] === "assistant: one two " && isStreaming);
  await tab.chat().stop();
  await tab.settles(["user: count", "assistant: one two "]);
  await other.settles(["user: count", "assistant: one two "]);
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await eventually(() => expect(tab.ends).toMatchObject([{ outcome: "aborted" }]));
  await eventually(() => expect(other.ends).toMatchObject([{ outcome: "aborted" }]));
  tab.send("more");
  await tab.settles(["user: count", "assistant: one two ", "user: more", "assistant: again"]);
  await tab.matches(agent);
});

test("stop twice is stop once", async () => {
  const { tab, ends, agent } = await underWay();
  await Promise.all([tab.chat().stop(), tab.chat().stop()]);
  await tab.chat().stop();
  await tab.settles(["user: count", "assistant: one two "]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  tab.send("more");
  await tab.settles(["user: count", "assistant: one two ", "user: more", "assistant: again"]);
  await tab.matches(agent);
});

test("stop before the first piece leaves no empty answer, in any tab", async () => {
  const { host, agent, model } = await startTalk({ script: [{ hang: "before" }, "again"] });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await eventually(() => expect(model.calls).toHaveLength(1));
  await tab.chat().stop();
  await tab.settles(["user: a"]);
  await other.waitFor(() => other.ends.length === 1);
  await other.settles(["user: a"]);
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
  tab.send("b");
  await tab.settles(["user: a", "user: b", "assistant: again"]);
  await other.settles(["user: a", "user: b", "assistant: again"]);
  await tab.matches(agent);
});

test("stop in a tab that was reloaded", async () => {
  const { tab, host, agent, ends } = await underWay();
  await tab.unmount();
  const again = await openTab(host);
  await again.waitFor(({ lines, status }) => lines[1] === "assistant: one two " && status === "streaming");
  await again.chat().stop();
  await again.settles(["user: count", "assistant: one two "]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await again.matches(agent);
});

test("stop in a tab that was reloaded before the first piece", async () => {
  const { host, model, ends } = await startTalk({ script: [{ hang: "before" }] });
  const tab = await readyTab(host);
  tab.send("a");
  await eventually(() => expect(model.calls).toHaveLength(1));
  await tab.unmount();
  const again = await openTab(host);
  await again.waitFor(({ status }) => status === "submitted");
  await again.chat().stop();
  await again.settles(["user: a"]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
});

test("stop after the line was cut and mended", async () => {
  const { tab, say, ends } = await underWay();
  tab.line.cut();
  await tab.lost();
  tab.line.mend();
  await tab.waitFor(({ status }) => status === "streaming");
  await say();
  await tab.waitFor(({ lines }) => lines[1] === "assistant: one two three ");
  await tab.chat().stop();
  await tab.settles(["user: count", "assistant: one two three "]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
});

test("a stop while the line is cut is done when it is mended", async () => {
  const { tab, ends, model } = await underWay();
  tab.line.cut();
  await tab.lost();
  await tab.chat().stop();
  tab.line.mend();
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await tab.settles(["user: count", "assistant: one two "]);
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
});

test("a tab that resumed another tab's turn can stop it", async () => {
  const { tab, host, ends } = await underWay();
  const other = await openTab(host);
  await other.waitFor(({ status }) => status === "streaming");
  await other.chat().stop();
  await other.settles(["user: count", "assistant: one two "]);
  await tab.settles(["user: count", "assistant: one two "]);
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
});

test("stop of a turn that the server started", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const noted = agent.note("n");
  await say(2);
  const tab = await openTab(host);
  await tab.waitFor(({ lines, status }) => lines[1] === "assistant: one two " && status === "streaming");
  await tab.chat().stop();
  await tab.settles(["user: n", "assistant: one two "]);
  expect(await noted).toBe("aborted");
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
});

test("stop while a tool of the server runs: what the client makes of the call starts nothing", async () => {
  const running = latch();
  const { host, agent, model } = await startTalk({
    script: [{ toolCalls: [{ toolName: "wait", input: {} }] }, "after"],
    tools: {
      wait: tool({
        inputSchema: jsonSchema<object>({ type: "object" }),
        execute: (_input, { abortSignal }) => {
          running.open();
          return new Promise<string>((_resolve, reject) =>
            abortSignal?.addEventListener("abort", () => reject(new Error("stopped"))),
          );
        },
      }),
    },
  });
  // The hook is ready the moment that it stops, and then asks for every call that has no result, also for those that
  // run on the server. This page answers all that it is asked.
  const tab = await readyTab(host, {
    onToolCall: ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output: "mine" }),
  });
  tab.send("go");
  await running.opened;
  await tab.waitFor(({ lines }) => lines[1] === "assistant: [wait input-available]");
  await tab.chat().stop();
  await tab.waitFor(({ lines }) => lines[1]?.startsWith("assistant: [wait output-error") === true);
  await tab.waitFor(({ isToolContinuation, status }) => !isToolContinuation && status === "ready");
  expect(model.calls).toHaveLength(1);
  tab.send("next");
  await tab.waitFor(({ lines, status }) => lines[3] === "assistant: after" && status === "ready");
  await tab.matches(agent);
});

test("leaving the page does not stop the turn", async () => {
  const { tab, say, ends } = await underWay();
  await tab.unmount();
  await say(2);
  await eventually(() => expect(ends).toMatchObject([{ status: "completed" }]));
  expect(cancels(tab)).toBe(0);
});
