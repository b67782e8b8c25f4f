import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { fill, long, openSmall, reader, shown } from "./compacting.ts";

const bad = (code: string, words: string) => ({ code, message: expect.stringContaining(words) as string });

test("a person compacts with a focus, and the model is told of it", async () => {
  const kit = await openSmall();
  await fill(kit, 2);
  const agent = await kit.agent();
  const made = await agent.compact({ focus: "the price of the boat" });
  expect(made).toMatchObject({ kind: "summary", status: "done", trigger: "manual", inEffect: true });
  expect(made).toMatchObject({ focus: "the price of the boat", summary: "## Goal\nBe short.", session: "main" });
  expect(JSON.stringify(kit.summaries()[0]?.prompt)).toContain("the price of the boat");
  expect(agent.listCompactions()).toEqual([made]);
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
  expect(agent.listUsage({ purpose: "compaction" })).toHaveLength(1);
});

test("a preview stores nothing; its text can be changed and applied", async () => {
  const kit = await openSmall();
  await fill(kit, 2);
  const agent = await kit.agent();
  const draft = await agent.compact({ preview: true });
  expect(draft).toMatchObject({ summary: "## Goal\nBe short.", problem: undefined });
  expect(draft.tokensAfter).toBeLessThan(draft.tokensBefore);
  expect(await kit.compactions()).toEqual([]);
  const made = await agent.applyCompaction({ ...draft, summary: "What I want it to know." });
  expect(made).toMatchObject({ summary: "What I want it to know.", messageId: draft.messageId, inEffect: true });
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("What I want it to know.");
  await expect(agent.applyCompaction(draft)).rejects.toMatchObject(bad("bad_state", "make a new preview"));
});

test("undone, the model is sent the very bytes that it was sent before", async () => {
  const kit = await openSmall();
  await fill(kit, 2);
  const agent = await kit.agent();
  await kit.ask("short 3");
  const before = shown(kit.turns().at(-1));
  const made = await agent.compact();
  await kit.ask("short 4");
  expect(shown(kit.turns().at(-1))).not.toContain(long("question 1", 1_000));
  expect(await agent.undoCompaction(made.id)).toMatchObject({ id: made.id, status: "undone", inEffect: false });
  await kit.ask("short 5");
  const after = shown(kit.turns().at(-1));
  expect(after.startsWith(before.slice(0, -1))).toBe(true);
  expect(after).toContain("short 4");
  await expect(agent.undoCompaction(made.id)).rejects.toMatchObject(bad("bad_state", "in effect"));
  await expect(agent.undoCompaction("cmp_none")).rejects.toMatchObject(bad("not_found", "cmp_none"));
});

test("it is not undone when the conversation would not fit, and how much is missing is said", async () => {
  const kit = await openSmall();
  await fill(kit, 4);
  await fill(kit, 1, 5);
  const agent = await kit.agent();
  const [last] = agent.listCompactions();
  await expect(agent.undoCompaction(last?.id ?? "")).rejects.toMatchObject({
    code: "limit",
    message: expect.stringMatching(/about \d+ tokens too long/) as string,
  });
  expect(agent.listCompactions()[0]).toMatchObject({ status: "done", inEffect: true });
});

test("pinned messages survive every compaction word for word", async () => {
  const kit = await openSmall();
  await kit.ask("The code word is HERON-7, exactly so.");
  const agent = await kit.agent();
  agent.session.pin("ask-1");
  await fill(kit, 7, 2);
  expect((await kit.compactions()).filter(({ status }) => status === "done").length).toBeGreaterThan(1);
  const request = shown(kit.turns().at(-1));
  expect(request).toContain('{"type":"text","text":"The code word is HERON-7, exactly so."}');
  expect(request).not.toContain(long("question 2", 1_000));
});

test("what cannot be done is said, and changes nothing", async () => {
  const kit = await openSmall();
  await kit.ask("hello");
  const agent = await kit.agent();
  await expect(agent.compact()).rejects.toMatchObject(bad("bad_state", "nothing to summarise"));
  expect(await kit.compactions()).toEqual([]);
});

test("while a turn runs, what it was sent is not changed from outside", async () => {
  const kit = await openSmall({ answer: ({ userText }) => (userText === "wait" ? { text: "x", hang: true } : "Yes.") });
  await fill(kit, 2);
  const client = await kit.connect();
  client.request("r1", [...(await kit.stored()), user("w", "wait")]);
  await client.said("r1", "x");
  const agent = await kit.agent();
  await expect(agent.compact()).rejects.toMatchObject(bad("bad_state", "running"));
  agent.cancelAllChats();
  await kit.stable();
  expect(await agent.compact()).toMatchObject({ status: "done" });
});

