// One run from its seed to its verdict, and the search for a shorter one that fails too.
import { type Action, type ActionKind, kinds, perform } from "./branches-actions.ts";
import { committed, openTurns, questions, Run } from "./branches-state.ts";
import { checkQuiet } from "./branches-checks.ts";
import { MAIN } from "./branches-oracle.ts";
import { seeded } from "../support/seeded.ts";
import { settle } from "../think/interleave-world.ts";

const STEP_MS = 250;
const MAX_STEPS_TO_REST = 200;
const MAX_SHRINKS = 300;
const FEWEST = 8;
const MOST = 40;
const FINE = 1_000_000;

export function actionsOf(seed: number): Action[] {
  const chance = seeded(seed * 7 + 3);
  const next = () => chance(FINE) / FINE;
  const sum = kinds.reduce((all, [, weight]) => all + weight, 0);
  const kind = (): ActionKind => {
    let left = next() * sum;
    for (const [name, weight] of kinds) if ((left -= weight) < 0) return name;
    return "send";
  };
  const length = FEWEST + chance(MOST - FEWEST);
  return Array.from({ length }, (_, n) => ({
    ...{ kind: n < 2 ? "send" : kind(), n, which: next(), how: next(), where: next() },
    quick: chance(3) === 0,
  }));
}

/** Plays a run. @returns what is wrong. */
export async function play(
  seed: number,
  actions: readonly Action[] = actionsOf(seed),
  look?: (run: Run) => void,
): Promise<string[]> {
  const run = new Run(seed);
  const { world, wrong } = run;
  try {
    for (const client of world.clients) world.connect(client);
    await settle();
    for (const action of actions) {
      await perform(run, action);
      if (action.kind === "quiet") await quiet(run, false);
      if (wrong.length > 0) break;
    }
    if (wrong.length === 0) await quiet(run, true);
    if (wrong.length === 0) await restarted(run);
    if (wrong.length === 0) await emptied(run);
  } catch (thrown) {
    wrong.push(`it threw ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`);
  } finally {
    look?.(run);
    await world.close();
  }
  return wrong;
}

/** Lets everything come to its end; at the `end` of the run, questions are answered too. */
async function quiet(run: Run, end: boolean): Promise<void> {
  const { world } = run;
  if (end) world.calm = true;
  for (let i = 0; i < MAX_STEPS_TO_REST; i++) {
    world.power.commits = Number.POSITIVE_INFINITY;
    world.power.undone = Number.POSITIVE_INFINITY;
    await settle();
    await committed(run, () => {});
    await settle();
    const open = end ? questions(run) : [];
    for (const { session, toolCallId } of open) await world.call("answerApproval", toolCallId, true, { session });
    const waits = world.chat.waitingTurns().length > 0 || world.chat.turns.length > 0;
    if (!waits && open.length === 0 && (!end || openTurns(world).length === 0)) {
      await settle();
      await world.wake();
      return checkQuiet(run);
    }
    await world.clock.advance(STEP_MS);
  }
  run.wrong.push(`it does not come to rest: ${JSON.stringify(openTurns(world))}`);
}

/** What is at rest stays as it is when the host starts again, and clients that come back are told the same. */
async function restarted(run: Run): Promise<void> {
  await run.world.restart();
  await run.world.wake();
  await quiet(run, true);
}

const LEFT = ["message", "turn", "stream", "tool_call", "compaction", "session"];

/** Nothing is left of sessions that are deleted. */
async function emptied(run: Run): Promise<void> {
  const { world, oracle } = run;
  for (const { id, viewOf } of oracle.sessions.values())
    if (viewOf === undefined && id !== MAIN) await world.call("deleteSession", id);
  await world.call("deleteSession", MAIN);
  await world.wake();
  for (const table of LEFT) {
    const rows = world.rows(`SELECT * FROM perdure_${table}`);
    if (rows.length > 0) run.wrong.push(`${table} is left: ${JSON.stringify(rows).slice(0, 400)}`);
  }
  // What was learned about a model is of no session.
  const cells = world.rows<{ key: string }>("SELECT key FROM perdure_cell WHERE key NOT LIKE 'learned:%'");
  if (cells.length > 0) run.wrong.push(`cells are left: ${cells.map(({ key }) => key).join(" ")}`);
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
    `Fewer actions fail too: ${list(short.actions)}`,
    ...short.wrong.map((text) => `- ${text}`),
    `Play it again: PERDURE_SEED=${seed} npx vitest run --project main test/sessions/branches-property.test.ts`,
  ].join("\n");
}

function describe({ kind, n, which, how, where, quick }: Action): string {
  return `${n} ${kind}(${which.toFixed(2)}, ${how.toFixed(2)}, ${where.toFixed(2)}${quick ? ", quick" : ""})`;
}
