import { setTimeout } from "node:timers/promises";

/** How long a condition may take on a busy machine before a test gives up. Nothing waits longer than it must. */
export const PATIENCE_MS = 45_000;
const LOOK_AGAIN_MS = 5;

/** Waits until `look` returns something other than false or undefined, and returns that. */
export async function until<T>(look: () => T | false | undefined, what = "what was waited for"): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`Never happened: ${what}`);
    await setTimeout(LOOK_AGAIN_MS);
  }
}
