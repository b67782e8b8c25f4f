import { expect, test, vi } from "vitest";
import { coding } from "./conversations/coding.ts";
import { group } from "./conversations/group.ts";
import { legal } from "./conversations/legal.ts";
import { shop } from "./conversations/shop.ts";
import { expectFacts, expectPairs, expectPinned, expectTail, readSent } from "./expect-kept.ts";
import { type LongAgent, openLong, tokensOf, tooLong, usableFor } from "./long-agent.ts";
import { decent, type Summarises, useless } from "./summariser.ts";
import type { Conversation } from "./talk.ts";
import { PATIENCE_MS } from "../support/until.ts";

/** The provider really refuses what does not fit. */
function openStrict(conversation: Conversation, summarises: Summarises): Promise<LongAgent> {
  const usable = usableFor(conversation);
  return openLong(conversation, { usable, refusesAbove: Math.round(1.05 * usable), summarises });
}

function playFirst(kit: LongAgent, conversation: Conversation) {
  const [first] = conversation.rounds;
  if (first === undefined) throw new Error("no rounds");
  return kit.play(first);
}

function lastCall(kit: LongAgent) {
  const call = kit.answers().at(-1);
  if (call === undefined) throw new Error("The model was not asked.");
  return call;
}

/** All that was said is stored as it was, and nothing stands between it and the model. */
async function expectUntouched(kit: LongAgent, conversation: Conversation): Promise<void> {
  await expectStored(kit, conversation);
  const agent = await kit.agent();
  expect(agent.listCompactions().filter(({ inEffect }) => inEffect)).toEqual([]);
}

/** All that was said is stored as it was. */
async function expectStored(kit: LongAgent, conversation: Conversation): Promise<void> {
  const messages = conversation.rounds[0]?.messages ?? [];
  expect((await kit.agent()).messages.slice(0, messages.length)).toEqual(messages);
}

/** With a decent one the conversation goes on, and nothing is lost. */
async function expectHeals(kit: LongAgent, conversation: Conversation): Promise<void> {
  kit.summariseAs(decent(conversation.facts));
  const agent = await kit.agent();
  expect((await kit.ask("Again, please.")).status).toBe("completed");
  const stored = agent.messages.slice(0, -1);
  expectFacts(conversation, lastCall(kit), stored);
  expectPinned(lastCall(kit), stored, conversation.pins);
  expectTail(lastCall(kit), stored, conversation.pins);
  expectPairs(lastCall(kit).prompt);
  expect(agent.listCompactions()[0]).toMatchObject({ status: "done", inEffect: true });
}

const failures: [keyof typeof useless, Conversation, RegExp, number][] = [
  ["empty", coding(), /empty/, 2],
  ["long", legal(), /would not (help|be enough)/, 4],
  ["throws", group(), /./, 2],
];

test.each(failures)(
  "%s: history stays as it was, once per trigger, and what the provider refuses is left out until there is a summary",
  async (kind, conversation, why, calls) => {
    const kit = await openStrict(conversation, useless[kind]);
    const result = await playFirst(kit, conversation);
    expect(result).toMatchObject({ status: "completed" });
    const agent = await kit.agent();
    // Before the request, and when the provider had refused it: once each.
    const [left, ...list] = agent.listCompactions();
    expect(left).toMatchObject({ status: "done", kind: "truncate", trigger: "error", inEffect: true });
    expect(list.map(({ status, trigger }) => `${status} ${trigger}`)).toEqual(["failed error", "failed before"]);
    for (const { error } of list) expect(error).toMatch(why);
    expect(kit.summaries().length).toBeLessThanOrEqual(calls);
    expect(kit.answers().length).toBeGreaterThan(1);
    await expectStored(kit, conversation);
    expectPinned(lastCall(kit), agent.messages.slice(0, -1), conversation.pins);
    expectPairs(lastCall(kit).prompt);
    await expectHeals(kit, conversation);
  },
);

test.each(["empty", "long", "throws"] as const)("%s: a provider that can take more is sent all of it", async (kind) => {
  const conversation = coding();
  const kit = await openLong(conversation, { summarises: useless[kind] });
  expect((await playFirst(kit, conversation)).status).toBe("completed");
  const agent = await kit.agent();
  expect(agent.listCompactions().map(({ status, trigger }) => `${status} ${trigger}`)).toContain("failed before");
  expect(expectTail(lastCall(kit), agent.messages.slice(0, -1), [])).toBe(0);
  await expectUntouched(kit, conversation);
});

