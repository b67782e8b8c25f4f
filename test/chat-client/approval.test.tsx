import { readyTab, type Tab } from "./harness.tsx";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk, type TalkOptions } from "./talk.ts";

const inputSchema = jsonSchema<{ to: string }>({ type: "object" });

/** A tool that asks first. `ran` notes whom it was run for. */
function payments() {
  const ran: string[] = [];
  const pay = tool({
    inputSchema,
    needsApproval: true,
    execute({ to }) {
      ran.push(to);
      if (to === "nobody") throw new Error("no such account");
      return `paid ${to}`;
    },
  });
  return { ran, pay };
}

const wants = (...names: string[]) => ({
  toolCalls: names.map((to) => ({ toolName: "pay", input: { to }, toolCallId: `call-${to}` })),
});

/** A conversation that waits for an answer. */
async function asked(names: string[] = ["ann"], options: Partial<TalkOptions> = {}) {
  const { ran, pay } = payments();
  const script: TalkOptions["script"] = ({ step }) => (step === 0 ? wants(...names) : "Done.");
  const kit = await startTalk({ script, tools: { pay }, ...options });
  // On a busy machine what follows can begin before the tab has asked for it: then it is shown as after a client tool.
  const tab = await readyTab(kit.host, { stray: 1 });
  const other = await readyTab(kit.host, { stray: 1 });
  tab.send("pay");
  for (const one of [tab, other]) await waits(one, names.length);
  return { ...kit, ran, tab, other };
}

const waits = (tab: Tab, count = 1) =>
  tab.waitFor(
    ({ lines, status, isServerStreaming }) =>
      status === "ready" && !isServerStreaming && lines[1]?.match(/approval-requested/g)?.length === count,
  );

/** What a click on a button does. */
function answer(tab: Tab, name: string, approved: boolean): void {
  for (const { parts } of tab.chat().messages) {
    for (const part of parts) {
      if (!("toolCallId" in part) || part.toolCallId !== `call-${name}` || !("approval" in part)) continue;
      void tab.chat().addToolApprovalResponse({ id: String(part.approval?.id), approved });
      return;
    }
  }
  throw new Error(`Nothing to approve for ${name}: ${tab.lines().join(" | ")}`);
}

test("yes: the tool runs once, and the answer goes on in the same message, in every tab", async () => {
  const { tab, other, agent, ran, turns } = await asked();
  expect(ran).toEqual([]);
  expect(await agent.hasPendingInteraction()).toBe(true);
  answer(tab, "ann", true);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-available "paid ann"] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann"]);
  expect(turns.map(({ continuation }) => continuation)).toEqual([false, true]);
  expect(tab.views.some(({ isToolContinuation }) => isToolContinuation)).toBe(true);
});

test("no: the tool does not run, the model hears of it and answers", async () => {
  const { tab, other, agent, ran, model } = await asked();
  answer(tab, "ann", false);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", "assistant: [pay output-denied] Done."]);
    await one.matches(agent);
  }
  expect(ran).toEqual([]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toMatch(/denied/i);
});

test("two questions: nothing goes on before both are answered", async () => {
  const { tab, other, agent, ran, turns } = await asked(["ann", "bob"]);
  answer(tab, "bob", false);
  await other.waitFor(({ lines }) => lines[1] === "assistant: [pay approval-requested] [pay output-denied]");
  expect(turns).toHaveLength(1);
  answer(tab, "ann", true);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-available "paid ann"] [pay output-denied] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann"]);
  expect(turns).toHaveLength(2);
});

test("another tab answers; a second answer, also a different one, changes nothing", async () => {
  const { tab, other, agent, ran, turns } = await asked();
  answer(other, "ann", true);
  answer(tab, "ann", false);
  await eventually(() => expect(turns).toHaveLength(2));
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-available "paid ann"] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann"]);
});

for (const approved of [true, false]) {
  test(`a reloaded page still asks, and can answer ${approved ? "yes" : "no"}`, async () => {
    const { tab, other, host, agent, ran } = await asked();
    await tab.unmount();
    await other.unmount();
    // An answer that is given before there is a connection is undone by the conversation that is told on connect.
    const again = await readyTab(host);
    expect(again.lines()).toEqual(["user: pay", "assistant: [pay approval-requested]"]);
    await waits(again);
    answer(again, "ann", approved);
    const end = approved ? 'output-available "paid ann"' : "output-denied";
    await again.settles(["user: pay", `assistant: [pay ${end}] Done.`]);
    await again.matches(agent);
    expect(ran).toEqual(approved ? ["ann"] : []);
  });
}

