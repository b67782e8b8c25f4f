import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { recipe } from "./conversations/recipe.ts";
import { support } from "./conversations/support.ts";
import { expectFacts, expectPairs, expectPinned, expectTail, readSent } from "./expect-kept.ts";
import { type LongAgent, openLong } from "./long-agent.ts";

function sentLast(kit: LongAgent) {
  const call = kit.answers().at(-1);
  if (call === undefined) throw new Error("The model was not asked.");
  return call;
}

const bytes = (prompt: readonly unknown[], count: number) => JSON.stringify(prompt.slice(0, count));

test("a fork keeps the compaction and the pins, byte for byte, and each goes its own way then", async () => {
  const conversation = support();
  const kit = await openLong(conversation);
  const agent = await kit.agent();
  const [first, second, third] = conversation.rounds;
  if (first === undefined || second === undefined || third === undefined) throw new Error("too few rounds");
  await kit.play(first);
  await kit.play(second);
  const before = sentLast(kit);

  const fork = agent.forkSession();
  await agent.runTurn({ input: user("f1", "What now, in the fork?"), session: fork.id });
  const forked = sentLast(kit);
  expect(bytes(forked.prompt, before.prompt.length)).toBe(bytes(before.prompt, before.prompt.length));

  // The fork is compacted again; the first one is not.
  const summaries = kit.summaries().length;
  await agent.addMessages(third.messages, { session: fork.id });
  await agent.runTurn({ input: user("f2", third.ask), session: fork.id });
  expect(kit.summaries()).toHaveLength(summaries + 1);
  const inFork = sentLast(kit);
  const stored = agent.getHistory(undefined, { session: fork.id }).slice(0, -1);
  expectFacts(conversation, inFork, stored);
  expectPinned(inFork, stored, conversation.pins);
  expectTail(inFork, stored, conversation.pins);
  expectPairs(inFork.prompt);
  expect(agent.listCompactions({ session: fork.id })).toHaveLength(3);
  expect(agent.listCompactions()).toHaveLength(2);

  await kit.ask("And here?");
  expect(bytes(sentLast(kit).prompt, before.prompt.length)).toBe(bytes(before.prompt, before.prompt.length));
  expect(readSent(sentLast(kit)).text).not.toContain("in the fork");
  expect(kit.summaries()).toHaveLength(summaries + 1);
});

test("a branch that leaves before the compaction does not see it; who comes back does", async () => {
  const conversation = recipe();
  const kit = await openLong(conversation);
  const agent = await kit.agent();
  const [first] = conversation.rounds;
  if (first === undefined) throw new Error("no rounds");
  await kit.play(first);
  const compacted = sentLast(kit);
  expect(readSent(compacted).note).toBeDefined();
  const leaf = agent.messages.at(-1)?.id ?? "";

  const early = first.messages[7]?.id ?? "";
  await agent.addMessages([user("other", "別の話をしましょう。")], { parentId: early });
  await kit.ask("どう思いますか。");
  const branch = sentLast(kit);
  expect(readSent(branch).note).toBeUndefined();
  expect(expectTail(branch, agent.messages.slice(0, -1), [])).toBe(0);
  expect(agent.messages).toHaveLength(8 + 3);
  expect(agent.listCompactions()).toEqual([]);

  agent.switchBranch(leaf);
  await kit.ask("戻りました。");
  expect(bytes(sentLast(kit).prompt, compacted.prompt.length)).toBe(bytes(compacted.prompt, compacted.prompt.length));
  expect(agent.listCompactions()).toMatchObject([{ status: "done", inEffect: true }]);
  expect(kit.summaries()).toHaveLength(1);
});

test("pins may change after a compaction: the next request shows it", async () => {
  const conversation = support();
  const kit = await openLong(conversation);
  const agent = await kit.agent();
  const [first, second] = conversation.rounds;
  if (first === undefined || second === undefined) throw new Error("too few rounds");
  await kit.play(first);
  const late = first.messages[0]?.id ?? "";
  agent.session.pin(late);
  await kit.ask("Is it there?");
  expect(expectPinned(sentLast(kit), agent.messages, [late])).toBe(1);
  await kit.play(second);
  expect(expectPinned(sentLast(kit), agent.messages, [late, ...conversation.pins])).toBe(2);
  agent.session.unpin(late);
  await kit.ask("Is it gone?");
  expectTail(sentLast(kit), agent.messages.slice(0, -1), conversation.pins);
});
