// What the user said is carried by code, whatever a summariser forgets; and a summary changes by sections.
import type { Think } from "perdure";
import { expect, test } from "vitest";
import { long, openSmall, type Setup, shown } from "./compacting.ts";

const FACTS = ["My boat is the Ada 17.", "Never call before nine.", "The invoice goes to Ole in Bergen."];
/** A summariser that forgets all that it reads. */
const forgets = (): NonNullable<Setup["summary"]> => {
  let count = 0;
  return () => `## Goal\nNothing is known (${++count}).`;
};

async function talk(setup: Setup = {}) {
  const kit = await openSmall({ summary: forgets(), ...setup });
  for (const fact of FACTS) await kit.ask(fact);
  for (let i = 0; i < 9; i++) expect(await kit.ask(long(`question ${i}`, 900))).toMatchObject({ status: "completed" });
  return kit;
}

type Kit = Awaited<ReturnType<typeof talk>>;

function expectFacts(kit: Kit) {
  for (const call of kit.turns().slice(FACTS.length)) for (const fact of FACTS) expect(shown(call)).toContain(fact);
}

const done = async (kit: Kit) => (await kit.compactions()).filter(({ status }) => status === "done");

test("facts of the first messages are in every request, through one compaction after the other and a restart", async () => {
  const kit = await talk();
  expect((await done(kit)).length).toBeGreaterThan(1);
  await kit.restart();
  await kit.ask("still there?");
  expectFacts(kit);
  const [row] = (await done(kit)).slice(-1);
  expect(row?.summary).not.toContain("Ada");
  for (const fact of FACTS) expect(row?.carried).toContain(`\n- ${fact}\n`);
  // Within a share of what may be sent.
  expect(row?.carried?.length).toBeLessThan(3_200);
});

test("in a fork, and when the messages themselves are deleted because there are too many", async () => {
  const kit = await talk({ settings: { maxPersistedMessages: 18 } as Partial<Think> });
  expect((await kit.stored()).length).toBeLessThanOrEqual(18);
  const agent = await kit.agent();
  agent.switchSession(agent.forkSession(undefined, {}).id);
  await kit.ask("and here?");
  for (let i = 0; i < 4; i++) await kit.ask(long(`more ${i}`, 900));
  expectFacts(kit);
});

test("undone, the very bytes are sent that were sent before, and the words are where they were said", async () => {
  const kit = await openSmall({ summary: forgets() });
  for (const fact of FACTS) await kit.ask(fact);
  for (let i = 0; i < 3; i++) await kit.ask(long(`question ${i}`, 700));
  const before = shown(kit.turns().at(-1));
  const agent = await kit.agent();
  const made = await agent.compact();
  expect(made.carried).toContain(FACTS[0]);
  await agent.undoCompaction(made.id);
  await kit.ask("go on");
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
});

test("what was said into an answer is carried too, when the answer is covered", async () => {
  const kit = await openSmall({ summary: forgets() });
  const agent = await kit.agent();
  const text = (words: string) => ({ type: "text" as const, text: words });
  await agent.addMessages([
    { id: "u1", role: "user", parts: [text("Begin.")] },
    {
      ...{ id: "a1", role: "assistant" },
      parts: [
        { type: "step-start" },
        text("I begin."),
        { type: "steering-message", id: "s1", parts: [text(FACTS[0] ?? "")] } as never,
        { type: "step-start" },
        text("I see."),
      ],
    },
  ]);
  for (let i = 0; i < 6; i++) await kit.ask(long(`question ${i}`, 900));
  expect((await done(kit)).length).toBeGreaterThan(0);
  expect(shown(kit.turns().at(-1))).toContain(FACTS[0]);
});

test("a later summary changes the sections that the model writes; the others stay byte for byte", async () => {
  const answers = [
    "## The user\n- sails  the Ada 17\n\n## What was talked about\nBoats.\n\n## Promises\nto call Ole",
    "## What was talked about\nBoats, and berths.",
    "(no change)",
    "Here are the changes:\n\n## Promises\n(empty)",
  ];
  const kit = await openSmall({ summary: () => answers.shift() ?? "(no change)" });
  for (let i = 0; i < 20; i++) await kit.ask(long(`question ${i}`, 900));
  const summaries = (await done(kit)).map(({ summary }) => summary);
  expect(summaries.length).toBeGreaterThan(2);
  expect(answers).toEqual([]);
  const user = "## The user\n- sails  the Ada 17\n\n";
  for (const summary of summaries) expect(summary?.startsWith(`${user}## What was talked about\nBoats`)).toBe(true);
  expect(summaries.at(-1)).toBe(`${user}## What was talked about\nBoats, and berths.`);
});
