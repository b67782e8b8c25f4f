// What is said of a run that failed.
import type { Verdict } from "./run.ts";

const SHOWN_LINES = 40;
const SHOWN_WIDTH = 240;

/** The seed, the promises that broke, the last of what happened, and how to see it all. */
export function seedsTold({ seed, broken, trace }: Verdict, actions?: number): string {
  const last = trace
    .slice(-SHOWN_LINES)
    .map((line) => (line.length > SHOWN_WIDTH ? `${line.slice(0, SHOWN_WIDTH)}…` : line));
  const again = `npm run simulate -- --seed ${seed}${actions === undefined ? "" : ` --actions ${actions}`}`;
  const wrong = broken.map((promise) => `- ${promise}`);
  return [
    `Seed ${seed} broke a promise:`,
    ...wrong,
    "",
    "The last that happened:",
    ...last,
    "",
    `All of it: ${again}`,
  ].join("\n");
}
