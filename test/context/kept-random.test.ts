// Conversations of chance: whatever happens to them, nothing of them is missing from a request without a word.
import { expect, test } from "vitest";
import { PerdureError } from "../../src/base/error.ts";
import { CUT_OFF, STOPPED } from "../../src/context/compactor.ts";
import { seedsOf } from "../support/seed-count.ts";
import { type Random, random } from "../think/interleave-random.ts";
import { answer, text, user } from "./paths.ts";
import { marksIn, MOODS, World } from "./chance.ts";
import { checkRequest } from "./requests.ts";

const SEEDS = seedsOf(600, 36);
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
  kill: 1,
  take: 1,
  mood: 1.5,
  background: 0.5,
} as const;

type Op = keyof typeof WEIGHTS;

async function play(world: World, op: Op, chance: Random): Promise<void> {
  const agent = await world.open();
  const { session } = agent;
  const path = () => session.getHistory();
  const some = () => path()[chance.int(path().length)];
  const ask = async (cut = new Promise<void>(() => {})) => {
    world.own = [];
    world.turn = [];
    const input = user(world.mark("id").slice(1, -1), world.words("u", 300));
    await Promise.race([agent.runTurn({ input }).catch(() => undefined), cut]);
    if (world.power.on) world.power.commits = Number.POSITIVE_INFINITY;
    else await world.kill();
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
      world.modelId = chance.pick(["one", "two"]);
      return;
    case "life":
      return same(world, () => world.nextLife());
    case "restart":
      return same(world, () => world.restart());
    case "kill": {
      if (chance.chance(0.2)) return same(world, () => world.kill());
      world.power.commits = 1 + chance.int(25);
      return ask(world.power.ended);
    }
    case "compact":
      return void (await agent.compact().catch(() => undefined));
    case "undo": {
      const made = agent.listCompactions().find(({ inEffect }) => inEffect);
      if (made !== undefined) await agent.undoCompaction(made.id).catch(() => undefined);
      return;
    }
    case "take": {
      const before = await world.shown();
      const made = await agent.compact().catch(() => undefined);
      if (made === undefined) return;
      if (chance.chance(0.5)) await agent.addMessages(world.round(50));
      const undone = await agent.undoCompaction(made.id).catch((error: unknown) => error);
      // It would be too long for this model.
      if (undone instanceof PerdureError && undone.code === "limit") return;
      if (undone instanceof Error) throw undone;
      // What was said since stands behind it.
      const after = await world.shown();
      if (JSON.stringify(after.slice(0, before.length)) !== JSON.stringify(before)) world.faults.push("undo");
      return;
    }
    case "mood":
      world.mood = chance.pick(MOODS);
      return;
    case "background":
      world.background = !world.background;
  }
}

/** Another life reads the same. */
async function same(world: World, change: () => Promise<void>): Promise<void> {
  const before = await world.shown();
  await change();
  const after = await world.shown();
  if (JSON.stringify(after) !== JSON.stringify(before)) world.faults.push("another life reads something else");
}

interface Asked {
  readonly seq: number;
  readonly turn: number;
  readonly step: number;
  readonly status: string;
}

/**
 * A turn begins two summaries at most, and more only when it has filled the window again by itself: after one that
 * counted, and an answer of the model since. Two in vain at most. Each is one call, or one for each piece of what is too
 * long for one: no call reads what another has read, and none reads nothing.
 */
function checkAsked(world: World): void {
  const rows = world.port?.sql<Asked>(
    `SELECT seq, turn, step, status FROM perdure_compaction WHERE kind = 'summary' AND turn IS NOT NULL
      AND status <> 'started' AND coalesce(error, '') NOT IN (?, ?) ORDER BY seq`,
    ...[CUT_OFF, STOPPED],
  );
  for (const turn of Map.groupBy(rows ?? [], (row) => row.turn).values()) {
    const inVain = turn.filter(({ status }) => status === "failed").length;
    if (inVain > 2) world.faults.push(`a turn asked for a summary ${inVain} times in vain`);
    let begun: Asked[] = [];
    for (const row of turn) {
      const counted = begun.findLastIndex(({ status, step }) => status !== "failed" && step < row.step);
      begun = [...begun.slice(counted + 1), row];
      if (begun.length > 2) world.faults.push(`a turn asked for a summary ${begun.length} times and had not gone on`);
    }
  }
  for (const [seq, requests] of world.reads) {
    const marks = requests.flatMap((some) => [...new Set(some)]);
    if (marks.length !== new Set(marks).size) world.faults.push(`for summary ${seq} something was read twice`);
    if (requests.some((some) => some.length === 0)) world.faults.push(`for summary ${seq} nothing was read`);
  }
}

test.each(SEEDS)("with the seed %i", async (seed) => {
  const chance = random(seed);
  const world = new World(chance, checkRequest);
  world.usable = chance.pick([8_000, 8_000, 120_000]);
  const ops: Op[] = [];
  for (let i = 0; i < OPS; i++) {
    const op = i === OPS - 1 ? "ask" : chance.weighted(WEIGHTS);
    ops.push(op);
    await play(world, op, chance);
    checkAsked(world);
    expect(world.faults, ops.join(" ")).toEqual([]);
  }
  expect(world.requests).toBeGreaterThan(0);
});
