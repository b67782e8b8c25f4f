import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { refusal } from "../think/harness.ts";
import { fill, long, openSmall, reader, shown } from "./compacting.ts";

const tooLong = () => refusal(400, "This model's maximum context length is 4000 tokens.");

test("before a request that would not fit, the conversation is compacted; no message is written for it", async () => {
  const kit = await openSmall();
  const events: unknown[] = [];
  onTestFinished(subscribe("chat:context:compacted", ({ payload }) => void events.push(payload)));
  await fill(kit, 3);
  expect(await kit.compactions()).toEqual([]);
  await fill(kit, 1, 4);
  const [row] = await kit.compactions();
  expect(row).toMatchObject({ status: "done", kind: "summary", trigger: "before", parts: null });
  expect(kit.summaries().length).toBeGreaterThan(0);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("Be short.");
  expect(request).not.toContain(long("question 1", 1_000));
  expect(request).toContain("question 4 abc");
  expect(await kit.stored()).toHaveLength(8);
  expect(events).toMatchObject([{ compactionId: row?.id, trigger: "before", kind: "summary", session: "main" }]);
  const usage = (await kit.agent()).listUsage({ purpose: "compaction" });
  expect(usage).toHaveLength(kit.summaries().length);
  expect(usage[0]).toMatchObject({ status: "ok", model: "scripted/scripted" });
});

test("between compactions the request only grows at its end, in another life too", async () => {
  const kit = await openSmall();
  await fill(kit, 4);
  await kit.ask("short 5");
  const before = shown(kit.turns().at(-1));
  await kit.restart();
  await kit.ask("short 6");
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
  expect(await kit.compactions()).toHaveLength(1);
});

test("a compaction that does not make it smaller is tried once in a turn, and the turn goes on", async () => {
  const kit = await openSmall({
    summary: () => long("as long as before", 6_000),
    answer: ({ step }) => (step < 3 ? { toolCalls: [{ toolName: "read", input: { tokens: 10 } }] } : "Done."),
    tools: { read: reader },
    settings: { maxSteps: 10 },
  });
  await kit.ask("hello");
  for (let i = 0; i < 3; i++) await kit.ask(long("more", 1_100));
  const rows = await kit.compactions();
  expect(rows.length).toBeGreaterThan(0);
  expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(["failed"]));
  expect(new Set(rows.map(({ turn }) => turn)).size).toBe(rows.length);
  expect(rows[0]?.error).toContain("It would not help");
  expect(textIn(await kit.last())).toContain("Done.");
});

test("a model that cannot summarise leaves the conversation as it was", async () => {
  const failures: unknown[] = [];
  onTestFinished(subscribe("chat:compaction:failed", ({ payload }) => void failures.push(payload)));
  const kit = await openSmall({ summary: () => ({ error: refusal(401, "bad key") }) });
  await fill(kit, 4);
  expect(await kit.compactions()).toMatchObject([{ status: "failed", trigger: "before" }]);
  expect(failures).toMatchObject([{ trigger: "before", session: "main" }]);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("question 1 abc");
  expect(request).toContain("question 4 abc");
});

test("an empty summary is no summary", async () => {
  const kit = await openSmall({ summary: () => "  " });
  await fill(kit, 4);
  expect(await kit.compactions()).toMatchObject([{ status: "failed", error: "The model wrote an empty summary." }]);
  expect(shown(kit.turns().at(-1))).toContain("question 1 abc");
});

test("when a provider says that it is too long, it is compacted and asked again", async () => {
  const limits = { "scripted/*": { window: 1_000_000 } };
  const kit = await openSmall({
    settings: { modelLimits: limits },
    answer: ({ prompt }) => (JSON.stringify(prompt).length > 12_000 ? { error: tooLong() } : "It fits."),
  });
  await fill(kit, 4);
  expect(await kit.compactions()).toMatchObject([{ status: "done", trigger: "error" }]);
  expect(textIn(await kit.last())).toBe("It fits.");
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
});

test("when it is still too long after that, the turn ends with a reason, and nothing is tried again", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 1_000_000 } } },
    answer: ({ userText }) => (userText.startsWith("now") ? { error: tooLong() } : "Yes."),
  });
  await fill(kit, 3);
  const end = await kit.ask("now");
  expect(end).toMatchObject({ status: "error" });
  expect(end.error).toContain("longer than the model can read");
  expect(kit.turns().filter(({ userText }) => userText === "now")).toHaveLength(2);
  expect(await kit.compactions()).toMatchObject([{ status: "done", trigger: "error" }]);
});

