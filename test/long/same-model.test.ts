import { expect, test } from "vitest";
import { conversations } from "./conversations/index.ts";
import { expectFacts, expectPinned, expectTail } from "./expect-kept.ts";
import { openLong, tokensOf } from "./long-agent.ts";
import { readAssignment } from "./summariser.ts";

test.each(conversations.map((make) => make()))(
  "$name: the model that answers summarises too, with no more room than it has, and nothing is left out",
  async (conversation) => {
    const kit = await openLong(conversation, { sameModel: true });
    const agent = await kit.agent();
    for (const round of conversation.rounds) {
      expect((await kit.play(round)).status).toBe("completed");
      const last = kit.answers().at(-1);
      if (last === undefined) throw new Error("The model was not asked.");
      const stored = agent.messages.slice(0, -1);
      const live = agent.messages.at(-1);
      if (live !== undefined) stored.push({ ...live, parts: live.parts.slice(0, -1) });
      expectFacts(conversation, last, stored);
      expectPinned(last, stored, conversation.pins);
      expectTail(last, stored, conversation.pins);
    }
    expect(agent.listCompactions().map(({ status, kind }) => `${status} ${kind}`)).toEqual(
      conversation.rounds.map(() => "done summary"),
    );
    // Each message was read once, in order, and no request was longer than what the model can read.
    const read = kit.summaries().flatMap((call) => readAssignment(call).messages.map(({ id }) => id));
    expect(new Set(read).size).toBe(read.length);
    const ids = agent.messages.map(({ id }) => id);
    expect(read).toEqual(ids.slice(0, read.length));
    for (const call of kit.summaries()) expect(tokensOf(call)).toBeLessThanOrEqual(kit.usable);
  },
);