test("while turns of several sessions run, each is protected, and one without a turn can be compacted", async () => {
  const kit = await openSmall({ answer: ({ userText }) => (userText === "wait" ? { text: "x", hang: true } : "Yes.") });
  await fill(kit, 2);
  const agent = await kit.agent();
  const [one, two, idle] = ["one", "two", "idle"].map((name) => agent.forkSession("main", { name }).id);
  const turns = [one, two].map((session = "") => agent.runTurn({ input: "wait", session }).catch(() => undefined));
  await expect.poll(() => kit.turns().filter((call) => shown(call).includes("wait")).length).toBe(2);
  for (const session of [one, two])
    await expect(agent.compact({ session })).rejects.toMatchObject(bad("bad_state", "running"));
  expect(await agent.compact({ session: idle })).toMatchObject({ status: "done", session: idle });
  agent.cancelAllChats();
  await Promise.all(turns);
});

test("a compaction that a crash cut counts for nothing, and says so", async () => {
  const kit = await openSmall({ summary: () => ({ hang: "before" }) });
  await fill(kit, 2);
  void (await kit.agent()).compact().catch(() => {});
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started" }]);
  await kit.restart();
  const agent = await kit.agent();
  expect(agent.listCompactions()).toMatchObject([{ status: "failed", error: expect.stringContaining("cut off") }]);
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("question 1 abc");
});

test("a fork has the compactions of what it shares, and another branch has not", async () => {
  const kit = await openSmall();
  await fill(kit, 2);
  const agent = await kit.agent();
  const made = await agent.compact();
  const fork = agent.forkSession();
  expect(agent.listCompactions({ session: fork.id })).toMatchObject([{ id: made.id, inEffect: true }]);
  const early = agent.forkSession("main", { at: "ask-1" });
  expect(agent.listCompactions({ session: early.id })).toEqual([]);
});

test("the session's own bound and the app's own function are kept to", async () => {
  const asked: unknown[] = [];
  const kit = await openSmall({
    extend: (Base) =>
      class extends Base {
        override configureSession(session: Parameters<InstanceType<typeof Base>["configureSession"]>[0]) {
          return session.compactAfter(1_500).onCompaction((messages, { focus }) => {
            asked.push([messages.length, focus]);
            return "What I make of it.";
          });
        }
      },
  });
  await fill(kit, 1);
  expect(await kit.compactions()).toEqual([]);
  await fill(kit, 1, 2);
  expect(await kit.compactions()).toMatchObject([{ trigger: "after", status: "done", summary: "What I make of it." }]);
  expect(asked).toEqual([[3, undefined]]);
  expect(kit.summaries()).toEqual([]);
  expect(shown(kit.turns().at(-1))).toContain("What I make of it.");
});

test("what waits and what runs is carried over by code", async () => {
  const kit = await openSmall({
    extend: (Base) =>
      class extends Base {
        override getLiveState() {
          return { plan: "First the hull.", todos: [{ text: "paint", state: "open" }] };
        }
      },
  });
  await fill(kit, 2);
  const made = await (await kit.agent()).compact();
  expect(made.carried).toContain("First the hull.");
  expect(made.carried).toContain("[open] paint");
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("First the hull.");
});

test("another model can summarise", async () => {
  const kit = await openSmall({
    extend: (Base) =>
      class extends Base {
        override getCompactionModel() {
          return "nowhere/small" as never;
        }
      },
  });
  await fill(kit, 2);
  await expect((await kit.agent()).compact()).rejects.toMatchObject({ code: "bad_state" });
  expect(await kit.compactions()).toMatchObject([{ status: "failed", model: "nowhere/small" }]);
});

