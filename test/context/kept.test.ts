// What must not get lost without a word: the task, pins and summaries, however much is stored beside them.
import type { UIMessage } from "ai";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { long, openSmall, shown } from "./compacting.ts";
import { answer, called, user } from "./paths.ts";

const TASK = "Audit the harbour books, and never touch berth 13.";
/** A picture of 100 x 100 pixels, as far as its head says, in so many characters of base64. */
const picture = (length: number) =>
  `iVBORw0KGgoAAAANSUhEUgAAAGQAAABkCAIAAAD/gAIDAAAA${"A".repeat(length)}`.slice(0, length & ~3);

test("with all settings as they are, the task stays in sight when far more was read than may be sent", async () => {
  const kit = await openSmall({ settings: { modelLimits: { "scripted/*": { window: 200_000 } } } });
  const agent = await kit.agent();
  await agent.addMessages([user("task", TASK), answer("begun", { type: "text", text: "I begin." })]);
  for (let i = 0; i < 110; i++) {
    await agent.addMessages([
      user(`u${i}`, `go on ${i}`),
      answer(`a${i}`, called("read", `c${i}`, "book ".repeat(6_000)), { type: "text", text: "Read." }),
    ]);
  }
  for (let i = 0; i < 2; i++) expect(await kit.ask(`and ${i}?`)).toMatchObject({ status: "completed" });
  expect((await kit.compactions()).map(({ kind, status }) => `${kind} ${status}`)).toEqual(["prune done"]);
  expect(kit.turns()).toHaveLength(2);
  for (const call of kit.turns()) {
    const [first] = call.prompt.filter(({ role }) => role !== "system");
    expect(first).toMatchObject({ role: "user", content: [{ text: TASK }] });
    for (let i = 0; i < 110; i++) expect(shown(call)).toContain(`"go on ${i}"`);
  }
});

test("an output counts as what its tool shows of it, not as what is stored", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 100_000, input: 16_000 } } },
    answer: ({ step }) => (step < 12 ? { toolCalls: [{ toolName: "scan", input: { page: step } }] } : "Scanned."),
    tools: {
      scan: serverTool(() => "raw ".repeat(9_000), {
        toModelOutput: () => ({ type: "text", value: "One line." }),
      }),
    },
  });
  await kit.ask(TASK);
  await kit.ask("And now?");
  expect(await kit.compactions()).toEqual([]);
  for (const call of kit.turns()) expect(shown(call)).toContain(TASK);
});

test("a picture that a tool took is seen before anything of it is summarised", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 100_000, input: 6_000 } }, maxSteps: 20 },
    answer: ({ step }) =>
      step < 8
        ? { text: long(`look ${step}`, 900), toolCalls: [{ toolName: "look", input: { at: step } }] }
        : "Seen all of it.",
    tools: {
      look: serverTool(() => ({ image: picture(20_000) }), {
        toModelOutput: ({ output }) => ({
          type: "content",
          value: [{ type: "image-data", mediaType: "image/png", data: (output as { image: string }).image }],
        }),
      }),
    },
  });
  expect(await kit.ask(TASK)).toMatchObject({ status: "completed" });
  expect((await kit.compactions()).filter(({ status }) => status === "done").length).toBeGreaterThan(0);
  for (const call of kit.turns()) expect(shown(call)).toContain(TASK);
  // The picture that was taken last is there as a picture.
  for (const { prompt } of kit.turns().slice(1)) expect(JSON.stringify(prompt.at(-1))).toContain("image/png");
});

test("a history that was brought along is summarised in pieces when it is many windows long", async () => {
  const read: string[] = [];
  const kit = await openSmall({
    summary: ({ prompt }) => {
      const text = JSON.stringify(prompt);
      read.push(...(text.match(/(?<=saying )\d+/g) ?? []));
      return `## Goal\n${text.includes(TASK) ? TASK : "unknown"}`;
    },
  });
  const events: unknown[] = [];
  onTestFinished(subscribe("chat:context:compacted", ({ payload }) => void events.push(payload)));
  const history = Array.from({ length: 80 }, (_, i): UIMessage[] => [
    user(`u${i}`, i === 0 ? TASK : long(`saying ${i}`, 400)),
    answer(`a${i}`, { type: "text", text: long(`reply ${i}`, 100) }),
  ]).flat();
  const agent = await kit.agent();
  await agent.addMessages(history);
  expect(await kit.ask("What was it about?")).toMatchObject({ status: "completed" });
  const [row] = await kit.compactions();
  expect(row).toMatchObject({ status: "done", kind: "summary", trigger: "before" });
  expect(events).toHaveLength(1);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain(TASK);
  // All that the request does not show was read for the summary, once and in order.
  const left = history.flatMap(({ parts: [part] }) => /saying (\d+)/.exec(JSON.stringify(part))?.[1] ?? []);
  // The note has the user's own words on some of it besides.
  const behind = request.slice(request.indexOf("[End of the note."));
  const kept = behind.match(/(?<=saying )\d+/g) ?? [];
  expect([...read, ...kept]).toEqual(left);
});