test("a provider's error is compacted away once more only when the class says so", async () => {
  let left = 2;
  const kit = await openSmall({
    settings: {
      modelLimits: { "scripted/*": { window: 1_000_000 } },
      contextOverflow: { maxRetries: 2 },
    },
    answer: ({ userText, step }) => {
      if (!userText.startsWith("now")) return "Yes.";
      if (step === 1 && left-- > 1) return { error: tooLong() };
      if (step === 2 && left-- > 0) return { error: tooLong() };
      return step < 3 ? { toolCalls: [{ toolName: "read", input: { tokens: 900 } }] } : "Done.";
    },
    tools: { read: reader },
  });
  await fill(kit, 3);
  expect(await kit.ask(long("now", 10))).toMatchObject({ status: "completed" });
});

test("without contextOverflow nothing is done, and the provider's word ends the turn", async () => {
  const kit = await openSmall({
    settings: { contextOverflow: false },
    answer: ({ prompt }) => (JSON.stringify(prompt).length > 12_000 ? { error: tooLong() } : "Yes."),
  });
  await fill(kit, 2);
  expect(await kit.ask(long("question 3", 1_500))).toMatchObject({ status: "error" });
  expect(kit.summaries()).toEqual([]);
});

test("in the middle of a turn its own steps are cut, and the task stays as the user put it", async () => {
  const kit = await openSmall({
    answer: ({ prompt }) => {
      const text = JSON.stringify(prompt);
      const next = [1, 2, 3, 4, 5, 6].find((n) => !text.includes(`file-${n}`));
      const known = text.includes("Read up to") ? Number(/Read up to (\d)/.exec(text)?.[1]) : 0;
      const number = Math.max(next ?? 7, known + 1);
      return number > 6
        ? "All read."
        : { toolCalls: [{ toolName: "read", input: { name: `file-${number}`, path: `file-${number}`, tokens: 900 } }] };
    },
    summary: ({ prompt }) => `## State of the work\nRead up to ${/.*file-(\d)/s.exec(JSON.stringify(prompt))?.[1]}`,
    tools: { read: reader },
    settings: { maxSteps: 20 },
  });
  expect(await kit.ask("Read all six files, carefully.")).toMatchObject({ status: "completed" });
  const rows = await kit.compactions();
  expect(rows.length).toBeGreaterThan(0);
  expect(rows[0]).toMatchObject({ status: "done", trigger: expect.stringMatching(/before|usage/) });
  expect(rows[0]?.parts).toBeGreaterThan(0);
  expect(rows[0]?.carried).toContain("file-1 (read)");
  const [prompt] = kit.summaries();
  expect(JSON.stringify(prompt?.prompt)).toContain("[call of read, id");
  expect(JSON.stringify(prompt?.prompt)).toContain("output: contents of file-1");
  for (const call of kit.turns()) expect(shown(call)).toContain("Read all six files, carefully.");
  const last = kit.turns().at(-1);
  expect(shown(last)).not.toContain("contents of file-1 ");
  expect(shown(last)).toContain("contents of file-6");
  // The answer is whole for those who read it, and the next turn goes on from the same bytes.
  const stored = JSON.stringify(await kit.last());
  for (let n = 1; n <= 6; n++) expect(stored).toContain(`contents of file-${n}`);
  await kit.ask("Thanks.");
  expect(shown(kit.turns().at(-1)).startsWith(shown(last).slice(0, -1))).toBe(true);
});

test("when a provider has counted more than fits, the next request is made shorter", async () => {
  const kit = await openSmall({
    answer: ({ step }) =>
      step === 0
        ? { toolCalls: [{ toolName: "read", input: { tokens: 10 } }], usage: { inputTokens: 3_900, outputTokens: 200 } }
        : "Done.",
    tools: { read: reader },
  });
  await kit.ask(long("first", 1_000));
  await kit.ask(long("second", 1_000));
  const rows = await kit.compactions();
  expect(rows.map(({ trigger, status }) => [trigger, status])).toContainEqual(["usage", "done"]);
  expect(textIn(await kit.last())).toBe("Done.");
});

test("an explicit bound counts before the model's own", async () => {
  const kit = await openSmall({ settings: { contextOverflow: { proactive: { maxInputTokens: 2_500 } } } });
  await fill(kit, 2);
  expect(await kit.compactions()).toEqual([]);
  await fill(kit, 1, 3);
  expect(await kit.compactions()).toMatchObject([{ trigger: "proactive", status: "done" }]);
});

test("proactive: false waits for the provider's word", async () => {
  const kit = await openSmall({ settings: { contextOverflow: { proactive: false } } });
  await fill(kit, 5);
  expect(await kit.compactions()).toEqual([]);
});
