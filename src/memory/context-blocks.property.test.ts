import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { type Random, seeded } from "../../test/support/seeded.ts";
import { ContextBlocks } from "./context-blocks.ts";

// Any order of writes, changes and new lives, in several sessions: the blocks hold what was written last, and a frozen
// prompt changes when somebody asks for it and at no other time.

const RUNS = 30;
const EVENTS = 60;
const SESSIONS = ["one", "two"];
const DECLARED = ["memory", "team"];
const LABELS = [...DECLARED, "notes", "more"];
const MAX_TOKENS = 12;

/** What a careful bystander knows. */
interface World {
  /** By session and label; shared ones by label. */
  readonly texts: Map<string, string>;
  /** By session. */
  readonly there: Map<string, Set<string>>;
  readonly prompts: Map<string, string>;
}

const isShared = (label: string) => label === "team" || label === "more";
const nameOf = (session: string, label: string) => (isShared(label) ? label : `${session}/${label}`);
const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T;

test("blocks hold what was written, and frozen prompts stay", async () => {
  const { host } = await probeHost();
  const seen = new Set<string>();
  for (let run = 0; run < RUNS; run++) {
    const random = seeded(run);
    const idOf = (session: string) => `${run}-${session}`;
    const declare = (session: string) =>
      new ContextBlocks(host, { session: idOf(session) })
        .withContext("memory", { maxTokens: MAX_TOKENS })
        .withContext("team", { shared: true })
        .withCachedPrompt();
    const lives = new Map(SESSIONS.map((session) => [session, declare(session)]));
    const world: World = {
      texts: new Map(),
      there: new Map(SESSIONS.map((session) => [session, new Set(DECLARED)])),
      prompts: new Map(),
    };
    // Shared texts are those of all runs.
    for (const label of LABELS.filter(isShared)) {
      const blocks = lives.get("one");
      await blocks?.addContext(label, { shared: true });
      await blocks?.replaceContextBlock(label, "");
      if (!DECLARED.includes(label)) blocks?.removeContext(label);
    }
    for (let event = 0; event < EVENTS; event++) {
      const session = pick(random, SESSIONS);
      const blocks = lives.get(session) ?? declare(session);
      const what = await step(blocks, session, random, world, event);
      if (what === "life") lives.set(session, declare(session));
      seen.add(what);
      for (const [name, other] of lives) expectTrue(other, name, world);
      expect(await lives.get(session)?.systemPrompt()).toBe(promptOf(world, session, await blocks.systemPrompt()));
    }
  }
  expect([...seen].sort()).toEqual(["add", "append", "life", "refresh", "refuse", "remove", "replace"]);
});

/** The first prompt that a session shows is frozen. */
function promptOf(world: World, session: string, shown: string): string {
  const known = world.prompts.get(session);
  if (known === undefined) world.prompts.set(session, shown);
  return known ?? shown;
}

async function step(
  blocks: ContextBlocks,
  session: string,
  random: Random,
  world: World,
  event: number,
): Promise<string> {
  const label = pick(random, LABELS);
  const there = world.there.get(session);
  const name = nameOf(session, label);
  switch (random(6)) {
    case 0: {
      await blocks.addContext(label, { shared: isShared(label), ...(label === "memory" && { maxTokens: MAX_TOKENS }) });
      there?.add(label);
      return "add";
    }
    case 1: {
      const erase = random(2) === 0;
      const was = there?.delete(label) === true;
      expectSame(blocks.removeContext(label, { erase }), was);
      if (was && erase) world.texts.delete(name);
      return "remove";
    }
    case 2: {
      const prompt = await blocks.refreshSystemPrompt();
      for (const one of LABELS) expectSame(prompt.includes(`name="${one}"`), there?.has(one));
      world.prompts.set(session, prompt);
      return "refresh";
    }
    case 3:
      return "life";
    default: {
      const append = random(2) === 0;
      const content = `${event}`.repeat(1 + random(4));
      const before = world.texts.get(name) ?? "";
      const after = append && before !== "" ? `${before}\n${content}` : content;
      const fits = label !== "memory" || Math.ceil(after.length / 4) <= MAX_TOKENS;
      const writing = append ? blocks.appendContextBlock(label, content) : blocks.replaceContextBlock(label, content);
      const written = await writing.then(
        () => true,
        () => false,
      );
      expectSame(written, fits && there?.has(label));
      if (!written) return "refuse";
      world.texts.set(name, after);
      return append ? "append" : "replace";
    }
  }
}

function expectSame(is: unknown, meant: unknown): void {
  expect(is).toBe(meant);
}

function expectTrue(blocks: ContextBlocks, session: string, { texts, there }: World): void {
  const found = new Map(blocks.getContextBlocks().map(({ label, content }) => [label, content]));
  expect(new Set(found.keys())).toEqual(there.get(session));
  for (const [label, content] of found) expect(content).toBe(texts.get(nameOf(session, label)) ?? "");
}
