// Trees of chance, with budgets, stops and deaths of chance: whatever happens, no budget is ever passed.
import type { Budgets } from "perdure";
import type { Script } from "perdure/testing";
import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { type Random, random } from "../think/interleave-random.ts";
import { expectBooked, type Layer, LAYERS, openTree, type Tree, usage, USED } from "./spending.ts";

const SEEDS = 12;
const TURNS = 3;

/** Asks for some runs in each of some steps. Slow by chance, so that calls lie beside each other. */
function chancy({ int }: Random, below: boolean, called: () => void): Script {
  const steps = below ? 1 + int(2) : 0;
  return async ({ step }) => {
    called();
    for (let i = int(4); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
    if (step >= steps) return { text: "Done.", usage };
    const toolCalls = Array.from({ length: 1 + int(3) }, () => ({ toolName: "below", input: { query: "tea" } }));
    return { toolCalls, usage };
  };
}

/** @param soft whether a person may be asked: nobody answers. */
function budgetOf({ int, pick, chance }: Random, soft: boolean): Budgets {
  const maxTokens = 200 + int(1_500);
  return { [pick(["turn", "session", "agent"])]: { maxTokens, ...(soft && chance(0.2) && { soft: 0.5 }) } };
}

/** What is charged and reserved never passes a limit; `turn` is the turn that runs. */
function expectWithin(tree: Tree, turn: string | undefined): void {
  for (const layer of LAYERS) {
    const { agent, session } = tree.budgets[layer];
    for (const one of tree.of(layer)) {
      const { tokens, reservedTokens } = one.usage();
      expect(tokens + reservedTokens).toBeLessThanOrEqual((agent ?? session)?.maxTokens ?? Infinity);
    }
  }
  const limit = tree.budgets.Talk.turn?.maxTokens;
  if (limit === undefined || turn === undefined) return;
  const { tokens, reservedTokens } = tree.of("Talk")[0]?.usage({ turn }) ?? { tokens: 0, reservedTokens: 0 };
  expect(tokens + reservedTokens).toBeLessThanOrEqual(limit);
}

const isOpen = (status: string | undefined) => status === "pending" || status === "running";

test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("no budget is passed with the seed %i", async (seed) => {
  const chance = random(seed);
  const broken: unknown[] = [];
  const opened: Tree[] = [];
  const look = () => {
    for (const one of opened) {
      try {
        expectWithin(one, one.of("Talk")[0]?.listUsage({ limit: 1, purpose: "turn" })[0]?.turnId ?? undefined);
      } catch (error) {
        // One whose life is over has nothing to say.
        if (error instanceof Error && error.name === "AssertionError") broken.push(error);
      }
    }
  };
  const script = (layer: Layer) => chancy(chance, layer !== "Leaf", look);
  const tree = await openTree({
    scripts: { Talk: script("Talk"), Middle: script("Middle"), Leaf: script("Leaf") },
    budgets: { Talk: budgetOf(chance, true), Middle: chance.chance(0.3) ? budgetOf(chance, false) : {} },
  });
  opened.push(tree);
  const isCalm = chance.chance(0.4);
  for (let turn = 0; turn < TURNS; turn++) {
    const at = tree.calls() + chance.int(8);
    const { submissionId } = await (await tree.agent()).runTurn({ mode: "submit", input: "Tea?" });
    const { of, calls } = tree;
    const isOver = () => !isOpen(of("Talk")[0]?.inspectSubmission(submissionId)?.status);
    if (!isCalm) {
      await eventually(() => calls() > at || isOver(), "some calls");
      const how = chance.pick(["stop", "die", "renew"]);
      if (how === "stop") (await tree.agent()).cancelAllChats();
      else if (how === "die") await tree.nextLife();
      else tree.renewTop();
    }
    await tree.stable();
  }
  const top = await tree.agent();
  await eventually(() => top.listAgentToolRuns().every(({ status }) => status !== "running"), "the end of all runs");
  await eventually(() => top.usage().reservedTokens === 0, "the end of all calls");
  expect(broken).toEqual([]);
  expect(top.usage().tokens).toBeGreaterThanOrEqual(tree.calls() * USED);
  if (isCalm) expectBooked(tree);
});
