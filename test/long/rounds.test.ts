import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import type { LiveState } from "../../src/context/carried.ts";
import { toolParts } from "../../src/message/types.ts";
import { conversations } from "./conversations/index.ts";
import { expectFacts, expectPairs, expectPinned, expectTail, readSent } from "./expect-kept.ts";
import { openLong, tokensOf } from "./long-agent.ts";
import { readAssignment } from "./summariser.ts";
import type { Conversation } from "./talk.ts";

/** What code knows, and no summary has to. */
function todo(round: number): LiveState {
  return {
    todos: [{ text: `Round ${round}: write it down`, state: "open" }],
    plan: `First the old part, then part ${round + 1}.`,
  };
}

/** Files that tools worked on. */
function filesIn(messages: readonly UIMessage[]): string[] {
  const done = messages.flatMap(toolParts).filter(({ state }) => state === "output-available");
  return done.flatMap(({ input }) => (input as { path?: string }).path ?? []);
}

const all = conversations.map((make): [string, Conversation] => {
  const conversation = make();
  return [conversation.name, conversation];
});

test.each(all)("%s: all that matters is there after each compaction", async (_name, conversation) => {
  let round = 0;
  let pinned = 0;
  const kit = await openLong(conversation, { live: () => todo(round) });
  const agent = await kit.agent();
  const said: unknown[] = [];
  for (const { messages } of conversation.rounds) {
    const at = conversation.rounds[round];
    if (at === undefined) break;
    const result = await kit.play(at);
    expect(result.status).toBe("completed");
    said.push(...messages);

    const last = kit.answers().at(-1);
    const stored = agent.messages.slice(0, -1);
    const asked = agent.messages.at(-1);
    if (last === undefined || asked === undefined) throw new Error("The model was not asked.");
    const before = [...stored, { ...asked, parts: asked.parts.slice(0, -1) }];
    // One compaction for each round, and one call for it.
    const list = agent.listCompactions();
    expect(list.map(({ status, kind, error }) => ({ status, kind, error }))).toEqual(
      Array.from({ length: round + 1 }, () => ({ status: "done", kind: "summary", error: null })),
    );
    expect(list.filter(({ inEffect }) => inEffect)).toHaveLength(1);
    expect(kit.summaries()).toHaveLength(round + 1);
    // Fits, by the estimate and by what a provider counts.
    expect(list[0]?.tokensAfter).toBeLessThanOrEqual(kit.usable);
    expect(tokensOf(last)).toBeLessThanOrEqual(kit.usable);

    expectPairs(last.prompt);
    expectFacts(conversation, last, before);
    pinned = expectPinned(last, before, conversation.pins);
    const covered = expectTail(last, before, conversation.pins);
    expect(covered).toBeGreaterThan(0);
    const { note } = readSent(last);
    for (const file of filesIn(before.slice(0, covered))) expect(note).toContain(`- ${file} (`);
    for (const { text } of todo(round).todos ?? []) expect(note).toContain(`- [open] ${text}`);
    expect(note).toContain(`The plan:\n${todo(round).plan ?? ""}`);
    // What came before is not told as it was then.
    expect(note).not.toContain(`Round ${round - 1}: write`);

    // What is stored is what was said, all of it.
    const byId = new Map(agent.messages.map((message) => [message.id, message]));
    for (const message of said as typeof messages) expect(byId.get(message.id)).toEqual(message);
    expect(byId.size).toBe(agent.messages.length);
    round++;
  }

  expect(pinned).toBe(conversation.pins.length);
  // No message was summarised twice.
  const covered = kit.summaries().flatMap((call) => readAssignment(call).messages.map(({ id }) => id));
  expect(new Set(covered).size).toBe(covered.length);

  // In another life the next request begins with the bytes of the last one.
  const before = kit.answers().at(-1)?.prompt ?? [];
  await kit.nextLife();
  expect((await kit.ask("And now?")).status).toBe("completed");
  const after = kit.answers().at(-1)?.prompt ?? [];
  expect(JSON.stringify(after.slice(0, before.length))).toBe(JSON.stringify(before));
  expect(kit.summaries()).toHaveLength(conversation.rounds.length);
});
