import { openTab, readyTab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

/** Long enough for a busy machine to say a piece, short enough to wait for. */
const STALL_MS = 300;

test("an attempt that goes silent is given up, and the answer is carried on in the same message", async () => {
  const { host, agent, model, clock, say } = await startTalk({
    script: ({ index }) => ({ text: index === 0 ? ["one ", "two ", "never"] : ["three ", "four"], delayMs: 1 }),
    // While this test looks, attempts come and go.
    settings: { chatStreamStallTimeoutMs: STALL_MS, chatRecovery: { maxAttempts: 10_000 } },
  });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("count");
  await say(2);
  for (const one of [tab, other]) await one.waitFor(({ lines }) => lines[1] === "assistant: one two ");
  for (const one of [tab, other]) await one.waitFor(({ isRecovering }) => isRecovering);
  const id = tab.chat().messages[1]?.id;
  const late = await openTab(host);
  await late.waitFor(({ isRecovering, lines }) => isRecovering && lines[1] === "assistant: one two ");
  const rest = setInterval(() => void clock.advance(5), 5);
  try {
    for (const one of [tab, other, late]) {
      await one.settles(["user: count", "assistant: one two three four"]);
      await one.matches(agent);
      expect(one.chat().messages[1]?.id).toBe(id);
      await eventually(() => expect(one.ends).toMatchObject([{ outcome: "completed" }]));
    }
  } finally {
    clearInterval(rest);
  }
  await eventually(() => expect(model.calls[0]?.status).toBe("aborted"));
});

test("when it is given up the page shows why, also after a reload, and the next message works", async () => {
  const { host, agent } = await startTalk({
    script: ({ userText, index }) => (userText === "count" ? { text: `${index} `, hang: true } : "fine"),
    settings: {
      chatStreamStallTimeoutMs: STALL_MS,
      chatRecovery: { maxAttempts: 1, terminalMessage: "It was not to be." },
    },
  });
  const tab = await readyTab(host);
  tab.send("count");
  await tab.waitFor(({ error }) => error === "It was not to be.");
  expect(tab.view()).toMatchObject({ status: "error", isRecovering: false });
  const again = await openTab(host);
  await again.waitFor(({ error, status }) => error === "It was not to be." && status === "error");
  again.send("ok");
  await again.waitFor(({ lines, status }) => lines.at(-1) === "assistant: fine" && status === "ready");
  await again.matches(agent);
  await tab.matches(agent);
});

test("stop while a turn recovers ends it for good", async () => {
  const { host, agent, model, ends } = await startTalk({
    script: ({ index }) => (index === 0 ? { text: "one ", hang: true } : { hang: "before" }),
    settings: { chatStreamStallTimeoutMs: STALL_MS, chatRecovery: { maxAttempts: 1 } },
  });
  const tab = await readyTab(host);
  tab.send("count");
  await tab.waitFor(({ isRecovering }) => isRecovering);
  await tab.chat().stop();
  await tab.settles(["user: count", "assistant: one "]);
  await tab.matches(agent);
  await eventually(() => expect(ends).toHaveLength(1));
  const calls = model.calls.length;
  const again = await readyTab(host);
  expect(again.lines()).toEqual(["user: count", "assistant: one "]);
  expect(model.calls).toHaveLength(calls);
});