test("says as much as was said: a summary that would not help is not kept, however much room there is", async () => {
  const conversation = legal();
  const kit = await openLong(conversation, { usable: 300_000, summarises: useless.long });
  await playFirst(kit, conversation);
  const agent = await kit.agent();
  const before = lastCall(kit).prompt;
  await expect(agent.compact()).rejects.toThrow(/would not help/);
  expect(agent.listCompactions()).toMatchObject([{ status: "failed", trigger: "manual" }]);
  await expectUntouched(kit, conversation);
  await kit.ask("Go on.");
  expect(JSON.stringify(lastCall(kit).prompt.slice(0, before.length))).toBe(JSON.stringify(before));
});

test("fails in a turn of many steps: it is asked once, not before every step", async () => {
  const conversation = coding();
  const kit = await openLong(conversation, {
    summarises: useless.empty,
    says: ({ step }) =>
      step < 4 ? { toolCalls: [{ toolName: "run", input: { command: `npm test -- ${step}` } }] } : { text: "Done." },
  });
  expect((await playFirst(kit, conversation)).status).toBe("completed");
  const agent = await kit.agent();
  expect(kit.answers()).toHaveLength(5);
  expect(kit.summaries()).toHaveLength(1);
  expect(agent.listCompactions()).toMatchObject([{ status: "failed", trigger: "before" }]);
  await expectUntouched(kit, conversation);
});

test("a provider that finds everything too long: one try after a summary, then the turn says so", async () => {
  const conversation = legal();
  const kit = await openLong(conversation, { usable: 300_000, refusesAbove: 1 });
  const result = await playFirst(kit, conversation);
  expect(result).toMatchObject({ status: "error" });
  expect("error" in result && result.error).toMatch(/too long|context/i);
  const agent = await kit.agent();
  expect(kit.answers()).toHaveLength(2);
  expect(agent.listCompactions()).toMatchObject([{ status: "done", trigger: "error" }]);
  const stored = agent.messages;
  expectFacts(conversation, lastCall(kit), stored);
  expectPinned(lastCall(kit), stored, conversation.pins);
  // The conversation is as it was, and the question is in it.
  expect(stored.slice(0, -1)).toEqual(conversation.rounds[0]?.messages);
});

test("drops everything: what code carries and what is pinned is there all the same", async () => {
  const conversation = coding();
  const kit = await openStrict(conversation, useless.drop);
  expect((await playFirst(kit, conversation)).status).toBe("completed");
  const agent = await kit.agent();
  const stored = agent.messages.slice(0, -1);
  const { note } = readSent(lastCall(kit));
  expect(note).toContain("Nothing in particular.");
  expect(note).toContain("- src/wire/encode.ts (read_file)");
  expectPinned(lastCall(kit), stored, conversation.pins);
  expectTail(lastCall(kit), stored, conversation.pins);
  expectPairs(lastCall(kit).prompt);
});

test("cannot read what it is given: it gets less and less, and then there is a note without a model", async () => {
  const conversation = shop();
  const kit = await openStrict(conversation, (_given, call) => ({ error: tooLong(tokensOf(call)) }));
  expect((await playFirst(kit, conversation)).status).toBe("completed");
  const agent = await kit.agent();
  expect(agent.listCompactions()).toMatchObject([
    { status: "done", kind: "truncate", trigger: "error" },
    { status: "failed", trigger: "error" },
    { status: "failed", trigger: "before" },
  ]);
  const sizes = kit.summaries().map((call) => tokensOf(call));
  // Twice in vain, each time down to what cannot be less.
  expect(sizes.filter((size, i) => size >= (sizes[i - 1] ?? size))).toHaveLength(2);
  expect(sizes.length).toBeLessThanOrEqual(18);
  const stored = agent.messages.slice(0, -1);
  expectPinned(lastCall(kit), stored, conversation.pins);
  expectTail(lastCall(kit), stored, conversation.pins);
  expect(tokensOf(lastCall(kit))).toBeLessThanOrEqual(kit.usable);
  expect(readSent(lastCall(kit)).note).toContain("were left out without a summary");
});

test("never ends: the turn can be stopped, and nothing has changed", async () => {
  const conversation = group();
  const kit = await openStrict(conversation, useless.hangs);
  const agent = await kit.agent();
  const turn = playFirst(kit, conversation);
  await vi.waitUntil(() => kit.summaries().length === 1, { timeout: PATIENCE_MS });
  agent.cancelAllChats();
  expect((await turn).status).toBe("aborted");
  await vi.waitUntil(() => agent.listCompactions()[0]?.status === "failed", { timeout: PATIENCE_MS });
  expect(agent.listCompactions()).toMatchObject([{ status: "failed", error: "It was stopped." }]);
  expect(kit.answers()).toEqual([]);
  await expectUntouched(kit, conversation);
  await expectHeals(kit, conversation);
});
