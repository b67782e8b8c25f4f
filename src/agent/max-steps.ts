import { PerdureError } from "../base/error.ts";

/** What extensions say of a turn. Of steps they may ask for fewer than the agent allows, and not for more. */
export function withinSteps<C extends { readonly maxSteps?: number }>(
  said: C | undefined,
  most: () => number,
): C | undefined {
  return said?.maxSteps === undefined ? said : { ...said, maxSteps: Math.min(said.maxSteps, checkMaxSteps(most())) };
}

/** @throws PerdureError `bad_config` for what is no number of steps */
export function checkMaxSteps(maxSteps: number): number {
  if (typeof maxSteps === "number" && !Number.isNaN(maxSteps)) return maxSteps;
  throw new PerdureError("bad_config", `maxSteps must be a number of model calls, not ${String(maxSteps)}.`);
}
