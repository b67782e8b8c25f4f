import { durableTool } from "perdure";
import { expect, test } from "vitest";
import { OTHER_WAY } from "../../src/context/compaction-job.ts";
import { textIn } from "../chat/client.ts";
import { refusal } from "../think/harness.ts";
import { fill, long, openSmall, reader, shown } from "./compacting.ts";

/** Lets a test say when a summary is there. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

test("in the background: a turn does not wait for it, and the next one has it", async () => {
  const { open, opened } = gate();
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    summary: async () => {
      await opened;
      return "Made ahead.";
    },
  });
  await fill(kit, 3);
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started", trigger: "background" }]);
  expect(shown(kit.turns().at(-1))).toContain("question 1 abc");
  open();
  await expect.poll(() => kit.summaries().every(({ status }) => status === "finished")).toBe(true);
  await kit.ask("short");
  expect(await kit.compactions()).toMatchObject([{ status: "done", trigger: "background" }]);
  expect(shown(kit.turns().at(-1))).toContain("Made ahead.");
  expect(shown(kit.turns().at(-1))).not.toContain(long("question 1", 1_000));
  expect(kit.summaries()).toHaveLength(1);
});

test("in the background: the conversation is looked through when the call of the turn has gone out", async () => {
  const begun: unknown[][] = [];
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    answer: async () => {
      begun.push(await kit.compactions());
      return "Yes.";
    },
  });
  await fill(kit, 3);
  expect(begun).toEqual([[], [], []]);
  await expect.poll(() => kit.compactions()).toMatchObject([{ trigger: "background", status: "done" }]);
});

test("in the background: it counts as soon as it is there, before anybody asks again, and is paid for as used", async () => {
  const { open, opened } = gate();
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    summary: async () => {
      await opened;
      return { text: "Made ahead.", usage: { inputTokens: 1_700, outputTokens: 12 } };
    },
  });
  await fill(kit, 3);
  open();
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "done", trigger: "background" }]);
  const [call] = (await kit.agent()).listUsage({ purpose: "compaction" });
  expect(call).toMatchObject({ status: "ok", input: 1_700, output: 12 });
});

test("in the background: what was changed meanwhile is not what was summarised, and the row says so", async () => {
  const { open, opened } = gate();
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    summary: async () => {
      await opened;
      return "Made ahead.";
    },
  });
  await fill(kit, 3);
  const { session } = await kit.agent();
  const [first] = session.getHistory();
  session.updateMessage({ ...first, parts: [{ type: "text", text: "something else" }] } as never);
  open();
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "failed", error: OTHER_WAY }]);
  await kit.ask("short");
  expect(shown(kit.turns().at(-1))).toContain("something else");
  expect(shown(kit.turns().at(-1))).not.toContain("Made ahead.");
});

test("above 85 % a turn waits for what is under way, and asks for nothing else", async () => {
  const { open, opened } = gate();
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    summary: async () => {
      await opened;
      return "Made ahead.";
    },
  });
  await fill(kit, 3);
  const turn = kit.ask(long("question 4", 1_000));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(kit.turns()).toHaveLength(3);
  open();
  expect(await turn).toMatchObject({ status: "completed" });
  expect(kit.summaries()).toHaveLength(1);
  expect(shown(kit.turns().at(-1))).toContain("Made ahead.");
});

test("what was made ahead for a conversation that has gone another way counts for nothing", async () => {
  const { open, opened } = gate();
  const kit = await openSmall({
    settings: { contextOverflow: { background: true } },
    summary: async () => {
      await opened;
      return "Made ahead.";
    },
  });
  await fill(kit, 3);
  (await kit.agent()).clearMessages();
  open();
  await kit.ask("A new beginning.");
  await kit.ask("And on.");
  expect(shown(kit.turns().at(-1))).not.toContain("Made ahead.");
  expect((await kit.compactions()).filter(({ status }) => status === "done")).toEqual([]);
});

test("old outputs are cleared when nothing is cached any more, and only then", async () => {
  const kit = await openSmall({
    manual: true,
    settings: { modelLimits: { "scripted/*": { window: 1_000_000 } } },
    answer: ({ step, userText }) =>
      step === 0 && userText.startsWith("read")
        ? {
            toolCalls: [
              { toolName: userText.includes("keep") ? "note" : "read", input: { tokens: 15_000, name: userText } },
            ],
          }
        : "Done.",
    tools: { read: reader, note: durableTool(reader, { keep: "always", maxOutputChars: 1_000_000 }) },
    extend: (Base) =>
      class extends Base {
        override getTools() {
          const kept = durableTool(reader, { keep: "always", maxOutputChars: 1_000_000 });
          return { read: durableTool(reader, { maxOutputChars: 1_000_000 }), note: kept };
        }
      },
  });
  for (const words of ["read keep", "read a", "read b", "read c", "read d", "read e", "x", "y"]) await kit.ask(words);
  expect(await kit.compactions()).toEqual([]);
  const before = shown(kit.turns().at(-1));
  await kit.clock.advance(2 * 60 * 60_000);
  await kit.ask("back again");
  const rows = await kit.compactions();
  expect(rows).toMatchObject([{ kind: "prune", status: "done", trigger: "after" }]);
  const after = shown(kit.turns().at(-1));
  expect(after.match(/Cleared to make room/g)).toHaveLength(3);
  expect(after.length).toBeLessThan(before.length);
  expect(kit.summaries()).toEqual([]);
  const agent = await kit.agent();
  await agent.undoCompaction(rows[0]?.id ?? "");
  await kit.ask("z");
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
});

test("when no model can read what is to be summarised, the beginning is left out, and what the user said is told", async () => {
  const tooLong = () => ({ error: refusal(400, "prompt is too long: 5000 tokens > 4000 maximum") });
  const kit = await openSmall({
    summary: tooLong,
    answer: ({ prompt }) => (JSON.stringify(prompt).length > 16_000 ? tooLong() : "Yes."),
  });
  await fill(kit, 4);
  expect((await kit.compactions()).slice(-1)).toMatchObject([{ kind: "truncate", status: "done", trigger: "error" }]);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("were left out without a summary");
  expect(request).toContain("question 1 abc");
  expect(request.length).toBeLessThan(16_000);
});

test("a call that was too long before a crash is answered by a compaction after it", async () => {
  let crashed = false;
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 1_000_000 } } },
    answer: ({ prompt }) =>
      JSON.stringify(prompt).length > 12_000
        ? { error: refusal(400, "maximum context length is 4000 tokens") }
        : "It fits.",
    summary: () => (crashed ? "After the crash." : { hang: "before" }),
  });
  await fill(kit, 2);
  void kit.ask(long("question 3", 1_500)).catch(() => {});
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started", trigger: "error" }]);
  crashed = true;
  await kit.restart();
  await kit.stable();
  expect(await kit.compactions()).toMatchObject([{ status: "failed" }, { status: "done", trigger: "error" }]);
  expect(textIn(await kit.last())).toBe("It fits.");
});
