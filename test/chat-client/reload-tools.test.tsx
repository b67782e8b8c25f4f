import { openTab, readyTab, type Tab } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { latch, startTalk } from "./talk.ts";

const inputSchema = jsonSchema<object>({ type: "object" });
const long = { text: ["so ", "one ", "two ", "three"], delayMs: 1 };

/** What the answer is, and how a page gives it. */
const KINDS = {
  approval: {
    toolName: "pay",
    output: '[pay output-available "paid"]',
    give(tab: Tab) {
      const part = tab.chat().messages[1]?.parts.find((one) => "approval" in one);
      if (part === undefined || !("approval" in part)) throw new Error("nothing to approve");
      void tab.chat().addToolApprovalResponse({ id: String(part.approval?.id), approved: true });
    },
  },
  "client tool": {
    toolName: "place",
    output: '[place output-available "here"]',
    give: (tab: Tab) => tab.chat().addToolOutput({ toolCallId: "c1", toolName: "place", output: "here" }),
  },
} as const;

for (const [kind, { toolName, output, give }] of Object.entries(KINDS)) {
  const start = (execute: () => unknown = () => "paid") =>
    startTalk({
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName, input: {}, toolCallId: "c1" }] } : long),
      tools: {
        pay: tool({ inputSchema, needsApproval: true, execute }),
        place: tool({ inputSchema, outputSchema: jsonSchema<unknown>({}) }),
      },
    });

  for (let pieces = 0; pieces <= 3; pieces++) {
    test(`a reload after ${pieces} pieces of what follows an answer (${kind})`, async () => {
      const { host, agent, say, model } = await start();
      const tab = await readyTab(host, { stray: 1 });
      const other = await readyTab(host);
      tab.send("go");
      await tab.waitFor(({ status, lines }) => status === "ready" && lines.length === 2);
      give(tab);
      await eventually(() => expect(model.calls).toHaveLength(2));
      await say(pieces);
      if (pieces > 0)
        await other.waitFor(({ lines }) => lines[1]?.includes(["so ", "one ", "two "][pieces - 1] ?? "") === true);
      await tab.unmount();
      // The one that goes on has left; a page that comes is offered the stream.
      const again = await openTab(host, { stray: 1 });
      await again.waitFor(({ status }) => status === "submitted" || status === "streaming");
      await say(4 - pieces);
      for (const one of [again, other]) {
        await one.settles(["user: go", `assistant: ${output} so one two three`]);
        await one.matches(agent);
      }
      expect(again.views.map(({ status }) => status)).not.toContain("error");
      expect(model.calls).toHaveLength(2);
    });
  }

  test(`another page opens while the answering tab (${kind}) streams: it watches`, async () => {
    const { host, agent, say, model } = await start();
    const tab = await readyTab(host, { stray: 1 });
    tab.send("go");
    await tab.waitFor(({ status, lines }) => status === "ready" && lines.length === 2);
    give(tab);
    await eventually(() => expect(model.calls).toHaveLength(2));
    await say(2);
    const late = await openTab(host);
    await eventually(() =>
      expect(late.line.received.find(({ type }) => type === "cf_agent_stream_resume_none")).toMatchObject({
        reason: "continuation-owned",
      }),
    );
    await late.waitFor(({ lines }) => lines[1]?.includes(`${output} so one `) === true);
    await say(2);
    for (const one of [tab, late]) {
      await one.settles(["user: go", `assistant: ${output} so one two three`]);
      await one.matches(agent);
    }
  });
}

test("a reload while an approved tool runs", async () => {
  const running = latch();
  const done = latch();
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : "Done."),
    tools: {
      pay: tool({
        inputSchema,
        needsApproval: true,
        async execute() {
          running.open();
          await done.opened;
          return "paid";
        },
      }),
    },
  });
  const tab = await readyTab(host);
  tab.send("go");
  await tab.waitFor(({ status, lines }) => status === "ready" && lines.length === 2);
  KINDS.approval.give(tab);
  await running.opened;
  await tab.unmount();
  const again = await openTab(host);
  await again.waitFor(({ status }) => status === "submitted");
  expect(again.lines()).toEqual(["user: go", "assistant: [pay approval-responded]"]);
  done.open();
  await again.settles(["user: go", 'assistant: [pay output-available "paid"] Done.']);
  await again.matches(agent);
});

test("a reload while a tool of the server runs", async () => {
  const running = latch();
  const done = latch();
  const asked: string[] = [];
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? { text: "wait", toolCalls: [{ toolName: "work", input: {} }] } : "Done."),
    tools: {
      work: tool({
        inputSchema,
        async execute() {
          running.open();
          await done.opened;
          return "worked";
        },
      }),
    },
  });
  const tab = await readyTab(host);
  tab.send("go");
  await running.opened;
  await tab.waitFor(({ lines }) => lines[1] === "assistant: wait [work input-available]");
  await tab.unmount();
  const again = await openTab(host, { onToolCall: ({ toolCall }) => void asked.push(toolCall.toolName) });
  await again.waitFor(({ lines }) => lines[1] === "assistant: wait [work input-available]");
  done.open();
  await again.settles(["user: go", 'assistant: wait [work output-available "worked"] Done.']);
  await again.matches(agent);
  expect(asked).toEqual([]);
});
