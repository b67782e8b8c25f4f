import { expect, test } from "vitest";
import { tailBudget } from "../../src/context/cut.ts";
import { bank } from "./conversations/bank.ts";
import { game } from "./conversations/game.ts";
import { group } from "./conversations/group.ts";
import { maths } from "./conversations/maths.ts";
import { medical } from "./conversations/medical.ts";
import { recipe } from "./conversations/recipe.ts";
import { shop } from "./conversations/shop.ts";
import { support } from "./conversations/support.ts";
import { expectFacts, readSent } from "./expect-kept.ts";
import { openLong, tokensOf } from "./long-agent.ts";
import type { Conversation } from "./talk.ts";

const USABLE = 12_000;
/** How far from the target it may end up. */
const TOLERANCE = 0.15;

/** What providers count for scripts is not the same from model to model. */
const cases: [Conversation, number][] = [
  [maths(), 0.7],
  [maths(), 1.3],
  [recipe(), 0.8],
  [recipe(), 1.2],
  [group(), 0.65],
  [group(), 1.3],
  [game(), 0.8],
  [medical(), 1.6],
  [bank(), 0.7],
  [shop(), 1.4],
  [support(), 1],
];

test.each(cases.map(([conversation, rate]) => ({ name: conversation.name, rate, conversation })))(
  "$name, where a provider counts $rate for each estimated token: what is kept is what was meant to be kept",
  async ({ conversation, rate }) => {
    const kit = await openLong(conversation, { usable: USABLE, rate });
    const agent = await kit.agent();
    const [first, ...rest] = conversation.rounds;
    if (first === undefined) throw new Error("no rounds");
    // Below the bound: the counts of the provider are learned from it.
    await agent.addMessages(first.messages.slice(0, 60));
    await kit.ask("Now?");
    await agent.addMessages(first.messages.slice(60));
    await kit.ask("And now?");
    expect(agent.listCompactions()).toEqual([]);
    for (const round of rest) await agent.addMessages(round.messages);
    while (agent.listCompactions().length === 0 && agent.messages.length < 3_000) {
      const extra = rest.flatMap(({ messages }) => messages);
      const at = agent.messages.length;
      await kit.ask("More?");
      if (agent.listCompactions().length > 0) break;
      await agent.addMessages(extra.map((message, i) => ({ ...message, id: `more-${at}-${i}` })));
    }
    const last = kit.answers().at(-1);
    const [made] = agent.listCompactions();
    if (last === undefined || made === undefined) throw new Error("There was no compaction.");
    const { rest: shown } = readSent(last);
    // As the provider counts it, without what is pinned.
    const tail = tokensOf({ prompt: shown.slice(conversation.pins.length), tools: [] }, rate);
    const target = tailBudget(USABLE, made.tokensBefore);
    expect(tail).toBeGreaterThan((1 - TOLERANCE) * target);
    expect(tail).toBeLessThan((1 + TOLERANCE) * target);
    expect(tokensOf(last, rate)).toBeLessThan((1 + TOLERANCE) * (made.tokensAfter ?? 0));
    expect(tokensOf(last, rate)).toBeGreaterThan((1 - TOLERANCE) * (made.tokensAfter ?? 0));
    expectFacts(conversation, last, agent.messages.slice(0, -1));
  },
);
