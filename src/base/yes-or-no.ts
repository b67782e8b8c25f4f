import { PerdureError } from "./error.ts";

/**
 * The answer of a hook that must say true or false, at once. Anything else is a mistake and must not pass for a yes, as a promise
 * would.
 * @param hook names it in the error
 * @throws PerdureError `bad_config`
 */
export function yesOrNo(answer: unknown, hook: string): boolean {
  if (typeof answer === "boolean") return answer;
  if (answer instanceof Promise) {
    // It may reject, which nobody waits for.
    answer.catch(() => undefined);
    throw new PerdureError("bad_config", `${hook} returned a promise. It must return true or false, synchronously.`);
  }
  throw new PerdureError(
    "bad_config",
    `${hook} returned ${nameOf(answer)}. It must return true or false, synchronously.`,
  );
}

function nameOf(answer: unknown): string {
  if (answer === undefined || answer === null) return String(answer);
  return `a value of type ${typeof answer}`;
}
