// One run from its seed to its verdict, and the search for a shorter one that fails too.
import { type Action, actionsOf, answer, perform, questions } from "./interleave-actions.ts";
import { factsOf } from "./interleave-facts.ts";
import { check } from "./interleave-oracle.ts";
import { hashOf, random } from "./interleave-random.ts";
import { setupOf } from "./interleave-setup.ts";
import { settle, World } from "./interleave-world.ts";

const STEP_MS = 250;
/** Each is a quarter of a second: more than all waits of a run together. */
const MAX_STEPS_TO_REST = 400;
const MAX_SHRINKS = 400;

/** Plays a run. @returns what is wrong. */
export async function play(seed: number, actions: readonly Action[] = actionsOf(seed)): Promise<string[]> {
  const world = new World(seed, setupOf(seed));
  try {
    for (const action of actions) await perform(world, action);
    const tired = await rest(world);
    const wrong = [...tired, ...check(world)];
    if (wrong.length > 0) return wrong;
    return await checkRestart(world);
  } catch (thrown) {
    return [`it threw ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`];
  } finally {
    await world.close();
  }
}

/** Lets everything come to its end: questions are answered, time passes. */
export async function rest(world: World): Promise<string[]> {
  const chance = random(hashOf(`rest ${world.seed}`));
  world.calm = true;
  world.power.commits = Number.POSITIVE_INFINITY;
  for (let i = 0; i < MAX_STEPS_TO_REST; i++) {
    await settle();
    await world.wake();
    const open = questions(world);
    for (const question of open) await answer(world, question, chance.next());
    const turns = factsOf(world).turns.filter(({ status }) => /held|accepted|running/.test(status));
    if (turns.length === 0 && world.chat.running === undefined && open.length === 0) {
      await settle();
      return [];
    }
    await world.clock.advance(STEP_MS);
  }
  return ["it does not come to rest"];
}

/** What is at rest stays as it is when the host starts again. */
async function checkRestart(world: World): Promise<string[]> {
  const calls = world.record.calls.length;
  const runs = world.record.runs.length;
  const before = JSON.stringify({ ...factsOf(world), calls: [] });
  await world.restart();
  await world.wake();
  await world.clock.advance(STEP_MS);
  await world.wake();
  const wrong: string[] = [];
  if (world.record.calls.length !== calls) wrong.push("a restart at rest called the model");
  if (world.record.runs.length !== runs) wrong.push("a restart at rest ran a tool");
  if (JSON.stringify({ ...factsOf(world), calls: [] }) !== before)
    wrong.push("a restart at rest changed what is stored");
  return wrong;
}

/** Leaves out actions as long as it still fails. */
export async function shrink(seed: number): Promise<{ actions: readonly Action[]; wrong: readonly string[] }> {
  let actions: readonly Action[] = actionsOf(seed);
  let wrong: readonly string[] = await play(seed, actions);
  let tries = 0;
  for (let size = actions.length >> 1; size >= 1; size >>= 1) {
    for (let from = 0; from < actions.length && tries < MAX_SHRINKS; tries++) {
      const fewer = actions.toSpliced(from, size);
      const found = await play(seed, fewer);
      if (found.length > 0) [actions, wrong] = [fewer, found];
      else from += size;
    }
  }
  return { actions, wrong };
}

/** What to read when a run has failed. */
export async function report(seed: number, wrong: readonly string[]): Promise<string> {
  const short = await shrink(seed);
  const list = (actions: readonly Action[]) => actions.map(describe).join(", ");
  return [
    `The run ${seed} went wrong:`,
    ...wrong.map((text) => `- ${text}`),
    `Its actions: ${list(actionsOf(seed))}`,
    `Fewer fail too: ${list(short.actions)}`,
    ...short.wrong.map((text) => `- ${text}`),
    `Its settings: ${JSON.stringify(setupOf(seed))}`,
    `Play it again: PERDURE_SEED=${seed} npx vitest run --project main test/think/interleave.test.ts`,
  ].join("\n");
}

function describe({ kind, n, which, how, quick }: Action): string {
  return `${n} ${kind}(${which.toFixed(2)}, ${how.toFixed(2)}${quick ? ", quick" : ""})`;
}
