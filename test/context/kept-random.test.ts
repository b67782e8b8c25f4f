// Conversations of chance: whatever happens to them, nothing of them is missing from a request without a word.
import { expect, test } from "vitest";
import { seedCount } from "../support/seed-count.ts";
import { type Random, random } from "../think/interleave-random.ts";
import { answer, text, user } from "./paths.ts";
import { marksIn, World } from "./chance.ts";
import { checkRequest } from "./requests.ts";

const SEEDS = seedCount(1_200, 24);
const OPS = 9;

const WEIGHTS = {
  ask: 6,
  bring: 2,
  greet: 0.2,
  pin: 2,
  unpin: 0.5,
  edit: 1,
  fork: 1,
  back: 0.7,
  window: 2,
  life: 0.7,
  restart: 0.3,
  compact: 1,
  undo: 0.5,
  cut: 1,
  mute: 0.4,
} as const;

type Op = keyof typeof WEIGHTS;

async function play(world: World, op: Op, chance: Random): Promise<void> {
  const agent = await world.open();
  const { session } = agent;
  const path = () => session.getHistory();
  const some = () => path()[chance.int(path().length)];
  const ask = async (cut = new Promise<void>(() => {})) => {
    world.own = [];
    const input = user(world.mark("id").slice(1, -1), world.words("u", 300));
    await Promise.race([agent.runTurn({ input }).catch(() => undefined), cut]);
    await (await world.open()).waitUntilStable();
    world.own = [];
  };
  switch (op) {
    case "ask":
      return ask();
    case "cut":
      return ask(new Promise((resolve) => void (world.cut = resolve)));
    case "bring": {
      const size = chance.pick([50, 600, 4_000, 9_500]);
      const messages = Array.from({ length: 1 + chance.int(size > 4_000 ? 16 : 8) }, () => world.round(size)).flat();
      return agent.addMessages(messages);
    }
    case "greet":
      if (path().length > 0) return;
      return agent.addMessages([answer("greeting", text(world.words("a", 20)))]);
    case "pin": {
      const one = some();
      if (one !== undefined) session.pin(one.id);
      return;
    }
    case "unpin": {
      const one = path().find(({ id }) => session.isPinned(id));
      if (one !== undefined) session.unpin(one.id);
      return;
    }
    case "edit": {
      const one = path().filter(({ role }) => role === "user")[chance.int(5)];
      const words = world.words("u", 200);
      // A summary tells of what was said before it was changed.
      for (const [mark] of marksIn(words)) world.read.add(mark);
      if (one !== undefined) session.updateMessage({ ...one, parts: [text(words)] });
      return;
    }
    case "fork": {
      const one = some();
      if (one !== undefined) agent.switchSession(agent.forkSession(undefined, { at: one.id }).id);
      return;
    }
    case "back": {
      const sessions = agent.getSessions();
      const one = sessions[chance.int(sessions.length)];
      if (one !== undefined) agent.switchSession(one.id);
      return;
    }
    case "window":
      world.usable = chance.pick([2_500, 6_000, 20_000, 120_000, 120_000]);
      return;
    case "life":
      return world.nextLife();
    case "restart":
      return world.restart();
    case "compact":
      return void (await agent.compact().catch(() => undefined));
    case "undo": {
      const made = agent.listCompactions().find(({ inEffect }) => inEffect);
      if (made !== undefined) await agent.undoCompaction(made.id).catch(() => undefined);
      return;
    }
    case "mute":
      world.mute = !world.mute;
  }
}

test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("with the seed %i", async (seed) => {
  const chance = random(seed);
  const world = new World(chance, checkRequest);
  world.usable = chance.pick([8_000, 8_000, 120_000]);
  const ops: Op[] = [];
  for (let i = 0; i < OPS; i++) {
    const op = i === OPS - 1 ? "ask" : chance.weighted(WEIGHTS);
    ops.push(op);
    await play(world, op, chance);
    expect(world.faults, ops.join(" ")).toEqual([]);
  }
  expect(world.requests).toBeGreaterThan(0);
});