test("a model with a smaller window gets a summary of what it cannot read, not the end of it", async () => {
  const window = { input: 40_000 };
  const kit = await openSmall({
    settings: { modelLimits: () => ({ window: 100_000, ...window }) },
    summary: ({ prompt }) => `## Goal\n${JSON.stringify(prompt).includes(TASK) ? TASK : "unknown"}`,
  });
  await kit.ask(TASK);
  for (let i = 0; i < 30; i++) await kit.ask(long(`question ${i}`, 1_000));
  expect(await kit.compactions()).toEqual([]);
  window.input = 3_000;
  expect(await kit.ask("Do you still know?")).toMatchObject({ status: "completed" });
  expect(await kit.compactions()).toMatchObject([{ status: "done", kind: "summary" }]);
  expect(shown(kit.turns().at(-1))).toContain(TASK);
});

test("clearing goes by what a text costs that is kept outside of its message", async () => {
  const kit = await openSmall({
    settings: {
      modelLimits: { "scripted/*": { window: 200_000, input: 120_000 } },
      mediaRetention: { keepInMessages: 1 },
    } as never,
    answer: ({ step, userText }) =>
      step === 0 ? { toolCalls: [{ toolName: "read", input: { for: userText } }] } : "Read.",
    tools: { read: serverTool(() => "book ".repeat(9_500)) },
  });
  await kit.ask(TASK);
  for (let i = 0; i < 11; i++) expect(await kit.ask(`go on ${i}`)).toMatchObject({ status: "completed" });
  expect((await kit.compactions()).map(({ kind, status }) => `${kind} ${status}`)).toEqual(["prune done"]);
  expect(kit.summaries()).toEqual([]);
});

test("an output of a pinned message is not cleared", async () => {
  const kit = await openSmall({ settings: { modelLimits: { "scripted/*": { window: 200_000, input: 100_000 } } } });
  const agent = await kit.agent();
  for (let i = 0; i < 6; i++) {
    await agent.addMessages([
      user(`u${i}`, "read"),
      answer(`a${i}`, called("read", `c${i}`, long(`book-${i}`, 20_000))),
    ]);
  }
  agent.session.pin("a0");
  await kit.ask("Which one was first?");
  expect((await kit.compactions()).map(({ kind, status }) => `${kind} ${status}`)).toEqual(["prune done"]);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("book-0 abc");
  expect(request).not.toContain("book-1 abc");
});

test("a conversation that the assistant has begun begins with a message of the user for the model", async () => {
  const kit = await openSmall();
  const agent = await kit.agent();
  await agent.addMessages([answer("a0", { type: "text", text: "Ahoy! What can I do?" })]);
  await kit.ask("Nothing yet.");
  await kit.ask("Or rather: this.");
  for (const call of kit.turns()) {
    const said = call.prompt.filter(({ role }) => role !== "system");
    expect(said.map(({ role }) => role).slice(0, 3)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(said[1])).toContain("Ahoy!");
  }
  expect((await kit.stored()).map(({ role }) => role)[0]).toBe("assistant");
});

test("an answer that is pinned after a part of it was summarised is shown whole again", async () => {
  const kit = await openSmall({
    answer: ({ step, prompt }) =>
      step < 6 && !JSON.stringify(prompt).includes("thank you")
        ? { text: `«${step}»`, toolCalls: [{ toolName: "read", input: { step } }] }
        : "Done.",
    tools: { read: serverTool(() => long("book", 700)) },
  });
  await kit.ask(TASK);
  const [row] = (await kit.compactions()).filter(({ status }) => status === "done");
  expect(row?.parts).toBeGreaterThan(0);
  const agent = await kit.agent();
  agent.modelLimits = { "scripted/*": { window: 100_000 } };
  agent.session.pin(agent.messages.at(-1)?.id ?? "");
  await kit.ask("thank you");
  for (let i = 0; i < 4; i++) expect(shown(kit.turns().at(-1))).toContain(`«${i}»`);
});

test("a summary stays when the messages that it stands for are deleted because there are too many", async () => {
  const kit = await openSmall({ settings: { maxPersistedMessages: 12 } as never });
  await kit.ask(TASK);
  for (let i = 0; i < 5; i++) await kit.ask(long(`question ${i}`, 900));
  expect((await kit.compactions()).map(({ status }) => status)).toContain("done");
  for (let i = 0; i < 8; i++) await kit.ask(`short ${i}`);
  expect(await kit.stored()).toHaveLength(12);
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
  await kit.restart();
  await kit.ask("still?");
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
});