test("a tool that fails after a yes: the error is its result", async () => {
  const { tab, other, agent, ran } = await asked(["nobody"]);
  answer(tab, "nobody", true);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-error "no such account"] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["nobody"]);
});

test("one question after the other, in one answer", async () => {
  const { tab, other, agent, ran } = await asked(["ann"], {
    script: ({ step }) => (step === 0 ? wants("ann") : step === 1 ? wants("bob") : "Both done."),
  });
  answer(tab, "ann", true);
  await tab.waitFor(
    ({ lines, status }) =>
      status === "ready" && lines[1] === 'assistant: [pay output-available "paid ann"] [pay approval-requested]',
  );
  await tab.waitFor(({ isToolContinuation }) => !isToolContinuation);
  answer(tab, "bob", true);
  for (const one of [tab, other]) {
    const paid = '[pay output-available "paid ann"] [pay output-available "paid bob"]';
    await one.settles(["user: pay", `assistant: ${paid} Both done.`]);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann", "bob"]);
});

test("a message instead of an answer: the call is settled as not answered, and the turn works", async () => {
  const { tab, other, agent, ran, model } = await asked(["ann"], {
    script: ({ index }) => (index === 0 ? wants("ann") : "Forget it."),
  });
  tab.send("never mind");
  await tab.waitFor(({ lines, status }) => lines[3] === "assistant: Forget it." && status === "ready");
  expect(ran).toEqual([]);
  expect(model.calls).toHaveLength(2);
  await tab.matches(agent);
  await other.matches(agent);
});

test("an answer by server code reaches every tab", async () => {
  const { tab, other, agent, ran } = await asked();
  expect(await agent.answerApproval("call-ann", true)).toBe(true);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-available "paid ann"] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann"]);
});

test("a question that nobody answers in time is denied", async () => {
  const { ran, pay } = payments();
  const { host, agent } = await startTalk({
    script: ({ step }) => (step === 0 ? wants("ann") : "Done."),
    tools: { pay },
    settings: { approvalTimeoutMs: 1 },
  });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("pay");
  for (const one of [tab, other]) {
    await one.settles(["user: pay", "assistant: [pay output-denied] Done."]);
    await one.matches(agent);
  }
  expect(ran).toEqual([]);
});

test("the turn after a yes fails before it streams: the page hears of it, and the next message works", async () => {
  let turn = 0;
  const { tab, agent } = await asked(["ann"], {
    script: ({ index }) => (index === 0 ? wants("ann") : "Done."),
    answer: () => {
      if (turn++ === 1) throw new Error("no more credit");
      return undefined;
    },
  });
  answer(tab, "ann", true);
  await tab.waitFor(({ isToolContinuation, status }) => !isToolContinuation && status !== "submitted");
  // The Think of these tests says it in its own words, by onChatError.
  const said = process.env.PERDURE_TALK === "think" ? /^no more credit$/ : /^Something went wrong on the server/;
  await eventually(() =>
    expect(tab.ends.at(-1)).toMatchObject({ outcome: "error", error: expect.stringMatching(said) as unknown }),
  );
  tab.send("again");
  await tab.waitFor(({ lines, status }) => lines[3] === "assistant: Done." && status === "ready");
  await tab.matches(agent);
});

test("an answer of somebody who may not is none: every tab shows the question, and the next answer counts", async () => {
  let tries = 0;
  const { tab, other, agent, ran } = await asked(["ann"], { settings: { authorizeApproval: async () => ++tries > 1 } });
  answer(tab, "ann", true);
  await eventually(() => expect(tries).toBe(1));
  for (const one of [tab, other]) await one.waitFor(({ lines }) => lines[1]?.includes("approval-requested") === true);
  expect(ran).toEqual([]);
  answer(other, "ann", true);
  for (const one of [tab, other]) {
    await one.settles(["user: pay", 'assistant: [pay output-available "paid ann"] Done.']);
    await one.matches(agent);
  }
  expect(ran).toEqual(["ann"]);
});

test("stop while the turn after a yes streams", async () => {
  const { tab, other, agent, say, ends } = await asked(["ann"], {
    script: ({ step }) => (step === 0 ? wants("ann") : { text: ["one ", "two"], delayMs: 1 }),
  });
  answer(tab, "ann", true);
  await say();
  const shown = ["user: pay", 'assistant: [pay output-available "paid ann"] one '];
  await tab.waitFor(({ lines, isStreaming }) => lines.at(-1)?.endsWith("one ") === true && isStreaming);
  await tab.chat().stop();
  for (const one of [tab, other]) {
    await one.settles(shown);
    await one.matches(agent);
  }
  expect(ends.map(({ status }) => status)).toEqual(["completed", "aborted"]);
});
