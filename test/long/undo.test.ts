import { PerdureError } from "perdure";
import { expect, test } from "vitest";
import { coding } from "./conversations/coding.ts";
import { maths } from "./conversations/maths.ts";
import { travel } from "./conversations/travel.ts";
import { expectFacts, expectPairs, expectPinned, expectTail, readSent } from "./expect-kept.ts";
import { type LongAgent, openLong } from "./long-agent.ts";
import type { Conversation } from "./talk.ts";

/** Compactions are asked for, and none is needed. */
const ROOMY = 300_000;

function lastPrompt(kit: LongAgent) {
  const call = kit.answers().at(-1);
  if (call === undefined) throw new Error("The model was not asked.");
  return call;
}

/** The request begins with the bytes of this one. */
function expectGoesOn(kit: LongAgent, before: ReturnType<typeof lastPrompt>): void {
  const now = lastPrompt(kit).prompt.slice(0, before.prompt.length);
  expect(JSON.stringify(now)).toBe(JSON.stringify(before.prompt));
}

async function playFirst(conversation: Conversation): Promise<LongAgent> {
  const kit = await openLong(conversation, { usable: ROOMY });
  const [first] = conversation.rounds;
  if (first !== undefined) await kit.play(first);
  return kit;
}

test.each([coding(), travel(), maths()])(
  "$name: undo gives back the bytes that were sent before, and keeps what was said since",
  async (conversation) => {
    const kit = await playFirst(conversation);
    const agent = await kit.agent();
    const whole = lastPrompt(kit);
    const made = await agent.compact();
    expect(made).toMatchObject({ status: "done", trigger: "manual", inEffect: true });
    await kit.ask("What did we say?");
    const short = lastPrompt(kit);
    expect(readSent(short).note).toBeDefined();
    expect(short.prompt.length).toBeLessThan(whole.prompt.length);

    await agent.undoCompaction(made.id);
    expect(agent.listCompactions()).toMatchObject([{ id: made.id, status: "undone", inEffect: false }]);
    await kit.ask("And without the summary?");
    expectGoesOn(kit, whole);
    expect(readSent(lastPrompt(kit)).note).toBeUndefined();
    expect(lastPrompt(kit).prompt.length).toBeGreaterThan(whole.prompt.length + 2);
    expect(readSent(lastPrompt(kit)).text).toContain("What did we say?");

    // Another one may be made, and another life reads it too.
    const again = await agent.compact();
    await kit.ask("Once more?");
    const second = lastPrompt(kit);
    const stored = agent.messages.slice(0, -1);
    expectFacts(conversation, second, stored);
    expectPinned(second, stored, conversation.pins);
    expectTail(second, stored, conversation.pins);
    expectPairs(second.prompt);
    await kit.nextLife();
    await kit.ask("Still there?");
    expectGoesOn(kit, second);
    const later = await kit.agent();
    await later.undoCompaction(again.id);
    await kit.ask("The end.");
    expectGoesOn(kit, whole);
  },
);

test("the newer of two is undone first, and the older one is read again as it was", async () => {
  const conversation = coding();
  const kit = await playFirst(conversation);
  const agent = await kit.agent();
  const older = await agent.compact();
  const [, second] = conversation.rounds;
  if (second !== undefined) await kit.play(second);
  const withOlder = lastPrompt(kit);
  const newer = await agent.compact();
  await kit.ask("Between.");
  await expect(agent.undoCompaction(older.id)).rejects.toThrow(PerdureError);
  await agent.undoCompaction(newer.id);
  await kit.ask("After.");
  expectGoesOn(kit, withOlder);
  expect(readSent(lastPrompt(kit)).note).toContain(older.summary ?? "nothing");
  await expect(agent.undoCompaction(newer.id)).rejects.toThrow("Only the compaction in effect");
  await agent.undoCompaction(older.id);
  await kit.ask("All of it.");
  expectTail(lastPrompt(kit), agent.messages.slice(0, -1), []);
  expect(readSent(lastPrompt(kit)).note).toBeUndefined();
});

test("it is refused when the conversation would not fit, and says by how much", async () => {
  const conversation = travel();
  const kit = await openLong(conversation);
  const [first] = conversation.rounds;
  if (first !== undefined) await kit.play(first);
  const agent = await kit.agent();
  const before = lastPrompt(kit);
  const [made] = agent.listCompactions();
  const refused: unknown = await agent.undoCompaction(made?.id ?? "").catch((thrown: unknown) => thrown);
  expect(refused).toMatchObject({ code: "limit" });
  const text = String(refused);
  const over = Number(/about (\d+) tokens too long/.exec(text)?.[1]);
  expect(over).toBeGreaterThan(0);
  expect(over).toBeLessThan(kit.usable);
  await kit.ask("Go on.");
  expectGoesOn(kit, before);
});
