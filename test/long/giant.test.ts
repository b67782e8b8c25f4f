import { expect, test, vi } from "vitest";
import { user } from "../chat/client.ts";
import { serverTool } from "../think/harness.ts";
import { expectPairs, readSent } from "./expect-kept.ts";
import { sayingsInPrompt, valuesIn } from "./facts.ts";
import { openLong, tokensOf } from "./long-agent.ts";
import { decent, readAssignment, valuesInSummary } from "./summariser.ts";
import { type Conversation, Talk } from "./talk.ts";
import { PATIENCE_MS } from "../support/until.ts";

const STEPS = 60;
const USABLE = 6_000;
const QUESTION = "Read all parts of the archive, and tell me the codes. Never open part 13.";

function archive(): Conversation {
  const talk = new Talk(
    {
      name: "archive",
      script: "English",
      system: "You read archives.",
      facts: Array.from({ length: STEPS }, (_, n) => ({
        key: `code ${n}`,
        from: { tool: "open_part", in: "output" },
        pattern: new RegExp(`"part":${n},"code":"(\\w+)"`, "u"),
      })),
    },
    1,
  );
  talk.chatter(6, { asks: ["What is it about?"], answers: ["It is about {n} boats."] });
  talk.round(QUESTION);
  return talk.end();
}

test("one answer that is longer than the window: it is cut between steps, and nothing is done twice", async () => {
  const conversation = archive();
  const [round] = conversation.rounds;
  if (round === undefined) throw new Error("no rounds");
  const opened: number[] = [];
  let made = 0;
  const kit = await openLong(conversation, {
    usable: USABLE,
    sameModel: true,
    maxSteps: STEPS + 5,
    says: ({ userText }) => {
      if (!userText.includes("archive") && !userText.includes("Go on")) return undefined;
      const n = made++;
      if (n >= STEPS) return { text: "These are the codes." };
      return { text: `Part ${n}.`, toolCalls: [{ toolName: "open_part", input: { path: `part-${n}`, part: n } }] };
    },
    tools: {
      open_part: serverTool<{ part: number }>(({ part }) => {
        opened.push(part);
        return { part, code: `C${part * 7919}x`, text: `Part ${part} says: ${"the sea is wide. ".repeat(90)}` };
      }),
    },
  });
  const agent = await kit.agent();
  // Said while the answer is being written, to be answered after it.
  const turn = kit.play(round);
  await vi.waitUntil(() => opened.length > 2, { timeout: PATIENCE_MS });
  const queued = agent.saveMessages([user("later", "Something else: how many boats?")]);
  expect((await turn).status).toBe("completed");
  expect((await queued).status).toBe("completed");

  // Each step once, in order; the stored answer has them all.
  expect(opened).toEqual(Array.from({ length: STEPS }, (_, n) => n));
  const answer = agent.messages.find(({ parts }) => parts.some(({ type }) => type === "tool-open_part"));
  expect(answer?.parts.filter(({ type }) => type === "tool-open_part")).toHaveLength(STEPS);
  const done = agent.listCompactions();
  expect(done.length).toBeGreaterThanOrEqual(3);
  expect(done.every(({ status }) => status === "done")).toBe(true);
  expect(done.filter(({ parts }) => parts !== null).length).toBeGreaterThanOrEqual(2);

  for (const [n, call] of kit.answers().entries()) {
    if (n > STEPS) break;
    expectPairs(call.prompt);
    expect(tokensOf(call), `request ${n}`).toBeLessThanOrEqual(USABLE);
    const { note, rest } = readSent(call);
    const texts = sayingsInPrompt(rest);
    // The question is there, whole and once, whatever was cut away.
    expect(texts.filter(({ text }) => text === round.ask)).toHaveLength(1);
    const found = valuesIn(conversation.facts, texts, valuesInSummary(note ?? ""));
    expect([...found.keys()].toSorted()).toEqual(Array.from({ length: n }, (_, i) => `code ${i}`).toSorted());
    // A step is summarised or shown, never both, and what was said with a call is shown with it.
    const shown = valuesIn(conversation.facts, texts);
    const words = texts.flatMap(({ text }) => /^Part (\d+)\.$/.exec(text)?.[1] ?? []);
    expect(words.map((number) => `code ${number}`)).toEqual([...shown.keys()]);
    const told = valuesInSummary(note ?? "");
    expect([...shown.keys()].filter((key) => told.has(key))).toEqual([]);
  }
  // What was said meanwhile waited: the model was told so, and read it only in its own turn.
  expect(done.some(({ carried }) => carried?.includes("Something else: how many boats?"))).toBe(true);
  const last = kit.answers().at(-1);
  expect(last?.userText).toBe("Something else: how many boats?");
  expect(kit.answers().filter(({ userText }) => userText.startsWith("Something else"))).toHaveLength(1);
  // Nobody summarised a step twice.
  const read = kit.summaries().flatMap((call) => [...valuesIn(conversation.facts, sayingsOf(call)).keys()]);
  expect(new Set(read).size).toBe(read.length);

  const before = last?.prompt ?? [];
  await kit.nextLife();
  kit.summariseAs(decent(conversation.facts));
  await kit.ask("Thank you.");
  const after = kit.answers().at(-1)?.prompt ?? [];
  expect(JSON.stringify(after.slice(0, before.length))).toBe(JSON.stringify(before));
});

function sayingsOf(call: Parameters<typeof readAssignment>[0]) {
  return readAssignment(call).messages.flatMap(({ sayings }) => sayings);
}