test("the report says what was sent, and adds up", async () => {
  const kit = await openSmall();
  await fill(kit, 4);
  const agent = await kit.agent();
  const report = await agent.contextReport();
  expect(report).toMatchObject({ model: "scripted/scripted", usable: 4_000, limit: 100_000, estimated: false });
  expect(report.used).toBe(agent.listUsage({ purpose: "turn", limit: 1 })[0]?.input);
  expect(report.items.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(report.used);
  expect(report.byKind.summary).toBeGreaterThan(0);
  expect(report.items.find(({ kind }) => kind === "message")?.id).toMatch(/^ask-|^msg/);
  await kit.restart();
  const later = await (await kit.agent()).contextReport();
  expect(later.estimated).toBe(true);
  expect(later.byKind.summary).toBeGreaterThan(0);
});

test("the report says what was left out and why, and what it would cost to have it back", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 100_000, input: 12_000 } } },
    answer: ({ step, userText }) => {
      const [word, name, tokens] = userText.split(" ");
      if (step > 0 || word !== "read") return "Done.";
      return { toolCalls: [{ toolName: "read", input: { name, tokens: Number(tokens) } }] };
    },
    tools: { read: reader },
    extend: (Base) =>
      class extends Base {
        override prices = { "scripted/*": { input: 1_000, output: 1_000 } };
      },
  });
  await kit.ask(long("long ago", 2_000));
  await kit.ask(long("not so long ago", 500));
  const agent = await kit.agent();
  await agent.compact();
  for (const words of ["read a 2000", "read a 2000", "read a 2000", "read whole 9000", "go on"]) await kit.ask(words);
  const report = await agent.contextReport();
  const rows = agent.listCompactions();
  const calls = agent.messages.flatMap(({ id, parts }) =>
    parts.flatMap((part) => ("toolCallId" in part ? [{ id, call: part.toolCallId }] : [])),
  );
  expect(report.leftOut.map(({ kind }) => kind)).toEqual(["summarised", "superseded", "superseded", "bounded"]);
  const [summary, first, second, bounded] = report.leftOut;
  expect(summary?.compaction).toBe(rows.find(({ kind }) => kind === "summary")?.id);
  for (const [index, item] of [first, second].entries())
    expect(item).toMatchObject({
      ...calls[index],
      label: "read",
      compaction: rows.find(({ kind }) => kind === "prune")?.id,
    });
  expect(second?.newer).toEqual([calls[2]]);
  expect(bounded).toMatchObject({ ...calls[3], label: "read" });
  expect(bounded?.tokens).toBeGreaterThan(5_000);
  for (const { tokens, cost } of report.leftOut) expect(cost).toBeCloseTo(tokens / 1_000, 5);
  const sum = report.leftOut.reduce((all, { tokens }) => all + tokens, 0);
  expect(report.cost?.sent).toBeCloseTo(report.used / 1_000, 5);
  expect(report.cost?.whole).toBeCloseTo((report.used + sum) / 1_000, 5);
  expect(report.byKind.summary).toBeGreaterThan(0);
  // Clients are told the same.
  expect((await agent.contextReport()).leftOutByKind.superseded).toBe((first?.tokens ?? 0) + (second?.tokens ?? 0));
});

test("a regenerated answer reads what the first one read", async () => {
  const kit = await openSmall();
  await fill(kit, 4);
  const first = kit.turns().at(-1);
  const client = await kit.connect();
  const stored = await kit.stored();
  client.request("again", stored.slice(0, -1), { trigger: "regenerate-message" });
  await client.done("again");
  expect(shown(kit.turns().at(-1))).toBe(shown(first));
  expect(textIn(await kit.last())).toBe("Yes.");
});

test("long text that is pinned and does not fit makes the compaction fail, with the reason", async () => {
  const kit = await openSmall();
  await kit.ask(long("pinned", 3_000));
  (await kit.agent()).session.pin("ask-1");
  await kit.ask(long("second", 1_500));
  const rows = await kit.compactions();
  expect(rows[0]).toMatchObject({ status: "failed", error: expect.stringMatching(/would not (help|be enough)/) });
});

test("a turn that begins while a person compacts goes on as it is, and the next one has the summary", async () => {
  let release = () => {};
  const waiting = new Promise<void>((resolve) => (release = resolve));
  const kit = await openSmall({
    summary: async () => {
      await waiting;
      return "## Goal\nBe short.";
    },
    answer: ({ userText }) => (userText === "wait" ? { text: "x", hang: true } : "Yes."),
  });
  await fill(kit, 2);
  const agent = await kit.agent();
  const made = agent.compact();
  await expect.poll(() => kit.summaries().length).toBe(1);
  const client = await kit.connect();
  client.request("r1", [...(await kit.stored()), user("w", "wait")]);
  await client.said("r1", "x");
  release();
  expect(await made).toMatchObject({ status: "done" });
  expect(shown(kit.turns().at(-1))).toContain("question 1 abc");
  agent.cancelAllChats();
  await kit.stable();
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
});
