import { expect, test } from "vitest";
import { coding } from "./conversations/coding.ts";
import { maths } from "./conversations/maths.ts";
import { medical } from "./conversations/medical.ts";
import { expectFacts, expectPairs, expectPinned, expectTail } from "./expect-kept.ts";
import { openLong, tokensOf } from "./long-agent.ts";
import { readAssignment } from "./summariser.ts";

const CHUNK = 10;

test.each([coding(), maths(), medical()])(
  "$name: summaries that are made while the conversation goes on lose nothing either",
  async (conversation) => {
    const kit = await openLong(conversation, { overflow: { background: true } });
    const agent = await kit.agent();
    const messages = conversation.rounds.flatMap((round) => round.messages);
    for (let at = 0; at < messages.length; at += CHUNK) {
      const chunk = messages.slice(at, at + CHUNK);
      await agent.addMessages(chunk);
      for (const { id } of chunk) if (conversation.pins.includes(id)) agent.session.pin(id);
      expect((await kit.ask(`How is number ${at}?`)).status).toBe("completed");
      const last = kit.answers().at(-1);
      if (last === undefined) throw new Error("The model was not asked.");
      const stored = agent.messages.slice(0, -1);
      expectFacts(conversation, last, stored);
      expectPinned(last, stored, conversation.pins);
      expectTail(last, stored, conversation.pins);
      expectPairs(last.prompt);
      expect(tokensOf(last)).toBeLessThanOrEqual(kit.usable);
    }
    const done = agent.listCompactions();
    expect(done.filter(({ status }) => status === "failed")).toEqual([]);
    expect(done.filter(({ trigger, status }) => trigger === "background" && status === "done").length).toBeGreaterThan(
      3,
    );
    const read = kit.summaries().flatMap((call) => readAssignment(call).messages.map(({ id }) => id));
    expect(new Set(read).size).toBe(read.length);
  },
);
