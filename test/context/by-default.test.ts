// What is made ahead without anybody having asked for it.
import { durableTool } from "perdure";
import { expect, test } from "vitest";
import { overflowPolicy } from "../../src/context/overflow.ts";
import { refusal } from "../think/harness.ts";
import { fill, long, openSmall, reader, shown } from "./compacting.ts";

/** As a class has it that says nothing. */
const ahead = { contextOverflow: { background: overflowPolicy({})?.background === true } };

test("summaries are made in the background unless it is said otherwise", () => {
  const of = (given: Parameters<typeof overflowPolicy>[0]) => overflowPolicy(given)?.background;
  expect([of({}), of(true), of({ proactive: { maxInputTokens: 100 } })]).toEqual([true, true, true]);
  expect([of(false), of({ proactive: false }), of({ background: false })]).toEqual([undefined, false, false]);
});

test("below 60 % nothing is asked for", async () => {
  const kit = await openSmall({ settings: ahead });
  await fill(kit, 2);
  expect(await kit.compactions()).toEqual([]);
  expect(kit.summaries()).toEqual([]);
});

test("a turn asks for at most two summaries that fail, however many steps it has", async () => {
  const kit = await openSmall({
    settings: { ...ahead, maxSteps: 12 },
    answer: ({ step, userText }) =>
      step < 10 && userText.startsWith("read")
        ? { toolCalls: [{ toolName: "read", input: { tokens: 300, name: `${step}` } }] }
        : "Done.",
    summary: () => ({ error: refusal(401, "no key") }),
    tools: { read: reader },
  });
  await kit.ask(long("before", 1_000)); // about a quarter
  await kit.ask(long("read them", 1_000));
  expect(kit.turns().length).toBeGreaterThan(9);
  const rows = (await kit.compactions()).filter(({ trigger }) => trigger === "background");
  expect(rows).toMatchObject([{ status: "failed" }]);
  expect([1, 2]).toContain(kit.summaries().length);
});

test("what the budget does not allow is not made, and the turn has its answer", async () => {
  const kit = await openSmall({ settings: ahead });
  await fill(kit, 2);
  const agent = await kit.agent();
  agent.beforeTurn = () => ({ maxOutputTokens: 100 });
  // The next call may need 4,237 tokens: enough for that. The summary may need 4,387, also once it has used less.
  agent.budgets = { agent: { maxTokens: agent.usage().tokens + 4_300 } };
  await fill(kit, 1, 3);
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "failed", trigger: "background" }]);
  expect((await kit.compactions())[0]?.error).toMatch(/budget/i);
  expect(kit.summaries()).toEqual([]);
});

test("cut off by a restart, it is made again, and nothing of the first try is left", async () => {
  let restarted = false;
  const kit = await openSmall({
    settings: ahead,
    summary: () => (restarted ? "After the restart." : { hang: "before" }),
  });
  await fill(kit, 3);
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started", trigger: "background" }]);
  restarted = true;
  await kit.restart();
  await kit.ask("short");
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "failed" }, { status: "done" }]);
  await kit.ask("short again");
  expect(shown(kit.turns().at(-1))).toContain("After the restart.");
  expect((await kit.agent()).listUsage().filter(({ status }) => status === "open")).toEqual([]);
});

test("where old outputs can be cleared in its place, no summary is made ahead", async () => {
  const kit = await openSmall({
    settings: { ...ahead, modelLimits: { "scripted/*": { window: 1_000_000, input: 300_000 } } },
    answer: ({ step, userText }) =>
      step === 0 && userText.startsWith("read")
        ? { toolCalls: [{ toolName: "read", input: { tokens: 25_000, name: userText } }] }
        : "Done.",
    tools: { read: durableTool(reader, { maxOutputChars: 1_000_000 }) },
  });
  for (let i = 0; i < 8; i++) await kit.ask(`read ${i}`);
  expect(await kit.compactions()).toEqual([]);
  expect(kit.summaries()).toEqual([]);
});
