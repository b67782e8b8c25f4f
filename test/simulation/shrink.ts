// Looks for the shortest beginning of a run that fails too.
import { play } from "./run.ts";

const MOST_ACTIONS = 64;

/** @returns how many actions of the run are enough for it to fail; undefined when nothing less than all are. */
export async function shrink(seed: number): Promise<number | undefined> {
  for (let actions = 1; actions < MOST_ACTIONS; actions = Math.ceil(actions * 1.3)) {
    if ((await play(seed, { actions })).broken.length > 0) return actions;
  }
  return undefined;
}
